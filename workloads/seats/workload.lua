-- SEATS, an airline's ticketing: M. Stonebraker, A. Pavlo, "The SEATS Airline Ticketing Systems Benchmark", 2012, with
-- the transactions that D. Difallah et al., "OLTP-Bench", PVLDB 7(4), 2013, Table 1, counts, in the shares of its
-- standard configuration. The paper takes flights from real traffic; here airports are popular by Zipf's law. Scale
-- factor 1 has 100,000 customers and 20,000 flights.

local w = workload "seats"
w:describe "SEATS: an airline's flights, open seats and reservations"

local SEATS, FIRST_CLASS, DAYS = 150, 10, 50
local AIRPORTS, AIRLINES, COUNTRIES = 286, 44, 248
local KEPT = 100 -- open seats, and own reservations, that a session remembers

-- The tables. The first column is the key; its SQL is made here, as attributes are many and without a meaning.

local types = {
  integer = "integer",
  bigint = "bigint",
  text = "varchar(32)",
  price = "decimal(12, 2)",
  real = "double precision",
}
local time = w.dialect == "mysql" and "datetime" or "timestamp"
local key_with_table = w.dialect == "mysql" or w.dialect == "sqlite"

-- Makes a table: columns are { name, type, generator }; those without a type are not stored.
local function make(name, rows, key, columns)
  local declared, sql = {}, {}
  for place, column in ipairs(columns) do
    local named, kind, generator = unpack(column)
    declared[place] = { named, generator, stored = kind ~= false }
    if kind then sql[#sql + 1] = named .. " " .. (kind == "time" and time or types[kind]) .. " NOT NULL" end
  end
  w:table(name, { rows = rows, columns = declared })
  if key_with_table then
    sql[#sql + 1] = "PRIMARY KEY (" .. key .. ")"
  else
    w:schema("keys", "ALTER TABLE " .. name .. " ADD PRIMARY KEY (" .. key .. ")")
  end
  w:schema("create", "CREATE TABLE " .. name .. " (\n  " .. table.concat(sql, ",\n  ") .. "\n)")
end

-- Attributes without a meaning: prefix00, prefix01 …
local function attributes(columns, prefix, count, kind)
  for number = 0, count - 1 do
    columns[#columns + 1] =
      { string.format("%s%02d", prefix, number), kind, kind == "text" and letters(8, 32) or integer(0, 1000000) }
  end
  return columns
end

local capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
local function padded(prefix, of)
  return derive("text", { of }, function(_, _, number) return string.format("%s%012d", prefix, number) end)
end

make("country", COUNTRIES, "co_id", {
  { "co_id", "integer", serial() },
  { "co_name", "text", letters(4, 32) },
  { "co_code_2", "text", letters(2, 2, capitals) },
  { "co_code_3", "text", letters(3, 3, capitals) },
})

-- Airports are spread evenly over a country of the size of the United States.
local function latitude(airport) return 25 + 24 * ((airport - 0.5) / AIRPORTS) end
local function longitude(airport) return -124 + 57 * (airport * 0.6180339887498949 % 1) end
local function miles(from, to)
  local a, b = math.rad(latitude(from)), math.rad(latitude(to))
  local between = math.rad(longitude(from) - longitude(to))
  local cosine = math.sin(a) * math.sin(b) + math.cos(a) * math.cos(b) * math.cos(between)
  return 3959 * math.acos(math.min(1, cosine))
end

make("airport", AIRPORTS, "ap_id", attributes({
  { "ap_id", "integer", serial() },
  { "ap_code", "text", letters(3, 3, capitals) },
  { "ap_name", "text", letters(8, 32) },
  { "ap_city", "text", letters(4, 32) },
  { "ap_postal_code", "text", digits(5) },
  { "ap_co_id", "integer", reference("country") },
  { "ap_longitude", "real", derive("float", { "ap_id" }, function(_, _, id) return longitude(id) end) },
  { "ap_latitude", "real", derive("float", { "ap_id" }, function(_, _, id) return latitude(id) end) },
  { "ap_gmt_offset", "integer", integer(-8, -5) },
  { "ap_wac", "integer", integer(1, 1000) },
}, "ap_iattr", 16, "integer"))

make("airport_distance", nil, "d_ap_id0, d_ap_id1", {
  { "d_ap_id0", "integer", parent("airport", AIRPORTS) },
  { "d_ap_id1", "integer", line() },
  { "d_distance", "real", derive("float", { "d_ap_id0", "d_ap_id1" }, function(_, _, from, to)
    return miles(from, to)
  end) },
})

make("airline", AIRLINES, "al_id", attributes({
  { "al_id", "integer", serial() },
  { "al_iata_code", "text", letters(2, 2, capitals) },
  { "al_icao_code", "text", letters(3, 3, capitals) },
  { "al_call_sign", "text", letters(4, 32) },
  { "al_name", "text", letters(8, 32) },
  { "al_co_id", "integer", reference("country") },
}, "al_iattr", 16, "integer"))

make("customer", math.floor(100000 * w.scale), "c_id", attributes(attributes({
  { "c_id", "bigint", serial() },
  { "c_id_str", "text", padded("C", "c_id") },
  { "c_base_ap_id", "integer", reference("airport", "ap_id", 0.8) },
  { "c_balance", "price", decimal(1000, 1000) },
}, "c_sattr", 20, "text"), "c_iattr", 20, "integer"))

-- Half of the customers fly with one airline often, some with more.
make("frequent_flyer", nil, "ff_c_id, ff_al_id", attributes(attributes({
  { "ff_c_id", "bigint", parent("customer", { [0] = 30, 50, 12, 5, 3 }) },
  { "ff_al_id", "integer", distinct(1, AIRLINES) },
  { "ff_c_id_str", "text", padded("C", "ff_c_id") },
}, "ff_sattr", 4, "text"), "ff_iattr", 16, "integer"))

make("flight", math.floor(20000 * w.scale), "f_id", attributes({
  { "f_id", "bigint", serial() },
  { "f_al_id", "integer", reference("airline", "al_id", 0.8) },
  { "f_depart_ap_id", "integer", reference("airport", "ap_id", 0.8) },
  { "f_depart_time", "time", timestamp("2024-01-01", "2024-02-19") },
  { "other", false, reference("airport", "ap_id", 0.8) },
  { "f_arrive_ap_id", "integer", derive("integer", { "f_depart_ap_id", "other" }, function(_, _, from, other)
    return other ~= from and other or other % AIRPORTS + 1
  end) },
  { "f_arrive_time", "time", after("f_depart_time", 3600, 6 * 3600) },
  { "f_status", "integer", constant(0) },
  { "f_base_price", "price", decimal(100, 1000) },
  { "f_seats_total", "integer", constant(SEATS) },
  { "taken", false, count("reservation") },
  { "f_seats_left", "integer", derive("integer", { "taken" }, function(_, _, taken) return SEATS - taken end) },
}, "f_iattr", 30, "integer"))

make("reservation", nil, "r_id", attributes({
  { "r_id", "bigint", serial() },
  { "r_f_id", "bigint", parent("flight", 20, 130) },
  { "r_c_id", "bigint", reference("customer") },
  { "r_seat", "integer", distinct(0, SEATS - 1) },
  { "r_price", "price", decimal(100, 1000) },
}, "r_iattr", 9, "integer"))

-- The transactions. A session keeps open seats that it has seen, and reservations that it has made.

w:session(function() return { open = {}, made = {} } end)

local function keep(list, value)
  if #list >= KEPT then table.remove(list, 1) end
  list[#list + 1] = value
end

-- A reservation of which it is likely that it exists: an own one, or a loaded one.
local function some_reservation(own, pick)
  if #own.made > 0 and pick.chance(0.5) then
    local place = pick.integer(1, #own.made)
    return own.made[place], place
  end
  local loaded = pick.row("reservation")
  return { r_id = loaded.r_id, flight = loaded.r_f_id, customer = loaded.r_c_id, price = loaded.r_price }
end

local function day(number)
  return number > 31 and string.format("2024-02-%02d", number - 31) or string.format("2024-01-%02d", number)
end

w:transaction("find_flights", { read_only = true, help = "flights of two days between two airports, or near to them" },
  function(tx, pick)
  local flight, distance = pick.row("flight"), pick.choice({ 0, 0, 0, 50, 100 })
  local arrive = { flight.f_arrive_ap_id, flight.f_arrive_ap_id, flight.f_arrive_ap_id }
  local first = pick.integer(1, DAYS - 2)
  tx:begin()
  if distance > 0 then
    for place, near in ipairs(tx:rows("nearby_airports", arrive[1], arrive[1], distance)) do
      arrive[place + 1] = near.d_ap_id1
    end
  end
  local from, to = flight.f_depart_ap_id, { day(first), day(first + 2) }
  for _, found in ipairs(tx:rows("flights_between", from, to[1], to[2], arrive[1], arrive[2], arrive[3])) do
    tx:one("airport", found.f_depart_ap_id)
    tx:one("airport", found.f_arrive_ap_id)
  end
  tx:commit()
end)

w:transaction("find_open_seats", { read_only = true, help = "the open seats of a flight" }, function(tx, pick, own)
  local flight, taken, open = pick.flight(), {}, {}
  tx:begin()
  local base = tx:one("flight", flight)
  local price = base.f_base_price * (1 + (SEATS - base.f_seats_left) / SEATS)
  for _, row in ipairs(tx:rows("seats_taken", flight)) do
    taken[row.r_seat] = true
  end
  for seat = 0, SEATS - 1 do
    if not taken[seat] then open[#open + 1] = seat end
  end
  tx:commit()
  if #open > 0 then
    local seat = pick.choice(open)
    keep(own.open, { flight = flight, seat = seat, price = seat < FIRST_CLASS and 2 * price or price })
  end
end)

w:transaction("new_reservation", { help = "books a seat that was open when the session looked" },
  function(tx, pick, own)
  local r_id, customer = pick.new("reservation"), pick.customer()
  local wanted = own.open[#own.open]
    or { flight = pick.flight(), seat = pick.integer(0, SEATS - 1), price = pick.number(100, 1000, 2) }
  tx:begin()
  local flight = tx:one("lock_flight", wanted.flight)
  if
    flight.f_seats_left <= 0
    or tx:one("seat_taken", wanted.flight, wanted.seat)
    or tx:one("reservation_of", wanted.flight, customer)
  then
    tx:rollback()
    own.open[#own.open] = nil
    return
  end
  tx:one("customer", customer)
  local price = math.floor(wanted.price * 100 + 0.5) / 100
  tx:queue("book", r_id, customer, wanted.flight, wanted.seat, price, pick.integer(0, 1000000))
  tx:queue("change_seats", -1, wanted.flight)
  tx:queue("note_customer", 1, customer)
  tx:queue("note_frequent_flyer", 1, customer, flight.f_al_id)
  tx:tally("booked", 1)
  tx:commit()
  own.open[#own.open] = nil
  keep(own.made, { r_id = r_id, flight = wanted.flight, customer = customer, price = price })
end)

w:transaction("delete_reservation", { help = "cancels a reservation of a customer" },
  function(tx, pick, own)
  local chosen, place = some_reservation(own, pick)
  tx:begin()
  local flight = tx:one("lock_flight", chosen.flight)
  local found, how = chosen.customer, pick.integer(1, 3)
  if how == 2 then found = tx:one("customer_by_name", string.format("C%012d", chosen.customer)).c_id end
  if how == 3 then tx:rows("cards", string.format("C%012d", chosen.customer)) end
  local gone = tx:exec("cancel", chosen.r_id, found)
  if gone == 0 then
    tx:rollback()
  else
    tx:queue("change_seats", 1, chosen.flight)
    tx:queue("pay_back", chosen.price, found)
    tx:queue("note_frequent_flyer", -1, found, flight.f_al_id)
    tx:tally("cancelled", 1)
    tx:tally("paid_back", chosen.price)
    tx:commit()
  end
  if place then table.remove(own.made, place) end
end)

w:transaction("update_reservation", { help = "moves a customer to another seat of the flight" }, function(tx, pick, own)
  local chosen, seat = some_reservation(own, pick), pick.integer(0, SEATS - 1)
  tx:begin()
  tx:one("lock_flight", chosen.flight)
  if tx:one("seat_taken", chosen.flight, seat) or tx:exec("move", seat, pick.integer(0, 1000000), chosen.r_id) == 0 then
    return tx:rollback()
  end
  tx:commit()
end)

w:transaction("update_customer", { help = "changes a customer's attributes, and those of the cards" },
  function(tx, pick)
  local customer, one, two = pick.customer(), pick.integer(0, 1000000), pick.integer(0, 1000000)
  tx:begin()
  local by_name = pick.chance(0.5)
  local found = by_name and tx:one("customer_by_name", string.format("C%012d", customer)) or tx:one("customer", customer)
  tx:one("airport", found.c_base_ap_id)
  tx:queue("change_customer", one, two, customer)
  if pick.chance(0.25) then tx:queue("change_cards", one, two, customer) end
  tx:commit()
end)

local seats = {
  delete_reservation = 10,
  find_flights = 10,
  find_open_seats = 35,
  new_reservation = 20,
  update_customer = 10,
  update_reservation = 15,
}
w:mix("SEATS", seats)
w:mix("RW", seats)
w:mix("RO", { find_flights = 10, find_open_seats = 35 })

w:invariant("seats_are_counted", "a flight has as many seats left as are not reserved")
w:invariant("seats_are_reserved_once", "a seat of a flight is reserved once, and is one of the flight's")
w:invariant("reservations_have_flights_and_customers", "every reservation has a flight and a customer")
w:invariant("reservations_are_there", "every reservation that was acknowledged is there, and none that was cancelled")
w:invariant("money_is_paid_back", "customers have what was paid back to them")

-- Keys and indexes.

local function references(table_name, column, other, key)
  -- SQLite cannot add a foreign key to a table; checked, MariaDB would copy the table.
  if w.dialect == "sqlite" then return end
  w:schema("keys",
    "ALTER TABLE " .. table_name .. " ADD FOREIGN KEY (" .. column .. ") REFERENCES " .. other .. " (" .. key .. ")")
end

w:schema("keys", "CREATE UNIQUE INDEX reservation_seat ON reservation (r_f_id, r_seat)")
w:schema("keys", "CREATE INDEX reservation_customer ON reservation (r_c_id, r_f_id)")
w:schema("keys", "CREATE UNIQUE INDEX customer_name ON customer (c_id_str)")
w:schema("keys", "CREATE INDEX frequent_flyer_name ON frequent_flyer (ff_c_id_str)")
w:schema("keys", "CREATE INDEX flight_depart ON flight (f_depart_ap_id, f_depart_time)")
w:schema("keys", "CREATE INDEX flight_arrive ON flight (f_arrive_ap_id)")
if w.dialect == "mysql" then w:schema("keys", "SET foreign_key_checks = 0") end
references("airport", "ap_co_id", "country", "co_id")
references("airline", "al_co_id", "country", "co_id")
references("airport_distance", "d_ap_id0", "airport", "ap_id")
references("airport_distance", "d_ap_id1", "airport", "ap_id")
references("customer", "c_base_ap_id", "airport", "ap_id")
references("frequent_flyer", "ff_c_id", "customer", "c_id")
references("frequent_flyer", "ff_al_id", "airline", "al_id")
references("flight", "f_al_id", "airline", "al_id")
references("flight", "f_depart_ap_id", "airport", "ap_id")
references("flight", "f_arrive_ap_id", "airport", "ap_id")
references("reservation", "r_f_id", "flight", "f_id")
references("reservation", "r_c_id", "customer", "c_id")
if w.dialect == "mysql" then w:schema("keys", "SET foreign_key_checks = DEFAULT") end
local all =
  { "reservation", "flight", "frequent_flyer", "customer", "airline", "airport_distance", "airport", "country" }
w:schema("keys", w.dialect == "sqlite" and "ANALYZE" or
  (w.dialect == "mysql" and "ANALYZE TABLE " or "ANALYZE ") .. table.concat(all, ", "))
for _, name in ipairs(all) do
  w:schema("drop", "DROP TABLE IF EXISTS " .. name)
end
