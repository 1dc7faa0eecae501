//! Changes of the load while it runs, by phases and by the handle: without reconnecting and without stopping.

use std::time::{Duration, Instant};

use crate::support::{SECOND, SimBase, check, open_phase, phase, run, run_with, spec, wait_until};
use nephoscope_engine::{EngineError, Run};
use serde_json::json;

#[test]
fn a_rate_changed_by_hand_takes_effect_at_the_time_that_is_told() {
    for threads in 1..=3 {
        let base = SimBase::new("latency=constant(2ms)");
        let mut spec = spec(&base.url, [open_phase("first", json!({"rate": 100, "mix": {"write": 1}}))]);
        spec.threads = threads;
        let mut changes = Vec::new();
        let story = run_with(&spec, |run| {
            for (at, rate) in [(0.3, 700.0), (0.55, 0.0), (0.7, 250.0)] {
                wait_until(run, at);
                changes.push((run.change(open_phase("", json!({"rate": rate})), false).unwrap(), rate));
            }
            wait_until(run, 1.0);
            run.stop();
        });
        check::arrivals(&story);
        assert_eq!(story.phase_names(), ["first", "drain"], "a change without a name is no phase");
        let (mut truth, mut since, mut rate) = (0.0, 0, 100.0);
        changes.push((story.phases[1].at, 0.0));
        for (at, next) in changes {
            truth += rate * (at - since) as f64 / SECOND;
            (since, rate) = (at, next);
        }
        let arrivals = story.all().counted(|tenant| tenant.arrivals) as f64;
        assert!((arrivals - truth).abs() <= 1.0, "{arrivals} arrivals, and Λ is {truth}");
        assert_eq!(base.commits(), story.all().committed());
        assert_eq!(base.connections(), 16, "nobody has reconnected");
    }
}

#[test]
fn a_change_may_overtake_the_phases_that_were_asked_for_before() {
    let base = SimBase::new("latency=constant(2ms)");
    let first = open_phase("first", json!({"rate": 100, "mix": {"write": 1}}));
    let (mut overtaken, mut second) = (0, 0);
    let story = run_with(&spec(&base.url, [first]), |run| {
        second = run.change_at(open_phase("second", json!({"rate": 900})), true, 800_000_000).unwrap();
        wait_until(run, 0.3);
        overtaken = run.overtake(open_phase("", json!({"rate": 500})), 0).unwrap();
        wait_until(run, 1.0);
        run.stop();
    });
    check::arrivals(&story);
    assert!(overtaken < second, "{overtaken} is before {second}");
    assert_eq!(story.phase_names(), ["first", "second", "drain"]);
    let truth = (100.0 * overtaken as f64 + 500.0 * (second - overtaken) as f64) / SECOND;
    let arrivals = story.phase("first").counted(|tenant| tenant.arrivals) as f64;
    assert!((arrivals - truth).abs() <= 1.0, "{arrivals} arrivals, and Λ is {truth}");
    let arrivals = story.phase("second").counted(|tenant| tenant.arrivals) as f64;
    let truth = 900.0 * (story.phases[2].at - second) as f64 / SECOND;
    assert!(
        (arrivals - truth).abs() <= 1.0,
        "what was asked for before has its time still: {arrivals}, {truth}"
    );
}

#[test]
fn arrivals_change_from_even_to_poisson_and_back_on_the_way() {
    let base = SimBase::new("latency=constant(1ms)");
    let phases = [
        phase("even", 0.5, json!({"rate": 400, "mix": {"write": 1}})),
        phase("poisson", 2.0, json!({"arrivals": "poisson"})),
        phase("again", 0.5, json!({"arrivals": "constant"})),
    ];
    let mut spec = spec(&base.url, phases);
    spec.interval_ms = 50;
    let story = run(&spec);
    check::arrivals(&story);
    assert_eq!(story.phase("even").gauge(|tenant| tenant.arrivals), [20; 10]);
    assert_eq!(story.phase("again").gauge(|tenant| tenant.arrivals), [20; 10]);
    let poisson = story.phase("poisson").counted(|tenant| tenant.arrivals) as f64;
    assert!((poisson - 800.0).abs() < 5.0 * 800_f64.sqrt() && poisson != 800.0, "{poisson}");
}

