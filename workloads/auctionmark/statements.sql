-- AuctionMark's statements. An item's row is locked before its bids, comments or status change.

-- name: item
SELECT i_id, i_u_id, i_name, i_current_price, i_num_bids, i_end_date, i_status FROM item WHERE i_id = :i_id AND i_u_id = :u_id;

-- name: user
SELECT u_id, u_rating, u_balance, u_comments, u_created, r_name FROM useracct JOIN region ON r_id = u_r_id WHERE u_id = :u_id;

-- name: feedback_of
SELECT uf_from_id, uf_rating, i_name FROM useracct_feedback JOIN item ON i_id = uf_i_id WHERE uf_u_id = :u_id LIMIT 25;

-- name: comments_of
SELECT i_id, ic_id, ic_question, ic_response FROM item JOIN item_comment ON ic_i_id = i_id WHERE i_u_id = :u_id LIMIT 25;

-- name: sold_by
SELECT i_id, i_name, i_current_price, i_num_bids, i_end_date, i_status FROM item WHERE i_u_id = :u_id
ORDER BY i_end_date DESC LIMIT 25;

-- name: bought_by
SELECT i_id, i_name, i_current_price, i_end_date, i_status FROM useracct_item JOIN item ON i_id = ui_i_id
WHERE ui_u_id = :u_id ORDER BY i_end_date DESC LIMIT 25;

-- name: watched_by
SELECT i_id, i_name, i_current_price, i_end_date, i_status FROM useracct_watch JOIN item ON i_id = uw_i_id
WHERE uw_u_id = :u_id ORDER BY i_end_date DESC LIMIT 25;

-- name: lock_item
SELECT i_status, i_num_bids, i_current_price, i_num_comments FROM item WHERE i_id = :i_id FOR UPDATE;

-- name: new_bid
INSERT INTO item_bid (ib_id, ib_i_id, ib_buyer_id, ib_bid, ib_created)
VALUES (:ib_id, :i_id, :buyer_id, :bid, CURRENT_TIMESTAMP);

-- name: first_max_bid
INSERT INTO item_max_bid (imb_ib_id, imb_buyer_id, imb_i_id) VALUES (:ib_id, :buyer_id, :i_id);

-- name: next_max_bid
UPDATE item_max_bid SET imb_ib_id = :ib_id, imb_buyer_id = :buyer_id WHERE imb_i_id = :i_id;

-- name: raise_price
UPDATE item SET i_num_bids = i_num_bids + 1, i_current_price = :price WHERE i_id = :i_id;

-- name: new_comment
INSERT INTO item_comment (ic_id, ic_i_id, ic_buyer_id, ic_question) VALUES (:ic_id, :i_id, :buyer_id, :question);

-- name: count_comment
UPDATE item SET i_num_comments = i_num_comments + 1 WHERE i_id = :i_id;

-- name: comment_to
UPDATE useracct SET u_comments = u_comments + 1 WHERE u_id = :u_id;

-- name: respond
UPDATE item_comment SET ic_response = :response WHERE ic_i_id = :i_id AND ic_id = :ic_id;

-- name: new_feedback
INSERT INTO useracct_feedback (uf_u_id, uf_i_id, uf_from_id, uf_rating) VALUES (:u_id, :i_id, :from_id, :rating);

-- name: rate
UPDATE useracct SET u_rating = u_rating + :rating WHERE u_id = :u_id;

-- name: category
SELECT c_name, c_parent_id FROM category WHERE c_id = :c_id;

-- name: attribute
SELECT gag_name, gav_name FROM global_attribute_group JOIN global_attribute_value ON gav_gag_id = gag_id
WHERE gag_id = :gag_id AND gav_id = :gav_id;

-- name: new_item
INSERT INTO item (i_id, i_u_id, i_c_id, i_name, i_description, i_initial_price, i_num_bids, i_current_price,
  i_num_comments, i_start_date, i_end_date, i_status)
VALUES (:i_id, :u_id, :c_id, :name, :description, :price, 0, :price, 0, :start, :end, 0);

-- name: new_attribute
INSERT INTO item_attribute (ia_id, ia_i_id, ia_gag_id, ia_gav_id) VALUES (:ia_id, :i_id, :gag_id, :gav_id);

