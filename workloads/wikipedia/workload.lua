-- Wikipedia, as OLTP-Bench has it (D. Difallah, A. Pavlo, C. Curino, P. Cudre-Mauroux, PVLDB 7(4), 2013, section 3 and
-- Table 1): MediaWiki's database, and the five operations that make up nearly all of Wikipedia's traffic, in the
-- shares of a trace of three months. Scale factor 1 has 1,000 pages and 2,000 users.

local w = workload "wikipedia"
w:describe "Wikipedia: pages are read, edited and watched"
require "schema"(w)

local longest = w:option("text_length", "integer", 5000, "how long a page's text is, at most; a tenth of it at least")

local pages, users = math.floor(1000 * w.scale), math.floor(2000 * w.scale)
local shortest = math.max(1, math.floor(longest / 10))

-- Of 100 pages 85 are articles, 6 talk about them, 2 are users', 5 talk with users, 2 are about Wikipedia.
local function namespace_of(page)
  local part = page % 100
  return part < 85 and 0 or part < 91 and 1 or part < 93 and 2 or part < 98 and 3 or 4
end
local function title_of(page) return ("Page_%09d"):format(page) end
local function name_of(user) return ("User%09d"):format(user) end
local function namespace(_, _, page) return namespace_of(page) end
local function title(_, _, page) return title_of(page) end
local function user_name(_, _, user) return name_of(user) end

-- By Zipf's law: how many parents have each number of children.
local function children(most, theta)
  local weights = {}
  for number = 1, most do weights[number] = number ^ -theta end
  return weights
end

w:table("useracct", {
  rows = users,
  columns = {
    { "user_id", serial() },
    { "user_name", derive("text", { "user_id" }, user_name) },
    { "user_real_name", name() },
    { "user_password", letters(32, 32, "0123456789abcdef") },
    { "user_newpassword", constant("") },
    { "user_newpass_time", null() },
    { "user_email", email("user_name") },
    { "user_options", constant("fake_longoptionslist") },
    { "user_touched", timestamp("2007-01-01", "2007-09-30") },
    { "user_token", letters(32, 32, "0123456789abcdef") },
    { "user_email_authenticated", null() },
    { "user_email_token", null() },
    { "user_email_token_expires", null() },
    { "user_registration", timestamp("2001-01-15", "2006-12-31") },
    { "user_editcount", constant(0) },
  },
})
w:table("user_groups", {
  columns = { { "ug_user", parent("useracct", { [0] = 98, [1] = 2 }) }, { "ug_group", constant("sysop") } },
})
w:table("ipblocks", {
  rows = math.ceil(10 * w.scale),
  columns = {
    { "ipb_id", serial() },
    { "ipb_address", derive("text", { "ipb_id" }, function(_, _, id) return ("10.0.%d.%d"):format(id / 256, id % 256) end) },
    { "ipb_user", constant(0) },
    { "ipb_by", reference("useracct") },
    { "ipb_by_text", lookup("ipb_by", "user_name") },
    { "ipb_reason", words(10, 100) },
    { "ipb_timestamp", timestamp("2007-01-01", "2007-09-30") },
    { "ipb_auto", constant(0) },
    { "ipb_anon_only", constant(1) },
    { "ipb_create_account", constant(1) },
    { "ipb_enable_autoblock", constant(1) },
    { "ipb_expiry", null() },
    { "ipb_range_start", copy("ipb_address") },
    { "ipb_range_end", copy("ipb_address") },
    { "ipb_deleted", constant(0) },
    { "ipb_block_email", constant(0) },
    { "ipb_allow_usertalk", constant(1) },
  },
})
w:table("page", {
  rows = pages,
  columns = {
    { "page_id", serial() },
    { "page_namespace", derive("integer", { "page_id" }, namespace) },
    { "page_title", derive("text", { "page_id" }, title) },
    { "page_restrictions", constant("") },
    { "page_counter", constant(0) },
    { "page_is_redirect", constant(0) },
    { "page_is_new", constant(0) },
    { "page_random", float(0, 1) },
    { "page_touched", timestamp("2007-09-30", "2007-10-31") },
    { "page_latest", constant(0) }, -- and the length: of the newest revision, when the keys are made
    { "page_len", constant(0) },
  },
})
w:table("page_restrictions", {
  columns = {
    { "pr_id", serial() },
    { "pr_page", parent("page", { [0] = 95, [1] = 5 }) },
    { "pr_type", constant("edit") },
    { "pr_level", choice({ "autoconfirmed", "sysop" }) },
    { "pr_cascade", constant(0) },
    { "pr_user", null() },
    { "pr_expiry", null() },
  },
})
w:table("revision", {
  columns = {
    { "rev_id", serial() },
    { "rev_page", parent("page", children(50, 1.2)) },
    { "rev_text_id", copy("rev_id") },
    { "rev_comment", words(0, 100) },
    { "rev_user", reference("useracct", "user_id", 0.99) },
    { "rev_user_text", lookup("rev_user", "user_name") },
    { "rev_timestamp", timestamp("2001-01-15", "2007-09-30") },
    { "rev_minor_edit", choice({ 0, 1 }, { 4, 1 }) },
    { "rev_deleted", constant(0) },
    { "rev_len", integer(shortest, longest) },
    { "line", line(), stored = false },
    { "rev_parent_id", derive("integer", { "rev_id", "line" }, function(_, _, id, at) return at > 1 and id - 1 or nil end) },
  },
})
w:table("text", {
  columns = {
    { "old_id", parent("revision", 1) },
    { "length", lookup("old_id", "rev_len"), stored = false },
    { "old_text", derive("text", { "old_id", "length" }, function(_, _, id, length)
      return (("%09d "):format(id)):rep(math.ceil(length / 10)):sub(1, length)
    end) },
    { "old_flags", constant("utf-8") },
    { "old_page", lookup("old_id", "rev_page") },
  },
})
w:table("watchlist", {
  columns = {
    { "wl_user", parent("useracct", children(math.min(100, pages), 1.2)) },
    { "page", distinct(1, pages), stored = false },
    { "wl_namespace", derive("integer", { "page" }, namespace) },
    { "wl_title", derive("text", { "page" }, title) },
    { "wl_notificationtimestamp", null() },
  },
})
w:schema("keys", [[UPDATE page SET page_latest = (SELECT max(rev_id) FROM revision WHERE rev_page = page_id);
UPDATE page SET page_len = (SELECT rev_len FROM revision WHERE rev_id = page_latest)]])

