-- SQLite makes a primary key with its table alone, and has no fill factor.

-- name: create
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
CREATE TABLE pgbench_tellers (tid integer PRIMARY KEY, bid int, tbalance int, filler char(84));
CREATE TABLE pgbench_accounts (aid integer PRIMARY KEY, bid int, abalance int, filler char(84));
CREATE TABLE pgbench_branches (bid integer PRIMARY KEY, bbalance int, filler char(88));

-- name: keys
ANALYZE;

-- name: drop
DROP TABLE IF EXISTS pgbench_history;
DROP TABLE IF EXISTS pgbench_tellers;
DROP TABLE IF EXISTS pgbench_accounts;
DROP TABLE IF EXISTS pgbench_branches;
