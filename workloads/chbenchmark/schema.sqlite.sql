-- SQLite makes keys with their table alone.

-- name: create
CREATE TABLE region (
  r_regionkey integer NOT NULL,
  r_name varchar(25) NOT NULL,
  r_comment varchar(152) NOT NULL,
  PRIMARY KEY (r_regionkey)
);
CREATE TABLE nation (
  n_nationkey integer NOT NULL,
  n_name varchar(25) NOT NULL,
  n_regionkey integer NOT NULL,
  n_comment varchar(152) NOT NULL,
  PRIMARY KEY (n_nationkey),
  FOREIGN KEY (n_regionkey) REFERENCES region
);
CREATE TABLE supplier (
  su_suppkey integer NOT NULL,
  su_name char(25) NOT NULL,
  su_address varchar(40) NOT NULL,
  su_nationkey integer NOT NULL,
  su_phone char(15) NOT NULL,
  su_acctbal decimal(12, 2) NOT NULL,
  su_comment varchar(101) NOT NULL,
  PRIMARY KEY (su_suppkey),
  FOREIGN KEY (su_nationkey) REFERENCES nation
);

-- name: keys
ANALYZE;

-- name: drop
DROP TABLE IF EXISTS supplier;
DROP TABLE IF EXISTS nation;
DROP TABLE IF EXISTS region;
