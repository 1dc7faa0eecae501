//! Probes read back what is planted in the simulated database: lag by its law, outages to the moment, and no probe is
//! lost on the way. In simulated time, so the truth is exact and the same on every machine.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use nephoscope_drivers::ErrorClass;
use nephoscope_engine::probes::{Kind, Outcome, ProbesSpec, Sample, simulate};
use nephoscope_runtime::clock::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use serde_json::{Value, json};

/// When simulations begin.
const BEGINNING: Nanos = 1_000_000 * SECOND;

fn probes(endpoints: &[(&str, &str)], what: &Value, time: Nanos) -> Vec<Sample> {
    let endpoint = |(role, url): &(&str, &str)| json!({"role": role, "node": role, "url": url});
    let mut spec = json!({"origin_ns": 0, "io": "epoll", "seed": 3});
    spec["endpoints"] = endpoints.iter().map(endpoint).collect();
    spec.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
    let spec: ProbesSpec = serde_json::from_value(spec).unwrap();
    simulate(&spec, time).unwrap()
}

fn lag(name: &str, laws: &[&str], time: Nanos) -> Vec<Sample> {
    let rw = format!("sim://{name}?latency=constant(60us)");
    let ro: Vec<String> =
        laws.iter().map(|law| format!("sim://{name}?latency=constant(60us)&lag={law}")).collect();
    let mut endpoints = vec![("rw", rw.as_str())];
    endpoints.extend(ro.iter().map(|url| ("ro", url.as_str())));
    probes(&endpoints, &json!({"lag": {}}), time)
}

fn milliseconds(time: Nanos) -> f64 {
    time as f64 / MILLISECOND as f64
}

/// Mean of the midpoints, in milliseconds.
fn mean(samples: &[Sample]) -> f64 {
    let middle = |sample: &Sample| milliseconds(sample.lower.unwrap().midpoint(sample.upper.unwrap()));
    samples.iter().map(middle).sum::<f64>() / samples.len() as f64
}

#[test]
fn a_planted_lag_is_read_back_and_nothing_is_dropped() {
    for (place, (law, planted)) in [
        ("constant(0s)", 0.0),
        ("constant(300us)", 0.3),
        ("constant(5ms)", 5.0),
        ("constant(50ms)", 50.0),
        ("uniform(1ms,9ms)", 5.0),
        ("bimodal(1ms,20ms,0.25)", 5.75),
    ]
    .into_iter()
    .enumerate()
    {
        // Bimodal has a standard deviation of 8 ms: it takes so many samples for a mean to be within 2 %.
        let time = if law.starts_with("constant") { 20 * SECOND } else { 1500 * SECOND };
        // What a named database stores stays for the process, and simulations begin anew.
        let samples = lag(&format!("planted-{place}"), &[law], time);
        let read = mean(&samples);
        assert!((read - planted).abs() <= (planted * 0.02).max(0.1), "{law}: {read} ms");
        let numbers: Vec<u64> = samples.iter().map(|sample| sample.number).collect();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{law}: each marker has its sample");
        assert!(numbers.len() as f64 > time as f64 / 1e9 * 9.0, "{law}: {} markers", numbers.len());
        for (place, sample) in samples.iter().enumerate() {
            assert_eq!(sample.kind, [Kind::Insert, Kind::Update, Kind::Delete][place % 3]);
            assert_eq!((sample.endpoint, sample.outcome), (1, Outcome::Ok));
        }
    }
}

#[test]
fn the_planted_lag_lies_between_the_bounds_and_they_are_close() {
    let samples = lag("bounds", &["constant(3ms)"], 20 * SECOND);
    for sample in &samples {
        let (lower, upper) = (sample.lower.unwrap(), sample.upper.unwrap());
        assert!((lower..=upper).contains(&(3 * MILLISECOND)), "{lower} to {upper}");
        assert!(upper - lower <= 2 * 60 * MICROSECOND, "{lower} to {upper}");
        assert!(sample.polls >= 50);
    }
    // What is there at once is a lag, too.
    for sample in lag("at-once", &["constant(0s)"], 5 * SECOND) {
        assert_eq!((sample.lower, sample.outcome), (Some(0), Outcome::Ok));
        assert!(sample.upper.unwrap() <= 120 * MICROSECOND);
    }
}

