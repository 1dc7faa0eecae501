-- name: contestant
SELECT contestant_number FROM contestants WHERE contestant_number = :contestant;

-- name: votes_of
SELECT count(*) AS votes FROM votes WHERE phone_number = :phone_number;

-- name: state
SELECT state FROM area_code_state WHERE area_code = :area_code;

-- name: vote
INSERT INTO votes (phone_number, state, contestant_number, created)
VALUES (:phone_number, :state, :contestant, CURRENT_TIMESTAMP);

-- name: results
SELECT contestant_name, c.contestant_number, count(phone_number) AS votes
FROM contestants AS c LEFT JOIN votes AS v ON v.contestant_number = c.contestant_number
GROUP BY contestant_name, c.contestant_number ORDER BY votes DESC, c.contestant_number;

-- name: votes_are_counted
SELECT votes, CAST(:tally_votes AS decimal(30)) AS acknowledged FROM (SELECT count(*) AS votes FROM votes) AS v
WHERE abs(votes - CAST(:tally_votes AS decimal(30))) > CAST(:uncertain_votes AS decimal(30));

-- name: votes_are_valid
SELECT phone_number, v.state, v.contestant_number FROM votes AS v
LEFT JOIN contestants AS c ON c.contestant_number = v.contestant_number
LEFT JOIN area_code_state AS a ON a.area_code = (phone_number - phone_number % 10000000) / 10000000
WHERE c.contestant_number IS NULL OR a.state IS NULL OR a.state <> v.state LIMIT 10;
