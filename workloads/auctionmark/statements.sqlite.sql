-- SQLite locks no rows: a transaction that writes has the database for itself. Times are texts.

-- name: lock_item
SELECT i_status, i_num_bids, i_current_price, i_num_comments FROM item WHERE i_id = :i_id;

-- name: waiting_item
SELECT i_id, i_u_id FROM item WHERE i_status = 1 ORDER BY i_end_date LIMIT 1;

-- name: ending_items
SELECT i_id, i_num_bids FROM item WHERE i_status = 0 ORDER BY i_end_date LIMIT 10;

-- name: new_item
INSERT INTO item (i_id, i_u_id, i_c_id, i_name, i_description, i_initial_price, i_num_bids, i_current_price,
  i_num_comments, i_start_date, i_end_date, i_status)
VALUES (:i_id, :u_id, :c_id, :name, :description, :price, 0, :price, 0, datetime(:start, 'unixepoch'),
  datetime(:end, 'unixepoch'), 0);
