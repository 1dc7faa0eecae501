-- A parameter has no type before it has a value: `:now` is a number of seconds. LINES is a word of MySQL's own.

-- name: new_orderline
INSERT INTO orderline VALUES (DEFAULT, :o_id, :p_id, :quantity, :amount, from_unixtime(:now));

-- name: mark_paid
UPDATE orders SET o_updateddate = from_unixtime(:now), o_status = 'PAID' WHERE o_id = :o_id;

-- name: credit_customer
UPDATE customer SET c_credit = c_credit + :amount, c_updateddate = from_unixtime(:now) WHERE c_id = :c_id;

-- name: new_order
INSERT INTO orders (o_c_id, o_date, o_status, o_totalamount, o_updateddate)
VALUES (:c_id, current_date, 'NEW', :total, from_unixtime(:now));

-- name: lock_orderline
SELECT ol_totalamount FROM orderline WHERE ol_id = :ol_id FOR UPDATE;

-- name: delete_orderline
DELETE FROM orderline WHERE ol_id = :ol_id;

-- name: order_totals
SELECT o_id, o_totalamount, coalesce(`lines`, 0) AS `lines`
FROM orders LEFT JOIN (SELECT ol_o_id, sum(ol_totalamount) AS `lines` FROM orderline GROUP BY ol_o_id) AS sums
  ON ol_o_id = o_id
WHERE o_totalamount <> coalesce(`lines`, 0)
LIMIT 10;

-- name: sum_of_lines
SELECT `lines`, totals, CAST(:tally_lines_added AS decimal(30, 6)) AS added,
  CAST(:tally_lines_removed AS decimal(30, 6)) AS removed
FROM (SELECT sum(ol_totalamount) AS `lines` FROM orderline) AS l,
  (SELECT sum(o_totalamount) AS totals FROM orders) AS o
WHERE abs(`lines` - totals - CAST(:tally_lines_added AS decimal(30, 6)) + CAST(:tally_lines_removed AS decimal(30, 6)))
  > 0.005 + CAST(:uncertain_lines_added AS decimal(30, 6)) + CAST(:uncertain_lines_removed AS decimal(30, 6));

-- name: credit_is_paid
SELECT credit, CAST(:tally_paid AS decimal(30, 6)) AS paid
FROM (SELECT sum(c_credit) AS credit FROM customer) AS c
WHERE abs(credit - CAST(:tally_paid AS decimal(30, 6))) > 0.005 + CAST(:uncertain_paid AS decimal(30, 6));
