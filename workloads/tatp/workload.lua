-- TATP: "Telecom Application Transaction Processing (TATP) Benchmark Description", version 1.0, IBM Software Group
-- (Solid), March 2009, and the same text by Nokia: a home location register. Scale factor 1 has its smallest standard
-- population, 100,000 subscribers.

local w = workload "tatp"
w:describe "TATP: a home location register, subscribers and where their calls go"

local non_uniform = w:option("non_uniform", "boolean", true,
  "draw subscribers by the specification's non-uniform law; false: by the load's access", { data = false })
local batched = w:option("batched", "boolean", true,
  "what does not wait for an answer is sent together; false: each statement by itself", { data = false })

local subscribers = math.floor(100000 * w.scale)
local columns = {
  { "s_id", serial() },
  { "sub_nbr", derive("text", { "s_id" }, function(_, _, s_id) return ("%015d"):format(s_id) end) },
}
for bit = 1, 10 do columns[#columns + 1] = { "bit_" .. bit, integer(0, 1) } end
for hex = 1, 10 do columns[#columns + 1] = { "hex_" .. hex, integer(0, 15) } end
for byte = 1, 10 do columns[#columns + 1] = { "byte2_" .. byte, integer(0, 255) } end
columns[#columns + 1] = { "msc_location", integer(1, 2 ^ 32 - 1) }
columns[#columns + 1] = { "vlr_location", integer(1, 2 ^ 32 - 1) }

w:table("subscriber", { rows = subscribers, columns = columns })

local CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

w:table("access_info", {
  columns = {
    { "s_id", parent("subscriber", 1, 4) },
    { "ai_type", distinct(1, 4) },
    { "data1", integer(0, 255) },
    { "data2", integer(0, 255) },
    { "data3", letters(3, 3, CAPITALS) },
    { "data4", letters(5, 5, CAPITALS) },
  },
})

w:table("special_facility", {
  columns = {
    { "facility", serial(), stored = false },
    { "s_id", parent("subscriber", 1, 4) },
    { "sf_type", distinct(1, 4) },
    { "is_active", choice({ 1, 0 }, { 85, 15 }) },
    { "error_cntrl", integer(0, 255) },
    { "data_a", integer(0, 255) },
    { "data_b", letters(5, 5, CAPITALS) },
  },
})

w:table("call_forwarding", {
  columns = {
    { "facility", parent("special_facility", 0, 3), stored = false },
    { "third", distinct(0, 2), stored = false },
    { "s_id", lookup("facility", "s_id") },
    { "sf_type", lookup("facility", "sf_type") },
    { "start_time", derive("integer", { "third" }, function(_, _, third) return third * 8 end) },
    { "end_time", derive("integer", { "start_time" }, function(_, random, start) return start + random(8) end) },
    { "numberx", digits(15) },
  },
})

-- Section 2.1.1: (random(0, A) | random(1, P)) % P + 1, with an A that grows with the population P.
local spread = subscribers <= 1000000 and 65535 or subscribers <= 10000000 and 1048575 or 2097151
local function pick_subscriber(pick)
  if not non_uniform then return pick.subscriber() end
  return bit.bor(pick.integer(0, spread), pick.integer(1, subscribers)) % subscribers + 1
end

local function number_of(s_id) return ("%015d"):format(s_id) end
local function pick_type(pick) return pick.integer(1, 4) end
local function pick_start(pick) return pick.integer(0, 2) * 8 end

-- A transaction that finds nothing is none of TATP's successful ones: it counts as aborted.

w:transaction("get_subscriber_data", { read_only = true, help = "reads all of a subscriber" }, function(tx, pick)
  tx:one("subscriber", pick_subscriber(pick))
end)

w:transaction("get_new_destination", { read_only = true, help = "where a call is forwarded to" }, function(tx, pick)
  local s_id, start_time, time = pick_subscriber(pick), pick_start(pick), pick.integer(1, 24)
  if not tx:one("new_destination", s_id, pick_type(pick), start_time, time) then tx:abort() end
end)

w:transaction("get_access_data", { read_only = true, help = "reads how access is validated" }, function(tx, pick)
  if not tx:one("access_data", pick_subscriber(pick), pick_type(pick)) then tx:abort() end
end)

w:transaction("update_subscriber_data", { pipeline = batched, help = "updates a subscriber and a facility" }, function(tx, pick)
  local s_id, bit_1, data_a, sf_type = pick_subscriber(pick), pick.integer(0, 1), pick.integer(0, 255), pick_type(pick)
  tx:begin()
  tx:queue("update_bit", bit_1, s_id)
  if tx:exec("update_data", data_a, s_id, sf_type) == 0 then return tx:rollback() end
  tx:commit()
end)

w:transaction("update_location", { help = "a subscriber is in another place" }, function(tx, pick)
  tx:exec("update_location", pick.integer(1, 2 ^ 32 - 1), number_of(pick_subscriber(pick)))
end)

w:transaction("insert_call_forwarding", {
  pipeline = batched, aborts_on = "constraint", help = "forwards calls, if the facility and the time allow",
}, function(tx, pick)
  local sub_nbr, sf_type, start_time = number_of(pick_subscriber(pick)), pick_type(pick), pick_start(pick)
  local end_time, numberx = start_time + pick.integer(1, 8), number_of(pick_subscriber(pick))
  tx:begin()
  local s_id = tx:one("find_subscriber", sub_nbr).s_id
  tx:send("facilities", s_id)
  -- Without the facility this breaks a foreign key, with that time in use the primary key: 31.25 % succeed.
  tx:queue("insert_forwarding", s_id, sf_type, start_time, end_time, numberx)
  tx:commit()
end)

w:transaction("delete_call_forwarding", { pipeline = batched, help = "forwards calls no more, if they were" }, function(tx, pick)
  local sub_nbr, sf_type, start_time = number_of(pick_subscriber(pick)), pick_type(pick), pick_start(pick)
  tx:begin()
  local s_id = tx:one("find_subscriber", sub_nbr).s_id
  tx:send("delete_forwarding", s_id, sf_type, start_time)
  tx:commit()
  if tx:receive() == 0 then tx:abort() end -- nothing was changed
end)

w:mix("TATP", {
  get_subscriber_data = 35, get_new_destination = 10, get_access_data = 35,
  update_subscriber_data = 2, update_location = 14, insert_call_forwarding = 2, delete_call_forwarding = 2,
})
w:mix("RO", { get_subscriber_data = 35, get_new_destination = 10, get_access_data = 35 })
w:mix("RW", {
  get_subscriber_data = 35, get_new_destination = 10, get_access_data = 35,
  update_subscriber_data = 2, update_location = 14, insert_call_forwarding = 2, delete_call_forwarding = 2,
})

w:invariant("numbers_of_subscribers", "the number of a subscriber is its id in 15 digits")
w:invariant("children_of_subscribers", "each subscriber has 1 to 4 access data and 1 to 4 facilities")
w:invariant("forwardings_have_facilities", "calls are forwarded by facilities that exist, from 0, 8 or 16 o'clock for 1 to 8 hours")
