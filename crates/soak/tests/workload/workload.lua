-- Transactions of every shape. What commits on the server tells so by the tally `commits`, and never twice.

local soak = workload "soak"
soak:describe "transactions of every shape"

soak:table("item", { rows = 1000, columns = { { "id", serial() } } })

-- Run by each session, perhaps in several attempts: it only reads, for what it commits is not counted.
soak:session(function(tx, pick)
  assert(tx.session >= 1 and tx.session <= tx.sessions)
  return { number = tx.session, turns = 0 }
end)

soak:transaction("write", { help = "one statement that commits by itself" }, function(tx, pick)
  tx:tally("commits", 1)
  tx:exec("write", pick.item())
end)

soak:transaction("read", { read_only = true, help = "one statement that only reads" }, function(tx, pick)
  tx:tally("commits", 1)
  tx:one("find", pick.item())
end)

soak:transaction("transfer", { help = "three statements in a transaction" }, function(tx, pick)
  tx:begin()
  tx:exec("write", pick.item())
  tx:tally("commits", 1)
  tx:queue("write", pick.item())
  tx:one("find", pick.item())
  tx:commit()
end)

soak:transaction("change_of_mind", { help = "rolls back by its own decision" }, function(tx, pick)
  tx:begin()
  tx:exec("write", pick.item())
  tx:rollback()
end)

soak:transaction("leave_queued", { help = "returns while a statement is still queued" }, function(tx, pick)
  tx:tally("commits", 1)
  tx:queue("write", pick.item())
end)

soak:transaction("expects", { aborts_on = { "constraint", "lock_timeout" }, help = "expects some errors" },
  function(tx, pick)
    tx:begin()
    tx:tally("commits", 1)
    tx:exec("write", pick.item())
    tx:commit()
  end)

soak:transaction("perhaps", { help = "has nothing to do in two turns of three" }, function(tx, pick, mine)
  assert(mine.number == tx.session)
  mine.turns = mine.turns + 1
  if mine.turns % 3 ~= 0 then return tx:skip() end
  tx:tally("commits", 1)
  tx:exec("write", pick.item())
end)

soak:transaction("roll_call", { help = "a session says that it is there" }, function(tx, pick)
  tx:tally("commits", 1)
  tx:one("find", pick.item())
  tx:tally("here " .. tx.session, 1)
end)

soak:mix("all", { write = 30, read = 30, transfer = 20, change_of_mind = 10, leave_queued = 10, expects = 10, perhaps = 20 })
soak:mix("roll_call", { roll_call = 1 })
