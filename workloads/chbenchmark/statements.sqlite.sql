-- SQLite calls ascii unicode, and has years by strftime.

-- name: q5
SELECT n_name, sum(ol_amount) AS revenue
FROM customer, orders, order_line, stock, supplier, nation, region
WHERE c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id
  AND ol_o_id = o_id AND ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_w_id = s_w_id AND ol_i_id = s_i_id
  AND (s_w_id * s_i_id) % 10000 = su_suppkey AND unicode(substr(c_state, 1, 1)) = su_nationkey
  AND su_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'Europe' AND o_entry_d >= '2007-01-02'
GROUP BY n_name ORDER BY revenue DESC;

-- name: q7
SELECT su_nationkey AS supp_nation, substr(c_state, 1, 1) AS cust_nation, strftime('%Y', o_entry_d) AS l_year,
  sum(ol_amount) AS revenue
FROM supplier, stock, order_line, orders, customer, nation AS n1, nation AS n2
WHERE ol_supply_w_id = s_w_id AND ol_i_id = s_i_id AND (s_w_id * s_i_id) % 10000 = su_suppkey
  AND ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
  AND c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id
  AND su_nationkey = n1.n_nationkey AND unicode(substr(c_state, 1, 1)) = n2.n_nationkey
  AND ((n1.n_name = 'Germany' AND n2.n_name = 'Cambodia') OR (n1.n_name = 'Cambodia' AND n2.n_name = 'Germany'))
  AND ol_delivery_d BETWEEN '2007-01-02' AND '2100-01-01'
GROUP BY su_nationkey, cust_nation, l_year ORDER BY su_nationkey, cust_nation, l_year;

-- name: q8
SELECT strftime('%Y', o_entry_d) AS l_year,
  sum(CASE WHEN n2.n_name = 'Germany' THEN ol_amount ELSE 0 END) / sum(ol_amount) AS mkt_share
FROM item, supplier, stock, order_line, orders, customer, nation AS n1, nation AS n2, region
WHERE i_id = s_i_id AND ol_i_id = s_i_id AND ol_supply_w_id = s_w_id AND (s_w_id * s_i_id) % 10000 = su_suppkey
  AND ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
  AND c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id
  AND n1.n_nationkey = unicode(substr(c_state, 1, 1)) AND n1.n_regionkey = r_regionkey AND ol_i_id < 1000
  AND r_name = 'Europe' AND su_nationkey = n2.n_nationkey
  AND o_entry_d BETWEEN '2007-01-02' AND '2100-01-01' AND i_data LIKE '%b'
GROUP BY l_year ORDER BY l_year;

-- name: q9
SELECT n_name, strftime('%Y', o_entry_d) AS l_year, sum(ol_amount) AS sum_profit
FROM item, stock, supplier, order_line, orders, nation
WHERE ol_i_id = s_i_id AND ol_supply_w_id = s_w_id AND (s_w_id * s_i_id) % 10000 = su_suppkey
  AND ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
  AND ol_i_id = i_id AND su_nationkey = n_nationkey AND i_data LIKE '%BB'
GROUP BY n_name, l_year ORDER BY n_name, l_year DESC;

-- name: q10
SELECT c_id, c_last, sum(ol_amount) AS revenue, c_city, c_phone, n_name
FROM customer, orders, order_line, nation
WHERE c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id
  AND ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
  AND o_entry_d >= '2007-01-02' AND o_entry_d <= ol_delivery_d AND n_nationkey = unicode(substr(c_state, 1, 1))
GROUP BY c_id, c_last, c_city, c_phone, n_name ORDER BY revenue DESC;

-- name: customers_have_nations
SELECT c_w_id, c_d_id, c_id, c_state FROM customer LEFT JOIN nation ON n_nationkey = unicode(substr(c_state, 1, 1))
WHERE n_nationkey IS NULL LIMIT 10;
