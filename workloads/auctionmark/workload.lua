-- AuctionMark, an auction site: V. Angkanawaraphan, A. Pavlo, "AuctionMark: A Stored Procedure Benchmark for Main
-- Memory Database Systems", 2012, with the nine transactions that D. Difallah et al., "OLTP-Bench", PVLDB 7(4), 2013,
-- Table 1, counts, in the shares of its standard configuration. Scale factor 1 has 100,000 users.

local w = workload "auctionmark"
w:describe "AuctionMark: users, their auctions, bids, comments and purchases"

local REGIONS, CATEGORIES, GROUPS, VALUES = 62, 1000, 100, 10
local OPEN, WAITING, CLOSED = 0, 1, 2 -- what the status of an item may be
local STEP = 5 -- what each loaded bid adds to the price
local KEPT = 100 -- items that a session has offered and remembers

w:table("region", { rows = REGIONS, columns = { { "r_id", serial() }, { "r_name", letters(6, 32) } } })
w:table("category", {
  rows = CATEGORIES,
  columns = {
    { "c_id", serial() },
    { "c_name", letters(6, 50) },
    -- A tree: each category is below one that has a tenth of its number; the first ones are roots.
    { "c_parent_id", derive("integer", { "c_id" }, function(_, _, id)
      if id >= 10 then return math.floor(id / 10) end
    end) },
  },
})
w:table("global_attribute_group", {
  rows = GROUPS,
  columns = { { "gag_id", serial() }, { "gag_c_id", reference("category") }, { "gag_name", letters(6, 32) } },
})
w:table("global_attribute_value", {
  columns = {
    { "gav_id", line() },
    { "gav_gag_id", parent("global_attribute_group", VALUES) },
    { "gav_name", letters(6, 32) },
  },
})

w:table("useracct", {
  rows = math.floor(100000 * w.scale),
  columns = {
    { "u_id", serial() },
    { "u_rating", constant(0) },
    { "u_balance", decimal(1000, 1000) },
    { "u_comments", constant(0) },
    { "u_r_id", reference("region") },
    { "u_created", timestamp("2023-01-01", "2024-01-01") },
  },
})
w:table("useracct_attributes", {
  columns = {
    { "ua_id", line() },
    { "ua_u_id", parent("useracct", { [0] = 3, 4, 3 }) },
    { "ua_name", letters(5, 32) },
    { "ua_value", letters(5, 32) },
  },
})

-- A fifth of the users sell; most of them little.
w:table("item", {
  columns = {
    { "i_id", serial() },
    { "i_u_id", parent("useracct", { [0] = 800, 80, 50, [5] = 40, [10] = 20, [50] = 10 }) },
    { "i_c_id", reference("category", "c_id", 0.8) },
    { "i_name", letters(6, 100) },
    { "i_description", letters(50, 255) },
    { "i_initial_price", integer(1, 1000) },
    { "i_num_bids", count("item_bid") },
    { "i_current_price", derive("integer", { "i_initial_price", "i_num_bids" }, function(_, _, price, bids)
      return price + STEP * bids
    end) },
    { "i_num_comments", count("item_comment") },
    { "i_start_date", timestamp("2024-01-01", "2024-06-30") },
    { "i_end_date", after("i_start_date", 86400, 10 * 86400) },
    { "i_status", derive("integer", { "i_num_bids" }, function(_, random, bids)
      local drawn = random()
      return drawn < 0.7 and OPEN or drawn < 0.8 and bids > 0 and WAITING or CLOSED
    end) },
  },
})
w:table("item_attribute", {
  columns = {
    { "ia_id", line() },
    { "ia_i_id", parent("item", { 4, 3, 2, 1 }) },
    { "ia_gag_id", reference("global_attribute_group") },
    { "ia_gav_id", integer(1, VALUES) },
  },
})
w:table("item_image", {
  columns = { { "ii_id", line() }, { "ii_i_id", parent("item", { 5, 3, 1, 1 }) }, { "ii_path", letters(20, 100) } },
})
w:table("item_comment", {
  columns = {
    { "ic_id", line() },
    { "ic_i_id", parent("item", { [0] = 90, 7, 2, 1 }) },
    { "ic_buyer_id", reference("useracct") },
    { "ic_question", letters(10, 100) },
    { "ic_response", letters(10, 100) },
  },
})
w:table("item_bid", {
  columns = {
    { "ib_id", line() },
    { "ib_i_id", parent("item", { [0] = 30, 20, 10, [5] = 20, [10] = 15, [20] = 5 }) },
    { "ib_buyer_id", reference("useracct") },
    { "price", lookup("ib_i_id", "i_initial_price"), stored = false },
    { "ib_bid", derive("integer", { "price", "ib_id" }, function(_, _, price, bid) return price + STEP * bid end) },
    { "ib_created", timestamp("2024-01-01", "2024-06-30") },
  },
})
w:table("useracct_watch", {
  columns = {
    { "uw_u_id", parent("useracct", { [0] = 6, 2, 1, 1 }) },
    { "uw_place", line() },
    { "uw_i_id", reference("item") },
  },
})
-- These follow from bids, and are filled when the keys are made; feedback comes with the run.
local function later(name, columns)
  for place, column in ipairs(columns) do
    columns[place] = { column, integer(1, 1) }
  end
  w:table(name, { rows = 0, columns = columns })
