-- name: create
CREATE TABLE account (custid bigint NOT NULL UNIQUE, name varchar(64) PRIMARY KEY);
CREATE TABLE saving (custid bigint PRIMARY KEY, balance decimal(16, 2) NOT NULL);
CREATE TABLE checking (custid bigint PRIMARY KEY, balance decimal(16, 2) NOT NULL);

-- name: keys
ANALYZE;

-- name: drop
DROP TABLE IF EXISTS account;
DROP TABLE IF EXISTS saving;
DROP TABLE IF EXISTS checking;
