-- Twitter, as OLTP-Bench has it: D. Difallah, A. Pavlo, C. Curino, P. Cudre-Mauroux, "OLTP-Bench: An Extensible
-- Testbed for Benchmarking Relational Databases", PVLDB 7(4), 2013, Table 1; its model is the snapshot of M. Cha et al.,
-- "Measuring User Influence in Twitter: The Million Follower Fallacy", ICWSM 2010. Users follow users; what is joined
-- is joined by the client. Scale factor 1 has 500 users and 20,000 tweets.

local w = workload "twitter"
w:describe "Twitter: users, whom they follow, and their tweets"

local LISTED, SHOWN = 20, 10 -- users that a query lists, tweets that it shows
local users = math.floor(500 * w.scale)
local MOST = math.min(50, math.floor(users / 2)) -- users that a user follows

-- How many users follow each number of users, by Zipf's law.
local numbers = {}
for number = 1, MOST do numbers[number] = number ^ -1.75 end

w:table("user_profiles", {
  rows = users,
  columns = {
    { "uid", serial() },
    { "name", letters(3, 20) },
    { "email", email("name") },
    { "partitionid", integer(0, 99) },
    { "partitionid2", integer(0, 9) },
    { "followers", constant(0) }, -- counted when the keys are made
  },
})

-- The first whom a user follows is one of the most popular users, the next one of the next, and so on.
local share = math.floor(users / MOST)
w:table("follows", {
  columns = {
    { "id", serial(), stored = false },
    { "f1", parent("user_profiles", numbers) },
    { "place", line(0), stored = false },
    { "f2", derive("integer", { "f1", "place" }, function(_, random, f1, place)
      local first = place * share + 1
      local followed = first + random(share - 1) - 1
      -- Nobody follows oneself.
      if f1 >= first and f1 <= followed then followed = followed + 1 end
      return followed
    end) },
  },
})
w:table("followers", {
  columns = {
    { "follow", parent("follows", 1, 1), stored = false },
    { "f1", lookup("follow", "f2") },
    { "f2", lookup("follow", "f1") },
  },
})

w:table("tweets", {
  rows = 20000 * w.scale,
  columns = {
    { "id", serial() },
    { "uid", reference("user_profiles", "uid", 0.99) },
    { "text", words(10, 140) },
    { "createdate", timestamp("2009-01-01", "2009-08-31") },
  },
})

local listed = {}
for at = 1, LISTED do listed[at] = ":uid" .. at end
listed = table.concat(listed, ", ")
w:statement("tweets_of_users",
  "SELECT id, uid, text, createdate FROM tweets WHERE uid IN (" .. listed .. ") LIMIT " .. LISTED)
w:statement("names", "SELECT uid, name FROM user_profiles WHERE uid IN (" .. listed .. ")")

-- The list of users for a statement: 0, who is nobody, fills it up.
local function listed_from(rows)
  local uids = {}
  for at = 1, LISTED do uids[at] = rows[at] and rows[at].f2 or 0 end
  return unpack(uids)
end

w:transaction("get_tweet", { read_only = true, help = "reads a tweet" }, function(tx, pick)
  tx:one("tweet", pick.tweets())
end)

w:transaction("get_tweets_from_following", { read_only = true, help = "tweets of those whom a user follows" },
  function(tx, pick)
    tx:begin()
    tx:rows("tweets_of_users", listed_from(tx:rows("follows", pick.user_profiles(), LISTED)))
    tx:commit()
  end)

w:transaction("get_followers", { read_only = true, help = "the names of a user's followers" }, function(tx, pick)
  tx:begin()
  tx:rows("names", listed_from(tx:rows("followers", pick.user_profiles(), LISTED)))
  tx:commit()
end)

w:transaction("get_user_tweets", { read_only = true, help = "tweets of a user" }, function(tx, pick)
  tx:rows("user_tweets", pick.user_profiles(), SHOWN)
end)

w:transaction("insert_tweet", { help = "a user tweets" }, function(tx, pick)
  tx:exec("insert_tweet", pick.user_profiles(), pick.letters(10, 140))
  tx:tally("tweets", 1)
end)

w:mix("TWITTER", {
  get_tweet = 0.07, get_tweets_from_following = 0.07, get_followers = 7.6725, get_user_tweets = 91.2656,
  insert_tweet = 0.9219,
})
w:mix("RO", {
  get_tweet = 0.07, get_tweets_from_following = 0.07, get_followers = 7.6725, get_user_tweets = 91.2656,
})
w:mix("WO", { insert_tweet = 1 })

w:invariant("follows_and_followers_agree", "who follows a user is one of the user's followers")
w:invariant("followers_are_counted", "a profile says how many followers the user has")
w:invariant("tweets_have_authors", "each tweet is a user's")
w:invariant("added_tweets_are_counted", "each tweet that was acknowledged is there, and no other")
