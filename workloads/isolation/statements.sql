-- name: open_lists
INSERT INTO lists (id, elements) VALUES (:id, '');

-- name: open_registers
INSERT INTO registers (id, value) VALUES (:id, NULL);

-- name: open_counters
INSERT INTO counters (id, value) VALUES (:id, 0);

-- name: append
UPDATE lists SET elements = elements || :value WHERE id = :id;

-- name: read_list
SELECT elements FROM lists WHERE id = :id;

-- name: write
UPDATE registers SET value = :value WHERE id = :id;

-- name: read_register
SELECT value FROM registers WHERE id = :id;

-- name: set_counter
UPDATE counters SET value = :value WHERE id = :id;

-- name: read_counter
SELECT value FROM counters WHERE id = :id;

-- name: set_balance
UPDATE accounts SET balance = :balance WHERE id = :id;

-- name: balance
SELECT balance FROM accounts WHERE id = :id;

-- name: balances
SELECT balance FROM accounts ORDER BY id;
