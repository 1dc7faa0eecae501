//! Executions on a target of which everything is known. The machine may be busy: what is asserted of times is what was
//! planted, as the least that must be seen. Simulated time (`crates/soak`) asserts the rest.

use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nephoscope_engine::histogram::{self, WindowHistogram};
use nephoscope_runtime::clock::{self, MILLISECOND};
use nephoscope_runtime::{Nanos, Runtime};
use serde_json::Value;

use super::*;
use crate::requests::{Columns, Operation, Process, Request};

/// Takes a time for each request, stalls once, breaks once.
#[derive(Default)]
struct Planted {
    service: Nanos,
    /// From the first request on: when it begins to stall, and for how long.
    stall: Option<(Nanos, Nanos)>,
    /// The time of the request that breaks its session.
    breaks: Option<i64>,
    refuses_connections: bool,
    /// When the first request was executed.
    first: Arc<Mutex<Option<Nanos>>>,
    executed: Arc<Mutex<Vec<Request>>>,
}

struct PlantedSession {
    runtime: Runtime,
    target: Planted,
}

impl Target for Planted {
    type Session = PlantedSession;

    fn prepare(&self, _layout: &Layout) -> Result<(), Failure> {
        Ok(())
    }

    async fn connect(
        &self,
        runtime: &Runtime,
        _layout: &Rc<Layout>,
        _until: Nanos,
    ) -> Result<PlantedSession, Failure> {
        if self.refuses_connections {
            return Err(Failure::Refused("planted: nobody is there".to_owned()));
        }
        let (executed, first) = (Arc::clone(&self.executed), Arc::clone(&self.first));
        let target = Planted { first, executed, ..*self };
        Ok(PlantedSession { runtime: runtime.clone(), target })
    }
}

impl Session for PlantedSession {
    async fn execute(&mut self, request: &Request, _deadline: Nanos) -> Result<(), Failure> {
        let now = clock::now();
        self.target.executed.lock().unwrap().push(*request);
        if self.target.breaks == Some(request.time_us) {
            return Err(Failure::Broken("planted: broken".to_owned()));
        }
        let first = *self.target.first.lock().unwrap().get_or_insert(now);
        let mut until = now + self.target.service;
        if let Some((begin, length)) = self.target.stall
            && (first + begin..first + begin + length).contains(&now)
        {
            until = first + begin + length;
        }
        self.runtime.sleep_until(until).await;
        Ok(())
    }
}

/// Reads at a steady rate.
fn reads(count: i64, every_us: i64) -> Columns {
    let mut columns = Columns::default();
    for number in 0..count {
        columns.push(&Request {
            time_us: number * every_us,
            segment: 0,
            offset: number as u64 * 4096,
            bytes: 4096,
            operation: Operation::Read,
            process: Process::Backend,
            latency_us: f32::NAN,
        });
    }
    columns
}

fn run(target: Planted, columns: &Columns, options: &Options) -> Vec<Value> {
    let layout = Arc::new(Layout::of([columns]));
    let schedule = Schedule::new(columns, options.syncs, options.speed).unwrap();
    let execution = Execution::start(&Arc::new(target), &layout, schedule, options).unwrap();
    records(&execution)
}

fn records(execution: &Execution) -> Vec<Value> {
    std::iter::from_fn(|| execution.next(Duration::from_secs(30))).collect()
}

fn end(records: &[Value]) -> &Value {
    let end = records.last().unwrap();
    assert_eq!((&end["record"], &end["complete"]), (&"end".into(), &true.into()), "{end}");
    end
}

fn sum(records: &[Value], kind: &str) -> WindowHistogram {
    let mut sum = histogram::empty();
    for series in records.iter().filter_map(|record| record["series"].as_array()).flatten() {
        if let Some(text) = series[kind].as_str() {
            sum.add(histogram::decode(text).unwrap()).unwrap();
        }
    }
    sum
}

fn at_least(histogram: &WindowHistogram, time: Nanos) -> u64 {
    histogram.len()
        - histogram
            .iter_recorded()
            .filter(|v| v.value_iterated_to() < time)
            .map(|v| v.count_at_value())
            .sum::<u64>()
}

#[test]
fn every_request_is_executed_once_and_counted_once() {
    let columns = reads(2000, 100);
    let target = Planted { service: MILLISECOND, ..Planted::default() };
    let executed = Arc::clone(&target.executed);
    let options = Options { workers: 3, depth: 32, interval: 50 * MILLISECOND, ..Options::default() };
    let records = run(target, &columns, &options);
    let end = end(&records);
    assert_eq!((&end["started"], &end["done"], &end["failed"]), (&2000.into(), &2000.into(), &0.into()));
    let mut times: Vec<i64> = executed.lock().unwrap().iter().map(|request| request.time_us).collect();
    times.sort_unstable();
    assert_eq!(times, columns.time_us);
    let (latency, service, lateness) =
        (sum(&records, "latency"), sum(&records, "service"), sum(&records, "lateness"));
    assert_eq!((latency.len(), service.len(), lateness.len()), (2000, 2000, 2000));
    assert!(service.min() >= 998_000, "{}", service.min());
    assert!(latency.min() >= service.min());
    let intervals: Vec<&Value> = records.iter().filter(|record| record["record"] == "interval").collect();
    assert!(intervals.len() >= 4);
    assert!(intervals.windows(2).all(|pair| pair[0]["end_s"] == pair[1]["start_s"]));
}

