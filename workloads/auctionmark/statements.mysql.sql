-- MySQL takes numbers of seconds by a function.

-- name: new_item
INSERT INTO item (i_id, i_u_id, i_c_id, i_name, i_description, i_initial_price, i_num_bids, i_current_price,
  i_num_comments, i_start_date, i_end_date, i_status)
VALUES (:i_id, :u_id, :c_id, :name, :description, :price, 0, :price, 0, from_unixtime(:start), from_unixtime(:end), 0);
