-- SQLite locks no rows: a transaction that writes has the database for itself.

-- name: oldest_order
SELECT no_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id ORDER BY no_o_id LIMIT 1;