end
later("item_max_bid", { "imb_i_id", "imb_ib_id", "imb_buyer_id" })
later("item_purchase", { "ip_i_id", "ip_ib_id", "ip_buyer_id" })
later("useracct_item", { "ui_u_id", "ui_i_id" })
later("useracct_feedback", { "uf_u_id", "uf_i_id", "uf_from_id", "uf_rating" })

-- The transactions. A session keeps the items that it has offered.

w:session(function() return {} end)

-- An item and its seller: an own one, or a loaded one.
local function some_item(own, pick)
  if #own > 0 and pick.chance(0.1) then return pick.choice(own) end
  local item = pick.row("item")
  return { i_id = item.i_id, u_id = item.i_u_id }
end

w:transaction("get_item", { read_only = true, help = "an item and its seller" }, function(tx, pick, own)
  local item = some_item(own, pick)
  tx:begin()
  tx:one("item", item.i_id, item.u_id)
  tx:one("user", item.u_id)
  tx:commit()
end)

w:transaction("get_user_info", { read_only = true, help = "a user, with feedback, comments and items" },
  function(tx, pick)
  local user = pick.useracct()
  tx:begin()
  tx:one("user", user)
  if pick.chance(0.33) then tx:rows("feedback_of", user) end
  if pick.chance(0.33) then tx:rows("comments_of", user) end
  if pick.chance(0.33) then tx:rows("sold_by", user) end
  if pick.chance(0.33) then tx:rows("bought_by", user) end
  if pick.chance(0.33) then tx:rows("watched_by", user) end
  tx:commit()
end)

w:transaction("new_bid", { help = "bids for an item, if it is open" }, function(tx, pick, own)
  local item, buyer, more = some_item(own, pick), pick.useracct(), pick.integer(1, 50)
  tx:begin()
  local found = tx:one("lock_item", item.i_id)
  if found.i_status ~= OPEN then return tx:rollback() end
  local bid, price = found.i_num_bids + 1, found.i_current_price + more
  tx:queue("new_bid", bid, item.i_id, buyer, price)
  tx:queue(bid == 1 and "first_max_bid" or "next_max_bid", bid, buyer, item.i_id)
  tx:queue("raise_price", price, item.i_id)
  tx:tally("bids", 1)
  tx:commit()
end)

w:transaction("new_comment", { help = "asks the seller of an item" }, function(tx, pick, own)
  local item, buyer = some_item(own, pick), pick.useracct()
  tx:begin()
  local number = tx:one("lock_item", item.i_id).i_num_comments + 1
  tx:queue("new_comment", number, item.i_id, buyer, pick.letters(10, 100))
  tx:queue("count_comment", item.i_id)
  tx:queue("comment_to", item.u_id)
  tx:commit()
end)

