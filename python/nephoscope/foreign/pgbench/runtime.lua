-- pgbench's arithmetic, by the chapter "pgbench" of PostgreSQL's documentation. A whole number is an integer of 64 bits
-- (LuaJIT's int64), a double is a number of Lua's, so their types are told apart as pgbench does.

local P = {}

P.NULL = setmetatable({}, { __tostring = function() return "NULL" end })
P.SMALLEST = -9223372036854775807LL - 1LL

local LARGEST, EXACT = 9223372036854775807LL, 2 ^ 53
local NULL, SMALLEST = P.NULL, P.SMALLEST
local floor, log, exp, sqrt = math.floor, math.log, math.exp, math.sqrt
local bxor, rshift = bit.bxor, bit.rshift

local function name_of(value)
  local kind = type(value)
  if value == NULL then return "null" end
  return ({ cdata = "int", number = "double", boolean = "boolean" })[kind] or kind
end

local function refuse(message) error(message, 0) end

-- Half goes to the even neighbour.
local function rounded(double)
  local whole = floor(double)
  local rest = double - whole
  if rest > 0.5 or rest == 0.5 and whole % 2 == 1 then whole = whole + 1 end
  return whole
end

local function int(value)
  local kind = type(value)
  if kind == "cdata" then return value end
  if kind ~= "number" then refuse("cannot coerce " .. name_of(value) .. " to int") end
  local whole = rounded(value)
  if not (whole >= -2 ^ 63 and whole < 2 ^ 63) then refuse("double to int overflow for " .. value) end
  return 0LL + whole
end

local function double(value)
  local kind = type(value)
  if kind == "number" then return value end
  if kind ~= "cdata" then refuse("cannot coerce " .. name_of(value) .. " to double") end
  return tonumber(value)
end

local function boolean(value)
  if type(value) ~= "boolean" then refuse("cannot coerce " .. name_of(value) .. " to boolean") end
  return value
end

-- A function is NULL where one of its values is.
local function strict(work)
  return function(one, other, third)
    if one == NULL or other == NULL or third == NULL then return NULL end
    return work(one, other, third)
  end
end

-- Whole numbers by one function, and doubles where one of the two is a double.
local function arithmetic(on_ints, on_doubles)
  return strict(function(one, other)
    if type(one) == "cdata" and type(other) == "cdata" then return on_ints(one, other) end
    if type(one) == "number" or type(other) == "number" then return on_doubles(double(one), double(other)) end
    return on_ints(int(one), int(other))
  end)
end

P.add = arithmetic(function(one, other)
  local sum = one + other
  if (one < 0) == (other < 0) and (sum < 0) ~= (one < 0) then refuse("bigint add out of range") end
  return sum
end, function(one, other) return one + other end)

P.subtract = arithmetic(function(one, other)
  local rest = one - other
  if (one < 0) ~= (other < 0) and (rest < 0) ~= (one < 0) then refuse("bigint sub out of range") end
  return rest
end, function(one, other) return one - other end)

P.multiply = arithmetic(function(one, other)
  local product = one * other
  if one ~= 0 and (product / one ~= other or one == -1 and other == SMALLEST) then refuse("bigint mul out of range") end
  return product
end, function(one, other) return one * other end)

P.divide = arithmetic(function(one, other)
  if other == 0 then refuse("division by zero") end
  if other == -1 and one == SMALLEST then refuse("bigint div out of range") end
  return one / other
end, function(one, other) return one / other end)

P.mod = strict(function(one, other)
  one, other = int(one), int(other)
  if other == 0 then refuse("division by zero") end
  return other == -1 and 0LL or one % other
end)

P.eq = arithmetic(function(one, other) return one == other end, function(one, other) return one == other end)
P.ne = arithmetic(function(one, other) return one ~= other end, function(one, other) return one ~= other end)
P.lt = arithmetic(function(one, other) return one < other end, function(one, other) return one < other end)
P.le = arithmetic(function(one, other) return one <= other end, function(one, other) return one <= other end)
P.gt = function(one, other) return P.lt(other, one) end
P.ge = function(one, other) return P.le(other, one) end

local function on_bits(work)
  return strict(function(one, other) return work(int(one), int(other)) end)
end

P.bitor, P.bitxor, P.bitand = on_bits(bit.bor), on_bits(bxor), on_bits(bit.band)
-- By the six lowest bits of the count, as processors do it.
P.shift_left = on_bits(function(one, other) return bit.lshift(one, tonumber(bit.band(other, 63LL))) end)
P.shift_right = on_bits(function(one, other) return bit.arshift(one, tonumber(bit.band(other, 63LL))) end)

-- The second operand is computed where the first does not decide; NULL does, unlike in SQL.
function P.both(one, other)
  if one == NULL then return NULL end
  if not boolean(one) then return false end
  other = other()
  if other == NULL then return NULL end
  return boolean(other)
end

function P.either(one, other)
  if one == NULL then return NULL end
  if boolean(one) then return true end
  other = other()
  if other == NULL then return NULL end
  return boolean(other)
end

P.negation = strict(function(one) return not boolean(one) end)

function P.is(value, wanted) return rawequal(value, wanted) end

-- What a condition makes of a value: numbers are true unless they are 0.
function P.truth(value)
  if value == NULL then return false end
  if type(value) == "boolean" then return value end
  return value ~= 0
end

P.abs = strict(function(value)
  if type(value) == "number" then return math.abs(value) end
  value = int(value)
  return value < 0 and -value or value
end)
P.int, P.double = strict(int), strict(double)
P.ln = strict(function(value) return log(double(value)) end)
P.exp = strict(function(value) return exp(double(value)) end)
P.sqrt = strict(function(value) return sqrt(double(value)) end)
P.pow = strict(function(value, power) return double(value) ^ double(power) end)
function P.pi() return math.pi end

function P.debug(value)
  print("debug(): " .. name_of(value) .. " " .. tostring(value))
  return value
end

local function best_of(better)
  return function(...)
    local count, doubles = select("#", ...), false
    for at = 1, count do
      local value = select(at, ...)
      if value == NULL then return NULL end
      doubles = doubles or type(value) == "number"
    end
    local of = doubles and double or int
    local best = of((...))
    for at = 2, count do
      local value = of((select(at, ...)))
      if better(value, best) then best = value end
    end
    return best
  end
end

P.least = best_of(function(one, other) return one < other end)
P.greatest = best_of(function(one, other) return one > other end)

-- A value between two bounds, both included: what stands above the lower one, of how many.
local function drawn(law)
  return function(pick, low, high, parameter)
    if low == NULL or high == NULL or parameter == NULL then return NULL end
    low, high = int(low), int(high)
    if low > high then refuse("empty range given to random") end
    local count = high - low + 1LL
    if count <= 0 then refuse("random range is too large") end
    return low + law(pick, count, parameter)
  end
end

local HALF = 2 ^ 31

-- Below a bound, of 63 bits at most; those beyond the largest multiple of the bound are drawn again.
local function below(pick, count)
  if count <= EXACT then return 0LL + pick.integer(0, tonumber(count) - 1) end
  local limit = LARGEST - LARGEST % count
  while true do
    local number = (0LL + pick.integer(0, HALF - 1)) * 4294967296LL + pick.integer(0, 2 * HALF - 1)
    if number < limit then return number % count end
  end
end

-- A share of the values, from 0 on and below 1, as one of them.
local function share(count, part)
  local place = 0LL + floor(tonumber(count) * part)
  return place < count and place or count - 1LL
end

P.random = drawn(below)

P.random_exponential = drawn(function(pick, count, parameter)
  parameter = double(parameter)
  if not (parameter > 0) then refuse("exponential parameter must be greater than zero (not " .. parameter .. ")") end
  local least = exp(-parameter)
  return share(count, -log(least + (1 - least) * (1 - pick.number(0, 1))) / parameter)
end)

-- The normal law by Box and Muller, cut off at both ends.
P.random_gaussian = drawn(function(pick, count, parameter)
  parameter = double(parameter)
  if not (parameter >= 2) then refuse("gaussian parameter must be at least 2.000000 (not " .. parameter .. ")") end
  local deviation
  repeat
    deviation = sqrt(-2 * log(1 - pick.number(0, 1))) * math.cos(2 * math.pi * pick.number(0, 1))
  until deviation >= -parameter and deviation < parameter
  return share(count, (deviation + parameter) / (2 * parameter))
end)

-- Luc Devroye, "Non-Uniform Random Variate Generation", 1986, page 551: rejection, for exponents above 1.
P.random_zipfian = drawn(function(pick, count, parameter)
  parameter = double(parameter)
  if not (parameter >= 1.001 and parameter <= 1000) then
    refuse("zipfian parameter must be in range [1.001, 1000] (not " .. parameter .. ")")
  end
  local ranks, power = tonumber(count), 2 ^ (parameter - 1)
  while true do
    local rank = floor((1 - pick.number(0, 1)) ^ (-1 / (parameter - 1)))
    local ratio = (1 + 1 / rank) ^ (parameter - 1)
    if rank <= ranks and pick.number(0, 1) * rank * (ratio - 1) / (power - 1) <= ratio / power then
      return rank - 1LL
    end
  end
end)

-- Fowler, Noll and Vo's FNV-1a of the 8 octets of a number, its offset mixed with a seed.
P.hash_fnv1a = strict(function(value, seed)
  local hash = bxor(-3750763034362895579LL, int(seed))
  value = int(value)
  for _ = 1, 8 do
    hash = bxor(hash, bit.band(value, 255LL)) * 1099511628211LL
    value = rshift(value, 8)
  end
  return hash
end)

-- Austin Appleby's MurmurHash64A of the 8 octets of a number.
local MURMUR = -4132994306676758123LL

local function murmur(value, seed)
  local hash = bxor(seed, 8LL * MURMUR)
  value = value * MURMUR
  value = bxor(value, rshift(value, 47)) * MURMUR
  hash = bxor(hash, value) * MURMUR
  hash = bxor(hash, rshift(hash, 47)) * MURMUR
  return bxor(hash, rshift(hash, 47))
end

P.hash_murmur2 = strict(function(value, seed) return murmur(int(value), int(seed)) end)

-- A Feistel network on the next even power of two, gone through again where it leads beyond the size. pgbench's own
-- permutation is another: its documentation leaves open which one it is.
P.permute = strict(function(value, size, seed)
  value, size, seed = int(value), int(size), int(seed)
  if size <= 0 then refuse("permute size parameter must be greater than zero") end
  value = value % size
  if value < 0 then value = value + size end
  local half = 1
  while half < 31 and bit.lshift(1LL, 2 * half) < size do half = half + 1 end
  local width = bit.lshift(1LL, half)
  if width * width < size then half, width = 32, 4294967296LL end
  repeat
    local left, right = rshift(value, half), bit.band(value, width - 1LL)
    for round = 1, 4 do
      left, right = right, bxor(left, bit.band(murmur(right, seed + round), width - 1LL))
    end
    value = bit.bor(bit.lshift(left, half), right)
  until value >= 0 and value < size
  return value
end)

-- A number of a row, an option or a text as pgbench reads the value of a variable.
local WORDS = { null = NULL, ["true"] = true, yes = true, on = true, ["false"] = false, no = false, off = false }

local function of_digits(text)
  local number, sign, digits = 0LL, text:match("^([-+]?)(%d+)$")
  if not digits then return nil end
  for digit in digits:gmatch("%d") do
    local more = number * 10LL - (digit:byte() - 48)
    if number < SMALLEST / 10LL or more > number then return nil end
    number = more
  end
  if sign == "-" then return number end
  return number ~= SMALLEST and -number or nil
end

function P.value(given, name)
  local kind = type(given)
  if kind == "nil" then refuse("the variable :" .. name .. " has no value yet") end
  if kind == "number" then
    return given == floor(given) and math.abs(given) <= EXACT and 0LL + given or given
  end
  if kind == "boolean" or kind == "cdata" or kind == "table" then return given end
  if kind == "userdata" and tostring(given):find("^userdata") then return NULL end
  local text = tostring(given)
  local word = WORDS[text:lower()]
  if word ~= nil then return word end
  local value = of_digits(text) or tonumber(text)
  if value == nil then refuse("the variable :" .. name .. " is " .. ("%q"):format(text) .. ", which is no number") end
  return value
end

-- As a statement takes it.
function P.sql(value, name, null)
  local kind = type(value)
  if kind == "cdata" then
    if value >= -9007199254740992LL and value <= 9007199254740992LL then return tonumber(value) end
    return (tostring(value):gsub("LL$", ""))
  end
  if kind == "nil" then refuse("the variable :" .. name .. " has no value yet") end
  return value == NULL and null or value
end

-- As it is put into the text of a statement.
function P.text(value, name)
  value = P.sql(value, name, "NULL")
  return type(value) == "number" and ("%.15g"):format(value) or tostring(value)
end

-- The length of a pause, in seconds.
function P.seconds(value, unit) return double(value) * unit end

-- The columns of the one row of \gset; the last one of \aset.
function P.row(rows, what, only)
  if only and #rows ~= 1 then refuse(what .. " expects one row; there are " .. #rows) end
  return rows[#rows]
end

function P.column(row, name, null)
  local found, value = pcall(function() return row[name] end)
  if not found then return false end
  if value == nil then return true, null end
  return true, value
end

return P
