-- name: create
CREATE TABLE useracct (u_id integer NOT NULL, name varchar(128) NOT NULL);
CREATE TABLE item (i_id integer NOT NULL, title varchar(128) NOT NULL);
CREATE TABLE review (
  a_id bigint NOT NULL,
  u_id integer NOT NULL,
  i_id integer NOT NULL,
  rating integer NOT NULL,
  rank integer NOT NULL
);
CREATE TABLE review_rating (
  u_id integer NOT NULL,
  a_id bigint NOT NULL,
  rating integer NOT NULL,
  status integer NOT NULL,
  creation_date timestamp NOT NULL,
  last_mod_date timestamp NOT NULL,
  type integer NOT NULL,
  vertical_id integer NOT NULL
);
CREATE TABLE trust (
  source_u_id integer NOT NULL,
  target_u_id integer NOT NULL,
  trust integer NOT NULL,
  creation_date timestamp NOT NULL
);

-- name: keys
ALTER TABLE useracct ADD PRIMARY KEY (u_id);
ALTER TABLE item ADD PRIMARY KEY (i_id);
CREATE INDEX review_by_review ON review (a_id);
CREATE INDEX review_by_user ON review (u_id);
CREATE INDEX review_by_item ON review (i_id);
CREATE INDEX review_by_user_and_item ON review (u_id, i_id);
CREATE INDEX review_rating_by_user ON review_rating (u_id);
CREATE INDEX review_rating_by_review ON review_rating (a_id);
CREATE INDEX review_rating_by_user_and_review ON review_rating (u_id, a_id);
CREATE INDEX trust_by_source ON trust (source_u_id);
CREATE INDEX trust_by_target ON trust (target_u_id);
CREATE INDEX trust_by_both ON trust (source_u_id, target_u_id);
ANALYZE useracct, item, review, review_rating, trust;

-- name: drop
DROP TABLE IF EXISTS trust;
DROP TABLE IF EXISTS review_rating;
DROP TABLE IF EXISTS review;
DROP TABLE IF EXISTS item;
DROP TABLE IF EXISTS useracct;