#[test]
fn a_stall_is_in_the_latency_of_all_whom_it_held_up() {
    // 1,000 a second; half a second of stall, of which the schedule takes no notice. Four may be in flight.
    let target = Planted { stall: Some((200 * MILLISECOND, 500 * MILLISECOND)), ..Planted::default() };
    let options = Options { depth: 4, ..Options::default() };
    let records = run(target, &reads(1000, 1000), &options);
    let (latency, service) = (sum(&records, "latency"), sum(&records, "service"));
    // Whoever was due in the first 400 ms of the stall waited at least 100 ms; four of them within the target.
    let late = at_least(&latency, 100 * MILLISECOND);
    assert!(late >= 399, "{late}");
    assert!(latency.max() >= 495 * MILLISECOND && service.max() <= latency.max());
    assert!(end(&records)["waited"].as_u64().unwrap() >= 390, "{}", end(&records));
    assert_eq!(latency.len(), 1000);
}

#[test]
fn what_waits_too_long_is_dropped_and_counted_as_at_least_so_late() {
    let target = Planted { service: 50 * MILLISECOND, ..Planted::default() };
    let options = Options { depth: 1, give_up: 20 * MILLISECOND, ..Options::default() };
    let records = run(target, &reads(100, 1000), &options);
    let end = end(&records);
    let (done, dropped) = (end["done"].as_u64().unwrap(), end["dropped"].as_u64().unwrap());
    assert_eq!((done + dropped, end["unstarted"].as_u64()), (100, Some(dropped)));
    assert!((1..=5).contains(&done) && sum(&records, "censored").min() >= 19 * MILLISECOND, "{end}");
    assert_eq!(sum(&records, "censored").len(), dropped);
}

#[test]
fn what_has_not_ended_when_it_is_stopped_is_counted() {
    let columns = reads(10_000, 1000);
    let layout = Arc::new(Layout::of([&columns]));
    let schedule = Schedule::new(&columns, Syncs::Captured, 1.0).unwrap();
    let target = Arc::new(Planted { service: 3_600_000 * MILLISECOND, ..Planted::default() });
    let options = Options { depth: 10, ..Options::default() };
    let execution = Execution::start(&target, &layout, schedule, &options).unwrap();
    assert!(execution.next(Duration::from_millis(300)).is_none());
    execution.stop();
    let records = records(&execution);
    let end = records.last().unwrap();
    assert_eq!((&end["in_flight"], &end["done"], &end["complete"]), (&10.into(), &0.into(), &false.into()));
    let unstarted = end["unstarted"].as_u64().unwrap();
    assert!(unstarted >= 200, "{end}");
    assert_eq!(sum(&records, "censored").len(), unstarted + 10);
}

#[test]
fn a_session_that_breaks_connects_again() {
    let target = Planted { breaks: Some(5_000), ..Planted::default() };
    let options = Options { depth: 1, ..Options::default() };
    let records = run(target, &reads(20, 1000), &options);
    assert_eq!((&end(&records)["done"], &end(&records)["failed"]), (&19.into(), &1.into()));
    let error = records.iter().find(|record| record["record"] == "error").unwrap();
    assert_eq!((&error["class"], &error["message"]), (&"connection_lost".into(), &"planted: broken".into()));
    assert_eq!(sum(&records, "failed_latency").len(), 1);
}

#[test]
fn a_target_that_lets_nobody_in_is_told_before_anything_begins() {
    let columns = reads(1, 1);
    let schedule = Schedule::new(&columns, Syncs::Captured, 1.0).unwrap();
    let target = Arc::new(Planted { refuses_connections: true, ..Planted::default() });
    let begun = Execution::start(&target, &Arc::new(Layout::of([&columns])), schedule, &Options::default());
    assert_eq!(begun.err().unwrap().to_string(), "planted: nobody is there");
}

#[test]
fn more_workers_than_requests_in_flight_are_refused() {
    let columns = reads(1, 1);
    let schedule = Schedule::new(&columns, Syncs::Captured, 1.0).unwrap();
    let options = Options { depth: 2, workers: 3, ..Options::default() };
    let begun = Execution::start(&Arc::new(Planted::default()), &Arc::default(), schedule, &options);
    assert!(begun.err().unwrap().to_string().contains("workers: at least 1"));
}
