-- InnoDB keeps a table in its primary key: it is made with it, and rows are loaded in its order.

-- name: create
CREATE TABLE customer (
  c_id bigint AUTO_INCREMENT PRIMARY KEY,
  c_name varchar(40) NOT NULL,
  c_gender varchar(6) NOT NULL,
  c_age integer NOT NULL,
  c_province varchar(30) NOT NULL,
  c_city varchar(30) NOT NULL,
  c_credit decimal(14, 2) NOT NULL,
  c_createddate date NOT NULL,
  c_updateddate datetime(6) NOT NULL
);
CREATE TABLE orders (
  o_id bigint AUTO_INCREMENT PRIMARY KEY,
  o_c_id bigint NOT NULL,
  o_date date NOT NULL,
  o_status varchar(10) NOT NULL,
  o_totalamount decimal(12, 2) NOT NULL,
  o_updateddate datetime(6) NOT NULL
);
CREATE TABLE orderline (
  ol_id bigint AUTO_INCREMENT PRIMARY KEY,
  ol_o_id bigint NOT NULL,
  ol_p_id integer NOT NULL,
  ol_quantity integer NOT NULL,
  ol_totalamount decimal(12, 2) NOT NULL,
  ol_updateddate datetime(6) NOT NULL
);

-- name: keys
ANALYZE TABLE customer, orders, orderline;

-- name: drop
DROP TABLE IF EXISTS customer, orders, orderline;
