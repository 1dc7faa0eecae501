//! An execution: its workers' threads, and the records that come of what they tell.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nephoscope_runtime::clock::{self, MILLISECOND, SECOND};
use nephoscope_runtime::mailbox::{self, mailbox};
use nephoscope_runtime::{Io, Nanos, Runtime};
use serde::Deserialize;
use serde_json::Value;

use crate::execute::collector::Collector;
use crate::execute::layout::Layout;
use crate::execute::schedule::{Schedule, Syncs};
use crate::execute::target::{Failure, Target};
use crate::execute::worker::{Order, Report, Setup, work};

/// How requests are executed. As JSON, times are in seconds under names that end in `_s`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, from = "Given")]
pub struct Options {
    /// The name of the source, in every record.
    pub source: String,
    /// The number of the phase in every record.
    pub phase: u32,
    /// From when times in records count, on the monotonic clock; 0: from the start of this execution.
    pub origin: Nanos,
    /// How many requests may be in flight, all workers together.
    pub depth: usize,
    /// Threads; no more than `depth`.
    pub workers: usize,
    /// How much faster than captured.
    pub speed: f64,
    /// When written bytes are made durable.
    pub syncs: Syncs,
    /// A request that is later than this when a session is free for it is dropped.
    pub give_up: Nanos,
    /// How long a request may take.
    pub timeout: Nanos,
    /// How long the execution waits for the requests that have not ended, after the last was due.
    pub drain: Nanos,
    /// How long a session may take to connect.
    pub connect: Nanos,
    /// The length of an interval.
    pub interval: Nanos,
    /// How workers wait; `None`: by io_uring if the kernel allows it.
    pub io: Option<Io>,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Given {
    source: String,
    phase: u32,
    origin_ns: Nanos,
    depth: usize,
    workers: usize,
    speed: f64,
    syncs: Syncs,
    give_up_s: f64,
    timeout_s: f64,
    drain_s: f64,
    connect_s: f64,
    interval_s: f64,
    io: String,
}

impl Default for Given {
    fn default() -> Self {
        Self {
            source: "requests".to_owned(),
            phase: 0,
            origin_ns: 0,
            depth: 64,
            workers: 1,
            speed: 1.0,
            syncs: Syncs::Captured,
            give_up_s: 10.0,
            timeout_s: 30.0,
            drain_s: 10.0,
            connect_s: 10.0,
            interval_s: 1.0,
            io: "auto".to_owned(),
        }
    }
}

impl From<Given> for Options {
    fn from(given: Given) -> Self {
        let nanos = |seconds: f64| (seconds * 1e9) as Nanos;
        Self {
            source: given.source,
            phase: given.phase,
            origin: given.origin_ns,
            depth: given.depth,
            workers: given.workers,
            speed: given.speed,
            syncs: given.syncs,
            give_up: nanos(given.give_up_s),
            timeout: nanos(given.timeout_s),
            drain: nanos(given.drain_s),
            connect: nanos(given.connect_s),
            interval: nanos(given.interval_s),
            io: match given.io.as_str() {
                "uring" => Some(Io::Uring),
                "epoll" => Some(Io::Epoll),
                _ => None,
            },
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Given::default().into()
    }
}

impl Options {
    /// How many sessions a worker has.
    pub(crate) fn sessions_of(&self, worker: usize) -> usize {
        self.depth / self.workers + usize::from(worker < self.depth % self.workers)
    }

