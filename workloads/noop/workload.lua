-- One statement that asks for nothing: what is left is the way to the server and back. No tables, so scale has
-- no effect. OLTP-Bench has a workload of this name.

local w = workload "noop"
w:describe "A statement that asks for nothing: the way to the server and back"

if not w:can "sql" then error("the statement is SQL, which " .. w.dialect .. " does not have", 0) end
w:statement("nothing", "SELECT 1")

w:transaction("noop", { read_only = true, help = "selects a constant" }, function(tx) tx:one("nothing") end)

w:transaction("noop_in_transaction", { read_only = true, help = "the same between BEGIN and COMMIT" }, function(tx)
  tx:begin()
  tx:one("nothing")
  tx:commit()
end)

w:mix("RO", { noop = 1 })
w:mix("TRANSACTION", { noop_in_transaction = 1 })
