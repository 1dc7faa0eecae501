\set o_id random(1, 30000)
BEGIN;
SELECT o_id AS id, o_c_id AS customer, o_totalamount AS amount, o_updateddate AS updated FROM orders WHERE o_id = :o_id \gset
UPDATE orders SET o_updateddate = now(), o_status = 'PAID' WHERE o_id = :id;
UPDATE customer SET c_credit = c_credit + :amount, c_updateddate = now() WHERE c_id = :customer;
COMMIT;
