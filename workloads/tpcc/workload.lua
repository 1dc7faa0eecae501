-- TPC Benchmark C, standard specification, revision 5.11 (February 2010); the clauses are named below.
-- The scale factor is the number of warehouses.

local tpcc = workload "tpcc"
tpcc:describe "TPC-C: order entry of a wholesale supplier (specification 5.11)"

local items = tpcc:option("items", "integer", 100000, "how many items are sold; the specification has 100,000")
local customers = tpcc:option("customers", "integer", 3000, "customers of a district; the specification has 3,000")

local batched = tpcc:option("batched", "boolean", true,
  "what does not wait for an answer is sent together, lines as lists; false: each statement by itself", { data = false })

local warehouses, districts = math.floor(tpcc.scale), 10
local undelivered = math.floor(customers * 3 / 10) -- the last orders of a district
local last_names = math.min(1000, customers)
local no_item = items + 1

-- 2.1.6: the constants C. Those of last names differ by 66, which is in [65 … 119] and neither 96 nor 112.
local C = { last_load = 157, last_run = 223, customer = 259, item = 7911 }

local function nurand(draw, a, c, low, high)
  return (bit.bor(draw(0, a), draw(low, high)) + c) % (high - low + 1) + low
end

-- 4.3.2.3: a last name is three syllables, one for each digit of a number.
local syllables = { [0] = "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING" }
local function last_name(number)
  return syllables[math.floor(number / 100)] .. syllables[math.floor(number / 10) % 10] .. syllables[number % 10]
end

-- The tables with their rows: 4.3.3.1. Columns that are not stored lead to the row's parent.

local moment = "2024-01-01"
local alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
local function text(min, max) return letters(min, max, alphabet) end
local function now() return timestamp(moment, moment) end
local function money(amount) return decimal(amount, amount, 2) end

