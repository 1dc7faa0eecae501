-- TATP 1.0, section 2.2.

-- name: subscriber
SELECT s_id, sub_nbr, bit_1, bit_2, bit_3, bit_4, bit_5, bit_6, bit_7, bit_8, bit_9, bit_10,
  hex_1, hex_2, hex_3, hex_4, hex_5, hex_6, hex_7, hex_8, hex_9, hex_10,
  byte2_1, byte2_2, byte2_3, byte2_4, byte2_5, byte2_6, byte2_7, byte2_8, byte2_9, byte2_10,
  msc_location, vlr_location
FROM subscriber WHERE s_id = :s_id;

-- name: new_destination
SELECT cf.numberx FROM special_facility AS sf, call_forwarding AS cf
WHERE sf.s_id = :s_id AND sf.sf_type = :sf_type AND sf.is_active = 1
  AND cf.s_id = sf.s_id AND cf.sf_type = sf.sf_type
  AND cf.start_time <= :start_time AND :end_time < cf.end_time;

-- name: access_data
SELECT data1, data2, data3, data4 FROM access_info WHERE s_id = :s_id AND ai_type = :ai_type;

-- name: update_bit
UPDATE subscriber SET bit_1 = :bit WHERE s_id = :s_id;

-- name: update_data
UPDATE special_facility SET data_a = :data_a WHERE s_id = :s_id AND sf_type = :sf_type;

-- name: update_location
UPDATE subscriber SET vlr_location = :location WHERE sub_nbr = :sub_nbr;

-- name: find_subscriber
SELECT s_id FROM subscriber WHERE sub_nbr = :sub_nbr;

-- name: facilities
SELECT sf_type FROM special_facility WHERE s_id = :s_id;

-- name: insert_forwarding
INSERT INTO call_forwarding (s_id, sf_type, start_time, end_time, numberx)
VALUES (:s_id, :sf_type, :start_time, :end_time, :numberx);

-- name: delete_forwarding
DELETE FROM call_forwarding WHERE s_id = :s_id AND sf_type = :sf_type AND start_time = :start_time;

-- name: numbers_of_subscribers
SELECT s_id, sub_nbr FROM subscriber WHERE CAST(sub_nbr AS decimal(15)) <> s_id OR length(sub_nbr) <> 15 LIMIT 10;

-- name: children_of_subscribers
SELECT s.s_id, coalesce(accesses, 0) AS accesses, coalesce(facilities, 0) AS facilities FROM subscriber AS s
LEFT JOIN (SELECT s_id, count(*) AS accesses FROM access_info GROUP BY s_id) AS a ON a.s_id = s.s_id
LEFT JOIN (SELECT s_id, count(*) AS facilities FROM special_facility GROUP BY s_id) AS f ON f.s_id = s.s_id
WHERE coalesce(accesses, 0) NOT BETWEEN 1 AND 4 OR coalesce(facilities, 0) NOT BETWEEN 1 AND 4 LIMIT 10;

-- name: forwardings_have_facilities
SELECT cf.s_id, cf.sf_type, start_time, end_time FROM call_forwarding AS cf
LEFT JOIN special_facility AS sf ON sf.s_id = cf.s_id AND sf.sf_type = cf.sf_type
WHERE sf.s_id IS NULL OR start_time NOT IN (0, 8, 16) OR end_time - start_time NOT BETWEEN 1 AND 8 LIMIT 10;