#[test]
fn a_mix_changes_for_every_session_at_once() {
    let base = SimBase::new("latency=constant(2ms)");
    let phases = [
        phase("writes", 0.4, json!({"concurrency": 6, "mix": {"write": 1}})),
        phase("reads", 0.4, json!({"mix": {"read": 1}})),
        phase("both", 0.4, json!({"mix": "half"})),
    ];
    let mut spec = spec(&base.url, phases);
    spec.threads = 2;
    let story = run(&spec);
    assert_eq!(story.phase("writes").committed_of("read"), 0);
    // Who was in flight at the change ends in the phase after it.
    assert!(story.phase("reads").committed_of("write") <= 6);
    assert!(story.phase("reads").committed_of("read") > 100);
    let both = story.phase("both");
    check::binomial("read", both.committed_of("read"), both.committed(), 0.5);
    assert_eq!((base.connections(), base.commits()), (6, story.all().committed()));
}

#[test]
fn access_changes_which_keys_are_picked() {
    let access = |seek: &str, access: serde_json::Value| json!({"mix": {seek: 1}, "access": access});
    let mut first = access("seek_1", json!({"distribution": "uniform"}));
    first["concurrency"] = json!(4);
    let phases = [
        phase("uniform", 0.3, first),
        phase("latest", 0.3, access("seek_2", json!({"distribution": "latest", "k": 10}))),
        phase(
            "hotspot",
            0.3,
            access("seek_3", json!({"distribution": "hotspot", "keys": 0.05, "accesses": 0.9})),
        ),
        phase("zipfian", 0.3, access("seek_4", json!({"distribution": "zipfian", "theta": 0.99}))),
    ];
    let story = run(&spec("sim://?latency=constant(0ms)", phases));
    let counts = |seek: &str| {
        let mut counts: Vec<u64> = story.tallies(seek).values().map(|count| *count as u64).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        (counts.iter().sum::<u64>(), counts)
    };
    let (total, uniform) = counts("seek_1");
    check::binomial(
        "the rarer half of 1,000 keys",
        uniform.iter().skip(500).sum(),
        total,
        0.5 - share_off(total),
    );
    assert!(uniform[0] as f64 <= 1.0 + total as f64 / 1000.0 + 6.0 * (total as f64 / 1000.0).sqrt());
    let (_, latest) = counts("seek_2");
    assert_eq!(latest.len(), 10);
    assert!(story.tallies("seek_2").keys().all(|key| key.parse::<u64>().unwrap() > 990), "the newest ones");
    let (total, hotspot) = counts("seek_3");
    check::binomial("the hot 50 of 1,000 keys", hotspot[..50].iter().sum(), total, 0.9);
    let (total, zipfian) = counts("seek_4");
    let harmonic: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-0.99)).sum();
    check::binomial("the most popular key", zipfian[0], total, 1.0 / harmonic);
}

/// By how much the rarer half of 1,000 equally likely keys falls short of half of the draws: the mean deviation of a
/// Poisson number from its median, over its mean.
fn share_off(draws: u64) -> f64 {
    0.5 * (2.0 / std::f64::consts::PI / (draws as f64 / 1000.0)).sqrt()
}

#[test]
fn concurrency_goes_up_and_down_and_only_new_sessions_connect() {
    let base = SimBase::new("latency=constant(4ms)");
    let spec = spec(&base.url, [open_phase("few", json!({"concurrency": 3, "mix": {"write": 1}}))]);
    let story = run_with(&spec, |run| {
        for (at, name, concurrency) in [(0.3, "many", 30), (0.6, "one", 1), (0.9, "again", 30)] {
            wait_until(run, at);
            run.change(open_phase(name, json!({"concurrency": concurrency})), true).unwrap();
        }
        wait_until(run, 1.2);
        run.stop();
    });
    assert_eq!(story.phase_names(), ["few", "many", "one", "again", "drain"]);
    assert_eq!((base.connections(), base.commits()), (30, story.all().committed()));
    for (name, concurrency) in [("few", 3), ("many", 30), ("one", 1), ("again", 30)] {
        let phase = story.phase(name);
        assert_eq!(phase.gauge(|tenant| tenant.sessions).last(), Some(&concurrency));
        let most = concurrency as f64 * (phase.seconds() / 0.004 + 1.0) + 30.0;
        let committed = phase.committed() as f64;
        assert!((most * 0.3..=most).contains(&committed), "{name}: {committed} of {most}");
    }
    let lost = story.all().counted(|tenant| tenant.lost + tenant.restored + tenant.refused);
    assert_eq!(lost, 0);
}

