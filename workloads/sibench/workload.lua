-- SIBENCH: M. Cahill, U. Röhm, A. Fekete, "Serializable Isolation for Snapshot Databases", SIGMOD 2008, section 5.2:
-- one read-write conflict, between a query that reads all rows and an update of one. The paper has 10, 100 and
-- 1,000 rows; scale factor 1 has 10.

local w = workload "sibench"
w:describe "SIBENCH: a query of all rows against an update of one"

w:table("sitest", { rows = 10 * w.scale, columns = { { "id", serial() }, { "value", constant(0) } } })

w:transaction("query", { read_only = true, help = "finds the row with the smallest value" }, function(tx)
  tx:one("smallest")
end)

w:transaction("update", { help = "adds 1 to the value of a row" }, function(tx, pick)
  tx:exec("add", pick.sitest())
  tx:tally("added", 1)
end)

w:mix("SIBENCH", { query = 1, update = 1 })
w:mix("QUERY10", { query = 10, update = 1 }) -- the paper's query-mostly mix
w:mix("RO", { query = 1 })
w:mix("RW", { query = 1, update = 1 })
w:mix("WO", { update = 1 })

w:invariant("values_are_updates", "the values add up to the updates that were acknowledged")
