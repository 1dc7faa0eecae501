-- name: create
CREATE TABLE user_profiles (
  uid integer NOT NULL,
  name varchar(255) NOT NULL,
  email varchar(255) NOT NULL,
  partitionid integer NOT NULL,
  partitionid2 smallint NOT NULL,
  followers integer NOT NULL,
  PRIMARY KEY (uid)
);
CREATE TABLE follows (f1 integer NOT NULL, f2 integer NOT NULL, PRIMARY KEY (f1, f2));
CREATE TABLE followers (f1 integer NOT NULL, f2 integer NOT NULL, PRIMARY KEY (f1, f2));
CREATE TABLE tweets (
  id bigint NOT NULL,
  uid integer NOT NULL,
  text varchar(140) NOT NULL,
  createdate datetime(6) NOT NULL,
  PRIMARY KEY (id)
);
CREATE TABLE added_tweets (
  id bigint AUTO_INCREMENT PRIMARY KEY,
  uid integer NOT NULL,
  text varchar(140) NOT NULL,
  createdate datetime(6) NOT NULL
);

-- name: keys
CREATE INDEX user_profiles_by_followers ON user_profiles (followers);
CREATE INDEX user_profiles_by_partition ON user_profiles (partitionid);
CREATE INDEX tweets_by_user ON tweets (uid);
CREATE INDEX added_tweets_by_user ON added_tweets (uid);
UPDATE user_profiles SET followers = (SELECT count(*) FROM followers AS f WHERE f.f1 = user_profiles.uid);
ANALYZE TABLE user_profiles, follows, followers, tweets, added_tweets;
