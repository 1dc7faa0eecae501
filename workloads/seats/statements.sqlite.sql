-- SQLite locks no rows: a transaction that writes has the database for itself.

-- name: lock_flight
SELECT f_al_id, f_seats_left FROM flight WHERE f_id = :f_id;
