//! Probes of consistency read back what is planted: a law of staleness, rates of violations, long forks; and nothing
//! where nothing is. In simulated time, so that ten million checks take seconds.
#![allow(clippy::unwrap_used)]

use nephoscope_engine::probes::{Check, Findings, Outcome, ProbesSpec, Sample, simulate};
use nephoscope_runtime::clock::{MILLISECOND, Nanos, SECOND};
use serde_json::{Value, json};

const QUICK: &str = "latency=constant(20us)";

/// Probes of a database of some replicas, each with something planted, for a time.
fn probes(name: &str, (primary, replicas): (&str, &[&str]), consistency: &Value, time: Nanos) -> Findings {
    let url = |planted: &str| format!("sim://{name}?{QUICK}{planted}");
    let mut endpoints = vec![json!({"role": "rw", "node": "rw", "url": url(primary)})];
    for (place, planted) in replicas.iter().enumerate() {
        endpoints.push(json!({"role": "ro", "node": format!("ro{place}"), "url": url(planted)}));
    }
    let spec = json!({
        "origin_ns": 0, "io": "epoll", "seed": 3, "endpoints": endpoints, "consistency": consistency,
    });
    let spec: ProbesSpec = serde_json::from_value(spec).unwrap();
    simulate(&spec, time).unwrap()
}

/// How often something was checked, and how often it was so.
fn sum(found: &Findings, check: Check) -> (u64, u64) {
    let of = found.counts.iter().filter(|count| count.check == check);
    of.fold((0, 0), |sum, count| (sum.0 + count.trials, sum.1 + count.hits))
}

fn share(found: &Findings, check: Check) -> f64 {
    let (trials, hits) = sum(found, check);
    hits as f64 / trials as f64
}

/// The 95 % interval of a share by Wilson contains what was planted, or nearly: of so many figures one may lie just
/// outside.
#[track_caller]
fn expect(found: &Findings, check: Check, planted: f64) {
    let (trials, hits) = sum(found, check);
    let (n, p, z) = (trials as f64, hits as f64 / trials as f64, 2.5);
    let (centre, half) = (p + z * z / (2.0 * n), z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt());
    let scale = 1.0 + z * z / n;
    let (low, high) = ((centre - half) / scale, (centre + half) / scale);
    assert!((low..=high).contains(&planted), "{check:?}: {hits} of {trials}, {planted} planted");
}

const GUARANTEES: [Check; 4] =
    [Check::MonotonicReads, Check::ReadYourWrites, Check::MonotonicWrites, Check::WritesFollowReads];

/// No guarantee is broken, and each was checked.
#[track_caller]
fn nothing_is_broken(found: &Findings) {
    for check in GUARANTEES {
        let (trials, hits) = sum(found, check);
        assert!(trials > 0 && hits == 0, "{check:?}: {hits} of {trials}");
    }
}

/// Each write has a sample on each replica, or one that says why it has none.
#[track_caller]
fn all_written(found: &Findings, replicas: usize) {
    let mut numbers: Vec<u64> = found.samples.iter().map(|sample| sample.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "each write has its sample");
    for number in numbers {
        let of = found.samples.iter().filter(|sample| sample.number == number);
        let (seen, not): (Vec<&Sample>, Vec<&Sample>) = of.partition(|sample| sample.lower.is_some());
        assert!(
            (seen.len(), not.len()) == (replicas, 0) || (seen.len(), not.len()) == (0, 1),
            "{seen:?} {not:?}"
        );
    }
}

#[test]
fn ten_million_checks_of_a_linearizable_store_find_nothing() {
    let consistency = json!({"write_interval_ms": 50, "keys": 2, "writers": 2, "routing": "round_robin"});
    let replicas = ["&lag=constant(0s)", "&lag=constant(0s)"];
    let found = probes("linearizable", ("", &replicas), &consistency, 240 * SECOND);
    nothing_is_broken(&found);
    let checks: u64 = GUARANTEES.iter().map(|check| sum(&found, *check).0).sum();
    assert!(checks >= 10_000_000, "{checks}");
    assert_eq!((sum(&found, Check::Stale).1, share(&found, Check::Reads)), (0, 1.0));
    all_written(&found, 2);
    assert!(
        found.samples.iter().all(|sample| sample.lower == Some(0) && sample.upper < Some(10 * MILLISECOND))
    );
}