w:transaction("new_comment_response", { help = "answers a question" }, function(tx, pick)
  local comment = pick.row("item_comment")
  tx:exec("respond", pick.letters(10, 100), comment.ic_i_id, comment.ic_id)
end)

w:transaction("new_feedback", { aborts_on = "constraint", help = "rates a seller, once for an item" },
  function(tx, pick, own)
  local item, from, rating = some_item(own, pick), pick.useracct(), pick.integer(-1, 1)
  tx:begin()
  tx:exec("new_feedback", item.u_id, item.i_id, from, rating)
  tx:exec("rate", rating, item.u_id)
  tx:commit()
end)

w:transaction("new_item", { help = "offers an item with its attributes and images" }, function(tx, pick, own)
  local item = { i_id = pick.new("item"), u_id = pick.useracct() }
  local category = pick.category()
  tx:begin()
  tx:one("category", category)
  local name, description, price = pick.letters(6, 100), pick.letters(50, 255), pick.integer(1, 1000)
  local last = tx.now + 86400 * pick.integer(1, 10)
  tx:queue("new_item", item.i_id, item.u_id, category, name, description, price, tx.now, last)
  for number = 1, pick.integer(1, 4) do
    local group, value = pick.global_attribute_group(), pick.integer(1, VALUES)
    tx:one("attribute", group, value)
    tx:queue("new_attribute", number, item.i_id, group, value)
  end
  for number = 1, pick.integer(1, 4) do
    tx:queue("new_image", number, item.i_id, pick.letters(20, 100))
  end
  tx:tally("items", 1)
  tx:commit()
  if #own >= KEPT then table.remove(own, 1) end
  own[#own + 1] = item
end)

w:transaction("new_purchase", { help = "pays for the item that has waited longest" }, function(tx)
  tx:begin()
  local item = tx:one("waiting_item")
  if not item then return tx:rollback() end
  local bid = tx:one("max_bid", item.i_id)
  tx:queue("new_purchase", item.i_id, bid.ib_id, bid.ib_buyer_id)
  tx:queue("set_status", CLOSED, item.i_id)
  tx:queue("pay", -bid.ib_bid, bid.ib_buyer_id)
  tx:queue("pay", bid.ib_bid, item.i_u_id)
  tx:commit()
end)

w:transaction("update_item", { help = "changes the description of an item, and perhaps its first attribute" },
  function(tx, pick, own)
  local item = some_item(own, pick)
  tx:begin()
  tx:queue("describe_item", pick.letters(50, 255), item.i_id, item.u_id)
  if pick.chance(0.25) then
    tx:queue("set_attribute", pick.global_attribute_group(), pick.integer(1, VALUES), item.i_id)
  end
  tx:commit()
end)

w:transaction("close_auctions", { help = "closes the ten auctions that end first" }, function(tx)
  tx:begin()
  for _, item in ipairs(tx:rows("ending_items")) do
    local id = item.i_id
    if item.i_num_bids > 0 then
      tx:queue("won", tx:one("max_bid", id).ib_buyer_id, id)
      tx:queue("set_status", WAITING, id)
    else
      tx:queue("set_status", CLOSED, id)
    end
  end
  tx:commit()
end)

-- The nine in their shares; auctions are closed from time to time, here by one transaction more in a hundred.
local shares = {
  get_item = 45,
  get_user_info = 10,
  new_bid = 20,
  new_comment = 2,
  new_comment_response = 1,
  new_feedback = 4,
  new_item = 10,
  new_purchase = 5,
  update_item = 3,
  close_auctions = 1,
}
w:mix("AUCTIONMARK", shares)
w:mix("RW", shares)
w:mix("RO", { get_item = 45, get_user_info = 10 })

w:invariant("bids_are_counted", "an item has as many bids and comments as it says")
w:invariant("the_highest_bid_counts", "an item's price and highest bid are those of its last bid")
w:invariant("items_are_won_by_bids", "items that wait or are paid have been won, and each was paid once")
w:invariant("ratings_add_up", "a user's rating is the sum of the feedback")
w:invariant("money_is_conserved", "purchases move money and make none")
w:invariant("bids_and_items_are_there", "every bid and item that was acknowledged is there")
