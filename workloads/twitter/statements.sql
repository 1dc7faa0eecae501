-- name: tweet
SELECT id, uid, text, createdate FROM tweets WHERE id = :id;

-- name: follows
SELECT f2 FROM follows WHERE f1 = :uid LIMIT :most;

-- name: followers
SELECT f2 FROM followers WHERE f1 = :uid LIMIT :most;

-- name: user_tweets
SELECT id, uid, text, createdate FROM tweets WHERE uid = :uid LIMIT :most;

-- name: insert_tweet
INSERT INTO added_tweets (uid, text, createdate) VALUES (:uid, :text, CURRENT_TIMESTAMP);

-- name: follows_and_followers_agree
SELECT a.f1, a.f2 FROM follows AS a LEFT JOIN followers AS b ON b.f1 = a.f2 AND b.f2 = a.f1 WHERE b.f1 IS NULL
UNION ALL
SELECT a.f2, a.f1 FROM followers AS a LEFT JOIN follows AS b ON b.f1 = a.f2 AND b.f2 = a.f1 WHERE b.f1 IS NULL
LIMIT 10;

-- name: followers_are_counted
SELECT uid, followers, coalesce(counted, 0) AS counted FROM user_profiles
LEFT JOIN (SELECT f1, count(*) AS counted FROM followers GROUP BY f1) AS f ON f1 = uid
WHERE followers <> coalesce(counted, 0) LIMIT 10;

-- name: tweets_have_authors
SELECT t.id, t.uid FROM tweets AS t LEFT JOIN user_profiles AS u ON u.uid = t.uid WHERE u.uid IS NULL
UNION ALL
SELECT t.id, t.uid FROM added_tweets AS t LEFT JOIN user_profiles AS u ON u.uid = t.uid WHERE u.uid IS NULL
LIMIT 10;

-- name: added_tweets_are_counted
SELECT added, CAST(:tally_tweets AS decimal(30)) AS acknowledged
FROM (SELECT count(*) AS added FROM added_tweets) AS t
WHERE abs(added - CAST(:tally_tweets AS decimal(30))) > CAST(:uncertain_tweets AS decimal(30));
