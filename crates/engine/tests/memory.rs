//! What a session costs in memory: a program of its own, so that nothing else is measured.
#![allow(clippy::unwrap_used)]

mod support;

use nephoscope_engine::Run;
use serde_json::json;
use support::{check, open_phase, read_all, spec, wait_until};

const SESSIONS: u64 = 5_000;

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kibibytes * 1024
}

/// Runs so many sessions that think most of the time; gives the memory while they run.
fn with_sessions(concurrency: u64) -> u64 {
    let think = json!({"law": "exponential", "ms": 1500});
    let mix = json!({"write": 1, "read": 1, "transfer": 1});
    let load = json!({"concurrency": concurrency, "think": think, "mix": mix});
    let mut spec = spec("sim://?latency=uniform(1ms,300ms)", [open_phase("all", load)]);
    spec.interval_ms = 500;
    let run = Run::start(&spec).unwrap();
    wait_until(&run, 4.0);
    let resident = resident();
    run.stop();
    let story = read_all(&run, &spec);
    check::every_run(&story, &spec);
    let (all, totals) = (story.all(), story.totals());
    assert_eq!((all.failed(), totals.in_flight), (0, 0));
    assert!(all.committed() >= concurrency, "every session had its turn");
    assert_eq!(story.phase("all").gauge(|tenant| tenant.connected).last(), Some(&concurrency));
    resident
}

#[test]
fn five_thousand_sessions_on_one_worker_cost_little_each() {
    let few = with_sessions(1);
    let many = with_sessions(SESSIONS);
    let each = many.saturating_sub(few) / SESSIONS;
    assert!(each <= 50 * 1024, "{each} bytes a session");
    assert!(each >= 500, "{each} bytes a session cannot be");
}
