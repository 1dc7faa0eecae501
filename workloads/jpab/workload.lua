-- JPAB: "JPA Performance Benchmark" (ObjectDB Software, 2010-2012, jpab.org), which OLTP-Bench counts among its
-- workloads (PVLDB 7(4), 2013, Table 1): objects are persisted, retrieved, updated and deleted. The SQL is what an
-- object-relational mapper such as Hibernate emits: every column, aliased; an update of all columns with a version. Scale factor 1 has 10,000 persons and a tree of 10,000 nodes.

local w = workload "jpab"
w:describe "JPAB: objects that are persisted, retrieved, updated and deleted, in the SQL of a mapper"

local run = { data = false }
local batch = w:option("batch", "integer", 5, "how many objects a transaction takes", run)
local levels = w:option("levels", "integer", 4, "how many levels of the tree are retrieved", run)

local persons, nodes = math.floor(10000 * w.scale), math.floor(10000 * w.scale)

-- Columns in the order of their names, as a mapper has them.
local PERSON = {
  { "birth_date", date("1930-01-01", "1990-12-31"), "date" },
  { "city", city("state"), "varchar(255)" },
  { "country", constant("China"), "varchar(255)" },
  { "first_name", given_name(), "varchar(255)" },
  { "home_phone", phone(), "varchar(255)" },
  { "join_date", date("2000-01-01", "2010-12-31"), "date" },
  { "last_login_date", date("2011-01-01", "2012-12-31"), "date" },
  { "last_name", family_name(), "varchar(255)" },
  { "login_count", constant(0), "integer" },
  { "middle_name", given_name(), "varchar(255)" },
  { "mobile_phone", phone(), "varchar(255)" },
  { "state", province(), "varchar(255)" },
  { "street", street(), "varchar(255)" },
  { "version", constant(0), "integer" },
  { "work_phone", phone(), "varchar(255)" },
  { "zip", postcode(), "varchar(255)" },
}

local function alias_of(name, at) return ("%s%d_0_0_"):format(name, at + 1) end

local columns, names, places, aliased, definitions, settings = { { "id", serial() } }, {}, {}, {}, {}, {}
for at, column in ipairs(PERSON) do
  local name, kind = column[1], column[3]
  columns[at + 1] = { name, column[2] }
  names[at], places[at] = name, ":" .. name
  aliased[at] = ("person0_.%s as %s"):format(name, alias_of(name, at))
  definitions[at] = name .. " " .. kind
  settings[at] = name .. "=:" .. name
end
names, places, aliased = table.concat(names, ", "), table.concat(places, ", "), table.concat(aliased, ", ")

w:table("person", { rows = persons, columns = columns })
w:table("node", {
  rows = nodes,
  columns = {
    { "id", serial() },
    { "child1_id", derive("integer", { "id" }, function(_, _, id) return 2 * id <= nodes and 2 * id or nil end) },
    { "child2_id", derive("integer", { "id" }, function(_, _, id) return 2 * id < nodes and 2 * id + 1 or nil end) },
    { "name", letters(10, 20) },
  },
})
w:schema("create", "CREATE TABLE person (id bigint PRIMARY KEY, " .. table.concat(definitions, ", ") .. [[);
CREATE TABLE node (id bigint PRIMARY KEY, child1_id bigint, child2_id bigint, name varchar(255))]])
w:schema("keys", w.dialect == "mysql" and "ANALYZE TABLE person, node" or "ANALYZE")
w:schema("drop", "DROP TABLE IF EXISTS person; DROP TABLE IF EXISTS node")

w:statement("find_person", "select person0_.id as id1_0_0_, " .. aliased .. " from person person0_ where person0_.id=:id")
w:statement("insert_person", "insert into person (" .. names .. ", id) values (" .. places .. ", :id)")
w:statement("update_person", "update person set " .. table.concat(settings, ", ") .. " where id=:id and version=:previous")
w:statement("delete_person", "delete from person where id=:id and version=:version")
w:statement("find_node", "select node0_.id as id1_1_0_, node0_.child1_id as child2_1_0_, node0_.child2_id as child3_1_0_, "
  .. "node0_.name as name4_1_0_ from node node0_ where node0_.id=:id")


-- A mapper reads an object before it changes or removes it; what is gone is nobody's.
local function find(tx, id)
  local row = tx:one("find_person", id)
  if not row then return nil end
  local person = {}
  for at, column in ipairs(PERSON) do person[column[1]] = row[alias_of(column[1], at)] end
  return person
