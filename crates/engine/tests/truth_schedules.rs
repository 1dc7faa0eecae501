//! Schedules read back: what was asked for is what the engine did, counted by itself and by the database.
#![allow(clippy::unwrap_used)]

mod support;

use nephoscope_engine::spec::PhaseKind;
use serde_json::json;
use support::{SECOND, SimBase, Story, check, phase, run, spec};

/// What the tallies of committed transactions say, what the database has counted, and what the intervals hold.
#[track_caller]
fn nothing_lost_or_doubled(story: &Story, base: &SimBase) {
    let committed = story.all().committed();
    assert_eq!(story.totals().in_flight, 0);
    assert_eq!(base.commits(), committed, "the database has counted as many commits");
    let tallied = story.tally("written").0 + story.tally("read").0;
    assert_eq!(tallied, committed as f64, "the tallies add up to as many");
}

/// Every arrival is served, but for those that waited when the run ended, where the machine was late.
#[track_caller]
fn served_or_unstarted(story: &Story, arrivals: u64) {
    let (served, unstarted) = (story.all().committed(), story.all().sum(|of| of.unstarted));
    assert_eq!(served + unstarted, arrivals, "{served} served, {unstarted} unstarted");
    assert!(unstarted <= arrivals / 5, "{unstarted} unstarted");
}

#[test]
fn a_constant_rate_has_exactly_its_number_in_every_interval() {
    for threads in 1..=3 {
        let base = SimBase::new("latency=constant(2ms)");
        let mut spec = spec(&base.url, [phase("all", 1.5, json!({"rate": 330, "mix": "half"}))]);
        spec.threads = threads;
        let story = run(&spec);
        check::arrivals(&story);
        let all = story.phase("all");
        let arrivals = all.gauge(|tenant| tenant.arrivals);
        assert_eq!(arrivals, [33; 15], "{threads} threads");
        served_or_unstarted(&story, 495);
        nothing_lost_or_doubled(&story, &base);
    }
}

#[test]
fn a_poisson_rate_has_the_number_and_the_dispersion_of_its_law() {
    let base = SimBase::new("latency=constant(1ms)");
    let load = json!({"rate": 400, "arrivals": "poisson", "mix": {"write": 1}});
    let mut spec = spec(&base.url, [phase("all", 5.0, load)]);
    (spec.threads, spec.interval_ms) = (2, 50);
    let story = run(&spec);
    check::arrivals(&story);
    let counts = story.phase("all").gauge(|tenant| tenant.arrivals);
    assert_eq!(counts.len(), 100);
    let sum = counts.iter().sum::<u64>() as f64;
    assert!((sum - 2000.0).abs() < 5.0 * 2000_f64.sqrt(), "{sum} arrivals");
    let mean = sum / 100.0;
    let variance = counts.iter().map(|count| (*count as f64 - mean).powi(2)).sum::<f64>() / 99.0;
    // With 99 degrees of freedom the index of dispersion is 1 ± 0.14.
    assert!((0.4..1.6).contains(&(variance / mean)), "index of dispersion {}", variance / mean);
    nothing_lost_or_doubled(&story, &base);
}

#[test]
fn ramps_and_steps_follow_their_course() {
    let base = SimBase::new("latency=constant(2ms)");
    let phases = [
        phase("up", 2.0, json!({"rate": {"from": 0, "to": 400}, "mix": {"write": 1}})),
        phase("high", 0.5, json!({"rate": 400})),
        phase("step", 1.0, json!({"rate": 100})),
        phase("down", 1.0, json!({"rate": {"from": 100, "to": 0, "seconds": 0.8}})),
    ];
    let mut spec = spec(&base.url, phases);
    spec.threads = 3;
    let story = run(&spec);
    check::arrivals(&story);
    let due = |time: f64| match time {
        time if time <= 2.0 => 100.0 * time * time,
        time if time <= 2.5 => 400.0 + 400.0 * (time - 2.0),
        time if time <= 3.5 => 600.0 + 100.0 * (time - 2.5),
        time => {
            let into = (time - 3.5).min(0.8);
            700.0 + 100.0 * into - 62.5 * into * into
        }
    };
    let mut arrived = 0;
    for interval in &story.intervals {
        arrived += interval.tenants[0].arrivals;
        let (end, truth) = (interval.end as f64 / SECOND, due(interval.end as f64 / SECOND));
        assert!((arrived as f64 - truth).abs() <= 1.0, "{arrived} arrivals in {end} s, and Λ is {truth}");
    }
    assert_eq!(arrived, 740);
    nothing_lost_or_doubled(&story, &base);
}

#[test]
fn a_closed_loop_has_its_number_in_flight_all_the_time() {
    for threads in 1..=3 {
        let base = SimBase::new("latency=uniform(5ms,35ms)");
        let mut spec = spec(&base.url, [phase("all", 1.5, json!({"concurrency": 8, "mix": "half"}))]);
        spec.threads = threads;
        let story = run(&spec);
        let all = story.all();
        // Little's law, whatever the speed: the times in flight add up to 8 times the length.
        let (service, longest) = (all.service(), all.service().max() as f64 / SECOND);
        let in_flight = service.mean() * service.len() as f64 / SECOND;
        let least = 8.0 * 1.5 * 0.93;
        assert!(in_flight >= least, "{in_flight} s in flight, at least {least}");
        assert!(in_flight <= 8.0 * (1.5 + longest) * 1.002, "{in_flight} s in flight");
        assert_eq!(base.connections(), 8);
        assert_eq!(story.phase("all").gauge(|tenant| tenant.sessions), [8; 15]);
        nothing_lost_or_doubled(&story, &base);
    }
}

