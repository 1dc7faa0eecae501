//! Probes read back what is planted in the simulated database: lag by its law, outages to the moment, and no probe is
//! lost on the way. In simulated time, so the truth is exact and the same on every machine.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use nephoscope_drivers::ErrorClass;
use nephoscope_engine::probes::{Kind, Outcome, ProbesSpec, Sample, simulate};
use nephoscope_runtime::Simulation;
use nephoscope_runtime::clock::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use serde_json::{Value, json};

/// When simulations begin.
const BEGINNING: Nanos = Simulation::BEGINNING;

fn probes(endpoints: &[(&str, &str)], what: &Value, time: Nanos) -> Vec<Sample> {
    let endpoint = |(role, url): &(&str, &str)| json!({"role": role, "node": role, "url": url});
    let mut spec = json!({"origin_ns": 0, "io": "epoll", "seed": 3});
    spec["endpoints"] = endpoints.iter().map(endpoint).collect();
    spec.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
    let spec: ProbesSpec = serde_json::from_value(spec).unwrap();
    simulate(&spec, time).unwrap().samples
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
        assert!(numbers.len() as f64 > time as f64 / 1e9 * 19.9, "{law}: {} markers", numbers.len());
        let kinds = |kind: Kind| samples.iter().filter(move |sample| sample.kind == kind).count();
        assert!(
            [Kind::Insert, Kind::Update].iter().all(|kind| kinds(*kind).abs_diff(kinds(Kind::Delete)) <= 1)
        );
        assert!(samples.iter().all(|sample| (sample.endpoint, sample.outcome) == (1, Outcome::Ok)), "{law}");
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
    // The first 5 s are what the rows take to be there.
    assert!(samples.len() >= 290, "{}", samples.len());
    for sample in &samples {
        assert_eq!((sample.outcome, sample.upper), (Outcome::NotSeen, None));
        assert!((milliseconds(sample.lower.unwrap()) - 400.0).abs() < 1.0, "{sample:?}");
    }
}

#[test]
fn a_look_that_the_replica_has_ended_for_its_replay_is_repeated() {
    let samples = lag("conflicts", &["constant(5ms)&error=serialization:0.3"], 20 * SECOND);
    assert!(samples.len() > 150 && samples.iter().all(|sample| sample.outcome == Outcome::Ok));
    assert!((mean(&samples) - 5.0).abs() <= 0.1, "{} ms", mean(&samples));
    // Where all of them are, nobody sees the marker: it lags by at least the limit.
    let samples = lag("conflicts-only", &["constant(5ms)&failure=2s%2B60s:serialization"], 30 * SECOND);
    let (before, after): (Vec<Sample>, Vec<Sample>) =
        samples.into_iter().partition(|sample| sample.time < BEGINNING + 1990 * MILLISECOND);
    assert!(before.len() > 35 && before.iter().all(|sample| sample.outcome == Outcome::Ok));
    for sample in &after[1..] {
        assert_eq!((sample.outcome, sample.upper), (Outcome::Failed(ErrorClass::Serialization), None));
        let looked_for = (sample.end.unwrap() - sample.time).min(10 * SECOND);
        assert!(sample.lower.unwrap() >= looked_for && looked_for > 900 * MILLISECOND, "{sample:?}");
    }
}

#[test]
fn what_a_replica_that_is_away_for_a_while_does_not_show_lags_until_it_is_back() {
    let url = |lag: &str, more: &str| format!("sim://away?latency=constant(60us)&lag={lag}{more}");
    let (well, away) = (url("constant(2ms)", ""), url("constant(2ms)", "&outage=2s%2B3s"));
    let rw = "sim://away?latency=constant(60us)";
    let samples = probes(&[("rw", rw), ("ro", &well), ("ro", &away)], &json!({"lag": {}}), 10 * SECOND);
    let of = |place: usize| samples.iter().filter(move |sample| sample.endpoint == place);
    assert!(samples.iter().all(|sample| sample.outcome == Outcome::Ok));
    assert!(
        of(1).count().abs_diff(200) <= 1 && of(1).count() == of(2).count(),
        "each marker has its sample on each"
    );
    assert!(of(1).all(|sample| milliseconds(sample.upper.unwrap()) < 2.2), "it holds up nobody");
    for sample in of(2) {
        let at = milliseconds(sample.time - BEGINNING);
        // Connections are tried each 100 ms.
        let until_it_is_back = if (2000.0..5000.0).contains(&at) { 5000.0 - at } else { 2.0 };
        let (lower, upper) = (milliseconds(sample.lower.unwrap()), milliseconds(sample.upper.unwrap()));
        let known = lower - 0.1 <= until_it_is_back && until_it_is_back <= upper + 0.1;
        assert!(known && upper - lower < 101.0 || (1995.0..2000.0).contains(&at), "{at}: {sample:?}");
    }
}

#[test]
fn a_replica_that_is_gone_for_good_lags_by_at_least_the_limit() {
    let url = "sim://gone?latency=constant(60us)&lag=constant(2ms)&outage=10s%2B1000s";
    let samples =
        probes(&[("rw", "sim://gone?latency=constant(60us)"), ("ro", url)], &json!({"lag": {}}), 60 * SECOND);
    assert!(samples.len().abs_diff(1200) <= 1, "{}", samples.len());
    let (before, after): (Vec<Sample>, Vec<Sample>) =
        samples.into_iter().partition(|sample| sample.time < BEGINNING + 9990 * MILLISECOND);
    assert!((mean(&before) - 2.0).abs() < 0.1);
    for sample in &after[1..] {
        assert_eq!((sample.outcome, sample.upper), (Outcome::Failed(ErrorClass::ConnectionLost), None));
        let until_the_end = BEGINNING + 61 * SECOND - sample.time;
        assert!(sample.lower.unwrap() >= until_the_end.min(10 * SECOND), "{sample:?}");
    }
}

