-- name: keys
ANALYZE TABLE sitest;