-- One in ten holds the word ORIGINAL, at a random place.
local function data(of)
  return derive("text", { of }, function(_, random, text)
    if random(10) > 1 then return text end
    local place = random(0, #text - 8)
    return text:sub(1, place) .. "ORIGINAL" .. text:sub(place + 9)
  end)
end

tpcc:table("item", {
  rows = items,
  columns = {
    { "i_id", serial() },
    { "i_im_id", integer(1, 10000) },
    { "i_name", text(14, 24) },
    { "i_price", decimal(1, 100) },
    { "text", text(26, 50), stored = false },
    { "i_data", data("text") },
  },
})

tpcc:table("warehouse", {
  rows = warehouses,
  columns = {
    { "w_id", serial() },
    { "w_name", text(6, 10) },
    { "w_street_1", text(10, 20) },
    { "w_street_2", text(10, 20) },
    { "w_city", text(10, 20) },
    { "w_state", text(2, 2) },
    { "w_zip", pattern("####11111") },
    { "w_tax", decimal(0, "0.2", 4) },
    { "w_ytd", money(10 * customers * districts) },
  },
})

local stock = {
  { "s_i_id", line() },
  { "s_w_id", parent("warehouse", items) },
  { "s_quantity", integer(10, 100) },
}
for district = 1, districts do
  stock[#stock + 1] = { string.format("s_dist_%02d", district), text(24, 24) }
end
for _, column in ipairs {
  { "s_ytd", constant(0) },
  { "s_order_cnt", constant(0) },
  { "s_remote_cnt", constant(0) },
  { "text", text(26, 50), stored = false },
  { "s_data", data("text") },
} do
  stock[#stock + 1] = column
end
tpcc:table("stock", { columns = stock })

tpcc:table("district", {
  columns = {
    { "district", serial(), stored = false },
    { "d_id", line() },
    { "d_w_id", parent("warehouse", districts) },
    { "d_name", text(6, 10) },
    { "d_street_1", text(10, 20) },
    { "d_street_2", text(10, 20) },
    { "d_city", text(10, 20) },
    { "d_state", text(2, 2) },
    { "d_zip", pattern("####11111") },
    { "d_tax", decimal(0, "0.2", 4) },
    { "d_ytd", money(10 * customers) },
    { "d_next_o_id", constant(customers + 1) },
  },
})

tpcc:table("customer", {
  columns = {
    { "customer", serial(), stored = false },
    { "district", parent("district", customers), stored = false },
    { "c_id", line() },
    { "c_d_id", lookup("district", "d_id") },
    { "c_w_id", lookup("district", "d_w_id") },
    { "c_first", text(8, 16) },
    { "c_middle", constant("OE") },
    { "c_last", derive("text", { "c_id" }, function(_, random, id)
      return last_name(id <= 1000 and id - 1 or nurand(random, 255, C.last_load, 0, 999))
    end) },
    { "c_street_1", text(10, 20) },
    { "c_street_2", text(10, 20) },
    { "c_city", text(10, 20) },
    { "c_state", text(2, 2) },
    { "c_zip", pattern("####11111") },
    { "c_phone", digits(16) },
    { "c_since", now() },
    { "c_credit", choice({ "GC", "BC" }, { 9, 1 }) },
    { "c_credit_lim", money(50000) },
    { "c_discount", decimal(0, "0.5", 4) },
    { "c_balance", money(-10) },
    { "c_ytd_payment", money(10) },
    { "c_payment_cnt", constant(1) },
    { "c_delivery_cnt", constant(0) },
    { "c_data", text(300, 500) },
  },
})

tpcc:table("history", {
  columns = {
    { "customer", parent("customer", 1), stored = false },
    { "h_c_id", lookup("customer", "c_id") },
    { "h_c_d_id", lookup("customer", "c_d_id") },
    { "h_c_w_id", lookup("customer", "c_w_id") },
    { "h_d_id", copy("h_c_d_id") },
    { "h_w_id", copy("h_c_w_id") },
    { "h_date", now() },
    { "h_amount", money(10) },
    { "h_data", text(12, 24) },
  },
})

tpcc:table("orders", {
  columns = {
    { "order", serial(), stored = false },
    { "district", parent("district", customers), stored = false },
    { "o_id", line() },
    { "o_d_id", lookup("district", "d_id") },
    { "o_w_id", lookup("district", "d_w_id") },
    { "o_c_id", distinct(1, customers) },
    { "o_entry_d", now() },
    { "o_carrier_id", derive("integer", { "o_id" }, function(_, random, id)
      if id <= customers - undelivered then return random(10) end
    end) },
    { "o_ol_cnt", count("order_line") },
    { "o_all_local", constant(1) },
    -- What the order's lines take from it.
    { "delivered", derive("timestamp", { "o_carrier_id", "o_entry_d" }, function(_, _, carrier, entry)
      return carrier and entry
    end), stored = false },
    { "charged", derive("integer", { "o_carrier_id" }, function(_, _, carrier) return carrier and 0 or 1 end),
      stored = false },
  },
})

tpcc:table("new_order", {
  columns = {
    { "district", parent("district", undelivered), stored = false },
    { "no_o_id", line(customers - undelivered + 1) },
    { "no_d_id", lookup("district", "d_id") },
    { "no_w_id", lookup("district", "d_w_id") },
  },
})

local line_counts = {}
for count = 5, 15 do
  line_counts[count] = 1
end
tpcc:table("order_line", {
  columns = {
    { "order", parent("orders", line_counts), stored = false },
    { "ol_o_id", lookup("order", "o_id") },
    { "ol_d_id", lookup("order", "o_d_id") },
    { "ol_w_id", lookup("order", "o_w_id") },
    { "ol_number", line() },
    { "ol_i_id", integer(1, items) },
    { "ol_supply_w_id", copy("ol_w_id") },
    { "ol_delivery_d", lookup("order", "delivered") },
    { "ol_quantity", constant(5) },
    { "charged", lookup("order", "charged"), stored = false },
    { "price", decimal("0.01", "9999.99"), stored = false },
    { "ol_amount", product("charged", "price") },
    { "ol_dist_info", text(24, 24) },
  },
})

-- The transactions: clause 2. A session is a terminal of one warehouse, and of one district for stock levels.

tpcc:session(function(tx)
  local place = tx.session - 1
  return { w_id = place % warehouses + 1, d_id = math.floor(place / warehouses) % districts + 1 }
end)

-- 5.2.5.2 and 5.2.5.4: the time that keys take, and the mean of the time to think; for loads that ask for them.
-- 5.2.5.3: the longest that the 90th percentile of the response time may be.
local function paced(keying, thinking, settings)
  settings.pipeline = batched
  settings.keying, settings.think = keying, { law = "exponential", seconds = thinking }
  settings.limit = settings.limit or { p90 = 5 }
  return settings
end

local function other(pick, warehouse)
  return (warehouse + pick.integer(0, warehouses - 2)) % warehouses + 1
end

local function by_id(pick) return nurand(pick.integer, 1023, C.customer, 1, customers) end

-- 60 % of the customers are found by their last name: the one in the middle of those called so, by first name.
local function draw_customer(pick)
  if pick.chance(0.4) then return by_id(pick) end
  return nil, last_name(nurand(pick.integer, 255, C.last_run, 0, last_names - 1))
end

local function middle(found) return found[math.ceil(#found / 2)].c_id end

local change = require "changes" (tpcc, batched)

local function before(line, other)
  if line.supply == other.supply then return line.item < other.item end
  return line.supply < other.supply
end

-- Lines are in the order of their stocks: else two orders could wait for each other's, one of them in vain.
local function draw_lines(pick, warehouse)
  local lines, all_local = {}, 1
  for number = 1, pick.integer(5, 15) do
    local supply = warehouse
    if warehouses > 1 and pick.chance(0.01) then
      supply, all_local = other(pick, warehouse), 0
    end
    lines[number] = { item = nurand(pick.integer, 8191, C.item, 1, items), supply = supply,
      quantity = pick.integer(1, 10) }
  end
  table.sort(lines, before)
  -- 2.4.1.4: one order in a hundred ends with an item that does not exist, and is rolled back.
  if pick.chance(0.01) then lines[#lines].item = no_item end
  return lines, all_local
end

local function begin_order(tx, order)
  change.count_order(tx, order.w_id, order.d_id)
  tx:send("warehouse_tax", order.w_id)
  tx:send("discount", order.w_id, order.d_id, order.c_id)
end

local function insert_order(tx, order, o_id)
  order.o_id = o_id
  tx:queue("new_order", o_id, order.d_id, order.w_id, order.c_id, order.ol_cnt, order.all_local)
  tx:queue("not_delivered", o_id, order.d_id, order.w_id)
end

local function order_line(tx, order, number, line)
  local item = tx:one("item", line.item)
  if not item then return false end
  change.take_stock(tx, order, line)
  local info = tx:receive()[1].s_dist
  tx:queue("new_order_line", order.o_id, order.d_id, order.w_id, number, line.item, line.supply, line.quantity,
    line.quantity * item.i_price, info)
  return true
end

-- Each statement by itself: line by line, and false for an item that does not exist.
local function enter(tx, order, lines)
  begin_order(tx, order)
  insert_order(tx, order, (tx:receive())[1].o_id)
  for number, line in ipairs(lines) do
    if not order_line(tx, order, number, line) then return false end
  end
  return true
end

-- In two waves: what is asked, then what is inserted. The stock of an item that does not exist is asked for as well, as
-- nobody knows by then; 2.4.2.3: every other line is processed before the order is rolled back.
local function enter_batched(tx, order, lines)
  local ids = {}
  for number, line in ipairs(lines) do ids[number] = line.item end
  begin_order(tx, order)
  tx:send("items", ids)
  for _, line in ipairs(lines) do change.take_stock(tx, order, line) end
  local answers = { tx:receive() }
  insert_order(tx, order, answers[1][1].o_id)
  local prices, rows = {}, {}
  for _, item in ipairs(answers[4]) do prices[item.i_id] = item.i_price end
  for number, line in ipairs(lines) do
    local price, stock = prices[line.item], answers[4 + number][1]
    if price then
      rows[#rows + 1] = { order.o_id, order.d_id, order.w_id, number, line.item, line.supply, line.quantity,
        line.quantity * price, stock.s_dist }
    end
  end
  if #rows > 0 then tx:queue("new_order_lines", rows) end
  return #rows == #lines
end

tpcc:transaction("new_order", paced(18, 12, { help = "2.4: enters an order; 1 % are rolled back" }),
  function(tx, pick, terminal)
  local order = { w_id = terminal.w_id, d_id = pick.integer(1, districts), c_id = by_id(pick) }
  local lines, all_local = draw_lines(pick, order.w_id)
  order.ol_cnt, order.all_local = #lines, all_local
  tx:begin()
  local is_whole = (batched and enter_batched or enter)(tx, order, lines)
  if not is_whole then return tx:rollback() end
  tx:tally("orders", 1)
  tx:commit()
end)

-- 2.5.2.2: a customer with bad credit has a record of the payments, as long as it fits.
local function record(tx, payment, before)
  local line = string.format("%d %d %d %d %d %.2f ", payment.c_id, payment.c_d_id, payment.c_w_id, payment.d_id,
    payment.w_id, payment.amount)
  tx:queue("record_payment", (line .. before):sub(1, 500), payment.c_w_id, payment.c_d_id, payment.c_id)
end

tpcc:transaction("payment", paced(3, 12, { help = "2.5: a customer pays; 15 % at another warehouse" }),
  function(tx, pick, terminal)
  local w_id, d_id, amount = terminal.w_id, pick.integer(1, districts), pick.number(1, 5000, 2)
  local c_w_id, c_d_id = w_id, d_id
  if warehouses > 1 and pick.chance(0.15) then
    c_w_id, c_d_id = other(pick, w_id), pick.integer(1, districts)
  end
  local c_id, name = draw_customer(pick)
  tx:begin()
  change.pay(tx, "warehouse", amount, w_id)
  change.pay(tx, "district", amount, w_id, d_id)
  if c_id then change.pay(tx, "customer", amount, c_w_id, c_d_id, c_id)
  else tx:send("customers_called", c_w_id, c_d_id, name) end
  local warehouse, district, found = tx:receive()
  if name then
    c_id = middle(found)
    change.pay(tx, "customer", amount, c_w_id, c_d_id, c_id)
    found = tx:receive()
  end
  local payment = { w_id = w_id, d_id = d_id, c_w_id = c_w_id, c_d_id = c_d_id, c_id = c_id, amount = amount }
  if found[1].c_credit == "BC" then record(tx, payment, found[1].c_data) end
  tx:queue("new_history", c_id, c_d_id, c_w_id, d_id, w_id, amount,
    warehouse[1].w_name .. "    " .. district[1].d_name)
  tx:tally("paid", amount)
  tx:commit()
end)

tpcc:transaction("order_status", paced(2, 10, { read_only = true, help = "2.6: a customer's last order" }),
  function(tx, pick, terminal)
  local w_id, d_id = terminal.w_id, pick.integer(1, districts)
  local c_id, name = draw_customer(pick)
  tx:begin()
  if name then c_id = middle(tx:rows("customers_called", w_id, d_id, name)) end
  tx:send("balance", w_id, d_id, c_id)
  tx:send("last_order", w_id, d_id, c_id)
  local _, orders = tx:receive()
  tx:send("lines_of_order", w_id, d_id, orders[1].o_id)
  tx:commit()
end)

tpcc:transaction("delivery", paced(2, 5, { help = "2.7: delivers the oldest order of each district, at once" }),
  function(tx, pick, terminal)
  local w_id, carrier = terminal.w_id, pick.integer(1, 10)
  tx:begin()
  for d_id = 1, districts do tx:send("oldest_order", w_id, d_id) end
  local oldest, due = { tx:receive() }, {}
  for d_id = 1, districts do
    local first = oldest[d_id][1]
    if first then -- 2.7.4.2: a district without one is skipped
      due[#due + 1] = d_id
      tx:queue("delivered", w_id, d_id, first.no_o_id)
      change.set_carrier(tx, carrier, w_id, d_id, first.no_o_id)
      tx:queue("deliver_lines", w_id, d_id, first.no_o_id)
      tx:send("amount_of_order", w_id, d_id, first.no_o_id)
    end
  end
  local answers = #due > 0 and { tx:receive() } or {}
  for place, d_id in ipairs(due) do
    local customer, sum = answers[2 * place - 1][1], answers[2 * place][1]
    tx:queue("charge", sum.amount, w_id, d_id, customer.o_c_id)
    tx:tally("deliveries", 1)
  end
  tx:commit()
end)

tpcc:transaction("stock_level", paced(2, 5, { read_only = true, limit = { p90 = 20 }, help = "2.8: a district's last items that run low" }),
  function(tx, pick, terminal)
  local w_id, d_id = terminal.w_id, terminal.d_id
  tx:begin()
  local next_order = tx:one("next_order_id", w_id, d_id).d_next_o_id
  tx:send("low_stock", w_id, d_id, next_order - 20, next_order, pick.integer(10, 20))
  tx:commit()
end)

-- 5.2.3: the least shares of the four others; New-Order has the rest. 5.4: the new orders of a minute.
local standard = { new_order = 45, payment = 43, order_status = 4, delivery = 4, stock_level = 4 }
local demands = {
  at_least = { payment = 43, order_status = 4, delivery = 4, stock_level = 4 },
  rate = { name = "tpmC", transaction = "new_order", per = "minute", pauses = true },
}
tpcc:mix("TPCC", standard, demands)
tpcc:mix("RW", standard, demands)
tpcc:mix("RO", { order_status = 1, stock_level = 1 })

tpcc:invariant("condition_1", "3.3.2.1: a warehouse has been paid what its districts have")
tpcc:invariant("condition_2", "3.3.2.2: a district's next order follows the last order, and the last new order")
tpcc:invariant("condition_3", "3.3.2.3: a district's new orders have no gap")
tpcc:invariant("condition_4", "3.3.2.4: a district has as many order lines as its orders say")
tpcc:invariant("condition_5", "3.3.2.5: an order has no carrier as long as it is new")
tpcc:invariant("condition_6", "3.3.2.6: an order has as many lines as it says")
tpcc:invariant("condition_7", "3.3.2.7: a line is delivered when its order has a carrier")
tpcc:invariant("condition_8", "3.3.2.8: a warehouse has been paid what its history says")
tpcc:invariant("condition_9", "3.3.2.9: a district has been paid what its history says")
tpcc:invariant("condition_10", "3.3.2.10: a customer's balance is what was delivered, less what was paid")
tpcc:invariant("condition_11", { when = "loaded" }, "3.3.2.11: 70 % of a district's orders are delivered")
tpcc:invariant("condition_12", "3.3.2.12: a customer's balance and payments make what was delivered")
tpcc:invariant("orders_are_there", "every order that was acknowledged is there")
tpcc:invariant("payments_are_there", "every payment that was acknowledged is there")
tpcc:invariant("deliveries_are_there", "every delivery that was acknowledged is there")
