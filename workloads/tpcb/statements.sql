-- pgbench's built-in scripts (pgbench's documentation, "What is the Transaction Actually Performed in pgbench?").

-- name: update_account
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;

-- name: balance
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;

-- name: update_teller
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;

-- name: update_branch
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;

-- name: add_history
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);

-- name: accounts_and_history_agree
SELECT accounts, history
FROM (SELECT coalesce(sum(abalance), 0) AS accounts FROM pgbench_accounts) AS a,
     (SELECT coalesce(sum(delta), 0) AS history FROM pgbench_history) AS h
WHERE accounts <> history;
