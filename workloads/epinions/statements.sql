-- name: reviews_of_item
SELECT i.i_id, title, a_id, u_id, rating, r.rank FROM review AS r, item AS i
WHERE i.i_id = r.i_id AND r.i_id = :i_id ORDER BY rating DESC LIMIT 10;

-- name: reviews_of_user
SELECT u.u_id, name, a_id, i_id, rating, r.rank FROM review AS r, useracct AS u
WHERE u.u_id = r.u_id AND r.u_id = :u_id ORDER BY rating DESC LIMIT 10;

-- name: average_of_trusted
SELECT avg(rating) AS average FROM review AS r, trust AS t
WHERE r.u_id = t.target_u_id AND r.i_id = :i_id AND t.source_u_id = :u_id;

-- name: average
SELECT avg(rating) AS average FROM review WHERE i_id = :i_id;

-- name: reviews
SELECT a_id, u_id, i_id, rating, r.rank FROM review AS r WHERE i_id = :i_id;

-- name: trusted
SELECT source_u_id, target_u_id, t.trust, creation_date FROM trust AS t WHERE source_u_id = :u_id;

-- name: update_name
UPDATE useracct SET name = :name WHERE u_id = :u_id;

-- name: update_title
UPDATE item SET title = :title WHERE i_id = :i_id;

-- name: update_rating
UPDATE review SET rating = :rating WHERE i_id = :i_id AND u_id = :u_id;

-- name: update_trust
UPDATE trust SET trust = :trust WHERE source_u_id = :source AND target_u_id = :target;

-- name: reviews_are_of_items
SELECT r.i_id, r.u_id, count(*) AS reviews, min(rating) AS lowest, max(rating) AS highest FROM review AS r
LEFT JOIN item AS i ON i.i_id = r.i_id LEFT JOIN useracct AS u ON u.u_id = r.u_id
GROUP BY r.i_id, r.u_id
HAVING count(*) > 1 OR count(i.i_id) < count(*) OR count(u.u_id) < count(*) OR min(rating) < 0 OR max(rating) > 5
LIMIT 10;

-- name: ratings_are_of_reviews
SELECT rr.a_id, rr.u_id FROM review_rating AS rr
LEFT JOIN review AS r ON r.a_id = rr.a_id LEFT JOIN useracct AS u ON u.u_id = rr.u_id
WHERE r.a_id IS NULL OR u.u_id IS NULL LIMIT 10;

-- name: trust_is_between_users
SELECT source_u_id, target_u_id, count(*) AS times FROM trust AS t
LEFT JOIN useracct AS a ON a.u_id = source_u_id LEFT JOIN useracct AS b ON b.u_id = target_u_id
GROUP BY source_u_id, target_u_id
HAVING count(*) > 1 OR count(a.u_id) < count(*) OR count(b.u_id) < count(*) OR min(t.trust) < 0 OR max(t.trust) > 1
LIMIT 10;