#[test]
fn a_change_of_think_time_reaches_those_who_think() {
    let base = SimBase::new("latency=constant(2ms)");
    // Longer than the machine has been up: who has not begun does not think.
    let think = |ms: f64| json!({"think": {"law": "constant", "ms": ms}});
    let mut first = think(9e8);
    first["concurrency"] = json!(5);
    first["mix"] = json!({"write": 1});
    let phases = [
        phase("hours", 0.4, first),
        phase("none", 0.4, json!({"think": {"law": "none"}})),
        phase("long", 0.4, think(1e8)),
    ];
    let begun = Instant::now();
    let story = run(&spec(&base.url, phases));
    assert_eq!(story.phase("hours").committed(), 5, "one each, and then they think");
    assert!(story.phase("none").committed() > 100);
    assert!(story.phase("long").committed() <= 5);
    assert!(begun.elapsed() < Duration::from_secs(20), "who thinks does not hold up the end");
    assert_eq!((base.connections(), base.commits()), (5, story.all().committed()));
}

#[test]
fn a_load_turns_from_closed_to_open_and_back() {
    let base = SimBase::new("latency=constant(3ms)");
    let phases = [
        phase("closed", 0.4, json!({"concurrency": 8, "mix": {"write": 1}})),
        phase("open", 0.5, json!({"rate": 200})),
        phase("closed again", 0.4, json!({"concurrency": 4})),
    ];
    let mut spec = spec(&base.url, phases);
    (spec.threads, spec.tenants[0].sessions) = (2, 8);
    let story = run(&spec);
    assert_eq!(story.phase("open").counted(|tenant| tenant.arrivals), 100);
    let arrivals = story.all().counted(|tenant| tenant.arrivals);
    assert_eq!(arrivals, 100, "a closed loop has no arrivals");
    assert!(story.phase("closed again").committed() > 50);
    assert_eq!((base.connections(), base.commits()), (8, story.all().committed()));
}

#[test]
fn planned_changes_come_in_their_order_and_a_stop_overtakes_them() {
    let base = SimBase::new("latency=constant(1ms)");
    let spec = spec(&base.url, [open_phase("first", json!({"rate": 50, "mix": {"write": 1}}))]);
    let story = run_with(&spec, |run| {
        let plan = |name: &str, at: f64| {
            run.change_at(open_phase(name, json!({"rate": 300})), true, (at * SECOND) as u64).unwrap()
        };
        assert_eq!(plan("second", 0.4), 400_000_000);
        assert_eq!(plan("never", 3000.0), 3_000_000_000_000);
        wait_until(run, 0.7);
        run.stop();
        run.stop();
        let late = run.change(open_phase("late", json!({"rate": 1})), true);
        assert!(matches!(late, Err(EngineError::Failed(message)) if message.contains("over")));
    });
    check::arrivals(&story);
    assert_eq!(story.phase_names(), ["first", "second", "drain"]);
    assert_eq!(story.phase("first").counted(|tenant| tenant.arrivals), 20);
}

#[test]
fn a_wrong_change_is_refused_and_changes_nothing() {
    let base = SimBase::new("latency=constant(1ms)");
    let spec = spec(&base.url, [open_phase("all", json!({"rate": 100, "mix": {"write": 1}}))]);
    let refused = |run: &Run, change, what: &str| {
        let error = run.change(open_phase("wrong", change), true).unwrap_err();
        assert!(matches!(error, EngineError::Input(_)) && error.to_string().contains(what), "{error}");
    };
    let story = run_with(&spec, |run| {
        refused(run, json!({"rate": -1}), "rate is -1");
        refused(run, json!({"rate": 500, "mix": {"wirte": 1}}), "no transaction is called \"wirte\"");
        refused(run, json!({"think": {"law": "constant", "ms": 1}}), "think belongs to a concurrency");
        refused(run, json!({"rate": {"from": 1, "to": 2}}), "a ramp needs its seconds");
        wait_until(run, 0.5);
        run.stop();
    });
    assert_eq!(story.phase_names(), ["all", "drain"]);
    let (arrivals, end) = (story.all().counted(|tenant| tenant.arrivals), story.phases[1].at as f64 / SECOND);
    assert!((arrivals as f64 - 100.0 * end).abs() <= 1.0, "{arrivals} in {end} s");
}
