//! A transaction without an end ends the run with one clear error, and what was measured is kept; what only takes long,
//! or waits for long, is left alone.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Instant;

use nephoscope_engine::{LoadSpec, Run};
use serde_json::json;
use support::{SimBase, Story, open_phase, phase, read_all, run, spec, wait_until, written};

const LIMIT_MS: u64 = 300;
/// Far more than it takes, where many others are at work: nothing here may have no end.
const BOUNDED_S: f64 = 60.0;
/// A pattern that `string.find` tries for longer than anybody lives.
const FOREVER: &str = r#"("a"):rep(60):find(("a-"):rep(30) .. "b")"#;

/// A load of a workload `bad` whose transaction `t` begins with some Lua and then calls a statement.
fn bad(url: &str, lua: &str, level: u32) -> (LoadSpec, tempfile::TempDir) {
    let folder = written(
        &format!(
            "local w = workload \"bad\"\nlocal turns = 0\nlocal function step(tx)\n  turns = turns + 1\n  {lua}\nend\n\
             w:transaction(\"t\", function(tx)\n  step(tx)\n  tx:exec(\"touch\")\nend)\n"
        ),
        "-- name: touch\nSELECT 1;\n",
    );
    let mut spec = spec(url, [open_phase("all", json!({"concurrency": level, "mix": {"t": 1}}))]);
    folder.path().clone_into(&mut spec.tenants[0].workload.folder);
    spec.script_timeout_ms = LIMIT_MS;
    (spec, folder)
}

/// Reads a run that ends by itself.
fn ended(spec: &LoadSpec) -> Story {
    let begun = Instant::now();
    let story = read_all(&Run::start(spec).unwrap(), spec);
    assert!(begun.elapsed().as_secs_f64() < BOUNDED_S);
    story
}

#[test]
fn a_loop_ends_the_run_with_its_place_while_other_workers_go_on() {
    let base = SimBase::new("latency=constant(1ms)");
    let (mut spec, _folder) = bad(
        &base.url,
        "while tx.session == 1 and turns > 100 do pcall(function() while true do end end) end",
        2,
    );
    spec.threads = 2;
    let story = run(&spec);
    let failure = story.failure().unwrap();
    let lines: Vec<&str> = failure.lines().collect();
    assert_eq!(
        lines[0],
        "workload bad, transaction t: workload.lua:5: the transaction has run for 0.3 s without an end; is this a loop?"
    );
    assert!(lines[1].starts_with("  in workload.lua:5: in function"), "{failure}");
    assert!(lines.contains(&"  in workload.lua:5: in upvalue 'step'"), "{failure}");
    assert_eq!(story.all().failed(), 1);
    // 100 of the session that fails; the other's in more than 0.3 s, unless the machine is very busy.
    let committed = story.all().committed();
    assert!(committed > 150, "{committed}");
    assert_eq!(base.commits(), committed);
    assert!(story.ending.as_ref().unwrap().complete);
}

#[test]
fn many_transactions_without_an_end_are_one_error() {
    let base = SimBase::new("latency=constant(20ms)");
    // All have come to the loop before the first of them is found.
    let (mut spec, _folder) = bad(&base.url, "tx:exec(\"touch\") while true do end", 12);
    spec.script_timeout_ms = 1_000;
    let story = ended(&spec);
    let failure = story.failure().unwrap();
    assert!(failure.contains("run for 1 s without an end"), "{failure}");
    let totals = story.totals();
    assert_eq!((totals.started, story.all().committed()), (12, 0));
}

#[test]
fn statements_that_nobody_waits_for_without_an_end_end_the_run() {
    for lua in ["while turns > 10 do tx:exec(\"touch\") end", "while turns > 10 do tx:queue(\"touch\") end"] {
        let (mut spec, _folder) = bad("noop://", lua, 1);
        spec.pipeline = true;
        let story = ended(&spec);
        let failure = story.failure().unwrap();
        assert!(failure.contains("transaction t: workload.lua:5: the transaction has run for"), "{failure}");
        assert_eq!(story.all().committed(), 10);
    }
}

#[test]
fn a_function_of_the_library_that_does_not_return_ends_the_run_without_its_worker() {
    let base = SimBase::new("latency=constant(1ms)");
    let (mut spec, _folder) =
        bad(&base.url, &format!("if tx.session == 1 and turns > 300 then {FOREVER} end"), 2);
    spec.threads = 2;
    let story = ended(&spec);
    let failure = story.failure().unwrap();
    assert!(
        failure.starts_with("workload bad, transaction t: it has run for 0.3 s without an end")
            && failure.contains("cannot be interrupted"),
        "{failure}"
    );
    let committed = story.all().committed();
    assert!(committed > 300, "{committed}");
    assert!(committed <= base.commits());
    assert!(!story.ending.as_ref().unwrap().complete, "it is not known what the worker has done");
}

#[test]
fn a_run_that_nobody_reads_ends_as_well() {
    for lua in ["while turns > 20 do end", FOREVER] {
        let (mut spec, _folder) = bad("noop://", lua, 1);
        spec.script_timeout_ms = 100;
        let run = Run::start(&spec).unwrap();
        wait_until(&run, 0.2);
        let begun = Instant::now();
        drop(run);
        assert!(begun.elapsed().as_secs_f64() < BOUNDED_S, "{lua}");
    }
}

#[test]
fn a_wait_for_the_database_is_no_loop() {
    let base = SimBase::new("latency=constant(1500ms)");
    let (spec, _folder) = bad(&base.url, "", 4);
    let spec =
        LoadSpec { phases: vec![phase("all", 1.0, json!({"concurrency": 4, "mix": {"t": 1}}))], ..spec };
    let story = run(&spec);
    assert_eq!((story.failure(), story.all().committed()), (None, 4));
}

#[test]
fn much_lua_in_many_transactions_is_no_loop() {
    // On noop 64 transactions run without a wait between them: together they take longer than the limit.
    let (spec, _folder) = bad("noop://", "local x = 0 for i = 1, 2e6 do x = x + i end", 2);
    let spec =
        LoadSpec { phases: vec![phase("all", 2.0, json!({"concurrency": 2, "mix": {"t": 1}}))], ..spec };
    let story = run(&spec);
    assert_eq!(story.failure(), None);
    assert!(story.all().committed() > 0);
}

#[test]
fn a_transaction_may_take_long_if_it_stays_below_the_limit() {
    let (spec, _folder) = bad("noop://", "local x = 0 for i = 1, 4e7 do x = x + i end", 1);
    let spec = LoadSpec {
        script_timeout_ms: 20_000,
        phases: vec![phase("all", 0.5, json!({"concurrency": 1, "mix": {"t": 1}}))],
        drain_timeout_ms: 60_000,
        ..spec
    };
    let story = run(&spec);
    assert_eq!(story.failure(), None);
    assert!(story.all().committed() > 0);
}
