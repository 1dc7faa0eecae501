-- pgbench's built-in scripts on pgbench's own tables, for comparison with pgbench itself. The scale factor is
-- pgbench's: 100,000 accounts, 10 tellers and a branch each.

local tpcb = workload "tpcb"
tpcb:describe "pgbench's TPC-B-like, simple-update and select-only scripts on pgbench's tables"

tpcb:table("pgbench_branches", {
  rows = function(scale) return scale end,
  columns = { { "bid", serial() }, { "bbalance", constant(0) }, { "filler", null() } },
})
tpcb:table("pgbench_tellers", {
  columns = {
    { "tid", serial() },
    { "bid", parent("pgbench_branches", 10, 10) },
    { "tbalance", constant(0) },
    { "filler", null() },
  },
})
tpcb:table("pgbench_accounts", {
  columns = {
    { "aid", serial() },
    { "bid", parent("pgbench_branches", 100000, 100000) },
    { "abalance", constant(0) },
    { "filler", constant("") },
  },
})

local function accounts_and_history(tx, pick, with_branch)
  local account, branch, teller = pick.pgbench_accounts(), pick.pgbench_branches(), pick.pgbench_tellers()
  local delta = pick.integer(-5000, 5000)
  tx:begin()
  tx:exec("update_account", delta, account)
  tx:one("balance", account)
  if with_branch then
    tx:exec("update_teller", delta, teller)
    tx:exec("update_branch", delta, branch)
  end
  tx:exec("add_history", teller, branch, account, delta)
  tx:tally("moved", delta)
  tx:commit()
end

tpcb:transaction("tpcb_like", { help = "pgbench -b tpcb-like" }, function(tx, pick)
  accounts_and_history(tx, pick, true)
end)

tpcb:transaction("simple_update", { help = "pgbench -b simple-update" }, function(tx, pick)
  accounts_and_history(tx, pick, false)
end)

tpcb:transaction("select_only", { read_only = true, help = "pgbench -b select-only" }, function(tx, pick)
  tx:one("balance", pick.pgbench_accounts())
end)

tpcb:mix("TPCB", { tpcb_like = 1 })
tpcb:mix("SIMPLE", { simple_update = 1 })
tpcb:mix("SELECT", { select_only = 1 })

tpcb:invariant("accounts_and_history_agree", "the accounts' balances add up to the history")