    pub(crate) fn check(&self) -> Result<(), Failure> {
        let wrong = if self.workers == 0 || self.workers > self.depth {
            "workers: at least 1, and no more than may be in flight (depth)"
        } else if self.depth > MOST {
            "depth: at most 65,536 requests in flight"
        } else if self.interval < MILLISECOND {
            "interval: at least a millisecond"
        } else {
            return Ok(());
        };
        Err(Failure::Refused(wrong.to_owned()))
    }
}

const MOST: usize = 1 << 16;

/// How workers wait where nobody has chosen.
#[must_use]
pub fn best_io() -> Io {
    if Io::Uring.check().is_ok() { Io::Uring } else { Io::Epoll }
}

/// An execution that goes on. Dropping it ends it.
pub struct Execution {
    origin: Nanos,
    orders: Vec<mailbox::Sender<Order>>,
    intake: Mutex<Intake>,
}

/// The reader's side.
struct Intake {
    reports: Receiver<Report>,
    collector: Collector,
    ready: VecDeque<Value>,
    threads: Vec<JoinHandle<()>>,
    ended: bool,
}

/// The start is so far ahead that every worker hears of it before.
pub(crate) const AHEAD: Nanos = 20 * MILLISECOND;

impl Execution {
    /// Connects all sessions and begins. The target has been prepared for the layout.
    pub fn start<T: Target>(
        target: &Arc<T>,
        layout: &Arc<Layout>,
        schedule: Schedule,
        options: &Options,
    ) -> Result<Self, Failure> {
        options.check()?;
        let schedule = Arc::new(schedule);
        let (reports, intake) = channel();
        let (mut orders, mut threads) = (Vec::new(), Vec::new());
        for number in 0..options.workers {
            let (sender, receiver) = mailbox();
            orders.push(sender);
            let setup = Setup {
                number,
                target: Arc::clone(target),
                layout: Arc::clone(layout),
                schedule: Arc::clone(&schedule),
                options: options.clone(),
                reports: reports.clone(),
            };
            threads.push(spawn(setup, receiver, options.io.unwrap_or_else(best_io), reports.clone())?);
        }
        drop(reports);
        let begun = await_workers(&intake, options.workers).map(|()| clock::now() + AHEAD);
        if let Ok(start) = begun {
            for order in &orders {
                order.send(Order::Begin(start));
            }
        }
        // Workers without an order end when nobody can give one.
        let start = begun?;
        let origin = if options.origin == 0 { start } else { options.origin };
        let collector = Collector::new(options, start - origin.min(start), schedule.len() as u64);
        let intake = Intake { reports: intake, collector, ready: VecDeque::new(), threads, ended: false };
        Ok(Self { origin: start, orders, intake: Mutex::new(intake) })
    }

    /// When the execution began (or will in a moment) on the monotonic clock.
    #[must_use]
    pub fn origin(&self) -> Nanos {
        self.origin
    }

    /// The next record as the engine's are: errors, an interval, at last the end; `None` if there is none in time.
    #[must_use]
    pub fn next(&self, timeout: Duration) -> Option<Value> {
        let mut intake = self.intake.lock().unwrap_or_else(PoisonError::into_inner);
        let until = clock::now() + timeout.as_nanos() as Nanos;
        loop {
            if let Some(record) = intake.ready.pop_front() {
                return Some(record);
            }
            if intake.ended {
                return None;
            }
            let left = Duration::from_nanos(until.saturating_sub(clock::now()));
            match intake.reports.recv_timeout(left) {
                Ok(report) => intake.take(report),
                Err(RecvTimeoutError::Timeout) => return None,
                // A worker has died without a word.
                Err(RecvTimeoutError::Disconnected) => intake.end(),
            }
        }
    }

    /// Ends it now: what has not ended is counted as such.
    pub fn stop(&self) {
        for order in &self.orders {
            order.send(Order::Stop);
        }
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        self.stop();
        let intake = self.intake.get_mut().unwrap_or_else(PoisonError::into_inner);
        for thread in intake.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Intake {
    fn take(&mut self, report: Report) {
        match report {
            Report::Shard(shard) => self.collector.add(*shard),
            Report::Ended(worker) => self.collector.ended(worker),
            Report::Ready(_) => {}
        }
        self.ready.extend(self.collector.records());
        if self.collector.is_over() {
            self.end();
        }
    }

    fn end(&mut self) {
        self.ended = true;
        self.ready.push_back(self.collector.end());
    }
}

fn spawn<T: Target>(
    setup: Setup<T>,
    orders: mailbox::Receiver<Order>,
    io: Io,
    reports: Sender<Report>,
) -> Result<JoinHandle<()>, Failure> {
    // The name tells the load's threads from others (`collectors/client.py`).
    let thread = std::thread::Builder::new().name(format!("load-{}", setup.number));
    let body = move || match Runtime::with_io(io) {
        Ok(runtime) => work(setup, &runtime, orders),
        Err(error) => {
            let _ = reports.send(Report::Ready(Err(Failure::Refused(error.to_string()))));
        }
    };
    thread.spawn(body).map_err(|error| Failure::Refused(format!("no thread for a worker: {error}")))
}

/// Waits until every worker's sessions are connected. The first failure is given.
fn await_workers(reports: &Receiver<Report>, workers: usize) -> Result<(), Failure> {
    let died = || Failure::Refused("a worker died; standard error says why".to_owned());
    for _ in 0..workers {
        match reports.recv_timeout(Duration::from_nanos(600 * SECOND)).map_err(|_| died())? {
            Report::Ready(ready) => ready?,
            Report::Shard(_) | Report::Ended(_) => return Err(died()),
        }
    }
    Ok(())
}
