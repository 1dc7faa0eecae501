-- sysbench's oltp_point_select on a table that sysbench has made, for comparison with sysbench itself. The scale factor
-- is in units of 100,000 rows.

local w = workload "sbtest"
w:describe "sysbench's oltp_point_select"

w:table("sbtest1", {
  rows = function(scale) return 100000 * scale end,
  columns = { { "id", serial() } },
})

w:transaction("point_select", { read_only = true }, function(tx, pick)
  tx:one("point_select", pick.sbtest1())
end)

w:mix("SELECT", { point_select = 1 })
