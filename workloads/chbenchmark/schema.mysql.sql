-- InnoDB keeps a table in its primary key: it is made with it.

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
  PRIMARY KEY (n_nationkey)
);
CREATE TABLE supplier (
  su_suppkey integer NOT NULL,
  su_name char(25) NOT NULL,
  su_address varchar(40) NOT NULL,
  su_nationkey integer NOT NULL,
  su_phone char(15) NOT NULL,
  su_acctbal decimal(12, 2) NOT NULL,
  su_comment varchar(101) NOT NULL,
  PRIMARY KEY (su_suppkey)
);

-- name: keys
SET foreign_key_checks = 0;
ALTER TABLE nation ADD FOREIGN KEY (n_regionkey) REFERENCES region (r_regionkey);
ALTER TABLE supplier ADD FOREIGN KEY (su_nationkey) REFERENCES nation (n_nationkey);
SET foreign_key_checks = DEFAULT;
ANALYZE TABLE region, nation, supplier;

-- name: drop
DROP TABLE IF EXISTS supplier, nation, region;
