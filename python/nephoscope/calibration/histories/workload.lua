-- Histories whose truth is planted, on a system that stores nothing. The store is here: one load thread runs the sessions'
-- transactions in turns, and each takes effect at one moment between its begin and its commit, so what they see is
-- strictly serializable. Scenes are told amid them as they stand, and hold one anomaly each.

local w = workload "histories"
w:describe "Histories whose truth is planted: transactions that are strictly serializable, and scenes with an anomaly each"

local times = w:option("scenes", "integer", 0, "how often each scene is played", { data = false })

w:statement("work", "SELECT 1")

local KEYS, RETIRED, MOST_WAITS = 4, 40, 2000
local FIRST_KEY, FIRST_VALUE = 2 ^ 40, 2 ^ 40 -- of scenes

-- A scene's transactions overlap. x+1 appends 1 to the list x, x=12 reads it as 1, 2; x:1 writes the register x, x?1 reads
-- it, x? reads it as not written. A transaction that begins with ! rolls back.
local SCENES = {
  { "x+1 y+1", "x+2 y+2", "x=12 y=21" }, -- G0
  { "!x+1", "x=1" }, -- G1a
  { "x:1 x:2", "x?1" }, -- G1b
  { "x+1 y=1", "y+1 x=1" }, -- G1c
  { "x= x+1", "x= x+2", "x=12" }, -- lost update
  { "x:1 y:1", "x? y?1" }, -- G-single
  { "x+1", "y+1", "x=1 y=", "x= y=1" }, -- long fork
  { "x? y:1", "y? x:1" }, -- G2-item
}

local values, keys = 0, 0
local function new_value() values = values + 1; return values end
local function new_key() keys = keys + 1; return keys end

local lists, registers, counters, balances = {}, {}, {}, { 100, 100, 100, 100, 100 }
for place = 1, KEYS do
  lists[place] = { key = new_key(), elements = {} }
  registers[place] = { key = new_key() }
  counters[place] = { key = new_key(), value = 0 }
end

local deeds = {
  function(tx, pick)
    local list = lists[pick.integer(1, KEYS)]
    tx:observe("list", list.key, list.elements)
  end,
  function(tx, pick)
    local list, value = lists[pick.integer(1, KEYS)], new_value()
    if #list.elements == RETIRED then list.key, list.elements = new_key(), {} end
    tx:observe("append", list.key, value)
    list.elements[#list.elements + 1] = value
  end,
  function(tx, pick)
    local register = registers[pick.integer(1, KEYS)]
    tx:observe("read", register.key, register.value)
  end,
  function(tx, pick)
    local register, value = registers[pick.integer(1, KEYS)], new_value()
    tx:observe("write", register.key, value)
    register.value = value
  end,
  function(tx, pick)
    local counter, amount = counters[pick.integer(1, KEYS)], pick.integer(1, 9)
    tx:observe("count", counter.key, counter.value)
    tx:observe("add", counter.key, amount)
    counter.value = counter.value + amount
  end,
  function(tx, pick)
    local from, amount = pick.integer(1, #balances - 1), pick.integer(-9, 9)
    tx:observe("transfer", from, from + 1, amount)
    balances[from], balances[from + 1] = balances[from] - amount, balances[from + 1] + amount
  end,
  function(tx) tx:observe("balances", balances) end,
}

w:transaction("executed", { help = "does what a strictly serializable store would" }, function(tx, pick)
  tx:begin()
  tx:one("work")
  for _ = 1, pick.integer(1, 4) do deeds[pick.integer(1, #deeds)](tx, pick) end
  tx:commit()
end)

-- The scene whose parts are being taken, and how many have begun.
local scene, begun = nil, 0

local function open()
  if begun == times * #SCENES then return nil end
  begun = begun + 1
  return { parts = SCENES[(begun - 1) % #SCENES + 1], taken = 0, first_key = FIRST_KEY + begun * 256 }
end

local function play(tx, part, first_key)
  for name, deed, rest in part:gmatch "(%a)([+=:?])(%d*)" do
    local key, number = first_key + name:byte(), rest ~= "" and FIRST_VALUE + tonumber(rest) or nil
    if deed == "+" then
      tx:observe("append", key, number)
    elseif deed == ":" then
      tx:observe("write", key, number)
    elseif deed == "?" then
      tx:observe("read", key, number)
    else
      local elements = {}
      for digit in rest:gmatch "%d" do elements[#elements + 1] = FIRST_VALUE + tonumber(digit) end
      tx:observe("list", key, elements)
    end
  end
end

w:transaction("staged", { help = "plays a part of a scene" }, function(tx)
  if not scene or scene.taken == #scene.parts then scene = open() end
  if not scene then return tx:skip() end
  local mine, waits = scene, 0
  mine.taken = mine.taken + 1
  local part = mine.parts[mine.taken]
  tx:begin()
  -- All have begun before one of them ends.
  while mine.taken < #mine.parts and waits < MOST_WAITS do
    tx:one("work")
    waits = waits + 1
  end
  play(tx, part, mine.first_key)
  if part:sub(1, 1) == "!" then return tx:rollback() end
  tx:commit()
end)

w:mix("CLEAN", { executed = 1 })
w:mix("PLANTED", { executed = 9, staged = 1 })
