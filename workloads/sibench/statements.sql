-- name: smallest
SELECT id FROM sitest ORDER BY value ASC LIMIT 1;

-- name: add
UPDATE sitest SET value = value + 1 WHERE id = :id;

-- name: values_are_updates
SELECT total, CAST(:tally_added AS decimal(30)) AS added FROM (SELECT sum(value) AS total FROM sitest) AS s
WHERE abs(total - CAST(:tally_added AS decimal(30))) > CAST(:uncertain_added AS decimal(30));