#[test]
fn each_replica_has_its_own_lag() {
    let samples = lag("several", &["constant(1ms)", "constant(7ms)", "constant(0s)"], 10 * SECOND);
    let mut of_replica: BTreeMap<usize, Vec<Sample>> = BTreeMap::new();
    for sample in &samples {
        of_replica.entry(sample.endpoint).or_default().push(*sample);
    }
    for (place, planted) in [(1, 1.0), (2, 7.0), (3, 0.0)] {
        let read = mean(&of_replica[&place]);
        assert!((read - planted).abs() <= 0.1 + planted * 0.02, "{planted}: {read}");
    }
    assert!(of_replica.values().all(|samples| samples.len() == of_replica[&1].len()));
}

#[test]
fn a_marker_that_is_not_seen_in_time_says_how_long_it_was_not() {
    let (rw, ro) =
        ("sim://late?latency=constant(60us)", "sim://late?latency=constant(60us)&lag=constant(5s)");
    let samples = probes(&[("rw", rw), ("ro", ro)], &json!({"lag": {"limit_ms": 400}}), 20 * SECOND);
    // That nothing is there of a marker which has not come does not say that its deletion has.
    assert!(samples.len() >= 30, "{}", samples.len());
    for sample in &samples[..samples.len() - 1] {
        assert_eq!((sample.outcome, sample.upper), (Outcome::NotSeen, None));
        assert!((milliseconds(sample.lower.unwrap()) - 400.0).abs() < 1.0, "{sample:?}");
    }
}

#[test]
fn a_look_that_the_replica_has_ended_for_its_replay_is_repeated() {
    let samples = lag("conflicts", &["constant(5ms)&error=serialization:0.3"], 20 * SECOND);
    assert!(samples.len() > 150 && samples.iter().all(|sample| sample.outcome == Outcome::Ok));
    assert!((mean(&samples) - 5.0).abs() <= 0.1, "{} ms", mean(&samples));
    // One that ends all of them is told, when the time for it is over.
    let samples = lag("conflicts-only", &["constant(5ms)&error=serialization:1"], 15 * SECOND);
    assert!(!samples.is_empty());
    assert!(samples.iter().all(|sample| sample.outcome == Outcome::Failed(ErrorClass::Serialization)));
}

#[test]
fn a_replica_that_is_gone_is_told_by_its_class_and_holds_up_nobody() {
    let url = |lag: &str, more: &str| format!("sim://gone?latency=constant(60us)&lag={lag}{more}");
    let (well, gone) = (url("constant(2ms)", ""), url("constant(2ms)", "&outage=2s%2B3s"));
    let rw = "sim://gone?latency=constant(60us)";
    let samples = probes(&[("rw", rw), ("ro", &well), ("ro", &gone)], &json!({"lag": {}}), 10 * SECOND);
    let of = |place: usize| samples.iter().filter(move |sample| sample.endpoint == place);
    assert!(of(1).all(|sample| sample.outcome == Outcome::Ok));
    assert!(of(1).count() > 170, "{}", of(1).count());
    let failed: Vec<f64> = of(2)
        .filter(|sample| sample.outcome == Outcome::Failed(ErrorClass::ConnectionLost))
        .map(|sample| (sample.time - BEGINNING) as f64 / 1e9)
        .collect();
    assert!(failed.len() > 20 && failed.iter().all(|at| (1.9..5.1).contains(at)), "{failed:?}");
    let back = of(2).filter(|sample| sample.outcome == Outcome::Ok && sample.time > BEGINNING + 5 * SECOND);
    assert!(back.count() > 70, "it is looked at again");
    assert!(of(2).all(|sample| sample.outcome != Outcome::NotSeen), "what it could not tell is not counted");
}

/// Samples of an endpoint with something planted, each due when the schedule says.
fn availability(role: &str, planted: &str, time: Nanos) -> Vec<Sample> {
    let url = format!("sim://?latency=constant(300us){planted}");
    let mut samples = probes(&[(role, &url)], &json!({"availability": {}}), time);
    samples.sort_by_key(|sample| sample.number);
    for (place, sample) in samples.iter().enumerate() {
        assert_eq!(sample.number, place as u64, "none is dropped");
        assert_eq!(
            sample.time - samples[0].time,
            place as Nanos * 5 * MILLISECOND,
            "each is due in its turn"
        );
    }
    samples
}

#[test]
fn an_endpoint_that_serves_has_no_failed_and_no_late_probe() {
    for role in ["rw", "ro"] {
        let samples = availability(role, "", 5 * SECOND);
        assert!(samples.len().abs_diff(1000) <= 2, "{}", samples.len());
        for sample in samples {
            assert_eq!((sample.outcome, sample.sent), (Outcome::Ok, Some(sample.time)));
            assert_eq!(sample.end, Some(sample.time + 300 * MICROSECOND));
        }
    }
}

