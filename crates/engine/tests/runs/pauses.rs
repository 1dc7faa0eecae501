//! The pauses that a workload has of its own: keying before a transaction, think time after it.

use serde_json::{Value, json};

use crate::support::{SimBase, Story, check, phase, run, spec, spec_of, written};

/// A closed loop that runs two transactions with pauses of their own, by weights.
fn thinking(url: &str, sessions: u32, seconds: f64, think: &Value, weights: &Value) -> Story {
    let folder = written(
        "local w = workload 'w'
         w:transaction('short', { keying = 0.02, think = 0.03 }, function(tx) tx:exec('write') end)
         w:transaction('long', { think = { law = 'exponential', seconds = 0.2 } }, function(tx)
           tx:exec('write')
         end)
         w:transaction('none', function(tx) tx:exec('write') end)",
        "-- name: write\nUPDATE t SET a = a + 1\n",
    );
    let load = json!({"concurrency": sessions, "think": think, "mix": weights});
    run(&spec_of(&folder, url, [phase("all", seconds, load)]))
}

#[test]
fn a_session_keys_and_thinks_as_its_transactions_say() {
    let base = SimBase::new("latency=constant(10ms)");
    let own = json!({"law": "workload"});
    let story = thinking(&base.url, 20, 3.0, &own, &json!({"short": 1}));
    // 10 ms of work, 30 ms of think time and 20 ms of keying: the first transaction of a session has no keying.
    let each = 3.0 / 0.06;
    check::within("constant", story.all().committed_of("short") as f64, 20.0 * each, 0.1);
    let story = thinking(&base.url, 40, 3.0, &own, &json!({"long": 1}));
    check::within("exponential", story.all().committed_of("long") as f64, 40.0 * (1.0 + 3.0 / 0.21), 0.15);
}

#[test]
fn the_next_transaction_is_drawn_by_the_mix() {
    let base = SimBase::new("latency=constant(1ms)");
    let own = json!({"law": "workload"});
    let story = thinking(&base.url, 20, 2.0, &own, &json!({"short": 1, "none": 3}));
    let (short, none) = (story.all().committed_of("short"), story.all().committed_of("none"));
    check::binomial("short", short, short + none, 0.25);
    // Who asks for no pauses has none.
    let story = thinking(&base.url, 2, 0.5, &json!({"law": "none"}), &json!({"short": 1}));
    assert!(story.all().committed_of("short") > 100);
}

#[test]
fn who_thinks_by_another_law_has_no_pause_of_the_workloads_own() {
    let folder = written(
        "local w = workload 'w'
         w:transaction('first', { think = 1000 }, function(tx) tx:exec('write') end)
         w:transaction('none', function(tx) tx:exec('write') end)",
        "-- name: write\nUPDATE t SET a = a + 1\n",
    );
    let base = SimBase::new("latency=constant(1ms)");
    let constant = json!({"law": "constant", "ms": 20});
    let phases = [
        phase("all", 0.5, json!({"concurrency": 4, "think": constant, "mix": {"none": 1}})),
        phase("own", 0.5, json!({"think": {"law": "workload"}})),
    ];
    let story = run(&spec_of(&folder, &base.url, phases));
    assert!(story.phase("own").committed() > 200, "nobody waits for a transaction that it has not ended");
}

#[test]
fn a_workload_without_pauses_has_none_to_ask_for() {
    let load = json!({"concurrency": 1, "think": {"law": "workload"}, "mix": {"write": 1}});
    let error = nephoscope_engine::Run::start(&spec("sim://", [phase("all", 1.0, load)])).err().unwrap();
    let error = error.to_string();
    assert!(error.contains("think is \"workload\", and lab gives no transaction keying or think"), "{error}");
}
