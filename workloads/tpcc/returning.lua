-- Changes that give what the row holds by then, for dialects with UPDATE … RETURNING.

return function(tpcc)
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
