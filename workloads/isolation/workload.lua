-- Isolation: histories in the manner of Jepsen's tests (K. Kingsbury, P. Alvaro, "Elle: Inferring Isolation Anomalies from
-- Experimental Observations", VLDB 2020). Transactions on lists, registers, counters and a bank say what they do and see,
-- and the checker beside the run looks for anomalies. What they write is unique; keys are never used by two runs.

local w = workload "isolation"
w:describe "Isolation: lists, registers, counters and a bank, whose transactions say what they do and see"

local keys = w:option("keys", "integer", 8, "how many lists, registers and counters are in use at a time", { data = false })
local appends = w:option("appends", "integer", 64, "after about so many appends a list is left alone", { data = false })
local most = w:option("operations", "integer", 4, "a transaction on lists or registers has 1 to so many", { data = false })
local accounts = w:option("accounts", "integer", 10, "how many accounts the bank has")

local KINDS = { "lists", "registers", "counters" }

-- The rows that are loaded are not used: each run opens keys of its own.
w:table("lists", { rows = 1, columns = { { "id", serial() }, { "elements", constant("") } } })
w:table("registers", { rows = 1, columns = { { "id", serial() }, { "value", null() } } })
w:table("counters", { rows = 1, columns = { { "id", serial() }, { "value", constant(0) } } })
w:table("accounts", { rows = accounts, columns = { { "id", serial() }, { "balance", constant(100) } } })

local function open(tx, pick, kind)
  local key = pick.new(kind)
  tx:exec("open_" .. kind, key)
  tx:inserted(kind, key)
  return key
end

-- The load picks the newest keys: once these are there, the ones before are left alone.
local function open_all(tx, pick)
  local newest = {}
  tx:begin()
  for _, kind in ipairs(KINDS) do
    for _ = 1, keys do newest[kind] = open(tx, pick, kind) end
  end
  tx:commit()
  return newest
end

w:session(function(tx, pick)
  return { number = open_all(tx, pick).registers, writes = 0 }
end)

-- Never the same twice: a transaction that is tried again counts on.
local function unique(mine)
  mine.writes = mine.writes + 1
  return mine.writes * 1000000 + mine.number
end

-- Writes are told before they are sent: what becomes of them is the outcome of the transaction. A row that is not there
-- was opened after the transaction's snapshot.
local function append(tx, pick, mine)
  local key, value = pick.lists(), unique(mine)
  tx:observe("append", key, value)
  return tx:exec("append", (" %.0f"):format(value), key) == 1
end

local function read_list(tx, pick)
  local key = pick.lists()
  local row = tx:one("read_list", key)
  tx:observe("list", key, row and tostring(row.elements))
end

local function write(tx, pick, mine)
  local key, value = pick.registers(), unique(mine)
  tx:observe("write", key, value)
  return tx:exec("write", value, key) == 1
end

local function read_register(tx, pick)
  local key = pick.registers()
  local row = tx:one("read_register", key)
  tx:observe("read", key, row and row.value)
end

-- Reads and writes in random order: `change` where there is something to be written.
local function operate(tx, pick, mine, read, change)
  for _ = 1, pick.integer(1, most) do
    if not change or pick.chance(0.5) then
      read(tx, pick)
    elseif not change(tx, pick, mine) then
      return tx:rollback()
    end
  end
  tx:commit()
end

w:transaction("lists", { help = "reads lists and appends to them" }, function(tx, pick, mine)
  tx:begin()
  if pick.chance(most / 4 / appends) then open(tx, pick, "lists") end
  operate(tx, pick, mine, read_list, append)
end)

w:transaction("read_lists", { read_only = true, help = "reads lists" }, function(tx, pick, mine)
  tx:begin()
  operate(tx, pick, mine, read_list)
end)

w:transaction("registers", { help = "reads registers and writes them" }, function(tx, pick, mine)
  tx:begin()
  operate(tx, pick, mine, read_register, write)
end)

w:transaction("read_registers", { read_only = true, help = "reads registers" }, function(tx, pick, mine)
  tx:begin()
  operate(tx, pick, mine, read_register)
end)

w:transaction("increment", { help = "reads a counter and writes what it is then" }, function(tx, pick)
  local key, amount = pick.counters(), pick.integer(1, 9)
  tx:begin()
  local row = tx:one("read_counter", key)
  if not row then return tx:rollback() end
  tx:observe("count", key, row.value)
  tx:observe("add", key, amount)
  tx:exec("set_counter", row.value + amount, key)
  tx:commit()
end)

w:transaction("count", { read_only = true, help = "reads a counter" }, function(tx, pick)
  local key = pick.counters()
  tx:begin()
  local row = tx:one("read_counter", key)
  tx:observe("count", key, row and row.value or 0)
  tx:commit()
end)

w:transaction("transfer", { help = "reads two balances, and moves money from one to the other" }, function(tx, pick)
  local first = pick.integer(1, accounts - 1)
  local second, amount = pick.integer(first + 1, accounts), pick.integer(-9, 9)
  tx:begin()
  local from, to = tx:one("balance", first).balance, tx:one("balance", second).balance
  tx:observe("transfer", first, second, amount)
  tx:exec("set_balance", from - amount, first)
  tx:exec("set_balance", to + amount, second)
  tx:commit()
end)

w:transaction("audit", { read_only = true, help = "reads all balances" }, function(tx)
  local balances = {}
  tx:begin()
  for place, row in ipairs(tx:rows("balances")) do balances[place] = row.balance end
  tx:observe("balances", balances)
  tx:commit()
end)

w:transaction("renew", { help = "opens new lists, registers and counters: a new history can begin" }, function(tx, pick)
  open_all(tx, pick)
end)

local newest = { access = "latest-" .. keys }
w:mix("ALL", {
  lists = 4, read_lists = 2, registers = 4, read_registers = 2, increment = 2, count = 1, transfer = 2, audit = 1,
}, newest)
w:mix("LISTS", { lists = 2, read_lists = 1 }, newest)
w:mix("REGISTERS", { registers = 2, read_registers = 1 }, newest)
w:mix("COUNTERS", { increment = 2, count = 1 }, newest)
w:mix("BANK", { transfer = 2, audit = 1 }, newest)
w:mix("RO", { read_lists = 1, read_registers = 1, count = 1, audit = 1 }, newest)
w:mix("RW", { lists = 1, read_lists = 1, registers = 1, read_registers = 1 }, newest)
w:mix("WO", { lists = 1, registers = 1, increment = 1, transfer = 1 }, newest)

w:statement("accounts_are_there",
  "SELECT n FROM (SELECT count(*) AS n FROM accounts) AS a WHERE n <> " .. accounts)
w:invariant("accounts_are_there", "no account was lost")