local function pick_page(pick)
  local page = pick.page()
  return namespace_of(page), title_of(page)
end

local function pick_address(pick)
  return ("10.%d.%d.%d"):format(pick.integer(0, 255), pick.integer(0, 255), pick.integer(0, 255))
end

-- What MediaWiki reads to show a page to somebody who may be blocked.
local function show(tx, namespace, title, user, address)
  local page = tx:one("page", namespace, title)
  tx:rows("restrictions", page.page_id)
  tx:rows("blocks", address, user)
  local revision = tx:one("latest_revision", page.page_id)
  tx:one("text", revision.rev_text_id)
end

w:transaction("add_watch_list", { help = "a user watches a page" }, function(tx, pick)
  local user, namespace, title = pick.useracct(), pick_page(pick)
  tx:begin()
  tx:exec("watch", user, namespace, title)
  if namespace == 0 then tx:exec("watch", user, 1, title) end -- the page that talks about it
  tx:exec("touch_user", user)
  tx:commit()
end)

w:transaction("remove_watch_list", { help = "a user watches a page no more" }, function(tx, pick)
  local user, namespace, title = pick.useracct(), pick_page(pick)
  tx:begin()
  tx:exec("unwatch", user, namespace, title)
  tx:exec("touch_user", user)
  tx:commit()
end)

w:transaction("update_page", { help = "a user edits a page, unless another one has done so meanwhile" }, function(tx, pick)
  local user, namespace, title = pick.useracct(), pick_page(pick)
  local text, comment, minor = pick.letters(shortest, longest), pick.letters(0, 100), pick.chance(0.2) and 1 or 0
  local named, address = name_of(user), pick_address(pick)
  tx:begin()
  local page = tx:one("page", namespace, title)
  local text_id = tx:key("insert_text", { text = text, page = page.page_id })
  local revision = tx:key("insert_revision", {
    page = page.page_id, text_id = text_id, comment = comment, user = user, user_text = named, minor = minor,
    length = #text, parent = page.page_latest,
  })
  if tx:exec("update_page", revision, #text, page.page_id, page.page_latest) == 0 then return tx:rollback() end
  tx:exec("insert_change", {
    user = user, user_text = named, namespace = namespace, title = title, comment = comment, minor = minor,
    page = page.page_id, revision = revision, previous = page.page_latest, address = address,
    old_length = page.page_len, new_length = #text,
  })
  if tx:one("watcher", namespace, title, user) then tx:exec("notify", namespace, title, user) end
  tx:exec("insert_log", { user = user, user_text = named, namespace = namespace, title = title, page = page.page_id })
  tx:exec("count_edit", user)
  tx:tally("edits", 1)
  tx:commit()
end)

w:transaction("get_page_anonymous", { read_only = true, help = "somebody reads a page" }, function(tx, pick)
  local address, namespace, title = pick_address(pick), pick_page(pick)
  tx:begin()
  show(tx, namespace, title, 0, address)
  tx:commit()
end)

w:transaction("get_page_authenticated", { read_only = true, help = "a user reads a page" }, function(tx, pick)
  local user, namespace, title = pick.useracct(), pick_page(pick)
  tx:begin()
  tx:one("user", user)
  tx:rows("groups", user)
  show(tx, namespace, title, user, "")
  tx:commit()
end)

w:mix("WIKIPEDIA", {
  add_watch_list = 0.07, remove_watch_list = 0.07, update_page = 7.6725, get_page_anonymous = 91.2656,
  get_page_authenticated = 0.9219,
})
w:mix("RO", { get_page_anonymous = 91.2656, get_page_authenticated = 0.9219 })
w:mix("RW", {
  add_watch_list = 0.07, remove_watch_list = 0.07, update_page = 7.6725, get_page_anonymous = 91.2656,
  get_page_authenticated = 0.9219,
})

w:invariant("latest_is_newest", "a page shows its newest revision, whose text is there and as long as it says")
w:invariant("edits_are_counted", "each edit that was acknowledged is among the changes, in the log and counted by its user")
w:invariant("revisions_follow_each_other", "a revision has one parent, of the same page, and no parent has two children")
w:invariant("watchers_are_users", "pages are watched by users")
