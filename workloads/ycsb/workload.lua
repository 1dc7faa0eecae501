-- YCSB's core workloads A to F: B. Cooper, A. Silberstein, E. Tam, R. Ramakrishnan, R. Sears, "Benchmarking Cloud
-- Serving Systems with YCSB", SoCC 2010, Table 2 and section 4. Scale factor 1 has 1,000 records of 10 fields of
-- 100 characters, the defaults of its property files (recordcount, fieldcount, fieldlength).
-- Which keys are popular is said by the load's access. The transactions are key-value verbs, so they run on systems with
-- and without SQL; the invariants need SQL.

local w = workload "ycsb"
w:describe "YCSB's core workloads A to F on a table of records"

local fields = w:option("fields", "integer", 10, "how many fields a record has")
local length = w:option("field_length", "integer", 100, "how long a field is, at most, in characters")
local law = w:option("field_length_distribution", { "constant", "uniform", "zipfian" }, "constant",
  "how long fields are: all the same, or from 1 character on, each length alike or short ones more often")
local order = w:option("insert_order", { "hashed", "ordered" }, "hashed",
  "whether neighbours in the order of loading are neighbours in the index")
local run = { data = false }
local longest = w:option("max_scan_length", "integer", 100, "how many records a scan reads, at most", run)
local read_all = w:option("read_all_fields", "boolean", true, "read all fields, or one", run)
local write_all = w:option("write_all_fields", "boolean", false, "update all fields, or one", run)

local in_transaction = w:can "transactions"

local THETA = 0.99

local function key_of(number)
  return order == "hashed" and "user" .. bit.fnv1a(number) or ("user%019d"):format(number)
end

-- Fields by the zipfian law are cut out of one text.
local letter, text = 1, {}
for at = 1, 2 * length do
  letter = letter * 16807 % 2147483647
  text[at] = string.char(97 + letter % 26)
end
text = table.concat(text)

local function cut(_, random, letters)
  local first = random(length)
  return text:sub(first, first + letters - 1)
end

-- A table and its SQL have as many fields as the option says.
local names, definitions, filled = {}, {}, {}
local columns = {
  { "number", serial(), stored = false },
  { "ycsb_key", derive("text", { "number" }, function(_, _, number) return key_of(number) end) },
}
for at = 1, fields do
  local name = "field" .. at - 1
  names[at], definitions[at] = name, name .. " text NOT NULL"
  filled[at] = ("length(%s) NOT BETWEEN 1 AND %d"):format(name, length)
  if law == "zipfian" then
    columns[#columns + 1] = { "length" .. at, zipfian(1, length, THETA), stored = false }
    columns[#columns + 1] = { name, derive("text", { "length" .. at }, cut) }
  else
    columns[#columns + 1] = { name, letters(law == "uniform" and 1 or length, length) }
  end
end
w:table("usertable", { rows = 1000 * w.scale, key = "ycsb_key", columns = columns })

local key_is = w.dialect == "postgres" and " NOT NULL, " or " PRIMARY KEY, "
w:schema("create", "CREATE TABLE usertable (ycsb_key varchar(255)" .. key_is .. table.concat(definitions, ", ") .. ")")
w:schema("keys", ({
  postgres = "ALTER TABLE usertable ADD PRIMARY KEY (ycsb_key); ANALYZE usertable",
  mysql = "ANALYZE TABLE usertable",
})[w.dialect] or "ANALYZE")
w:schema("drop", "DROP TABLE IF EXISTS usertable")

w:statement("records_are_counted", ([[
SELECT records, CAST(:tally_inserted AS decimal(30)) AS inserted, CAST(:tally_deleted AS decimal(30)) AS deleted
FROM (SELECT count(*) AS records FROM usertable) AS u
WHERE abs(records - %d - CAST(:tally_inserted AS decimal(30)) + CAST(:tally_deleted AS decimal(30)))
  > CAST(:uncertain_inserted AS decimal(30)) + CAST(:uncertain_deleted AS decimal(30))]]):format(1000 * w.scale))
w:statement("fields_are_filled",
  "SELECT ycsb_key FROM usertable WHERE " .. table.concat(filled, " OR ") .. " LIMIT 10")

local function pick_field(pick)
  local least, most = length, length
  if law == "uniform" then
    least = 1
  elseif law == "zipfian" then
    least = pick.zipf(length, THETA)
    most = least
  end
  return pick.letters(least, most)
end

local function read(tx, pick, key)
  return tx:read("usertable", key, not read_all and names[pick.integer(1, fields)] or nil)
end

-- A call takes its values at once, so that all calls can share these tables.
local record, changed = {}, {}
for at = 1, fields do changed[at] = {} end

local function whole_record(pick)
  for at = 1, fields do record[names[at]] = pick_field(pick) end
  return record
end

local function update(tx, pick, key)
  if write_all then return tx:update("usertable", key, whole_record(pick)) end
  local at = pick.integer(1, fields)
  changed[at][names[at]] = pick_field(pick)
  return tx:update("usertable", key, changed[at])
end

w:transaction("read", { read_only = true, help = "reads a record" }, function(tx, pick)
  read(tx, pick, key_of(pick.usertable()))
end)

w:transaction("update", { help = "updates a record" }, function(tx, pick)
  update(tx, pick, key_of(pick.usertable()))
end)

w:transaction("insert", { help = "inserts a record" }, function(tx, pick)
  local number = pick.new("usertable")
  tx:insert("usertable", key_of(number), whole_record(pick))
  tx:inserted("usertable", number)
  tx:tally("inserted", 1)
end)

w:transaction("scan", { read_only = true, help = "reads records in the order of their keys" }, function(tx, pick)
  tx:scan("usertable", key_of(pick.usertable()), pick.integer(1, longest))
end)

w:transaction("read_modify_write", { help = "reads a record and updates it" }, function(tx, pick)
  local key = key_of(pick.usertable())
  if not in_transaction then
    read(tx, pick, key)
    update(tx, pick, key)
    return
  end
  tx:begin()
  read(tx, pick, key)
  update(tx, pick, key)
  tx:commit()
end)

w:transaction("delete", { help = "deletes a record (none of the six workloads)" }, function(tx, pick)
  -- Each loaded one once; then any, which may be gone.
  local number = pick.once("usertable") or pick.usertable()
  local deleted = tx:delete("usertable", key_of(number))
  tx:tally("deleted", deleted)
end)

-- Table 2 of the paper: which records are popular.
local zipfian = { access = "zipfian-0.99" }
w:mix("A", { read = 50, update = 50 }, zipfian)
w:mix("B", { read = 95, update = 5 }, zipfian)
w:mix("C", { read = 100 }, zipfian)
w:mix("D", { read = 95, insert = 5 }, { access = "latest-zipfian-0.99" })
w:mix("E", { scan = 95, insert = 5 }, zipfian)
w:mix("F", { read = 50, read_modify_write = 50 }, zipfian)
w:mix("RO", { read = 100 })
w:mix("RW", { read = 50, update = 50 })
w:mix("WO", { update = 100 })
-- OLTP-Bench's default.
w:mix("SIX", { read = 50, insert = 5, scan = 15, update = 10, delete = 10, read_modify_write = 10 })

w:invariant("records_are_counted", "there are as many records as were loaded and inserted, less those deleted")
w:invariant("fields_are_filled", "no field is empty, or longer than the option says")
