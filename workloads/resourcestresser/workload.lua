-- ResourceStresser: D. Difallah, A. Pavlo, C. Curino, P. Cudre-Mauroux, "OLTP-Bench", PVLDB 7(4), 2013, section 3 and
-- Table 1: pairs of transactions that each take one resource: processor, storage, locks. The paper gives tables,
-- columns and purposes; the statements are our own. Scale factor 1 has 100 rows to hash, 1,000 to write, 100 to lock.

local w = workload "resourcestresser"
w:describe "ResourceStresser: transactions that take processor, storage or locks"

local run = { data = false }
local nested = w:option("nested", "integer", 5, "how often a text is hashed", run)
local each = w:option("each", "integer", 10, "how many queries or rows a transaction has", run)
local held = w:option("held", "number", 0.001, "how long locks are held, in seconds; not in SQLite", run)

local COLUMNS, WIDTH = 16, 255
local hashed, written, locked = math.ceil(100 * w.scale), math.ceil(1000 * w.scale), math.ceil(100 * w.scale)

local wide, definitions, settings, whole = { { "empid", serial() } }, {}, {}, {}
for at = 1, COLUMNS do
  local name = "data" .. at
  wide[at + 1] = { name, at == 1 and letters(WIDTH, WIDTH) or copy("data1") }
  definitions[at] = name .. " varchar(255) NOT NULL"
  settings[at] = name .. " = :data"
  whole[at] = name .. " <> data1"
end

w:table("cputable", { rows = hashed, columns = { { "empid", serial() }, { "passwd", letters(32, 32) } } })
w:table("iotable", { rows = written, columns = wide })
w:table("iotablesmallrow", { rows = written, columns = { { "empid", serial() }, { "flag1", constant(0) } } })
w:table("locktable", { rows = locked, columns = { { "empid", serial() }, { "salary", constant(0) } } })

w:schema("create", [[
CREATE TABLE cputable (empid integer PRIMARY KEY, passwd varchar(255) NOT NULL);
CREATE TABLE iotable (empid integer PRIMARY KEY, ]] .. table.concat(definitions, ", ") .. [[);
CREATE TABLE iotablesmallrow (empid integer PRIMARY KEY, flag1 integer NOT NULL);
CREATE TABLE locktable (empid integer PRIMARY KEY, salary integer NOT NULL)]])
w:schema("keys", w.dialect == "mysql" and "ANALYZE TABLE cputable, iotable, iotablesmallrow, locktable" or "ANALYZE")
for _, name in ipairs { "cputable", "iotable", "iotablesmallrow", "locktable" } do
  w:schema("drop", "DROP TABLE IF EXISTS " .. name)
end

-- SQLite has no MD5.
local hash = w.dialect == "sqlite" and "substr(hex(%s), 1, 64)" or "md5(%s)"
local text = "passwd"
for _ = 1, nested do text = hash:format(text) end
w:statement("hash", "SELECT max(" .. text .. ") AS hash FROM cputable WHERE empid >= :low AND empid < :high")
w:statement("write_wide", "UPDATE iotable SET " .. table.concat(settings, ", ") .. " WHERE empid = :empid")
w:statement("write_small", "UPDATE iotablesmallrow SET flag1 = flag1 + 1 WHERE empid = :empid")
w:statement("raise_many", "UPDATE locktable SET salary = salary + 1 WHERE empid >= :low AND empid < :high")
w:statement("raise", "UPDATE locktable SET salary = salary + 1 WHERE empid = :empid")
local sleeps = { postgres = "SELECT pg_sleep(:held)", mysql = "SELECT sleep(:held)" }
if sleeps[w.dialect] then w:statement("hold", sleeps[w.dialect]) end

-- Keys in ascending order, so that no two transactions wait for each other.
local function some_of(pick, rows, number)
  local first = pick.integer(1, math.max(1, rows - number + 1))
  return first, math.min(first + number, rows + 1)
end

local function hold(tx)
  if sleeps[w.dialect] then tx:one("hold", held) end
end

w:transaction("cpu1", { read_only = true, help = "hashes all texts in one query" }, function(tx)
  tx:one("hash", 1, hashed + 1)
end)

w:transaction("cpu2", { read_only = true, help = "hashes as many in several queries" }, function(tx)
  for at = 1, each do
    tx:one("hash", math.floor((at - 1) * hashed / each) + 1, math.floor(at * hashed / each) + 1)
  end
end)

w:transaction("io1", { help = "writes wide rows" }, function(tx, pick)
  local low, high = some_of(pick, written, each)
  tx:begin()
  for empid = low, high - 1 do tx:exec("write_wide", pick.letters(WIDTH, WIDTH), empid) end
  tx:commit()
end)

w:transaction("io2", { help = "writes small rows" }, function(tx, pick)
  local low, high = some_of(pick, written, each)
  tx:begin()
  for empid = low, high - 1 do tx:exec("write_small", empid) end
  tx:tally("flags", high - low)
  tx:commit()
end)

w:transaction("contention1", { help = "locks half of the rows at once, and holds them" }, function(tx, pick)
  local low, high = some_of(pick, locked, math.ceil(locked / 2))
  tx:begin()
  tx:exec("raise_many", low, high)
  hold(tx)
  tx:tally("raised", high - low)
  tx:commit()
end)

w:transaction("contention2", { help = "locks rows one after another, and holds them" }, function(tx, pick)
  local low, high = some_of(pick, locked, each)
  tx:begin()
  for empid = low, high - 1 do
    tx:exec("raise", empid)
    hold(tx)
  end
  tx:tally("raised", high - low)
  tx:commit()
end)

w:mix("RESOURCESTRESSER", { cpu1 = 1, cpu2 = 1, io1 = 1, io2 = 1, contention1 = 1, contention2 = 1 })
w:mix("CPU", { cpu1 = 1, cpu2 = 1 })
w:mix("IO", { io1 = 1, io2 = 1 })
w:mix("LOCKS", { contention1 = 1, contention2 = 1 })
w:mix("RO", { cpu1 = 1, cpu2 = 1 })
w:mix("WO", { io1 = 1, io2 = 1 })

w:statement("wide_rows_are_whole", "SELECT empid FROM iotable WHERE " .. table.concat(whole, " OR ") .. " LIMIT 10")
local function counted(tally, column, name)
  w:statement(tally .. "_are_counted", ([[
SELECT total, CAST(:tally_%s AS decimal(30)) AS acknowledged FROM (SELECT sum(%s) AS total FROM %s) AS s
WHERE abs(total - CAST(:tally_%s AS decimal(30))) > CAST(:uncertain_%s AS decimal(30))]]):format(
    tally, column, name, tally, tally))
end
counted("flags", "flag1", "iotablesmallrow")
counted("raised", "salary", "locktable")
w:invariant("wide_rows_are_whole", "a wide row is written as a whole")
w:invariant("flags_are_counted", "each small row that was written, by an acknowledged transaction, has counted it")
w:invariant("raised_are_counted", "the salaries are as high as acknowledged transactions have raised them")
