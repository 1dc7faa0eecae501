//! What is drawn is drawn from the seed, keys that may be used once are, and shards add up to the whole.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{SimBase, check, phase, run, spec};
use serde_json::json;

fn diary(seed: u64) -> BTreeMap<String, f64> {
    let load = json!({"concurrency": 4, "mix": {"diary_a": 1, "diary_b": 2}});
    let mut spec = spec("sim://?latency=constant(1ms)", [phase("all", 0.5, load)]);
    (spec.seed, spec.threads) = (seed, 2);
    // The first 40 entries of every session: each had time for more.
    let story = run(&spec);
    story
        .tallies("")
        .into_iter()
        .filter(|(entry, _)| entry[2..5].parse::<u32>().is_ok_and(|n| n <= 40))
        .collect()
}

#[test]
fn a_seed_repeats_what_each_session_does_and_another_does_not() {
    let first = diary(5);
    assert_eq!(first.len(), 160, "4 sessions with 40 entries");
    assert_eq!(first, diary(5));
    assert_ne!(first, diary(6));
}

#[test]
fn arrivals_of_a_poisson_load_repeat() {
    let arrivals = |seed: u64| {
        let load = json!({"rate": 300, "arrivals": "poisson", "mix": {"write": 1}});
        let mut spec = spec("sim://?latency=constant(1ms)", [phase("all", 0.8, load)]);
        (spec.seed, spec.threads) = (seed, 3);
        run(&spec).phase("all").gauge(|tenant| tenant.arrivals)
    };
    assert_eq!(arrivals(1), arrivals(1));
    assert_ne!(arrivals(1), arrivals(2));
}

#[test]
fn a_key_that_may_be_used_once_is_used_once_over_all_sessions_and_runs() {
    let base = SimBase::new("latency=constant(0ms)");
    let load = json!({"concurrency": 6, "mix": {"take": 1}});
    let mut spec = spec(&base.url, [phase("all", 0.4, load)]);
    (spec.threads, spec.tenants[0].sessions) = (3, 6);
    let (mut taken, mut used) = (BTreeSet::new(), 0);
    while used < 3000 {
        spec.tenants[0].workload.handed_out = [("ticket".to_owned(), used)].into();
        let story = run(&spec);
        let tickets = story.tallies("ticket");
        assert!(tickets.values().all(|times| *times == 1.0), "each ticket once");
        assert!(tickets.into_keys().all(|ticket| taken.insert(ticket)), "and none of an earlier run");
        let now = story.totals().handed_out["default"]["ticket"];
        assert!(now > used, "keys are used up");
        used = now;
    }
    assert_eq!((taken.len(), used, base.commits()), (3000, 3000, 3000));
}

#[test]
fn intervals_of_50_ms_of_several_workers_add_up_to_the_whole() {
    for threads in 1..=3 {
        let base = SimBase::new("latency=uniform(1ms,9ms)");
        let mut spec = spec(&base.url, [phase("all", 1.0, json!({"rate": 400, "mix": "half"}))]);
        (spec.threads, spec.interval_ms) = (threads, 50);
        let story = run(&spec);
        check::arrivals(&story);
        assert_eq!(story.phase("all").gauge(|tenant| tenant.arrivals), [20; 20]);
        let all = story.all();
        // What waits when the phase ends is never started.
        let served = 400 - all.sum(|of| of.unstarted);
        assert_eq!((all.committed(), base.commits()), (served, served));
        assert_eq!(
            all.latency().len() + all.censored().len(),
            400,
            "each arrival has a latency, or a bound of it"
        );
        assert!(served > 300, "{served}");
    }
}