#[test]
fn a_concurrency_that_ramps_is_the_number_in_flight() {
    let base = SimBase::new("latency=constant(5ms)");
    let load = json!({"concurrency": {"from": 0, "to": 20}, "mix": {"write": 1}});
    let mut spec = spec(&base.url, [phase("up", 1.5, load)]);
    spec.threads = 2;
    let story = run(&spec);
    let service = story.all().service();
    let in_flight = service.mean() * service.len() as f64 / SECOND;
    check::within("time in flight", in_flight, 15.0, 0.1);
    let sessions = story.phase("up").gauge(|tenant| tenant.sessions);
    assert!(sessions.is_sorted() && sessions[14] == 20, "{sessions:?}");
    for (tenth, sessions) in sessions.iter().enumerate() {
        let truth = (tenth as f64 + 1.0) / 15.0 * 20.0;
        assert!((*sessions as f64 - truth).abs() <= 1.0, "{sessions} sessions after {} tenths", tenth + 1);
    }
    nothing_lost_or_doubled(&story, &base);
}

/// Runs a closed loop that thinks; gives its count, and the variance of the counts of intervals over their mean.
fn thinks(load: serde_json::Value, seconds: f64) -> (f64, f64) {
    let base = SimBase::new("latency=constant(10ms)");
    let mut spec = spec(&base.url, [phase("all", seconds, load)]);
    (spec.threads, spec.interval_ms) = (2, 50);
    let story = run(&spec);
    nothing_lost_or_doubled(&story, &base);
    let settled = story.between(0.5, seconds);
    let counts: Vec<f64> = settled
        .0
        .iter()
        .map(|interval| interval.series[..].iter().map(|s| s.committed).sum::<u64>() as f64)
        .collect();
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (counts.len() - 1) as f64;
    (story.all().committed() as f64, variance / mean)
}

#[test]
fn a_constant_think_time_lies_between_transactions() {
    let load = json!({"concurrency": 30, "think": {"law": "constant", "ms": 110}, "mix": {"write": 1}});
    let (committed, dispersion) = thinks(load, 2.4);
    // Cycles of 120 ms: never more than 20 in 2.4 s, and fewer where the machine is late.
    assert!((30.0 * 16.0..=30.0 * 20.0).contains(&committed), "{committed}");
    assert!(dispersion > 5.0, "the sessions keep step: {dispersion}");
}

#[test]
fn an_exponential_think_time_has_its_mean_and_no_step() {
    let load = json!({"concurrency": 40, "think": {"law": "exponential", "ms": 50}, "mix": {"write": 1}});
    let (committed, dispersion) = thinks(load, 3.0);
    // 40 renewal processes of 60 ms: 2,000 ± 37.
    assert!((1650.0..2200.0).contains(&committed), "{committed}");
    assert!(dispersion < 3.0, "the sessions do not keep step: {dispersion}");
}

#[test]
fn phases_follow_each_other_at_their_times_with_their_kinds() {
    let base = SimBase::new("latency=constant(1ms)");
    let mut phases = [
        phase("warm-up", 0.33, json!({"rate": 100, "mix": {"write": 1}})),
        phase("main", 0.5, json!({"rate": 200})),
        phase("quiet", 0.2, json!({"rate": 0})),
        phase("closed", 0.4, json!({"concurrency": 3, "mix": {"read": 1}})),
        phase("down", 0.25, json!({"rate": {"from": 200, "to": 0}})),
    ];
    phases[0].kind = PhaseKind::WarmUp;
    phases[2].kind = PhaseKind::Pause;
    phases[4].kind = PhaseKind::RampDown;
    let mut spec = spec(&base.url, phases);
    spec.threads = 2;
    let story = run(&spec);
    assert_eq!(story.phase_names(), ["warm-up", "main", "quiet", "closed", "down", "drain"]);
    let kinds: Vec<&str> = story.phases.iter().map(|phase| phase.spec.kind.name()).collect();
    assert_eq!(kinds, ["warm_up", "measure", "pause", "measure", "ramp_down", "ramp_down"]);
    let times: Vec<u64> = story.phases.iter().map(|phase| phase.at / 1_000_000).collect();
    assert_eq!(times, [0, 330, 830, 1030, 1430, 1680]);
    let arrivals = |name: &str| story.phase(name).counted(|tenant| tenant.arrivals);
    assert_eq!(["warm-up", "main", "quiet", "closed", "down"].map(arrivals), [33, 100, 0, 0, 25]);
    assert_eq!(story.phase("closed").gauge(|tenant| tenant.sessions).last(), Some(&3));
    assert!(story.phase("closed").committed_of("read") > 50);
    nothing_lost_or_doubled(&story, &base);
}

#[test]
fn a_mix_gives_each_transaction_its_share() {
    let base = SimBase::new("latency=constant(0ms)");
    let mix = json!({"write": 30, "read": 60, "change_of_mind": 10});
    let mut spec = spec(&base.url, [phase("all", 0.6, json!({"concurrency": 4, "mix": mix}))]);
    spec.threads = 2;
    let story = run(&spec);
    let all = story.all();
    let (committed, aborted) = (all.committed(), all.sum(|series| series.aborted));
    let ended = committed + aborted;
    check::binomial("write", all.committed_of("write"), ended, 0.3);
    check::binomial("read", all.committed_of("read"), ended, 0.6);
    check::binomial("change_of_mind", aborted, ended, 0.1);
    nothing_lost_or_doubled(&story, &base);
}
