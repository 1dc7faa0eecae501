-- AuctionMark's tables; highest bids, purchases and won items follow from the bids.

-- name: create
CREATE TABLE region (
  r_id integer NOT NULL,
  r_name varchar(32) NOT NULL
);
CREATE TABLE category (
  c_id integer NOT NULL,
  c_name varchar(50) NOT NULL,
  c_parent_id integer
);
CREATE TABLE global_attribute_group (
  gag_id integer NOT NULL,
  gag_c_id integer NOT NULL,
  gag_name varchar(32) NOT NULL
);
CREATE TABLE global_attribute_value (
  gav_id integer NOT NULL,
  gav_gag_id integer NOT NULL,
  gav_name varchar(32) NOT NULL
);
CREATE TABLE useracct (
  u_id bigint NOT NULL,
  u_rating integer NOT NULL,
  u_balance decimal(14, 2) NOT NULL,
  u_comments integer NOT NULL,
  u_r_id integer NOT NULL,
  u_created timestamp NOT NULL
);
CREATE TABLE useracct_attributes (
  ua_id integer NOT NULL,
  ua_u_id bigint NOT NULL,
  ua_name varchar(32) NOT NULL,
  ua_value varchar(32) NOT NULL
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
  i_status integer NOT NULL
);
CREATE TABLE item_attribute (
  ia_id integer NOT NULL,
  ia_i_id bigint NOT NULL,
  ia_gag_id integer NOT NULL,
  ia_gav_id integer NOT NULL
);
CREATE TABLE item_image (
  ii_id integer NOT NULL,
  ii_i_id bigint NOT NULL,
  ii_path varchar(100) NOT NULL
);
CREATE TABLE item_comment (
  ic_id integer NOT NULL,
  ic_i_id bigint NOT NULL,
  ic_buyer_id bigint NOT NULL,
  ic_question varchar(100) NOT NULL,
  ic_response varchar(100)
);
CREATE TABLE item_bid (
  ib_id integer NOT NULL,
  ib_i_id bigint NOT NULL,
  ib_buyer_id bigint NOT NULL,
  ib_bid integer NOT NULL,
  ib_created timestamp NOT NULL
);
CREATE TABLE item_max_bid (
  imb_i_id bigint NOT NULL,
  imb_ib_id integer NOT NULL,
  imb_buyer_id bigint NOT NULL
);
CREATE TABLE item_purchase (
  ip_i_id bigint NOT NULL,
  ip_ib_id integer NOT NULL,
  ip_buyer_id bigint NOT NULL
);
CREATE TABLE useracct_watch (
  uw_u_id bigint NOT NULL,
  uw_place integer NOT NULL,
  uw_i_id bigint NOT NULL
);
CREATE TABLE useracct_item (
  ui_u_id bigint NOT NULL,
  ui_i_id bigint NOT NULL
);
CREATE TABLE useracct_feedback (
  uf_u_id bigint NOT NULL,
  uf_i_id bigint NOT NULL,
  uf_from_id bigint NOT NULL,
  uf_rating integer NOT NULL
);

