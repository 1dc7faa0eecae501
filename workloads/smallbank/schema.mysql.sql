-- name: keys
ANALYZE TABLE account, saving, checking;
