-- The statement of sysbench's oltp_common.lua.

-- name: point_select
SELECT c FROM sbtest1 WHERE id = :id;
