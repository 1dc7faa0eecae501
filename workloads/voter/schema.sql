-- name: create
CREATE TABLE contestants (contestant_number integer PRIMARY KEY, contestant_name varchar(50) NOT NULL);
CREATE TABLE area_code_state (area_code smallint PRIMARY KEY, state varchar(2) NOT NULL);
CREATE TABLE votes (
  phone_number bigint NOT NULL,
  state varchar(2) NOT NULL,
  contestant_number integer NOT NULL REFERENCES contestants (contestant_number),
  created timestamp NOT NULL
);
CREATE INDEX votes_by_phone_number ON votes (phone_number);

-- name: keys
ANALYZE;

-- name: drop
DROP TABLE IF EXISTS votes;
DROP TABLE IF EXISTS area_code_state;
DROP TABLE IF EXISTS contestants;