end

local function new_person(pick)
  local person = { version = 0, login_count = 0, country = "China", zip = pick.pattern("######") }
  for _, name in ipairs { "birth_date", "join_date", "last_login_date" } do
    person[name] = pick.pattern("19##-0") .. pick.integer(1, 9) .. "-1" .. pick.integer(0, 9)
  end
  for _, name in ipairs { "home_phone", "mobile_phone", "work_phone" } do person[name] = pick.pattern("1##########") end
  for _, name in ipairs { "first_name", "middle_name", "last_name", "street", "city", "state" } do
    person[name] = pick.letters(5, 15)
  end
  return person
end

w:transaction("persist", { help = "persists new persons" }, function(tx, pick)
  tx:begin()
  for _ = 1, batch do
    local person = new_person(pick)
    person.id = pick.new("person")
    tx:exec("insert_person", person)
    tx:inserted("person", person.id)
  end
  tx:tally("persisted", batch)
  tx:commit()
end)

w:transaction("retrieve", { read_only = true, help = "retrieves persons by their keys" }, function(tx, pick)
  tx:begin()
  for _ = 1, batch do find(tx, pick.person()) end
  tx:commit()
end)

w:transaction("update", { help = "changes persons, unless another session has done so meanwhile" }, function(tx, pick)
  tx:begin()
  for _ = 1, batch do
    local id = pick.person()
    local person = find(tx, id)
    if person then
      person.id, person.previous, person.version = id, person.version, person.version + 1
      person.login_count, person.last_login_date = person.login_count + 1, "2013-01-01"
      if tx:exec("update_person", person) == 0 then return tx:rollback() end
    end
  end
  tx:commit()
end)

w:transaction("delete", { help = "removes persons, unless another session has changed them meanwhile" }, function(tx, pick)
  local removed = 0
  tx:begin()
  for _ = 1, batch do
    -- Each loaded one once; then any, which may be gone.
    local id = pick.once("person") or pick.person()
    local person = find(tx, id)
    if person then
      if tx:exec("delete_person", id, person.version) == 0 then return tx:rollback() end
      removed = removed + 1
    end
  end
  tx:tally("removed", removed)
  tx:commit()
end)

local function retrieve_below(tx, id, depth)
  local node = tx:one("find_node", id)
  if depth == 1 then return end
  local left, right = node.child2_1_0_, node.child3_1_0_
  if left then retrieve_below(tx, left, depth - 1) end
  if right then retrieve_below(tx, right, depth - 1) end
end

w:transaction("retrieve_nodes", { read_only = true, help = "follows the pointers of a tree, a query each" }, function(tx, pick)
  tx:begin()
  retrieve_below(tx, pick.node(), levels)
  tx:commit()
end)

w:mix("JPAB", { persist = 1, retrieve = 1, update = 1, delete = 1 })
w:mix("NODE", { retrieve_nodes = 1 })
w:mix("RO", { retrieve = 1 })
w:mix("RW", { persist = 1, retrieve = 1, update = 1, delete = 1 })

w:statement("persons_are_counted", ([[
SELECT persons, CAST(:tally_persisted AS decimal(30)) AS persisted, CAST(:tally_removed AS decimal(30)) AS removed
FROM (SELECT count(*) AS persons FROM person) AS p
WHERE abs(persons - %d - CAST(:tally_persisted AS decimal(30)) + CAST(:tally_removed AS decimal(30)))
  > CAST(:uncertain_persisted AS decimal(30)) + CAST(:uncertain_removed AS decimal(30))]]):format(persons))
w:statement("no_update_is_lost", "SELECT id, login_count, version FROM person WHERE login_count <> version LIMIT 10")
w:statement("nodes_have_a_parent", [[
SELECT id, coalesce(parents, 0) AS parents FROM node LEFT JOIN (
  SELECT child, count(*) AS parents
  FROM (SELECT child1_id AS child FROM node UNION ALL SELECT child2_id FROM node) AS c GROUP BY child
) AS p ON child = id
WHERE id > 1 AND coalesce(parents, 0) <> 1 LIMIT 10]])
w:invariant("persons_are_counted", "there are as many persons as were loaded and persisted, less those removed")
w:invariant("no_update_is_lost", "a person has logged in as often as the version says")
w:invariant("nodes_have_a_parent", "each node but the first has one parent")
