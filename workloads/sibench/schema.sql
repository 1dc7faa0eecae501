-- name: create
CREATE TABLE sitest (id integer PRIMARY KEY, value integer NOT NULL);

-- name: keys
ANALYZE;

-- name: drop
DROP TABLE IF EXISTS sitest;
