-- Rows that are read and changed. They are changed first and read then, which locks them in every dialect; where statements
-- are batched and the dialect has UPDATE … RETURNING, that is one statement. Each sends: its rows come with tx:receive().

local function declare(tpcc)
  tpcc:statement("count_order_returning", [[
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :w_id AND d_id = :d_id
RETURNING d_next_o_id - 1 AS o_id, d_tax]])

  tpcc:statement("take_stock_returning", [[
UPDATE stock SET
  s_quantity = s_quantity - :quantity + CASE WHEN s_quantity >= :quantity + 10 THEN 0 ELSE 91 END,
  s_ytd = s_ytd + :quantity, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote
WHERE s_w_id = :w_id AND s_i_id = :i_id
RETURNING s_quantity, s_data, CASE :d_id + 0 -- a number, for PostgreSQL
  WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05
  WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END AS s_dist]])

  tpcc:statement("pay_warehouse_returning", [[
UPDATE warehouse SET w_ytd = w_ytd + :amount WHERE w_id = :w_id
RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip]])

  tpcc:statement("pay_district_returning", [[
UPDATE district SET d_ytd = d_ytd + :amount WHERE d_w_id = :w_id AND d_id = :d_id
RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip]])

  tpcc:statement("pay_customer_returning", [[
UPDATE customer SET c_balance = c_balance - :amount, c_ytd_payment = c_ytd_payment + :amount,
  c_payment_cnt = c_payment_cnt + 1
WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id
RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
  c_credit_lim, c_discount, c_balance, CASE c_credit WHEN 'BC' THEN c_data END AS c_data]])

  tpcc:statement("set_carrier_returning", [[
UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :o_id
RETURNING o_c_id]])
end

return function(tpcc, batched)
  local returning = batched and (tpcc.dialect == "postgres" or tpcc.dialect == "sqlite")
  if returning then declare(tpcc) end
  local change = {}

  function change.count_order(tx, w_id, d_id)
    if returning then return tx:send("count_order_returning", w_id, d_id) end
    tx:queue("count_order", w_id, d_id)
    tx:send("counted_order", w_id, d_id)
  end

  function change.take_stock(tx, order, line)
    local remote = line.supply == order.w_id and 0 or 1
    if returning then
      return tx:send("take_stock_returning", line.quantity, remote, line.supply, line.item, order.d_id)
    end
    tx:queue("take_stock", line.quantity, remote, line.supply, line.item)
    tx:send("stock", order.d_id, line.supply, line.item)
  end

  local paid = { warehouse = "pay_warehouse", district = "pay_district", customer = "pay_customer" }
  local paid_returning = {
    warehouse = "pay_warehouse_returning", district = "pay_district_returning", customer = "pay_customer_returning",
  }
  function change.pay(tx, whom, amount, ...)
    if returning then return tx:send(paid_returning[whom], amount, ...) end
    tx:queue(paid[whom], amount, ...)
    tx:send(whom, ...)
  end

  function change.set_carrier(tx, carrier, ...)
    if returning then return tx:send("set_carrier_returning", carrier, ...) end
    tx:queue("set_carrier", carrier, ...)
    tx:send("customer_of_order", ...)
  end

  return change
end
