-- name: create
CREATE TABLE lists (id integer PRIMARY KEY, elements text NOT NULL);
CREATE TABLE registers (id integer PRIMARY KEY, value integer);
CREATE TABLE counters (id integer PRIMARY KEY, value integer NOT NULL);
CREATE TABLE accounts (id integer PRIMARY KEY, balance integer NOT NULL);

-- name: keys
ANALYZE;
