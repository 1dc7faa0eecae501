-- CloudyBench, Table II.

-- name: new_orderline
INSERT INTO orderline VALUES (DEFAULT, :o_id, :p_id, :quantity, :amount, :now);

-- name: find_order
SELECT o_id, o_c_id, o_totalamount, o_updateddate FROM orders WHERE o_id = :o_id;

-- name: mark_paid
UPDATE orders SET o_updateddate = :now, o_status = 'PAID' WHERE o_id = :o_id;

-- name: credit_customer
UPDATE customer SET c_credit = c_credit + :amount, c_updateddate = :now WHERE c_id = :c_id;

-- name: order_status
SELECT o_id, o_date, o_status FROM orders WHERE o_id = :o_id;

-- name: delete_orderline
DELETE FROM orderline WHERE ol_id = :ol_id RETURNING ol_totalamount;

-- name: new_order
INSERT INTO orders (o_c_id, o_date, o_status, o_totalamount, o_updateddate)
VALUES (:c_id, current_date, 'NEW', :total, :now) RETURNING o_id;

-- The invariants: each returns the rows that break it. `tally_…` is what committed transactions have added up,
-- `uncertain_…` the size of what transactions would have added of which nobody knows whether they were committed.

-- name: order_totals
SELECT o_id, o_totalamount, coalesce(lines, 0) AS lines
FROM orders LEFT JOIN (SELECT ol_o_id, sum(ol_totalamount) AS lines FROM orderline GROUP BY ol_o_id) AS sums
  ON ol_o_id = o_id
WHERE o_totalamount <> coalesce(lines, 0)
LIMIT 10;

-- name: lines_have_orders
SELECT ol_id, ol_o_id FROM orderline LEFT JOIN orders ON o_id = ol_o_id WHERE o_id IS NULL LIMIT 10;

-- name: sum_of_lines
SELECT lines, totals, :tally_lines_added::numeric AS added, :tally_lines_removed::numeric AS removed
FROM (SELECT sum(ol_totalamount) AS lines FROM orderline) AS l, (SELECT sum(o_totalamount) AS totals FROM orders) AS o
WHERE abs(lines - totals - :tally_lines_added::numeric + :tally_lines_removed::numeric)
  > 0.005 + :uncertain_lines_added::numeric + :uncertain_lines_removed::numeric;

-- name: credit_is_paid
SELECT sum(c_credit) AS credit, :tally_paid::numeric AS paid
FROM customer
HAVING abs(sum(c_credit) - :tally_paid::numeric) > 0.005 + :uncertain_paid::numeric;

-- name: credit_by_customer
SELECT c_id, c_credit, paid
FROM customer LEFT JOIN (
  SELECT o_c_id, sum(o_totalamount) AS paid FROM orders WHERE o_status = 'PAID' GROUP BY o_c_id
) AS payments ON o_c_id = c_id
WHERE (paid IS NULL AND c_credit <> 0) OR c_credit < paid
LIMIT 10;
