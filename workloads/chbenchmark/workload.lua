-- R. Cole et al.: The mixed workload CH-benCHmark, DBTest 2011: TPC-C with TPC-H's suppliers, nations and regions, and
-- TPC-H's 22 queries over all of it. The scale factor is the number of warehouses.

local ch = workload "chbenchmark"
ch:describe "CH-benCHmark: TPC-C and 22 analytical queries over its tables"
ch:extends "tpcc"

-- A nation's key is the code of a character: customers belong to nations by the first one of their state.
local nations = {
  { "Africa", "Algeria", "Angola", "Cameroon", "Egypt", "Ethiopia", "Ghana", "Kenya", "Libya", "Morocco", "Mozambique",
    "Nigeria", "Tanzania" },
  { "America", "Argentina", "Bolivia", "Brazil", "Canada", "Chile", "Colombia", "Cuba", "Ecuador", "Mexico", "Peru",
    "United States", "Venezuela" },
  { "Asia", "Bangladesh", "Cambodia", "China", "India", "Indonesia", "Japan", "Malaysia", "Nepal", "Pakistan",
    "Philippines", "Thailand", "Vietnam" },
  { "Europe", "Austria", "Belgium", "Denmark", "Finland", "France", "Germany", "Greece", "Ireland", "Italy", "Norway",
    "Poland", "Russia", "Spain", "United Kingdom" },
  { "Middle East", "Iran", "Iraq", "Israel", "Jordan", "Kuwait", "Lebanon", "Oman", "Qatar", "Saudi Arabia", "Syria",
    "Turkey", "Yemen" },
}
local names, regions, keys = {}, {}, {}
for region, of in ipairs(nations) do
  for place = 2, #of do
    names[#names + 1], regions[#regions + 1] = of[place], region - 1
  end
end
for character in ("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"):gmatch "." do
  keys[#keys + 1] = character:byte()
end

-- What a list has for a row, whose number counts from 0.
local function listed(kind, list)
  return derive(kind, function(row) return list[row + 1] end)
end

ch:table("region", {
  rows = #nations,
  columns = {
    { "r_regionkey", serial(0) },
    { "r_name", derive("text", function(row) return nations[row + 1][1] end) },
    { "r_comment", words(31, 115) },
  },
})

ch:table("nation", {
  rows = #keys,
  columns = {
    { "n_nationkey", listed("integer", keys) },
    { "n_name", listed("text", names) },
    { "n_regionkey", listed("integer", regions) },
    { "n_comment", words(31, 114) },
  },
})

-- TPC-H 4.2.3, but for the nation. 5 of 10,000 suppliers have had complaints: the comment says "bad".
ch:table("supplier", {
  rows = 10000,
  columns = {
    { "su_suppkey", serial(0) },
    { "su_name", derive("text", function(row) return string.format("Supplier#%09d", row) end) },
    { "su_address", letters(10, 40) },
    { "su_nationkey", choice(keys) },
    { "su_phone", pattern("##-###-###-####") },
    { "su_acctbal", decimal("-999.99", "9999.99") },
    { "comment", words(25, 90), stored = false },
    { "su_comment", derive("text", { "comment" }, function(row, _, comment)
      return row % 2000 == 0 and comment .. " bad" or comment
    end) },
  },
})

local queries = {}
for number = 1, 22 do
  local query = "q" .. number
  ch:transaction(query, { read_only = true, help = "TPC-H's query " .. number }, function(tx) tx:exec(query) end)
  queries[query] = 1
end

-- A session of the paper asks one query after another, each as often.
ch:mix("OLAP", queries)

ch:invariant("stock_has_a_supplier", "every stock has a supplier")
ch:invariant("suppliers_have_nations", "every supplier has a nation")
ch:invariant("nations_have_regions", "there are 62 nations, and each has a region")
ch:invariant("customers_have_nations", "every customer has a nation")
