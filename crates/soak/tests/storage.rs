//! Requests to a storage tier, executed in simulated time on a target of which everything is known.
#![allow(clippy::unwrap_used)]

use std::rc::Rc;
use std::sync::Arc;

use hdrhistogram::Histogram;
use nephoscope_engine::histogram;
use nephoscope_runtime::clock::{self, MILLISECOND, SECOND};
use nephoscope_runtime::{Nanos, Runtime, Simulation};
use nephoscope_storage::execute::{Failure, Layout, Options, Schedule, Session, Syncs, Target, simulate};
use nephoscope_storage::{Columns, Operation, Process, Request};
use serde_json::Value;

const SERVICE: Nanos = MILLISECOND;

/// Serves each request in a millisecond, and nobody for half a second of its time.
struct Stalling {
    /// Since the beginning of time.
    stall: (Nanos, Nanos),
}

struct StallingSession(Runtime, (Nanos, Nanos));

impl Target for Stalling {
    type Session = StallingSession;

    fn prepare(&self, _layout: &Layout) -> Result<(), Failure> {
        Ok(())
    }

    async fn connect(
        &self,
        runtime: &Runtime,
        _layout: &Rc<Layout>,
        _until: Nanos,
    ) -> Result<StallingSession, Failure> {
        Ok(StallingSession(runtime.clone(), self.stall))
    }
}

impl Session for StallingSession {
    async fn execute(&mut self, _request: &Request, _deadline: Nanos) -> Result<(), Failure> {
        let (from, until) = self.1;
        let now = clock::now() - Simulation::BEGINNING;
        let served = if (from..until).contains(&now) { until } else { now + SERVICE };
        self.0.sleep_until(Simulation::BEGINNING + served).await;
        Ok(())
    }
}

fn reads(count: i64, every_us: i64) -> Columns {
    let mut columns = Columns::default();
    for number in 0..count {
        columns.push(&Request {
            time_us: number * every_us,
            segment: 0,
            offset: 0,
            bytes: 4096,
            operation: Operation::Read,
            process: Process::Backend,
            latency_us: f32::NAN,
        });
    }
    columns
}

fn run(stall: (Nanos, Nanos), options: &Options) -> Vec<Value> {
    let schedule = Schedule::new(&reads(2000, 1000), Syncs::Captured, options.speed).unwrap();
    simulate(&Arc::new(Stalling { stall }), schedule, options).unwrap()
}

fn sum(records: &[Value], kind: &str) -> Histogram<u64> {
    let mut sum = histogram::empty();
    for series in records.iter().filter_map(|record| record["series"].as_array()).flatten() {
        if let Some(text) = series[kind].as_str() {
            sum.add(histogram::decode(text).unwrap()).unwrap();
        }
    }
    sum
}

fn longer(histogram: &Histogram<u64>, than: Nanos) -> u64 {
    histogram.iter_recorded().filter(|v| v.value_iterated_to() > than).map(|v| v.count_at_value()).sum()
}

fn end(records: &[Value], name: &str) -> u64 {
    records.last().unwrap()[name].as_u64().unwrap()
}

/// The start of an execution is 20 ms after its sessions are connected; then 700 ms pass before the stall.
const STALL: (Nanos, Nanos) = (720 * MILLISECOND, 1220 * MILLISECOND);

#[test]
fn without_a_stall_each_request_takes_what_the_target_takes() {
    let records = run((0, 0), &Options::default());
    for (kind, expected) in [("latency", SERVICE), ("service", SERVICE), ("lateness", 1)] {
        let found = sum(&records, kind);
        assert_eq!(found.len(), 2000);
        assert!(found.max() <= expected + expected / 500 + 1100, "{kind}: {}", found.max());
    }
    assert_eq!((end(&records, "done"), end(&records, "waited")), (2000, 0));
}

#[test]
fn a_stall_of_half_a_second_at_1000_a_second_is_500_late_requests_and_not_one() {
    let records = run(STALL, &Options { depth: 1024, ..Options::default() });
    let latency = sum(&records, "latency");
    // Those that were due in the stall, but for its last two milliseconds: they end at its end.
    assert_eq!(longer(&latency, SERVICE + SERVICE / 2), 499);
    let mean: f64 =
        latency.iter_recorded().map(|v| v.value_iterated_to() as f64 * v.count_at_value() as f64).sum();
    let planted: f64 = (1..=500).map(|ms| f64::from(ms) * 1e6).sum::<f64>() + 1500.0 * SERVICE as f64;
    assert!((mean / planted - 1.0).abs() < 0.002, "{mean} against {planted}");
    // The target itself held up all of them: none was late.
    assert_eq!((longer(&sum(&records, "lateness"), 2000), end(&records, "waited")), (0, 0));
}

#[test]
fn a_full_queue_is_lateness_and_the_latency_stays_the_truth() {
    let records = run(STALL, &Options { depth: 1, ..Options::default() });
    let (latency, service, lateness) =
        (sum(&records, "latency"), sum(&records, "service"), sum(&records, "lateness"));
    // One request was in the target; the others waited for it, and for each other.
    assert_eq!(longer(&service, 2 * SERVICE), 1);
    assert!(longer(&latency, 2 * SERVICE) >= 499, "{}", longer(&latency, 2 * SERVICE));
    assert_eq!(latency.len(), 2000);
    assert!(lateness.max() >= 498 * MILLISECOND && end(&records, "waited") >= 499);
    assert_eq!(end(&records, "unstarted"), 0);
}

#[test]
fn a_target_that_never_answers_leaves_all_counted() {
    let never = (100 * MILLISECOND, 1000 * SECOND);
    let options = Options { depth: 10, drain: SECOND, ..Options::default() };
    let records = run(never, &options);
    let (done, unstarted, in_flight) =
        (end(&records, "done"), end(&records, "unstarted"), end(&records, "in_flight"));
    assert_eq!((done + unstarted + in_flight, in_flight), (2000, 10));
    assert_eq!(done, 80, "those that were due before 80 ms");
    let censored = sum(&records, "censored");
    assert_eq!(censored.len(), unstarted + in_flight);
    // The first that was held up was due at 80 ms, and the execution ended a second after the last was due.
    let longest = 2919 * MILLISECOND;
    assert!(censored.max() >= longest && censored.max() < longest + 10 * MILLISECOND, "{}", censored.max());
}

#[test]
fn twice_the_speed_is_half_the_time() {
    let records = run((0, 0), &Options { speed: 2.0, ..Options::default() });
    let ended = records.last().unwrap()["end_s"].as_f64().unwrap();
    assert!((ended - 1.0).abs() < 0.01, "{ended}");
}
