-- SQLite makes a primary key with its table alone; an integer one counts on by itself.

-- name: create
CREATE TABLE customer (
  c_id integer PRIMARY KEY,
  c_name varchar(40) NOT NULL,
  c_gender varchar(6) NOT NULL,
  c_age integer NOT NULL,
  c_province varchar(30) NOT NULL,
  c_city varchar(30) NOT NULL,
  c_credit numeric(14, 2) NOT NULL,
  c_createddate date NOT NULL,
  c_updateddate timestamp NOT NULL
);
CREATE TABLE orders (
  o_id integer PRIMARY KEY,
  o_c_id bigint NOT NULL,
  o_date date NOT NULL,
  o_status varchar(10) NOT NULL,
  o_totalamount numeric(12, 2) NOT NULL,
  o_updateddate timestamp NOT NULL
);
CREATE TABLE orderline (
  ol_id integer PRIMARY KEY,
  ol_o_id bigint NOT NULL,
  ol_p_id integer NOT NULL,
  ol_quantity integer NOT NULL,
  ol_totalamount numeric(12, 2) NOT NULL,
  ol_updateddate timestamp NOT NULL
);

-- name: keys
ANALYZE;

-- name: drop
DROP TABLE IF EXISTS customer;
DROP TABLE IF EXISTS orders;
DROP TABLE IF EXISTS orderline;
