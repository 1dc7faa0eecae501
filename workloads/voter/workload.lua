-- Voter: VoltDB's example application, as its documentation describes it ("Voter", VoltDB's guide "Using VoltDB",
-- version 2): viewers of a talent show vote by telephone, a few times for each number. Scale has no effect:
-- the votes are made by the run.

local w = workload "voter"
w:describe "Voter: viewers of a talent show vote by telephone"

local contestants = w:option("contestants", "integer", 6, "how many contestants there are, at most 12")
local most_votes = w:option("most_votes", "integer", 2, "how many votes a telephone number has")
local invalid = w:option("invalid", "number", 0.01, "the share of votes for nobody", { data = false })

local NAMES = {
  "Edwina Burnam", "Tabatha Gehling", "Kelly Clauss", "Jessie Alloway", "Alana Bregman", "Jessie Eichman",
  "Allie Rogalski", "Nita Coster", "Kurt Walser", "Ericka Dieter", "Loraine Nygren", "Tania Mattioli",
}

-- The area codes of the North American Numbering Plan in the United States.
local AREAS = {
  AK = "907", AL = "205 251 256 334", AR = "479 501 870", AZ = "480 520 602 623 928",
  CA = "209 213 310 323 408 415 510 530 559 562 619 626 650 661 707 714 760 805 818 831 858 909 916 925 949 951",
  CO = "303 719 720 970", CT = "203 860", DC = "202", DE = "302",
  FL = "239 305 321 352 386 407 561 727 754 772 786 813 850 863 904 941 954",
  GA = "229 404 478 678 706 770 912", HI = "808", IA = "319 515 563 641 712", ID = "208",
  IL = "217 224 309 312 618 630 708 773 815 847", IN = "219 260 317 574 765 812", KS = "316 620 785 913",
  KY = "270 502 606 859", LA = "225 318 337 504 985", MA = "339 351 413 508 617 774 781 857 978",
  MD = "240 301 410 443", ME = "207", MI = "231 248 269 313 517 586 616 734 810 906 989",
  MN = "218 320 507 612 651 763 952", MO = "314 417 573 636 660 816", MS = "228 601 662", MT = "406",
  NC = "252 336 704 828 910 919 980", ND = "701", NE = "308 402", NH = "603",
  NJ = "201 551 609 732 848 856 862 908 973", NM = "505", NV = "702 775",
  NY = "212 315 347 516 518 585 607 631 646 716 718 845 914 917", OH = "216 234 330 419 440 513 567 614 740 937",
  OK = "405 580 918", OR = "503 541 971", PA = "215 267 412 484 570 610 717 724 814 878", RI = "401",
  SC = "803 843 864", SD = "605", TN = "423 615 731 865 901 931",
  TX = "210 214 254 281 325 361 409 432 469 512 682 713 806 817 830 832 903 915 936 940 956 972 979",
  UT = "435 801", VA = "276 434 540 571 703 757 804", VT = "802", WA = "206 253 360 425 509",
  WI = "262 414 608 715 920", WV = "304", WY = "307",
}

local codes, states = {}, {}
for state, list in pairs(AREAS) do
  for code in list:gmatch("%d+") do
    codes[#codes + 1] = tonumber(code)
    states[tonumber(code)] = state
  end
end
table.sort(codes)

w:table("contestants", {
  rows = math.min(contestants, #NAMES),
  columns = {
    { "contestant_number", serial() },
    { "contestant_name", derive("text", {}, function(row) return NAMES[row + 1] end) },
  },
})
w:table("area_code_state", {
  rows = #codes,
  columns = {
    { "area_code", derive("integer", {}, function(row) return codes[row + 1] end) },
    { "state", derive("text", { "area_code" }, function(_, _, code) return states[code] end) },
  },
})

w:transaction("vote", { help = "a viewer votes, if the contestant exists and the number has votes left" }, function(tx, pick)
  local code = pick.choice(codes)
  local number = code * 1e7 + pick.integer(0, 9999999)
  local contestant = pick.chance(invalid) and 999 or pick.contestants()
  tx:begin()
  if not tx:one("contestant", contestant) then return tx:rollback() end
  if tx:one("votes_of", number).votes >= most_votes then return tx:rollback() end
  local state = tx:one("state", code).state
  tx:exec("vote", number, state, contestant)
  tx:tally("votes", 1)
  tx:commit()
end)

w:statement("votes_are_few", "SELECT phone_number, count(*) AS votes FROM votes GROUP BY phone_number HAVING count(*) > "
  .. most_votes .. " LIMIT 10")

w:transaction("results", { read_only = true, help = "who has how many votes; reads them all" }, function(tx)
  tx:rows("results")
end)

w:mix("VOTER", { vote = 100 })
w:mix("RO", { results = 100 })
w:mix("WO", { vote = 100 })

w:invariant("votes_are_counted", "each vote that was acknowledged is there, and no other")
w:invariant("votes_are_valid", "each vote is for a contestant, by a number of the state")
w:invariant("votes_are_few", "no number has more votes than it may have")
