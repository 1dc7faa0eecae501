-- TPC-C 5.11, clause 2. What is read and changed is changed first: that locks the row, in every dialect.

-- name: warehouse_tax
SELECT w_tax FROM warehouse WHERE w_id = :w_id;

-- name: count_order
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :w_id AND d_id = :d_id;

-- name: counted_order
SELECT d_next_o_id - 1 AS o_id, d_tax FROM district WHERE d_w_id = :w_id AND d_id = :d_id;

-- name: discount
SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;

-- name: new_order
INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
VALUES (:o_id, :d_id, :w_id, :c_id, CURRENT_TIMESTAMP, :ol_cnt, :all_local);

-- name: not_delivered
INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (:o_id, :d_id, :w_id);

-- name: item
SELECT i_price, i_name, i_data FROM item WHERE i_id = :i_id;

-- name: items
SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id IN (:ids…);

-- name: take_stock
UPDATE stock SET
  s_quantity = s_quantity - :quantity + CASE WHEN s_quantity >= :quantity + 10 THEN 0 ELSE 91 END,
  s_ytd = s_ytd + :quantity, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote
WHERE s_w_id = :w_id AND s_i_id = :i_id;

-- name: stock
SELECT s_quantity, s_data, CASE :d_id + 0 -- a number, for PostgreSQL
  WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05
  WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END AS s_dist
FROM stock WHERE s_w_id = :w_id AND s_i_id = :i_id;

-- name: new_order_line
INSERT INTO order_line
  (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
VALUES (:o_id, :d_id, :w_id, :number, :i_id, :supply_w_id, :quantity, :amount, :dist_info);

-- name: new_order_lines
INSERT INTO order_line
  (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
VALUES :lines…;

-- name: pay_warehouse
UPDATE warehouse SET w_ytd = w_ytd + :amount WHERE w_id = :w_id;

-- name: warehouse
SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = :w_id;

-- name: pay_district
UPDATE district SET d_ytd = d_ytd + :amount WHERE d_w_id = :w_id AND d_id = :d_id;

-- name: district
SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id = :w_id AND d_id = :d_id;

-- name: customers_called
SELECT c_id FROM customer WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_last = :c_last ORDER BY c_first;

-- name: pay_customer
UPDATE customer SET c_balance = c_balance - :amount, c_ytd_payment = c_ytd_payment + :amount,
  c_payment_cnt = c_payment_cnt + 1
WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;

-- name: customer
SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
  c_credit_lim, c_discount, c_balance, CASE c_credit WHEN 'BC' THEN c_data END AS c_data
FROM customer WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;

-- name: record_payment
UPDATE customer SET c_data = :c_data WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;

-- name: new_history
INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
VALUES (:c_id, :c_d_id, :c_w_id, :d_id, :w_id, CURRENT_TIMESTAMP, :amount, :data);

-- name: balance
SELECT c_first, c_middle, c_last, c_balance FROM customer WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;

-- name: last_order
SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_c_id = :c_id
ORDER BY o_id DESC LIMIT 1;

-- name: lines_of_order
SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :o_id;

-- name: oldest_order
SELECT no_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id ORDER BY no_o_id LIMIT 1 FOR UPDATE;

-- name: delivered
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id AND no_o_id = :o_id;

-- name: set_carrier
UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :o_id;

-- name: deliver_lines
UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :o_id;

-- name: customer_of_order
SELECT o_c_id FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :o_id;

-- name: amount_of_order
SELECT sum(ol_amount) AS amount FROM order_line WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :o_id;

-- name: charge
UPDATE customer SET c_balance = c_balance + :amount, c_delivery_cnt = c_delivery_cnt + 1
WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;

-- name: next_order_id
SELECT d_next_o_id FROM district WHERE d_w_id = :w_id AND d_id = :d_id;

-- name: low_stock
SELECT count(DISTINCT s_i_id) AS low FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id >= :first AND ol_o_id < :next AND s_quantity < :threshold;

-- The conditions of clause 3.3.2, as the rows that break them. SQLite keeps amounts as binary floats, so amounts are compared to half a cent.

-- name: condition_1
SELECT w_id, w_ytd, paid FROM warehouse
LEFT JOIN (SELECT d_w_id, sum(d_ytd) AS paid FROM district GROUP BY d_w_id) AS d ON d_w_id = w_id
WHERE paid IS NULL OR abs(w_ytd - paid) > 0.005 LIMIT 10;

-- name: condition_2
SELECT d_w_id, d_id, d_next_o_id, last_order, last_new FROM district
LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS last_order FROM orders GROUP BY o_w_id, o_d_id) AS o
  ON o_w_id = d_w_id AND o_d_id = d_id
LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS last_new FROM new_order GROUP BY no_w_id, no_d_id) AS n
  ON no_w_id = d_w_id AND no_d_id = d_id