/// The longest time between two successes one after the other, by when they were due or by when they were answered.
fn gap(samples: &[Sample], when: impl Fn(&Sample) -> Nanos) -> f64 {
    let ok = samples.iter().filter(|sample| sample.outcome == Outcome::Ok);
    let mut ok: Vec<Nanos> = ok.map(when).collect();
    ok.sort_unstable();
    milliseconds(ok.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap())
}

#[test]
fn an_outage_is_read_back_to_the_probe() {
    for (planted, length) in
        [("&outage=2s%2B200ms", 200.0), ("&outage=2s%2B1s", 1000.0), ("&outage=2s%2B5s", 5000.0)]
    {
        let samples = availability("rw", planted, 8 * SECOND);
        let gap = gap(&samples, |sample| sample.time);
        assert!((length..=length + 10.0).contains(&gap), "{gap} ms for {length}");
        assert!(samples.iter().all(|sample| sample.outcome != Outcome::Missing), "refused at once");
    }
}

#[test]
fn the_lanes_that_an_outage_has_cost_are_made_anew() {
    // An answer takes longer than there is between two probes: a single lane would fall behind.
    let samples = availability("rw", "&latency=constant(12ms)&outage=2s%2B200ms", 5 * SECOND);
    let after = samples.iter().filter(|sample| sample.time > BEGINNING + 2500 * MILLISECOND);
    let mut count = 0;
    for sample in after {
        assert_eq!((sample.outcome, sample.sent), (Outcome::Ok, Some(sample.time)));
        assert_eq!(sample.end, Some(sample.time + 12 * MILLISECOND));
        count += 1;
    }
    assert!(count > 490, "{count}");
}

#[test]
fn a_stall_is_late_answers_and_few_connections() {
    let samples = availability("ro", "&stall=2s%2B3s", 8 * SECOND);
    let gap = gap(&samples, |sample| sample.end.unwrap());
    assert!((2994.0..3006.0).contains(&gap), "{gap}");
    let counted = |outcome: Outcome| samples.iter().filter(|sample| sample.outcome == outcome).count();
    let (missing, timeout) =
        (counted(Outcome::Missing), counted(Outcome::Failed(ErrorClass::StatementTimeout)));
    assert!(missing > 500, "{missing} missing");
    // The eight lanes; a connection a second that waits as long as a probe may, and ten or fewer that do not.
    assert!((10..=8 + 33).contains(&timeout), "{timeout} in vain");
    assert_eq!(missing + timeout + counted(Outcome::Ok), samples.len());
    assert!(
        samples
            .iter()
            .filter(|sample| sample.time > BEGINNING + 5 * SECOND + 20 * MILLISECOND)
            .all(|sample| sample.outcome == Outcome::Ok)
    );
}

/// How long an endpoint was away that stood still from 2 s on, as its probes tell: until the first answer after the last
/// probe that was not served within 100 ms.
fn away(samples: &[Sample]) -> f64 {
    let in_time = |sample: &Sample| {
        sample.outcome == Outcome::Ok && sample.end.unwrap() - sample.time <= 100 * MILLISECOND
    };
    let last = samples.iter().filter(|sample| !in_time(sample)).map(|sample| sample.time).max().unwrap();
    let back =
        samples.iter().filter(|sample| sample.time > last).map(|sample| sample.end.unwrap()).min().unwrap();
    milliseconds(back - BEGINNING - 2 * SECOND)
}

#[test]
fn probes_do_not_prolong_the_outage_that_they_time_whatever_their_rate() {
    // Each connection, and each statement that was given up, takes the only place there is for 2 ms when the server goes
    // on.
    let url = "sim://?latency=constant(2ms)&capacity=1&stall=2s%2B5s";
    let found: Vec<f64> = [20.0, 50.0, 100.0, 200.0, 400.0]
        .map(|rate| {
            let what = json!({"availability": {"rate": rate}});
            let mut samples = probes(&[("ro", url)], &what, 10 * SECOND);
            samples.sort_by_key(|sample| sample.number);
            away(&samples) - 1000.0 / rate
        })
        .to_vec();
    assert!(found.iter().all(|away| (4950.0..5110.0).contains(away)), "{found:?}");
}
