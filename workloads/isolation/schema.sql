-- name: create
CREATE TABLE lists (id bigint NOT NULL, elements text NOT NULL);
CREATE TABLE registers (id bigint NOT NULL, value bigint);
CREATE TABLE counters (id bigint NOT NULL, value bigint NOT NULL);
CREATE TABLE accounts (id bigint NOT NULL, balance bigint NOT NULL);

-- name: keys
ALTER TABLE lists ADD PRIMARY KEY (id);
ALTER TABLE registers ADD PRIMARY KEY (id);
ALTER TABLE counters ADD PRIMARY KEY (id);
ALTER TABLE accounts ADD PRIMARY KEY (id);

-- name: drop
DROP TABLE IF EXISTS lists;
DROP TABLE IF EXISTS registers;
DROP TABLE IF EXISTS counters;
DROP TABLE IF EXISTS accounts;
