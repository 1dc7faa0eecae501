-- name: write
UPDATE item SET hits = hits + 1 WHERE id = :id;

-- name: find
SELECT id FROM item WHERE id = :id;
