-- The paper's three tables beside TPC-C's.

-- name: create
CREATE TABLE region (
  r_regionkey integer NOT NULL,
  r_name varchar(25) NOT NULL,
  r_comment varchar(152) NOT NULL
);
CREATE TABLE nation (
  n_nationkey integer NOT NULL,
  n_name varchar(25) NOT NULL,
  n_regionkey integer NOT NULL,
  n_comment varchar(152) NOT NULL
);
CREATE TABLE supplier (
  su_suppkey integer NOT NULL,
  su_name char(25) NOT NULL,
  su_address varchar(40) NOT NULL,
  su_nationkey integer NOT NULL,
  su_phone char(15) NOT NULL,
  su_acctbal decimal(12, 2) NOT NULL,
  su_comment varchar(101) NOT NULL
);

-- name: keys
ALTER TABLE region ADD PRIMARY KEY (r_regionkey);
ALTER TABLE nation ADD PRIMARY KEY (n_nationkey);
ALTER TABLE supplier ADD PRIMARY KEY (su_suppkey);
ALTER TABLE nation ADD FOREIGN KEY (n_regionkey) REFERENCES region (r_regionkey);
ALTER TABLE supplier ADD FOREIGN KEY (su_nationkey) REFERENCES nation (n_nationkey);
ANALYZE region, nation, supplier;

-- name: drop
DROP TABLE IF EXISTS supplier, nation, region;