#[test]
fn a_planted_law_of_staleness_is_read_back() {
    let consistency = json!({"write_interval_ms": 400, "limit_ms": 380, "readers": 4, "read_interval_ms": 2});
    let replicas = ["&lag=exponential(20ms)&seed=1", "&lag=exponential(20ms)&seed=2"];
    let found = probes("exponential", ("", &replicas), &consistency, 800 * SECOND);
    all_written(&found, 2);
    // Two draws each for 2000 writes: the standard error of the mean is 0.3 ms.
    let milliseconds = |time: Option<Nanos>| time.unwrap() as f64 / MILLISECOND as f64;
    let mean =
        |of: &dyn Fn(&Sample) -> f64| found.samples.iter().map(of).sum::<f64>() / found.samples.len() as f64;
    let middle = mean(&|sample| f64::midpoint(milliseconds(sample.lower), milliseconds(sample.upper)));
    assert!((middle - 20.0).abs() < 1.0, "{middle}");
    assert!(mean(&|sample| milliseconds(sample.upper) - milliseconds(sample.lower)) < 1.5);
    // P(stale | t) = exp(-t / 20 ms): over a bin from t to s of reads at even times, its mean.
    for place in [1.0, 3.162_277_66, 10.0, 31.622_776_602, 56.234_132_519] {
        let of =
            found.counts.iter().filter(|count| count.check == Check::Stale && count.place == Some(place));
        let (reads, stale) = of.fold((0, 0), |sum, count| (sum.0 + count.trials, sum.1 + count.hits));
        let end: f64 = place * 10_f64.powf(0.125);
        let planted = 20.0 * ((-place / 20.0).exp() - (-end / 20.0).exp()) / (end - place);
        let read = stale as f64 / reads as f64;
        // Reads of one write and replica are as one draw: there are 4000.
        let error = 3.0 * (planted * (1.0 - planted) / 4000.0_f64).sqrt();
        assert!((read - planted).abs() < error + 0.002, "{place}: {read}, {planted} planted, of {reads}");
    }
    assert_eq!(share(&found, Check::MonotonicReads), 0.0, "a session of one replica never goes back");
    assert!(share(&found, Check::ReadYourWrites) > 0.01, "and may not see yet what it wrote");
    let behind = |place: f64| {
        let of =
            found.counts.iter().filter(|count| count.check == Check::Behind && count.place == Some(place));
        of.map(|count| count.hits).sum::<u64>()
    };
    assert_eq!((behind(0.0) + behind(1.0), behind(1.0)), sum(&found, Check::Stale));
}

#[test]
fn planted_rates_of_violations_are_read_back() {
    let consistency = json!({"write_interval_ms": 1000, "readers": 4, "read_from": "rw"});
    let found = probes("rates", ("&old_read=0.01", &[]), &consistency, 200 * SECOND);
    // Of a thousand reads between two writes all but the first have a newer one before them.
    expect(&found, Check::MonotonicReads, 0.01 * 0.999);
    expect(&found, Check::ReadYourWrites, 0.01);
    // What was written after the register shows that it has gone back, unless it has gone back as well.
    expect(&found, Check::MonotonicWrites, 0.01 * 0.99);
    expect(&found, Check::WritesFollowReads, 0.01 * 0.99);
    let stale = found.counts.iter().filter(|count| count.check == Check::Stale && count.place > Some(10.0));
    let (reads, hits) = stale.fold((0, 0), |sum, count| (sum.0 + count.trials, sum.1 + count.hits));
    assert!((hits as f64 / reads as f64 - 0.01).abs() < 0.0006, "{hits} of {reads}");
}

#[test]
fn a_session_that_reads_replicas_in_turn_goes_back_as_often_as_the_later_one_lags() {
    // From 10 to 50 ms after each write one replica has it and the other has not: each second read is older.
    let consistency = json!({"write_interval_ms": 500, "readers": 2, "routing": "round_robin"});
    let replicas = ["&lag=constant(10ms)", "&lag=constant(50ms)"];
    let found = probes("in-turn", ("", &replicas), &consistency, 100 * SECOND);
    let planted = 0.5 * 40.0 / 500.0;
    let read = share(&found, Check::MonotonicReads);
    assert!((read - planted).abs() < 0.002, "{read}");
    let sticky = json!({"write_interval_ms": 500, "readers": 2});
    let found = probes("sticky", ("", &replicas), &sticky, 50 * SECOND);
    assert_eq!(share(&found, Check::MonotonicReads), 0.0);
}

