-- Epinions, as OLTP-Bench has it (PVLDB 7(4), 2013, Table 1): users review items and trust users, after the data of
-- P. Massa, P. Avesani, "Controversial Users Demand Local Trust Metrics", AAAI 2005. Five of the nine transactions
-- join what many have to do with many. Scale factor 1 has 2,000 users and 1,000 items.

local w = workload "epinions"
w:describe "Epinions: users, their reviews of items, and whom they trust"

local users, items = math.floor(2000 * w.scale), math.floor(1000 * w.scale)

-- By Zipf's law: how many parents have each number of children.
local function children(most, theta)
  local weights = {}
  for number = 1, most do weights[number] = number ^ -theta end
  return weights
end

w:table("useracct", { rows = users, columns = { { "u_id", serial() }, { "name", name() } } })
w:table("item", { rows = items, columns = { { "i_id", serial() }, { "title", words(10, 60) } } })
w:table("review", {
  columns = {
    { "a_id", serial() },
    { "u_id", distinct(1, users) },
    { "i_id", parent("item", children(math.min(500, users), 1.8)) },
    { "rating", integer(0, 5) },
    { "rank", integer(1, 100) },
  },
})
w:table("review_rating", {
  columns = {
    { "u_id", reference("useracct") },
    { "a_id", parent("review", 0, 4) },
    { "rating", integer(0, 5) },
    { "status", integer(0, 1) },
    { "creation_date", timestamp("2001-01-01", "2003-08-01") },
    { "last_mod_date", after("creation_date", 0, 86400 * 30) },
    { "type", integer(0, 3) },
    { "vertical_id", integer(0, 30) },
  },
})
w:table("trust", {
  columns = {
    { "source_u_id", parent("useracct", children(math.min(200, users), 1.8)) },
    { "target_u_id", distinct(1, users) },
    { "trust", integer(0, 1) },
    { "creation_date", timestamp("2001-01-01", "2003-08-01") },
  },
})

w:transaction("get_review_item_by_id", { read_only = true, help = "an item and its reviews" }, function(tx, pick)
  tx:rows("reviews_of_item", pick.item())
end)

w:transaction("get_reviews_by_user", { read_only = true, help = "a user and the user's reviews" }, function(tx, pick)
  tx:rows("reviews_of_user", pick.useracct())
end)

w:transaction("get_average_rating_by_trusted_user", { read_only = true, help = "what trusted users think of an item" },
  function(tx, pick)
    local trust = pick.row("trust")
    tx:one("average_of_trusted", pick.item(), trust.source_u_id)
  end)

w:transaction("get_item_average_rating", { read_only = true, help = "what all think of an item" }, function(tx, pick)
  tx:one("average", pick.item())
end)

w:transaction("get_item_reviews_by_trusted_user", { read_only = true, help = "an item's reviews, and whom a user trusts" },
  function(tx, pick)
    tx:begin()
    tx:rows("reviews", pick.item())
    tx:rows("trusted", pick.useracct())
    tx:commit()
  end)

w:transaction("update_user_name", { help = "a user has another name" }, function(tx, pick)
  tx:exec("update_name", pick.letters(5, 30), pick.useracct())
end)

w:transaction("update_item_title", { help = "an item has another title" }, function(tx, pick)
  tx:exec("update_title", pick.letters(10, 60), pick.item())
end)

w:transaction("update_review_rating", { help = "a user rates an item again" }, function(tx, pick)
  local review = pick.row("review")
  tx:exec("update_rating", pick.integer(0, 5), review.i_id, review.u_id)
end)

w:transaction("update_trust_rating", { help = "a user trusts another one, or does so no more" }, function(tx, pick)
  local trust = pick.row("trust")
  tx:exec("update_trust", pick.integer(0, 1), trust.source_u_id, trust.target_u_id)
end)

w:mix("EPINIONS", {
  get_review_item_by_id = 10, get_reviews_by_user = 10, get_average_rating_by_trusted_user = 10,
  get_item_average_rating = 10, get_item_reviews_by_trusted_user = 10,
  update_user_name = 10, update_item_title = 10, update_review_rating = 10, update_trust_rating = 20,
})
w:mix("RO", {
  get_review_item_by_id = 10, get_reviews_by_user = 10, get_average_rating_by_trusted_user = 10,
  get_item_average_rating = 10, get_item_reviews_by_trusted_user = 10,
})
w:mix("WO", { update_user_name = 10, update_item_title = 10, update_review_rating = 10, update_trust_rating = 20 })

w:invariant("reviews_are_of_items", "each review is of an item and by a user, from 0 to 5, once for an item and a user")
w:invariant("ratings_are_of_reviews", "each rating is of a review and by a user")
w:invariant("trust_is_between_users", "users trust users, once each, or do not")