/// The mean lag, of midpoints, and the mean half-width: by so much the bounds leave it open.
fn over_time(samples: &[Sample]) -> (f64, f64) {
    let half = |sample: &Sample| milliseconds(sample.upper.unwrap() - sample.lower.unwrap()) / 2.0;
    (mean(samples), samples.iter().map(half).sum::<f64>() / samples.len() as f64)
}

#[test]
fn stalls_weigh_as_much_as_they_last() {
    // 5 s in every 30, for 5 minutes: a commit at a chance moment is seen after 5²/2/30 s and the lag, 418 ms.
    let stalls = |key: &str| -> String {
        let windows: Vec<String> = (0..10).map(|place| format!("&{key}={}s%2B5s", 10 + 30 * place)).collect();
        windows.concat()
    };
    for (name, key, exact) in [("replay", "lag_stall", true), ("hung", "stall", false)] {
        let samples = lag(name, &[&format!("constant(1.3ms){}", stalls(key))], 300 * SECOND);
        assert!(samples.len().abs_diff(6000) <= 1, "{name}: the schedule goes on");
        assert!(samples.iter().all(|sample| sample.outcome == Outcome::Ok), "{name}");
        for kind in [Kind::Insert, Kind::Update, Kind::Delete] {
            let of_kind: Vec<Sample> = samples.iter().copied().filter(|sample| sample.kind == kind).collect();
            let (read, half) = over_time(&of_kind);
            // Where a stall begins between two markers of a kind, 150 ms apart, leaves 2 ms over ten stalls (1σ).
            assert!((read - 418.0).abs() <= 5.0 + half, "{name}, {kind:?}: {read} ± {half} ms");
            // A server that hangs leaves open when it would have shown the marker: up to a poll's limit before.
            assert!(half < if exact { 0.2 } else { 150.0 }, "{name}: {half}");
            let stale = of_kind.iter().filter(|sample| milliseconds(sample.upper.unwrap()) > 1000.0).count();
            let share = stale as f64 / of_kind.len() as f64;
            assert!((share - 4.0 / 30.0).abs() < if exact { 0.003 } else { 0.03 }, "{name}: {share}");
        }
    }
}

#[test]
fn a_writer_that_stalls_delays_its_commits_and_not_the_schedule() {
    let (rw, ro) = (
        "sim://writer?latency=constant(60us)&stall=5s%2B5s&stall=30s%2B15s",
        "sim://writer?latency=constant(60us)&lag=constant(3ms)",
    );
    let samples = probes(&[("rw", rw), ("ro", ro)], &json!({"lag": {}}), 60 * SECOND);
    let mut numbers: Vec<u64> = samples.iter().map(|sample| sample.number).collect();
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "each marker has its sample");
    assert!(numbers.len().abs_diff(1200) <= 1, "the schedule goes on: {}", numbers.len());
    let (seen, not_committed): (Vec<Sample>, Vec<Sample>) =
        samples.into_iter().partition(|sample| sample.endpoint == 1);
    assert!(seen.iter().all(|sample| sample.outcome == Outcome::Ok));
    assert!((mean(&seen) - 3.0).abs() < 0.1, "it counts from the acknowledgement: {}", mean(&seen));
    // Within the limit of 10 s all are committed; those due in the first 5 s of a stall of 15 s are not.
    let at = |sample: &Sample| milliseconds(sample.time - BEGINNING);
    assert!(not_committed.iter().all(|sample| (29_900.0..35_100.0).contains(&at(sample))));
    let missing = not_committed.iter().filter(|sample| sample.outcome == Outcome::Missing).count();
    assert!((90..=102).contains(&missing), "{missing}");
    let in_vain = not_committed.len() - missing;
    assert!((4..=8).contains(&in_vain), "{in_vain} of as many as are on their way at a time");
}

#[test]
fn markers_are_looked_for_however_many_are_on_their_way() {
    let stall = "constant(1ms)&lag_stall=5s%2B5s";
    let url = format!("sim://many?latency=constant(60us)&lag={stall}");
    let samples = probes(
        &[("rw", "sim://many?latency=constant(60us)"), ("ro", &url)],
        &json!({"lag": {"interval_ms": 2}}),
        15 * SECOND,
    );
    assert!(samples.len().abs_diff(7500) <= 1, "{}", samples.len());
    for sample in &samples {
        let at = milliseconds(sample.time - BEGINNING);
        let planted = if (4999.0..10_000.0).contains(&at) { 10_000.0 - at } else { 1.0 };
        let (lower, upper) = (milliseconds(sample.lower.unwrap()), milliseconds(sample.upper.unwrap()));
        assert!(lower <= planted && planted <= upper, "{at}: {sample:?}");
        // Some 800 of each kind are looked for by polls of 100 rows.
        assert!(upper - lower < 6.0, "{at}: {sample:?}");
    }
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
