-- SQLite has no DEFAULT among values, and keeps amounts as binary floats: sums of them are compared to half a cent.

-- name: new_orderline
INSERT INTO orderline (ol_o_id, ol_p_id, ol_quantity, ol_totalamount, ol_updateddate)
VALUES (:o_id, :p_id, :quantity, :amount, :now);

-- name: order_totals
SELECT o_id, o_totalamount, coalesce(lines, 0) AS lines
FROM orders LEFT JOIN (SELECT ol_o_id, sum(ol_totalamount) AS lines FROM orderline GROUP BY ol_o_id) AS sums
  ON ol_o_id = o_id
WHERE abs(o_totalamount - coalesce(lines, 0)) > 0.005
LIMIT 10;

-- name: sum_of_lines
SELECT lines, totals, CAST(:tally_lines_added AS real) AS added, CAST(:tally_lines_removed AS real) AS removed
FROM (SELECT sum(ol_totalamount) AS lines FROM orderline) AS l, (SELECT sum(o_totalamount) AS totals FROM orders) AS o
WHERE abs(lines - totals - CAST(:tally_lines_added AS real) + CAST(:tally_lines_removed AS real))
  > 0.005 + CAST(:uncertain_lines_added AS real) + CAST(:uncertain_lines_removed AS real);

-- name: credit_is_paid
SELECT credit, CAST(:tally_paid AS real) AS paid
FROM (SELECT sum(c_credit) AS credit FROM customer) AS c
WHERE abs(credit - CAST(:tally_paid AS real)) > 0.005 + CAST(:uncertain_paid AS real);

-- name: credit_by_customer
SELECT c_id, c_credit, paid
FROM customer LEFT JOIN (
  SELECT o_c_id, sum(o_totalamount) AS paid FROM orders WHERE o_status = 'PAID' GROUP BY o_c_id
) AS payments ON o_c_id = c_id
WHERE (paid IS NULL AND c_credit <> 0) OR c_credit < paid - 0.005
LIMIT 10;