-- name: keys
INSERT INTO item_max_bid SELECT ib_i_id, ib_id, ib_buyer_id FROM item_bid JOIN item ON i_id = ib_i_id AND i_num_bids = ib_id;
INSERT INTO item_purchase
SELECT imb_i_id, imb_ib_id, imb_buyer_id FROM item_max_bid JOIN item ON i_id = imb_i_id WHERE i_status = 2;
INSERT INTO useracct_item SELECT imb_buyer_id, imb_i_id FROM item_max_bid JOIN item ON i_id = imb_i_id WHERE i_status > 0;
ALTER TABLE region ADD PRIMARY KEY (r_id);
ALTER TABLE category ADD PRIMARY KEY (c_id);
ALTER TABLE global_attribute_group ADD PRIMARY KEY (gag_id);
ALTER TABLE global_attribute_value ADD PRIMARY KEY (gav_gag_id, gav_id);
ALTER TABLE useracct ADD PRIMARY KEY (u_id);
ALTER TABLE useracct_attributes ADD PRIMARY KEY (ua_u_id, ua_id);
ALTER TABLE item ADD PRIMARY KEY (i_id);
ALTER TABLE item_attribute ADD PRIMARY KEY (ia_i_id, ia_id);
ALTER TABLE item_image ADD PRIMARY KEY (ii_i_id, ii_id);
ALTER TABLE item_comment ADD PRIMARY KEY (ic_i_id, ic_id);
ALTER TABLE item_bid ADD PRIMARY KEY (ib_i_id, ib_id);
ALTER TABLE item_max_bid ADD PRIMARY KEY (imb_i_id);
ALTER TABLE item_purchase ADD PRIMARY KEY (ip_i_id);
ALTER TABLE useracct_watch ADD PRIMARY KEY (uw_u_id, uw_place);
ALTER TABLE useracct_item ADD PRIMARY KEY (ui_i_id);
ALTER TABLE useracct_feedback ADD PRIMARY KEY (uf_u_id, uf_i_id, uf_from_id);
CREATE INDEX item_seller ON item (i_u_id);
CREATE INDEX item_end ON item (i_status, i_end_date);
CREATE INDEX useracct_item_buyer ON useracct_item (ui_u_id);
ALTER TABLE category ADD FOREIGN KEY (c_parent_id) REFERENCES category (c_id);
ALTER TABLE global_attribute_group ADD FOREIGN KEY (gag_c_id) REFERENCES category (c_id);
ALTER TABLE global_attribute_value ADD FOREIGN KEY (gav_gag_id) REFERENCES global_attribute_group (gag_id);
ALTER TABLE useracct ADD FOREIGN KEY (u_r_id) REFERENCES region (r_id);
ALTER TABLE useracct_attributes ADD FOREIGN KEY (ua_u_id) REFERENCES useracct (u_id);
ALTER TABLE item ADD FOREIGN KEY (i_u_id) REFERENCES useracct (u_id);
ALTER TABLE item ADD FOREIGN KEY (i_c_id) REFERENCES category (c_id);
ALTER TABLE item_attribute ADD FOREIGN KEY (ia_i_id) REFERENCES item (i_id);
ALTER TABLE item_attribute ADD FOREIGN KEY (ia_gag_id, ia_gav_id) REFERENCES global_attribute_value (gav_gag_id, gav_id);
ALTER TABLE item_image ADD FOREIGN KEY (ii_i_id) REFERENCES item (i_id);
ALTER TABLE item_comment ADD FOREIGN KEY (ic_i_id) REFERENCES item (i_id);
ALTER TABLE item_comment ADD FOREIGN KEY (ic_buyer_id) REFERENCES useracct (u_id);
ALTER TABLE item_bid ADD FOREIGN KEY (ib_i_id) REFERENCES item (i_id);
ALTER TABLE item_bid ADD FOREIGN KEY (ib_buyer_id) REFERENCES useracct (u_id);
ALTER TABLE item_max_bid ADD FOREIGN KEY (imb_i_id, imb_ib_id) REFERENCES item_bid (ib_i_id, ib_id);
ALTER TABLE item_purchase ADD FOREIGN KEY (ip_i_id, ip_ib_id) REFERENCES item_bid (ib_i_id, ib_id);
ALTER TABLE useracct_watch ADD FOREIGN KEY (uw_u_id) REFERENCES useracct (u_id);
ALTER TABLE useracct_watch ADD FOREIGN KEY (uw_i_id) REFERENCES item (i_id);
ALTER TABLE useracct_item ADD FOREIGN KEY (ui_u_id) REFERENCES useracct (u_id);
ALTER TABLE useracct_item ADD FOREIGN KEY (ui_i_id) REFERENCES item (i_id);
ALTER TABLE useracct_feedback ADD FOREIGN KEY (uf_u_id) REFERENCES useracct (u_id);
ALTER TABLE useracct_feedback ADD FOREIGN KEY (uf_i_id) REFERENCES item (i_id);
ALTER TABLE useracct_feedback ADD FOREIGN KEY (uf_from_id) REFERENCES useracct (u_id);
ANALYZE region, category, global_attribute_group, global_attribute_value, useracct, useracct_attributes, item, item_attribute, item_image, item_comment, item_bid, item_max_bid, item_purchase, useracct_watch, useracct_item, useracct_feedback;

-- name: drop
DROP TABLE IF EXISTS useracct_feedback, useracct_item, useracct_watch, item_purchase, item_max_bid, item_bid, item_comment, item_image, item_attribute, item, useracct_attributes, useracct, global_attribute_value, global_attribute_group, category, region;
