-- name: create
CREATE TABLE account (custid bigint NOT NULL, name varchar(64) NOT NULL);
CREATE TABLE saving (custid bigint NOT NULL, balance decimal(16, 2) NOT NULL);
CREATE TABLE checking (custid bigint NOT NULL, balance decimal(16, 2) NOT NULL);

-- name: keys
ALTER TABLE account ADD PRIMARY KEY (name), ADD UNIQUE (custid);
ALTER TABLE saving ADD PRIMARY KEY (custid);
ALTER TABLE checking ADD PRIMARY KEY (custid);
ANALYZE account, saving, checking;
