-- SQLite makes keys with their table alone.

-- name: create
CREATE TABLE region (
  r_id integer NOT NULL,
  r_name varchar(32) NOT NULL,
  PRIMARY KEY (r_id)
);
CREATE TABLE category (
  c_id integer NOT NULL,
  c_name varchar(50) NOT NULL,
  c_parent_id integer,
  PRIMARY KEY (c_id),
  FOREIGN KEY (c_parent_id) REFERENCES category
);
CREATE TABLE global_attribute_group (
  gag_id integer NOT NULL,
  gag_c_id integer NOT NULL,
  gag_name varchar(32) NOT NULL,
  PRIMARY KEY (gag_id),
  FOREIGN KEY (gag_c_id) REFERENCES category
);
CREATE TABLE global_attribute_value (
  gav_id integer NOT NULL,
  gav_gag_id integer NOT NULL,
  gav_name varchar(32) NOT NULL,
  PRIMARY KEY (gav_gag_id, gav_id),
  FOREIGN KEY (gav_gag_id) REFERENCES global_attribute_group
);
CREATE TABLE useracct (
  u_id bigint NOT NULL,
  u_rating integer NOT NULL,
  u_balance decimal(14, 2) NOT NULL,
  u_comments integer NOT NULL,
  u_r_id integer NOT NULL,
  u_created timestamp NOT NULL,
  PRIMARY KEY (u_id),
  FOREIGN KEY (u_r_id) REFERENCES region
);
CREATE TABLE useracct_attributes (
  ua_id integer NOT NULL,
  ua_u_id bigint NOT NULL,
  ua_name varchar(32) NOT NULL,
  ua_value varchar(32) NOT NULL,
  PRIMARY KEY (ua_u_id, ua_id),
  FOREIGN KEY (ua_u_id) REFERENCES useracct
);
CREATE TABLE item (
  i_id bigint NOT NULL,
  i_u_id bigint NOT NULL,
  i_c_id integer NOT NULL,
  i_name varchar(100) NOT NULL,
  i_description varchar(255) NOT NULL,
  i_initial_price integer NOT NULL,
  i_num_bids integer NOT NULL,
  i_current_price integer NOT NULL,
  i_num_comments integer NOT NULL,
  i_start_date timestamp NOT NULL,
  i_end_date timestamp NOT NULL,
  i_status integer NOT NULL,
  PRIMARY KEY (i_id),
  FOREIGN KEY (i_u_id) REFERENCES useracct,
  FOREIGN KEY (i_c_id) REFERENCES category
);
CREATE TABLE item_attribute (
  ia_id integer NOT NULL,
  ia_i_id bigint NOT NULL,
  ia_gag_id integer NOT NULL,
  ia_gav_id integer NOT NULL,
  PRIMARY KEY (ia_i_id, ia_id),
  FOREIGN KEY (ia_i_id) REFERENCES item,
  FOREIGN KEY (ia_gag_id, ia_gav_id) REFERENCES global_attribute_value
);
CREATE TABLE item_image (
  ii_id integer NOT NULL,
  ii_i_id bigint NOT NULL,
  ii_path varchar(100) NOT NULL,
  PRIMARY KEY (ii_i_id, ii_id),
  FOREIGN KEY (ii_i_id) REFERENCES item
);
CREATE TABLE item_comment (
  ic_id integer NOT NULL,
  ic_i_id bigint NOT NULL,
  ic_buyer_id bigint NOT NULL,
  ic_question varchar(100) NOT NULL,
  ic_response varchar(100),
  PRIMARY KEY (ic_i_id, ic_id),
  FOREIGN KEY (ic_i_id) REFERENCES item,
  FOREIGN KEY (ic_buyer_id) REFERENCES useracct
);
CREATE TABLE item_bid (
  ib_id integer NOT NULL,
  ib_i_id bigint NOT NULL,
  ib_buyer_id bigint NOT NULL,
  ib_bid integer NOT NULL,
  ib_created timestamp NOT NULL,
  PRIMARY KEY (ib_i_id, ib_id),
  FOREIGN KEY (ib_i_id) REFERENCES item,
  FOREIGN KEY (ib_buyer_id) REFERENCES useracct
);
CREATE TABLE item_max_bid (
  imb_i_id bigint NOT NULL,
  imb_ib_id integer NOT NULL,
  imb_buyer_id bigint NOT NULL,
  PRIMARY KEY (imb_i_id),
  FOREIGN KEY (imb_i_id, imb_ib_id) REFERENCES item_bid
);
CREATE TABLE item_purchase (
  ip_i_id bigint NOT NULL,
  ip_ib_id integer NOT NULL,
  ip_buyer_id bigint NOT NULL,
  PRIMARY KEY (ip_i_id),
  FOREIGN KEY (ip_i_id, ip_ib_id) REFERENCES item_bid
);
CREATE TABLE useracct_watch (
  uw_u_id bigint NOT NULL,
  uw_place integer NOT NULL,
  uw_i_id bigint NOT NULL,
  PRIMARY KEY (uw_u_id, uw_place),
  FOREIGN KEY (uw_u_id) REFERENCES useracct,
  FOREIGN KEY (uw_i_id) REFERENCES item
);
CREATE TABLE useracct_item (
  ui_u_id bigint NOT NULL,
  ui_i_id bigint NOT NULL,
  PRIMARY KEY (ui_i_id),
  FOREIGN KEY (ui_u_id) REFERENCES useracct,
  FOREIGN KEY (ui_i_id) REFERENCES item
);
CREATE TABLE useracct_feedback (
  uf_u_id bigint NOT NULL,
  uf_i_id bigint NOT NULL,
  uf_from_id bigint NOT NULL,
  uf_rating integer NOT NULL,
  PRIMARY KEY (uf_u_id, uf_i_id, uf_from_id),
  FOREIGN KEY (uf_u_id) REFERENCES useracct,
  FOREIGN KEY (uf_i_id) REFERENCES item,
  FOREIGN KEY (uf_from_id) REFERENCES useracct
);

-- name: keys
INSERT INTO item_max_bid SELECT ib_i_id, ib_id, ib_buyer_id FROM item_bid JOIN item ON i_id = ib_i_id AND i_num_bids = ib_id;
INSERT INTO item_purchase
SELECT imb_i_id, imb_ib_id, imb_buyer_id FROM item_max_bid JOIN item ON i_id = imb_i_id WHERE i_status = 2;
INSERT INTO useracct_item SELECT imb_buyer_id, imb_i_id FROM item_max_bid JOIN item ON i_id = imb_i_id WHERE i_status > 0;
CREATE INDEX item_seller ON item (i_u_id);
CREATE INDEX item_end ON item (i_status, i_end_date);
CREATE INDEX useracct_item_buyer ON useracct_item (ui_u_id);
ANALYZE;

-- name: drop
DROP TABLE IF EXISTS useracct_feedback;
DROP TABLE IF EXISTS useracct_item;
DROP TABLE IF EXISTS useracct_watch;
DROP TABLE IF EXISTS item_purchase;
DROP TABLE IF EXISTS item_max_bid;
DROP TABLE IF EXISTS item_bid;
DROP TABLE IF EXISTS item_comment;
DROP TABLE IF EXISTS item_image;
DROP TABLE IF EXISTS item_attribute;
DROP TABLE IF EXISTS item;
DROP TABLE IF EXISTS useracct_attributes;
DROP TABLE IF EXISTS useracct;
DROP TABLE IF EXISTS global_attribute_value;
DROP TABLE IF EXISTS global_attribute_group;
DROP TABLE IF EXISTS category;
DROP TABLE IF EXISTS region;
