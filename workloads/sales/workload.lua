-- The sales service of CloudyBench (sections II-A and II-B): customers, their orders, the orders' lines.
-- Scale factor 1 has 300,000 customers, 300,000 orders and 3,000,000 order lines.

local sales = workload "sales"
sales:describe "CloudyBench's sales service: order lines, payments, order status"

local products = sales:option("products", "integer", 100000, "how many products order lines are drawn from")

sales:table("customer", {
  rows = function(scale) return 300000 * scale end,
  columns = {
    { "c_id", serial() },
    { "c_name", name("c_gender") },
    { "c_gender", gender("female", "male") },
    { "c_age", integer(18, 90) },
    { "c_province", province() },
    { "c_city", city("c_province") },
    { "c_credit", decimal(0, 0, 2) }, -- grows with each payment
    { "c_createddate", date("2013-01-01", "2018-06-30") },
    { "c_updateddate", after("c_createddate", 0, 86400 * 365) },
  },
})

sales:table("orders", {
  rows = function(scale) return 300000 * scale end,
  columns = {
    { "o_id", serial() },
    { "o_c_id", reference("customer") },
    { "o_date", date("2018-07-01", "2023-12-31") },
    -- None is PAID: that is what payments make of them, so that the credit can be checked.
    { "o_status", choice({ "NEW", "CONFIRMED", "PACKED", "SHIPPED" }, { 4, 3, 2, 1 }) },
    { "o_totalamount", total("orderline", "ol_totalamount") },
    { "o_updateddate", after("o_date", 0, 86400 * 30) },
  },
})

sales:table("orderline", {
  columns = {
    { "ol_id", serial() },
    { "ol_o_id", parent("orders", 1, 19) },
    { "ol_p_id", integer(1, products) },
    { "ol_quantity", integer(1, 5) },
    { "price", decimal("0.50", "100.00", 2), stored = false },
    { "ol_totalamount", product("ol_quantity", "price") },
    { "ol_updateddate", timestamp("2018-07-01", "2023-12-31") },
  },
})

sales:transaction("new_orderline", { help = "T1: adds a line to an order" }, function(tx, pick)
  local quantity = pick.integer(1, 5)
  local amount = quantity * pick.number(0.5, 100, 2)
  tx:exec("new_orderline", pick.orders(), pick.integer(1, products), quantity, amount, tx.now)
  tx:tally("lines_added", amount)
end)

sales:transaction("order_payment", { help = "T2: marks an order as paid and credits its customer" }, function(tx, pick)
  tx:begin()
  local order = tx:one("find_order", pick.orders())
  if not order then return tx:rollback() end
  tx:queue("mark_paid", tx.now, order.o_id)
  tx:queue("credit_customer", order.o_totalamount, tx.now, order.o_c_id)
  tx:tally("paid", order.o_totalamount)
  tx:commit()
end)

sales:transaction("order_status", { read_only = true, help = "T3: reads the status of an order" }, function(tx, pick)
  tx:one("order_status", pick.orders())
end)

-- MySQL has no RETURNING: an amount is read before its row goes, and a key comes with the reply.
local without_returning = sales:has("lock_orderline")

sales:transaction("delete_orderline", { help = "T4: deletes an order line" }, function(tx, pick)
  -- Each loaded line is taken once, in an order that looks random, so the key is known without a search. Then any line
  -- is, and those that are gone count as aborted.
  local line = pick.once("orderline") or pick.orderline()
  if without_returning then
    tx:begin()
    local locked = tx:one("lock_orderline", line)
    if not locked then return tx:rollback() end
    tx:queue("delete_orderline", line)
    tx:tally("lines_removed", locked.ol_totalamount)
    return tx:commit()
  end
  local deleted = tx:one("delete_orderline", line)
  if deleted then tx:tally("lines_removed", deleted.ol_totalamount) else tx:abort() end
end)

sales:transaction("new_order", { help = "places an order with its lines (not in the paper): makes 'latest' move" }, function(tx, pick)
  local lines, sum = {}, 0
  for line = 1, pick.integer(1, 19) do
    local quantity = pick.integer(1, 5)
    local amount = quantity * pick.number(0.5, 100, 2)
    lines[line] = { pick.integer(1, products), quantity, amount }
    sum = sum + amount
  end
  tx:begin()
  local values = { c_id = pick.customer(), total = sum, now = tx.now }
  local order = tx:key("new_order", values)
  for _, line in ipairs(lines) do
    tx:queue("new_orderline", order, line[1], line[2], line[3], tx.now)
  end
  tx:inserted("orders", order)
  tx:commit()
end)

-- The paper's mixes T1:T2:T3 (section III-A), and those of its replication lag (insert:update:delete).
sales:mix("RO", { order_status = 100 })
sales:mix("RW", { new_orderline = 15, order_payment = 5, order_status = 80 })
sales:mix("WO", { new_orderline = 100 })
sales:mix("IUD", { new_orderline = 60, order_payment = 30, delete_orderline = 10 })

sales:invariant("order_totals", { when = "loaded" }, "an order's total equals the sum of its lines")
sales:invariant("lines_have_orders", "no order line is without an order")
sales:invariant("sum_of_lines", "the lines add up to the orders' totals, what runs have added and removed included")
sales:invariant("credit_is_paid", "the customers' credit equals what was paid")
sales:invariant("credit_by_customer", "no customer has credit without a paid order, or less than the paid orders' totals")
