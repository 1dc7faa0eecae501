-- InnoDB keeps a table in its primary key, and has no fill factor of a table's own.

-- name: create
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime datetime(6), filler char(22));
CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84));
CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88));

-- name: keys
ANALYZE TABLE pgbench_branches, pgbench_tellers, pgbench_accounts, pgbench_history;

-- name: drop
DROP TABLE IF EXISTS pgbench_history, pgbench_tellers, pgbench_accounts, pgbench_branches;
