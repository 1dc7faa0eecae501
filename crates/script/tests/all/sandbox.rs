//! What a workload cannot do: reach files, processes, foreign code or another session; and what it costs however long
//! it runs.

use crate::support::{HEAD, Loaded, declared, noted, run};

/// What Lua programs elsewhere may use and a workload must not.
const ABSENT: [&str; 23] = [
    "io",
    "os",
    "ffi",
    "jit",
    "debug",
    "package",
    "module",
    "load",
    "loadstring",
    "loadfile",
    "dofile",
    "coroutine",
    "collectgarbage",
    "gcinfo",
    "newproxy",
    "getfenv",
    "setfenv",
    "string.dump",
    "math.randomseed",
    "thread",
    "buffer",
    "_LOADED",
    "arg",
];

#[test]
fn nothing_leads_outside() {
    for name in ABSENT {
        let (library, field) = name.split_once('.').unwrap_or((name, ""));
        let found = if field.is_empty() { format!("rawget(_G, \"{library}\")") } else { name.to_owned() };
        declared(&format!("assert({found} == nil, \"{name} is there\")")).unwrap();
        assert_eq!(noted(&format!("tx:exec(\"note\", {found} == nil)")), ["true"], "{name}");
    }
}

#[test]
fn what_is_left_works() {
    let body = r#"
        local words = {}
        for word in ("b a"):gmatch("%a") do words[#words + 1] = word end
        table.sort(words)
        local ok, message = pcall(error, "caught")
        tx:exec("pair", table.concat(words, ","), bit.band(6, 3) + math.floor(2.5) + select('#', 1, 2))
        tx:exec("note", tostring(ok) .. message .. type(next({})))"#;
    assert_eq!(run(body).unwrap(), ["pair('a,b', 6)", "note('falsecaughtnil')"]);
}

#[test]
fn statements_can_be_called_within_pcall() {
    let body = r#"
        local ok, row = pcall(tx.one, tx, "none")
        local failed, message = pcall(tx.one, tx, "nothing")
        tx:exec("pair", row.int, tostring(failed) .. message:match("no statement"))"#;
    assert_eq!(run(body).unwrap(), ["none() rows", "pair(42, 'falseno statement')"]);
}

#[test]
fn tx_pick_rows_and_globals_cannot_be_bent() {
    for body in [
        "setmetatable(tx, {})",
        "setmetatable(pick, {})",
        "setmetatable(_G, {})",
        "getmetatable(tx:one(\"none\")).__index = nil",
        "tx.count = 1",
        "pick.count = 1",
        "tx:one(\"none\").int = 1",
        "counter = 1",
        "_G.counter = 1",
    ] {
        assert!(run(body).is_err(), "{body}");
    }
    // What the file itself has declared is its own affair.
    let lua = format!(
        "{HEAD}function helper(x) return x + 1 end\n\
         w:transaction(\"t\", function(tx) tx:exec(\"note\", helper(1)) end)"
    );
    assert_eq!(Loaded::new(&lua).unwrap().session(1, 1).run("t").unwrap(), ["note(2)"]);
}

#[test]
fn states_share_nothing() {
    let lua = format!(
        "{HEAD}local count = 0\n\
         w:transaction(\"t\", function(tx) count = count + 1 tx:exec(\"note\", count) end)"
    );
    let (one, other) = (Loaded::new(&lua).unwrap(), Loaded::new(&lua).unwrap());
    let mut session = one.session(1, 1);
    session.run("t").unwrap();
    assert_eq!(session.run("t").unwrap(), ["note(2)"]);
    assert_eq!(other.session(1, 1).run("t").unwrap(), ["note(1)"]);
}

#[test]
fn memory_stays_bounded_over_a_million_transactions() {
    let lua = format!(
        r#"{HEAD}w:transaction("t", function(tx, pick)
          local row = tx:one("note", pick.letters(5, 10))
          tx:queue("note", row.text .. pick.item())
          tx:tally("sum", row.int)
        end)"#
    );
    let loaded = Loaded::new(&lua).unwrap();
    let mut session = loaded.session(1, 1);
    let mut run = |count: u32| {
        let mut most = 0;
        for turn in 0..count {
            session.quietly("t").unwrap();
            session.script.take_tallies();
            if turn % 1000 == 0 {
                most = most.max(loaded.vm.memory());
            }
        }
        most
    };
    let (early, late) = (run(50_000), run(950_000));
    assert!(late < 2 * early, "{early} bytes after 50,000 transactions and {late} after a million");
    assert!(late < 4 << 20, "{late} bytes");
}

#[test]
fn sessions_give_their_memory_back() {
    let lua = format!("{HEAD}w:transaction(\"t\", function(tx) tx:rows(\"none\") end)");
    let loaded = Loaded::new(&lua).unwrap();
    let run = |rounds: u32| {
        for _ in 0..rounds {
            let mut session = loaded.session(1, 1);
            session.rows = 200;
            session.run("t").unwrap();
            session.script.abandon();
        }
        loaded.vm.memory()
    };
    let (early, late) = (run(200), run(2000));
    assert!(late < 3 * early, "{early} bytes after 200 sessions and {late} after 2,200");
}

#[test]
fn memory_without_end_is_an_error_and_the_session_goes_on() {
    let lua = format!(
        r#"{HEAD}local kept = {{}}
        w:transaction("list", function() local t = {{}} while true do t[#t + 1] = {{ #t }} end end)
        w:transaction("text", function() local s = "x" while true do s = s .. s end end)
        w:transaction("rows", function(tx) local t = {{}} while true do t[#t + 1] = tx:rows("none") end end)
        w:transaction("letters", function(tx, pick) local t = {{}} while true do t[#t + 1] = pick.letters(60000, 60000) end end)
        w:transaction("caught", function(tx) pcall(string.rep, "x", 1e9) tx:queue("none") end)
        w:transaction("kept", function() while true do kept[#kept + 1] = ("x"):rep(100000) .. #kept end end)"#
    );
    let loaded = Loaded::new(&lua).unwrap();
    let mut session = loaded.session(1, 1);
    session.rows = 200;
    for transaction in ["list", "text", "rows", "letters"] {
        let error = session.quietly(transaction).unwrap_err();
        assert!(error.starts_with("workload.lua:") && error.contains("take more than 256 MiB"), "{error}");
        assert_eq!(session.run("caught").unwrap(), ["none()"]);
    }
    // What stays in the file's own variables is not given back, and each transaction says so.
    for _ in 0..2 {
        assert!(session.quietly("kept").unwrap_err().contains("256 MiB"));
        let _ = loaded.vm.script(1, 2);
    }
    let error = declared("local t = {} while true do t[#t + 1] = (\"x\"):rep(100000) .. #t end").map(|_| ());
    assert!(error.unwrap_err().contains("not enough memory"));
}
