-- SEATS' statements. A flight's row is locked before its seats change.

-- name: nearby_airports
SELECT d_ap_id1, d_distance FROM airport_distance
WHERE d_ap_id0 = :airport AND d_ap_id1 <> :same AND d_distance <= :distance ORDER BY d_distance LIMIT 2;

-- name: flights_between
SELECT f_id, f_al_id, f_depart_ap_id, f_depart_time, f_arrive_ap_id, f_arrive_time, f_seats_left, al_name, al_iattr00, al_iattr01
FROM flight JOIN airline ON al_id = f_al_id
WHERE f_depart_ap_id = :depart AND f_depart_time >= :first AND f_depart_time < :last
  AND f_arrive_ap_id IN (:arrive_1, :arrive_2, :arrive_3);

-- name: airport
SELECT ap_code, ap_name, ap_city, ap_longitude, ap_latitude, co_id, co_name, co_code_2, co_code_3
FROM airport JOIN country ON co_id = ap_co_id WHERE ap_id = :ap_id;

-- name: flight
SELECT f_status, f_base_price, f_seats_total, f_seats_left FROM flight WHERE f_id = :f_id;

-- name: seats_taken
SELECT r_id, r_seat FROM reservation WHERE r_f_id = :f_id;

-- name: lock_flight
SELECT f_al_id, f_seats_left FROM flight WHERE f_id = :f_id FOR UPDATE;

-- name: seat_taken
SELECT r_id FROM reservation WHERE r_f_id = :f_id AND r_seat = :seat;

-- name: reservation_of
SELECT r_id FROM reservation WHERE r_c_id = :c_id AND r_f_id = :f_id LIMIT 1;

-- name: customer
SELECT c_id, c_base_ap_id, c_balance, c_sattr00 FROM customer WHERE c_id = :c_id;

-- name: customer_by_name
SELECT c_id, c_base_ap_id, c_balance, c_sattr00 FROM customer WHERE c_id_str = :c_id_str;

-- name: cards
SELECT ff_c_id, ff_al_id FROM frequent_flyer WHERE ff_c_id_str = :c_id_str;

-- name: book
INSERT INTO reservation (r_id, r_c_id, r_f_id, r_seat, r_price, r_iattr00, r_iattr01, r_iattr02, r_iattr03, r_iattr04,
  r_iattr05, r_iattr06, r_iattr07, r_iattr08)
VALUES (:r_id, :c_id, :f_id, :seat, :price, :attribute, 0, 0, 0, 0, 0, 0, 0, 0);

-- name: change_seats
UPDATE flight SET f_seats_left = f_seats_left + :change WHERE f_id = :f_id;

-- name: note_customer
UPDATE customer SET c_iattr10 = c_iattr10 + :change, c_iattr11 = c_iattr11 + 1 WHERE c_id = :c_id;

-- name: note_frequent_flyer
UPDATE frequent_flyer SET ff_iattr10 = ff_iattr10 + :change WHERE ff_c_id = :c_id AND ff_al_id = :al_id;

-- name: cancel
DELETE FROM reservation WHERE r_id = :r_id AND r_c_id = :c_id;

-- name: pay_back
UPDATE customer SET c_balance = c_balance + :price, c_iattr10 = c_iattr10 - 1 WHERE c_id = :c_id;

-- name: move
UPDATE reservation SET r_seat = :seat, r_iattr00 = :attribute WHERE r_id = :r_id;

-- name: change_customer
UPDATE customer SET c_iattr00 = :one, c_iattr01 = :two WHERE c_id = :c_id;

-- name: change_cards
UPDATE frequent_flyer SET ff_iattr00 = :one, ff_iattr01 = :two WHERE ff_c_id = :c_id;

-- name: seats_are_counted
SELECT f_id, f_seats_total, f_seats_left, taken FROM flight
LEFT JOIN (SELECT r_f_id, count(*) AS taken FROM reservation GROUP BY r_f_id) AS r ON r_f_id = f_id
WHERE f_seats_total - f_seats_left <> coalesce(taken, 0) LIMIT 10;

-- name: seats_are_reserved_once
SELECT r_f_id, r_seat, count(*) AS times FROM reservation GROUP BY r_f_id, r_seat
HAVING count(*) > 1 OR r_seat NOT BETWEEN 0 AND 149 LIMIT 10;

-- name: reservations_have_flights_and_customers
SELECT r_id, r_f_id, r_c_id FROM reservation LEFT JOIN flight ON f_id = r_f_id LEFT JOIN customer ON c_id = r_c_id
WHERE f_id IS NULL OR c_id IS NULL LIMIT 10;

-- name: reservations_are_there
SELECT found, acknowledged FROM (
  SELECT (SELECT count(*) FROM reservation) - (SELECT count(*) FROM flight) * 75 AS found,
    CAST(:tally_booked AS decimal(20, 0)) - CAST(:tally_cancelled AS decimal(20, 0)) AS acknowledged
) AS compared
WHERE abs(found - acknowledged) > CAST(:uncertain_booked AS decimal(20, 0)) + CAST(:uncertain_cancelled AS decimal(20, 0));

-- name: money_is_paid_back
SELECT found, acknowledged FROM (
  SELECT (SELECT sum(c_balance - 1000) FROM customer) AS found, CAST(:tally_paid_back AS decimal(30, 2)) AS acknowledged
) AS compared WHERE abs(found - acknowledged) > 0.005 + CAST(:uncertain_paid_back AS decimal(30, 2));
