-- pairs with an order: LuaJIT's own has another in each state, and each thread of a run has a state of its own. Booleans,
-- numbers, then texts, ascending; keys of other kinds come last, in an order of their own.

local next, type, error, rawget, sort = next, type, error, rawget, table.sort
local RANKS = { boolean = 1, number = 2, string = 3 }

local function before(one, other)
  local kind = type(one)
  local rank, others = RANKS[kind] or 4, RANKS[type(other)] or 4
  if rank ~= others then return rank < others end
  if kind == "boolean" then return other and not one end
  return rank < 4 and one < other
end

return function(of)
  if type(of) ~= "table" then
    error("bad argument #1 to 'pairs' (table expected, got " .. (of == nil and "nil" or type(of)) .. ")", 2)
  end
  local keys, at = {}, 0
  for key in next, of do keys[#keys + 1] = key end
  sort(keys, before)
  return function()
    while true do
      at = at + 1
      local key = keys[at]
      if key == nil then return nil end
      local value = rawget(of, key)
      if value ~= nil then return key, value end
    end
  end, of, nil
end
