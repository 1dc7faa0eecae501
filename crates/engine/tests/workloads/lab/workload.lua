-- A workload for the tests of the engine: small transactions that tell by their tallies what they have done.

local lab = workload "lab"
lab:describe "transactions for the tests of the engine"

lab:table("item", { rows = 1000, columns = { { "id", serial() } } })
lab:table("ticket", { rows = 3000, columns = { { "id", serial() } } })

lab:transaction("write", { help = "one statement that commits by itself" }, function(tx, pick)
  tx:tally("written", 1)
  tx:exec("write", pick.item())
end)

lab:transaction("read", { read_only = true, help = "one statement that only reads" }, function(tx, pick)
  tx:tally("read", 1)
  tx:one("find", pick.item())
end)

lab:transaction("transfer", { help = "two statements in a transaction" }, function(tx, pick)
  tx:begin()
  tx:exec("write", pick.item())
  tx:tally("written", 1)
  tx:exec("write", pick.item())
  tx:commit()
end)

lab:transaction("change_of_mind", { help = "rolls back by its own decision" }, function(tx, pick)
  tx:begin()
  tx:exec("write", pick.item())
  tx:tally("written", 1)
  tx:rollback()
end)

lab:transaction("leave_queued", { help = "returns while a statement is still queued" }, function(tx, pick)
  tx:tally("written", 1)
  tx:queue("write", pick.item())
end)

lab:transaction("take", { help = "takes a key that nobody else gets" }, function(tx, pick)
  local key = pick.once("ticket")
  if not key then return tx:skip() end
  tx:exec("write", key)
  tx:tally("ticket " .. key, 1)
end)

-- The keys that come back from the driver, one transaction for each phase that wants to tell them apart.
for _, name in ipairs({ "seek_1", "seek_2", "seek_3", "seek_4" }) do
  lab:transaction(name, { help = "finds a key and counts it" }, function(tx, pick)
    tx:tally(name .. " " .. tx:one("find", pick.item()).id, 1)
  end)
end

-- The first transactions of each session with their keys, for repeated runs.
local entries = {}
for _, name in ipairs({ "diary_a", "diary_b" }) do
  lab:transaction(name, { help = "writes down what comes when" }, function(tx, pick)
    local entry = (entries[tx.session] or 0) + 1
    entries[tx.session] = entry
    local key = tx:one("find", pick.item()).id
    if entry <= 100 then tx:tally(("%d %03d %s %d"):format(tx.session, entry, name, key), 1) end
  end)
end

lab:mix("half", { read = 50, write = 50 })
