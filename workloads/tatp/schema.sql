-- name: create
CREATE TABLE subscriber (
  s_id bigint NOT NULL,
  sub_nbr varchar(15) NOT NULL,
  bit_1 smallint NOT NULL, bit_2 smallint NOT NULL, bit_3 smallint NOT NULL, bit_4 smallint NOT NULL, bit_5 smallint NOT NULL,
  bit_6 smallint NOT NULL, bit_7 smallint NOT NULL, bit_8 smallint NOT NULL, bit_9 smallint NOT NULL, bit_10 smallint NOT NULL,
  hex_1 smallint NOT NULL, hex_2 smallint NOT NULL, hex_3 smallint NOT NULL, hex_4 smallint NOT NULL, hex_5 smallint NOT NULL,
  hex_6 smallint NOT NULL, hex_7 smallint NOT NULL, hex_8 smallint NOT NULL, hex_9 smallint NOT NULL, hex_10 smallint NOT NULL,
  byte2_1 smallint NOT NULL, byte2_2 smallint NOT NULL, byte2_3 smallint NOT NULL, byte2_4 smallint NOT NULL, byte2_5 smallint NOT NULL,
  byte2_6 smallint NOT NULL, byte2_7 smallint NOT NULL, byte2_8 smallint NOT NULL, byte2_9 smallint NOT NULL, byte2_10 smallint NOT NULL,
  msc_location bigint NOT NULL,
  vlr_location bigint NOT NULL
);
CREATE TABLE access_info (
  s_id bigint NOT NULL,
  ai_type smallint NOT NULL,
  data1 smallint NOT NULL,
  data2 smallint NOT NULL,
  data3 char(3) NOT NULL,
  data4 char(5) NOT NULL
);
CREATE TABLE special_facility (
  s_id bigint NOT NULL,
  sf_type smallint NOT NULL,
  is_active smallint NOT NULL,
  error_cntrl smallint NOT NULL,
  data_a smallint NOT NULL,
  data_b char(5) NOT NULL
);
CREATE TABLE call_forwarding (
  s_id bigint NOT NULL,
  sf_type smallint NOT NULL,
  start_time smallint NOT NULL,
  end_time smallint NOT NULL,
  numberx varchar(15) NOT NULL
);

-- name: keys
ALTER TABLE subscriber ADD PRIMARY KEY (s_id), ADD UNIQUE (sub_nbr);
ALTER TABLE access_info ADD PRIMARY KEY (s_id, ai_type);
ALTER TABLE special_facility ADD PRIMARY KEY (s_id, sf_type);
ALTER TABLE call_forwarding ADD PRIMARY KEY (s_id, sf_type, start_time);
ALTER TABLE access_info ADD FOREIGN KEY (s_id) REFERENCES subscriber (s_id);
ALTER TABLE special_facility ADD FOREIGN KEY (s_id) REFERENCES subscriber (s_id);
ALTER TABLE call_forwarding ADD FOREIGN KEY (s_id, sf_type) REFERENCES special_facility (s_id, sf_type);
ANALYZE subscriber, access_info, special_facility, call_forwarding;

-- name: drop
DROP TABLE IF EXISTS call_forwarding;
DROP TABLE IF EXISTS special_facility;
DROP TABLE IF EXISTS access_info;
DROP TABLE IF EXISTS subscriber;