-- name: new_image
INSERT INTO item_image (ii_id, ii_i_id, ii_path) VALUES (:ii_id, :i_id, :path);

-- name: waiting_item
SELECT i_id, i_u_id FROM item WHERE i_status = 1 ORDER BY i_end_date LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: max_bid
SELECT ib_id, ib_buyer_id, ib_bid FROM item_max_bid JOIN item_bid ON ib_i_id = imb_i_id AND ib_id = imb_ib_id
WHERE imb_i_id = :i_id;

-- name: new_purchase
INSERT INTO item_purchase (ip_i_id, ip_ib_id, ip_buyer_id) VALUES (:i_id, :ib_id, :buyer_id);

-- name: set_status
UPDATE item SET i_status = :status WHERE i_id = :i_id;

-- name: pay
UPDATE useracct SET u_balance = u_balance + :amount WHERE u_id = :u_id;

-- name: describe_item
UPDATE item SET i_description = :description WHERE i_id = :i_id AND i_u_id = :u_id;

-- name: set_attribute
UPDATE item_attribute SET ia_gag_id = :gag_id, ia_gav_id = :gav_id WHERE ia_i_id = :i_id AND ia_id = 1;

-- name: ending_items
SELECT i_id, i_num_bids FROM item WHERE i_status = 0 ORDER BY i_end_date LIMIT 10 FOR UPDATE SKIP LOCKED;

-- name: won
INSERT INTO useracct_item (ui_u_id, ui_i_id) VALUES (:u_id, :i_id);

-- name: bids_are_counted
SELECT i_id, i_num_bids, bids, i_num_comments, comments FROM item
LEFT JOIN (SELECT ib_i_id, count(*) AS bids FROM item_bid GROUP BY ib_i_id) AS b ON ib_i_id = i_id
LEFT JOIN (SELECT ic_i_id, count(*) AS comments FROM item_comment GROUP BY ic_i_id) AS c ON ic_i_id = i_id
WHERE i_num_bids <> coalesce(bids, 0) OR i_num_comments <> coalesce(comments, 0) LIMIT 10;

-- name: the_highest_bid_counts
SELECT i_id, i_current_price, i_num_bids, imb_ib_id, ib_bid FROM item LEFT JOIN item_max_bid ON imb_i_id = i_id
LEFT JOIN item_bid ON ib_i_id = i_id AND ib_id = imb_ib_id
WHERE i_current_price <> coalesce(ib_bid, i_initial_price) OR i_num_bids <> coalesce(imb_ib_id, 0) LIMIT 10;

-- name: items_are_won_by_bids
SELECT i_id, i_status, i_num_bids, ip_i_id, ui_u_id, imb_buyer_id FROM item
LEFT JOIN item_max_bid ON imb_i_id = i_id LEFT JOIN item_purchase ON ip_i_id = i_id LEFT JOIN useracct_item ON ui_i_id = i_id
WHERE (ip_i_id IS NOT NULL) <> (i_status = 2 AND i_num_bids > 0) OR (ui_i_id IS NOT NULL) <> (i_status > 0 AND i_num_bids > 0)
  OR ui_u_id <> imb_buyer_id LIMIT 10;

-- name: ratings_add_up
SELECT u_id, u_rating, rating FROM useracct
LEFT JOIN (SELECT uf_u_id, sum(uf_rating) AS rating FROM useracct_feedback GROUP BY uf_u_id) AS f ON uf_u_id = u_id
WHERE u_rating <> coalesce(rating, 0) LIMIT 10;

-- name: money_is_conserved
SELECT sum(u_balance) AS balance, count(*) AS users FROM useracct HAVING sum(u_balance) <> 1000 * count(*);

-- name: bids_and_items_are_there
SELECT kind, found, acknowledged FROM (
  SELECT 'bids' AS kind, (SELECT count(*) FROM item_bid WHERE ib_created > '2024-12-31') AS found,
    CAST(:tally_bids AS decimal(20, 0)) AS acknowledged, CAST(:uncertain_bids AS decimal(20, 0)) AS uncertain
  UNION ALL
  SELECT 'items', (SELECT count(*) FROM item WHERE i_start_date > '2024-12-31'),
    CAST(:tally_items AS decimal(20, 0)), CAST(:uncertain_items AS decimal(20, 0))
) AS compared WHERE abs(found - acknowledged) > uncertain;
