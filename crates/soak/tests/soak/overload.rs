//! Twice as many arrivals as a database of known capacity serves: what has not started when its phase ends is its own.

use std::time::Duration;

use nephoscope_engine::spec::{Level, LoadChange, MixSpec, PhaseSpec};
use nephoscope_engine::{LoadSpec, Simulation};

use crate::draw::{Draw, rest};
use crate::support::{SECOND, Story, check};

const SESSIONS: u64 = 64;
/// Four places of 5 ms each.
const CAPACITY: f64 = 800.0;
const RATE: f64 = 1600.0;
const SECONDS: f64 = 5.0;

fn phase(name: &str, seconds: f64, rate: f64) -> PhaseSpec {
    let mix = [("write", 3.0), ("read", 1.0)].map(|(name, weight)| (name.to_owned(), weight));
    let load = LoadChange {
        rate: Some(Level::At(rate)),
        mix: Some(MixSpec::Weights(mix.into())),
        ..LoadChange::default()
    };
    PhaseSpec {
        name: name.to_owned(),
        seconds: Some(seconds),
        loads: [("*".to_owned(), load)].into(),
        ..rest()
    }
}

fn spec(planted: &str, threads: usize) -> LoadSpec {
    let mut spec = Draw::new(1).spec(1, 1.0);
    spec.tenants.truncate(1);
    spec.tenants[0].rw = vec![format!("sim://overload-{threads}?{planted}")];
    spec.tenants[0].ro.clear();
    spec.tenants[0].reads = nephoscope_engine::spec::Reads::Rw;
    (spec.tenants[0].sessions, spec.tenants[0].backlog) = (SESSIONS as usize, 100_000);
    (spec.threads, spec.interval_ms, spec.statement_timeout_ms, spec.drain_timeout_ms) =
        (threads, 100, 1000, 1000);
    spec.retry.attempts = 1;
    spec.phases = vec![phase("too much", SECONDS, RATE), phase("after", 2.0, 80.0)];
    spec
}

fn story(spec: &LoadSpec) -> Story {
    let mut simulation = Simulation::start(spec).unwrap();
    simulation.advance(10_000_000_000);
    let mut story = Story::default();
    while let Some(record) = simulation.run().next(Duration::ZERO) {
        story.add(record);
    }
    story
}

#[test]
fn what_an_overloaded_phase_has_not_started_is_counted_in_it_and_never_started() {
    for threads in 1..=3 {
        let spec = spec("latency=constant(5ms)&capacity=4", threads);
        let story = story(&spec);
        check::every_run(&story, &spec);
        check::arrivals(&story);
        let (over, after) = (story.phase("too much"), story.phase("after"));
        assert_eq!(over.counted(|of| of.arrivals) as f64, RATE * SECONDS);
        let served = CAPACITY * SECONDS;
        check::within("served", over.committed() as f64, served, 0.01);
        let unstarted = over.sum(|of| of.unstarted);
        check::within("unstarted", unstarted as f64, RATE * SECONDS - served - SESSIONS as f64, 0.01);
        // It is the backlog of the last interval, which had grown by what is too much in each.
        let backlog = over.gauge(|of| of.backlog);
        assert_eq!(backlog.last(), Some(&unstarted));
        check::within("growth", (backlog[49] - backlog[9]) as f64, (RATE - CAPACITY) * 4.0, 0.01);
        // Each transaction has its share of the mix.
        let writes = over.sum(|of| if of.name.transaction == "write" { of.unstarted } else { 0 });
        assert!(writes.abs_diff(unstarted * 3 / 4) <= 3 * threads as u64, "{writes} of {unstarted}");
        // First come, first served: who comes after the middle is not served, and has waited for what is left.
        let censored = over.censored();
        assert_eq!(censored.len(), unstarted + SESSIONS);
        for share in [0.1, 0.5, 0.99] {
            let waited = censored.value_at_quantile(share) as f64 / SECOND;
            assert!((waited - share * SECONDS / 2.0).abs() < 0.06, "{share}: {waited} s");
        }
        // The next phase has its own arrivals and no wait of the other's but for what was in flight.
        assert_eq!(after.counted(|of| of.arrivals), 160);
        assert_eq!(after.committed(), 160 + SESSIONS);
        assert_eq!((after.latency().len(), after.sum(|of| of.unstarted)), (160, 0));
        assert!((after.latency().max() as f64) < 0.1 * SECOND, "{} ns", after.latency().max());
    }
}

#[test]
fn failed_transactions_have_latencies_of_their_own() {
    let mut spec = spec("latency=uniform(10ms,110ms)", 1);
    spec.statement_timeout_ms = 60;
    spec.phases = vec![phase("all", 5.0, 200.0)];
    let story = story(&spec);
    check::every_run(&story, &spec);
    let all = story.all();
    let (latency, failures) = (all.latency(), all.failures());
    assert_eq!((latency.len(), failures.len()), (all.committed(), all.failed()));
    check::binomial("failed", all.failed(), 1000, 0.5);
    assert!((latency.max() as f64) < 0.061 * SECOND && failures.min() as f64 > 0.059 * SECOND);
    check::within("median of what was committed", latency.value_at_quantile(0.5) as f64 / SECOND, 0.035, 0.1);
}