WHERE last_order IS NULL OR d_next_o_id - 1 <> last_order OR last_order <> coalesce(last_new, last_order) LIMIT 10;

-- name: condition_3
SELECT no_w_id, no_d_id, min(no_o_id) AS first_new, max(no_o_id) AS last_new, count(*) AS new_orders FROM new_order
GROUP BY no_w_id, no_d_id HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*) LIMIT 10;

-- name: condition_4
SELECT o_w_id, o_d_id, said, found
FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS said FROM orders GROUP BY o_w_id, o_d_id) AS o
LEFT JOIN (SELECT ol_w_id, ol_d_id, count(*) AS found FROM order_line GROUP BY ol_w_id, ol_d_id) AS l
  ON ol_w_id = o_w_id AND ol_d_id = o_d_id
WHERE said <> coalesce(found, 0) LIMIT 10;

-- name: condition_5
SELECT o_w_id, o_d_id, o_id, o_carrier_id, no_o_id FROM orders
LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL) LIMIT 10;

-- name: condition_6
SELECT o_w_id, o_d_id, o_id, o_ol_cnt, found FROM orders
LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS found FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l
  ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
WHERE o_ol_cnt <> coalesce(found, 0) LIMIT 10;

-- name: condition_7
SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_carrier_id FROM order_line
LEFT JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
WHERE o_id IS NULL OR (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL) LIMIT 10;

-- name: condition_8
SELECT w_id, w_ytd, paid FROM warehouse
LEFT JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id) AS h ON h_w_id = w_id
WHERE abs(w_ytd - coalesce(paid, 0)) > 0.005 LIMIT 10;

-- name: condition_9
SELECT d_w_id, d_id, d_ytd, paid FROM district
LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id, h_d_id) AS h
  ON h_w_id = d_w_id AND h_d_id = d_id
WHERE abs(d_ytd - coalesce(paid, 0)) > 0.005 LIMIT 10;

-- name: condition_10
SELECT c_w_id, c_d_id, c_id, c_balance, delivered, paid FROM customer
LEFT JOIN (
  SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered FROM order_line
  JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
  WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id
) AS o ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
LEFT JOIN (
  SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM history GROUP BY h_c_w_id, h_c_d_id, h_c_id
) AS h ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
WHERE abs(c_balance - coalesce(delivered, 0) + coalesce(paid, 0)) > 0.005 LIMIT 10;

-- name: condition_11
SELECT o_w_id, o_d_id, orders, new_orders, customers
FROM (SELECT o_w_id, o_d_id, count(*) AS orders FROM orders GROUP BY o_w_id, o_d_id) AS o
LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS new_orders FROM new_order GROUP BY no_w_id, no_d_id) AS n
  ON no_w_id = o_w_id AND no_d_id = o_d_id
LEFT JOIN (SELECT c_w_id, c_d_id, count(*) AS customers FROM customer GROUP BY c_w_id, c_d_id) AS c
  ON c_w_id = o_w_id AND c_d_id = o_d_id
WHERE customers IS NULL OR abs(orders - coalesce(new_orders, 0) - 0.7 * customers) >= 1 LIMIT 10;

-- name: condition_12
SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, delivered FROM customer
LEFT JOIN (
  SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered FROM order_line
  JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
  WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id
) AS o ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
WHERE abs(c_balance + c_ytd_payment - coalesce(delivered, 0)) > 0.005 LIMIT 10;

-- Against the tallies: each district begins with an order and a payment of 10 for each of its customers.

-- name: orders_are_there
SELECT found, acknowledged FROM (
  SELECT (SELECT count(*) FROM orders) - (SELECT count(*) FROM customer) AS found,
    CAST(:tally_orders AS decimal(20, 0)) AS acknowledged
) AS compared WHERE abs(found - acknowledged) > CAST(:uncertain_orders AS decimal(20, 0));

-- name: payments_are_there
SELECT found, acknowledged FROM (
  SELECT (SELECT sum(w_ytd) FROM warehouse) - 10 * (SELECT count(*) FROM customer) AS found,
    CAST(:tally_paid AS decimal(30, 2)) AS acknowledged
) AS compared WHERE abs(found - acknowledged) > 0.005 + CAST(:uncertain_paid AS decimal(30, 2));

-- name: deliveries_are_there
SELECT found, acknowledged FROM (
  SELECT (SELECT sum(c_delivery_cnt) FROM customer) AS found, CAST(:tally_deliveries AS decimal(20, 0)) AS acknowledged
) AS compared WHERE abs(found - acknowledged) > CAST(:uncertain_deliveries AS decimal(20, 0));
