-- SmallBank: M. Alomari, M. Cahill, A. Fekete, U. Röhm, "The Cost of Serializability on Platforms That Use Snapshot
-- Isolation", ICDE 2008. Scale factor 1 has the paper's 18,000 customers, each with two accounts.
-- send_payment is none of the paper's five transactions: H-Store and OLTP-Bench have added it.

local w = workload "smallbank"
w:describe "SmallBank: a bank's customers and their savings and checking accounts"

local hotspot = w:option("hotspot", "integer", 1000, "how many customers are hot; 0: the load's access alone decides",
  { data = false })
local share = w:option("hotspot_share", "number", 0.9, "the share of draws that goes to the hot customers",
  { data = false })

local batched = w:option("batched", "boolean", true,
  "what does not wait for an answer is sent together; false: each statement by itself", { data = false })

local customers = math.floor(18000 * w.scale)
w:table("account", {
  rows = customers,
  columns = {
    { "custid", serial() },
    { "name", derive("text", { "custid" }, function(_, _, custid) return ("customer%09d"):format(custid) end) },
  },
})

-- What was there at first can be told from the key: so `check` knows the sum that the bank began with.
local function balances(name, spread)
  w:table(name, {
    rows = customers,
    columns = {
      { "custid", serial() },
      { "balance", derive("integer", { "custid" }, function(_, _, custid) return 10000 + custid * spread % 40001 end) },
    },
  })
end
balances("saving", 7919)
balances("checking", 104729)

local function pick_name(pick)
  local custid
  if hotspot > 0 and pick.chance(share) then
    custid = pick.integer(1, math.min(hotspot, customers))
  else
    custid = pick.account()
  end
  return ("customer%09d"):format(custid)
end

local function pick_two_names(pick)
  local first, second = pick_name(pick), pick_name(pick)
  while second == first do second = pick_name(pick) end
  return first, second
end

local function find(tx, name) return tx:one("find_account", name).custid end

local function find_two(tx, one, other)
  tx:send("find_account", one)
  tx:send("find_account", other)
  local first, second = tx:receive()
  return first[1].custid, second[1].custid
end

local function balances_of(tx, custid)
  tx:send("saving", custid)
  tx:send("checking", custid)
  local saving, checking = tx:receive()
  return saving[1].balance, checking[1].balance
end

w:transaction("balance", { pipeline = batched, read_only = true, help = "Bal: the sum of a customer's accounts" },
  function(tx, pick)
  tx:begin()
  local custid = find(tx, pick_name(pick))
  tx:send("saving", custid)
  tx:send("checking", custid)
  tx:commit()
end)

w:transaction("deposit_checking", { pipeline = batched, help = "DC: pays into a checking account" },
  function(tx, pick)
  local name, amount = pick_name(pick), pick.number(1, 100, 2)
  tx:begin()
  tx:queue("add_checking", amount, find(tx, name))
  tx:tally("paid_in", amount)
  tx:commit()
end)

w:transaction("transact_saving", { pipeline = batched, help = "TS: pays into savings, or out of them if they suffice" },
  function(tx, pick)
  local name, amount = pick_name(pick), pick.number(-25, 100, 2)
  tx:begin()
  local custid = find(tx, name)
  if tx:one("saving", custid).balance + amount < 0 then return tx:rollback() end
  tx:queue("add_saving", amount, custid)
  tx:tally("paid_in", amount)
  tx:commit()
end)

w:transaction("amalgamate", { pipeline = batched, help = "Amg: moves all that a customer has to another one" },
  function(tx, pick)
  local from, to = pick_two_names(pick)
  tx:begin()
  local giver, taker = find_two(tx, from, to)
  local saving, checking = balances_of(tx, giver)
  -- What was read is taken off, where the paper writes 0: no money is lost in weaker isolation than the paper's.
  tx:queue("add_saving", -saving, giver)
  tx:queue("add_checking", -checking, giver)
  tx:queue("add_checking", saving + checking, taker)
  tx:commit()
end)

w:transaction("write_check", { pipeline = batched, help = "WC: cashes a check, with a penalty if it is not covered" },
  function(tx, pick)
  local name, amount = pick_name(pick), pick.number(1, 100, 2)
  tx:begin()
  local custid = find(tx, name)
  local saving, checking = balances_of(tx, custid)
  local taken = saving + checking >= amount and amount or amount + 1
  tx:queue("add_checking", -taken, custid)
  tx:tally("paid_in", -taken)
  tx:commit()
end)

w:transaction("send_payment", { pipeline = batched, help = "pays from one checking account into another if it is covered" },
  function(tx, pick)
  local from, to = pick_two_names(pick)
  local amount = pick.number(1, 100, 2)
  tx:begin()
  local payer, payee = find_two(tx, from, to)
  if tx:one("checking", payer).balance < amount then return tx:rollback() end
  tx:queue("add_checking", -amount, payer)
  tx:queue("add_checking", amount, payee)
  tx:commit()
end)

-- The paper's: each transaction alike, and 60 % Balance. SIX is OLTP-Bench's default.
w:mix("SMALLBANK", { balance = 1, deposit_checking = 1, transact_saving = 1, amalgamate = 1, write_check = 1 })
w:mix("BALANCE60", { balance = 60, deposit_checking = 10, transact_saving = 10, amalgamate = 10, write_check = 10 })
w:mix("SIX", {
  balance = 15, deposit_checking = 15, transact_saving = 15, amalgamate = 15, write_check = 15, send_payment = 25,
})
w:mix("RO", { balance = 1 })
w:mix("RW", { balance = 1, deposit_checking = 1, transact_saving = 1, amalgamate = 1, write_check = 1 })

w:invariant("money_is_conserved", "the bank has what it began with and what was paid in since")
w:invariant("accounts_are_whole", "each customer has a savings and a checking account")
