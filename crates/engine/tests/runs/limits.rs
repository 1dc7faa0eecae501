//! No wait is without a limit: silent databases, ends that do not come, workloads that break.

use std::time::Instant;

use crate::support::{SimBase, open_phase, phase, run, run_with, spec, wait_until, written};
use nephoscope_drivers::ErrorClass;
use nephoscope_engine::{EngineError, Run};
use serde_json::json;

/// What a run may take longer than planned where many others are at work.
const BUSY: f64 = 5.0;

#[test]
fn the_end_waits_for_those_in_flight_no_longer_than_it_may() {
    let base = SimBase::new("latency=constant(100s)");
    let mut spec =
        spec(&base.url, [phase("all", 0.4, json!({"concurrency": 6, "mix": {"transfer": 1, "write": 1}}))]);
    (spec.drain_timeout_ms, spec.statement_timeout_ms, spec.threads) = (300, 100_000, 2);
    let begun = Instant::now();
    let story = run(&spec);
    let took = begun.elapsed().as_secs_f64();
    assert!((0.7..0.7 + BUSY).contains(&took), "{took} s");
    let totals = story.totals();
    assert_eq!((totals.started, totals.in_flight), (6, 6));
    // A write may yet commit; a transfer has not come to its commit.
    assert!(totals.uncertain <= 6);
    assert_eq!(story.tally("written"), (0.0, totals.uncertain as f64));
}

#[test]
fn the_end_waits_for_those_in_flight_as_long_as_they_need() {
    let base = SimBase::new("latency=constant(500ms)");
    let story = run(&spec(&base.url, [phase("all", 0.2, json!({"concurrency": 6, "mix": {"write": 1}}))]));
    assert_eq!((story.totals().in_flight, story.all().committed(), base.commits()), (0, 6, 6));
    assert_eq!(story.phase("drain").committed(), 6);
}

#[test]
fn a_silent_database_is_given_up_after_the_time_limit() {
    let base = SimBase::new("latency=constant(1000s)");
    let mut spec = spec(&base.url, [phase("all", 1.5, json!({"concurrency": 4, "mix": {"write": 1}}))]);
    spec.statement_timeout_ms = 200;
    let begun = Instant::now();
    let story = run(&spec);
    assert!(begun.elapsed().as_secs_f64() < 1.5 + BUSY);
    let (all, totals) = (story.all(), story.totals());
    // 200 ms for the statement and as much for its cancellation: 3 or 4 for each session.
    let timeouts = all.errors(ErrorClass::StatementTimeout);
    assert!((4..=16).contains(&timeouts), "{timeouts}");
    assert_eq!((all.failed(), totals.uncertain, all.committed()), (timeouts, timeouts, 0));
    assert_eq!(all.counted(|tenant| tenant.lost), timeouts, "what stays silent is dropped");
    assert!(base.connections() > 4);
}

#[test]
fn a_reply_that_comes_after_its_time_limit_leaves_the_commit_uncertain() {
    let base = SimBase::new("latency=uniform(100ms,500ms)");
    let mut spec = spec(&base.url, [phase("all", 1.5, json!({"concurrency": 20, "mix": {"write": 1}}))]);
    spec.statement_timeout_ms = 300;
    let story = run(&spec);
    let (all, totals) = (story.all(), story.totals());
    assert!(all.committed() > 20 && totals.uncertain > 20);
    assert_eq!(totals.uncertain, all.errors(ErrorClass::StatementTimeout));
    // The reply is waited for once more, so that the connection need not be given up; by then it is a failure.
    assert_eq!(base.commits(), all.committed() + totals.uncertain);
    assert_eq!((base.connections(), all.counted(|tenant| tenant.lost)), (20, 0));
}

#[test]
fn workers_without_a_session_do_no_harm() {
    let base = SimBase::new("latency=constant(1ms)");
    let phases = [
        phase("closed", 0.3, json!({"concurrency": 1, "mix": {"write": 1}})),
        phase("open", 0.3, json!({"rate": 100})),
        phase("none", 0.2, json!({"concurrency": 0})),
    ];
    let mut spec = spec(&base.url, phases);
    (spec.threads, spec.tenants[0].sessions, spec.tenants[0].backlog) = (3, 1, 1000);
    let story = run(&spec);
    assert_eq!(story.phase("open").counted(|tenant| tenant.arrivals), 30);
    assert_eq!((base.connections(), base.commits()), (1, story.all().committed()));
    assert!(story.phase("none").committed() <= 1);
}

#[test]
fn a_run_can_be_stopped_while_nobody_is_connected() {
    let base = SimBase::new("latency=constant(1ms)&outage=200ms+1000s");
    let spec = spec(&base.url, [open_phase("all", json!({"rate": 200, "mix": {"write": 1}}))]);
    let mut stopped = None;
    let story = run_with(&spec, |run| {
        wait_until(run, 1.2);
        run.stop();
        stopped = Some(Instant::now());
    });
    assert!(stopped.unwrap().elapsed().as_secs_f64() < BUSY);
    crate::support::check::arrivals(&story);
    assert_eq!(story.phase("all").gauge(|tenant| tenant.connected).last(), Some(&0));
    assert!(story.all().counted(|tenant| tenant.refused) > 16);
}

#[test]
fn endpoints_that_refuse_at_the_start_are_one_clear_error() {
    let mut spec =
        spec("sim://?outage=0s+1000s", [phase("all", 1.0, json!({"concurrency": 50, "mix": {"write": 1}}))]);
    spec.threads = 2;
    let error = Run::start(&spec).err().unwrap();
    let EngineError::Failed(message) = error else { panic!("{error}") };
    assert!(message.contains("tenant default") && message.contains("refused"), "{message}");
}

#[test]
fn a_run_that_nobody_reads_ends_when_it_is_dropped() {
    let base = SimBase::new("latency=constant(1ms)");
    let run =
        Run::start(&spec(&base.url, [open_phase("all", json!({"rate": 100, "mix": {"write": 1}}))])).unwrap();
    wait_until(&run, 0.3);
    let begun = Instant::now();
    drop(run);
    assert!(begun.elapsed().as_secs_f64() < BUSY);
    assert!(base.commits() > 0);
}

#[test]
fn an_error_of_the_workload_ends_the_run_with_its_place() {
    let folder = written(
        "local w = workload \"broken\"\nw:transaction(\"bad\", function(tx)\n  local x = nil\n  x.y = 1\nend)\n",
        "-- name: unused\nSELECT 1;\n",
    );
    let mut spec = spec("noop://", [open_phase("all", json!({"concurrency": 2, "mix": {"bad": 1}}))]);
    spec.tenants[0].workload.folder = folder.path().to_owned();
    let story = run(&spec);
    let failure = story.failure().unwrap();
    assert!(failure.contains("transaction bad") && failure.contains("workload.lua:4"), "{failure}");
    assert_eq!(story.all().committed(), 0);
}

#[test]
fn a_transaction_that_is_left_open_is_the_workloads_error() {
    let folder = written(
        "local w = workload \"open\"\nw:transaction(\"forgets\", function(tx)\n  tx:begin()\n  tx:exec(\"touch\")\nend)\n",
        "-- name: touch\nSELECT 1;\n",
    );
    let mut spec = spec("sim://", [open_phase("all", json!({"concurrency": 1, "mix": {"forgets": 1}}))]);
    spec.tenants[0].workload.folder = folder.path().to_owned();
    let story = run(&spec);
    let failure = story.failure().unwrap();
    assert!(failure.contains("tx:commit() or tx:rollback() is missing"), "{failure}");
}