#[test]
fn planted_long_forks_are_found_and_others_are_not() {
    let consistency = json!({
        "write_interval_ms": 200, "limit_ms": 150, "readers": 4, "read_interval_ms": 2, "long_fork": true,
    });
    // Each replica has each write at once or 50 ms later: an order in half of the rounds, and of two orders half differ.
    let late = ["&lag=bimodal(0ms,50ms,0.5)&seed=5", "&lag=bimodal(0ms,50ms,0.5)&seed=6"];
    let found = probes("forks", ("", &late), &consistency, 400 * SECOND);
    expect(&found, Check::LongFork, 0.5);
    let rounds = sum(&found, Check::LongFork).0;
    assert!(rounds.abs_diff(500) < 65, "a quarter of 2000: {rounds}");
    let steady = ["&lag=constant(1ms)", "&lag=constant(30ms)"];
    let found = probes("no-forks", ("&latency=uniform(20us,20ms)", &steady), &consistency, 150 * SECOND);
    let (checks, forks) = sum(&found, Check::LongFork);
    assert!(checks > 400 && forks == 0, "{forks} of {checks}");
}

#[test]
fn a_server_that_stalls_delays_reads_and_no_schedule() {
    let consistency = json!({"write_interval_ms": 100, "readers": 4, "limit_ms": 1000});
    let replicas = ["&lag=constant(2ms)&stall=5s%2B5s"];
    let found = probes("stalled", ("", &replicas), &consistency, 20 * SECOND);
    let (due, answered) = sum(&found, Check::Reads);
    assert!(due.abs_diff(100_000) < 50, "five sessions at 1 ms for 20 s: {due}");
    let missed: u64 = sum(&found, Check::Missed).1;
    let failed = sum(&found, Check::FailedReads).1;
    assert_eq!(due, answered + missed + failed);
    assert!(missed.abs_diff(25_000) < 100, "{missed}");
    assert_eq!(sum(&found, Check::MonotonicReads).1, 0);
    all_written(&found, 1);
    // A write of the stall's first second was looked for as long as it says, and not seen.
    let unseen = found.samples.iter().filter(|sample| sample.outcome == Outcome::NotSeen).count();
    assert!(unseen.abs_diff(40) <= 2, "{unseen}");
    assert!(found.samples.len().abs_diff(200) <= 1, "{}", found.samples.len());
}

#[test]
fn a_write_whose_outcome_is_unknown_is_never_a_violation() {
    let consistency = json!({"write_interval_ms": 20, "readers": 4, "limit_ms": 150, "keys": 2});
    for (name, planted) in [
        ("unheard", "&reply_lost=0.05"),
        ("late", "&late_error=shutting_down:0.05"),
        // What was given up takes effect when the stall is over.
        ("given-up", "&stall=2s%2B1s&stall=7s%2B1s&stall=13s%2B400ms"),
        ("out", "&outage=3s%2B2s"),
    ] {
        let found = probes(name, (planted, &["&lag=constant(3ms)"]), &consistency, 20 * SECOND);
        let stale_after =
            |count: &&nephoscope_engine::probes::Count| count.place > Some(3.2) && count.hits > 0;
        let stale = found.counts.iter().filter(|count| count.check == Check::Stale);
        assert_eq!(stale.filter(stale_after).count(), 0, "{name}");
        for check in [Check::MonotonicReads, Check::MonotonicWrites, Check::WritesFollowReads] {
            assert_eq!(sum(&found, check).1, 0, "{name}: {check:?}");
        }
        assert!(sum(&found, Check::Retired).0 > 0, "{name}");
        all_written(&found, 1);
    }
}

#[test]
fn the_same_seed_finds_the_same() {
    let of = |name: &str| {
        let consistency = json!({"write_interval_ms": 50, "readers": 3});
        probes(name, ("&old_read=0.1", &["&lag=exponential(5ms)"]), &consistency, 5 * SECOND)
    };
    let (one, other) = (of("same-one"), of("same-other"));
    assert_eq!((one.samples, one.counts), (other.samples, other.counts));
}
