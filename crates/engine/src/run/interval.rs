//! What an interval of a run holds.

use nephoscope_runtime::{Nanos, ThreadUse};

use crate::histogram::{self, WindowHistogram};
use crate::spec::Role;
use crate::worker::recorder::{CLASSES, SeriesData, TenantGauges};
use crate::worker::rest;

/// Which series: whose, where, what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesName {
    /// The tenant's name.
    pub tenant: String,
    /// The role of the endpoint it runs on.
    pub role: Role,
    /// The transaction's name.
    pub transaction: String,
}

/// What an interval holds of a series, all workers together.
#[derive(Clone, Debug)]
pub struct Series {
    /// Which series.
    pub name: SeriesName,
    /// Transactions by outcome.
    pub committed: u64,
    /// Rolled back by the workload's own decision.
    pub aborted: u64,
    /// Ended by an error.
    pub failed: u64,
    /// Of those, how many may have committed.
    pub uncertain: u64,
    /// Committed or aborted after more than one attempt.
    pub retried: u64,
    /// Further attempts.
    pub retries: u64,
    /// Rows touched or returned.
    pub affected: u64,
    /// Errors by class, in the order of [`ErrorClass::ALL`](nephoscope_drivers::ErrorClass::ALL), each attempt counted.
    pub errors: [u64; CLASSES],
    /// Latency of committed transactions, but for those that have waited for a session since an earlier phase.
    pub latency: WindowHistogram,
    /// Service time of the same.
    pub service: WindowHistogram,
    /// Latency of failed transactions; `None` where none has failed.
    pub failures: Option<WindowHistogram>,
    /// In the last interval of a phase: its arrivals that had not started when it ended, dropped ones included.
    pub unstarted: u64,
    /// How long at least the latency is of those, and of transactions that have waited for a session and not ended with
    /// the phase; `None` where there are none.
    pub censored: Option<WindowHistogram>,
}

/// What is said of a tenant at the end of an interval.
#[derive(Clone, Debug)]
pub struct TenantInterval {
    /// The tenant's name.
    pub tenant: String,
    /// Arrivals whose intended start lay in the interval.
    pub arrivals: u64,
    /// Arrivals that found the backlog full.
    pub dropped: u64,
    /// Arrivals that wait.
    pub backlog: u64,
    /// Sessions that take work.
    pub sessions: u64,
    /// Connections that stand.
    pub connected: u64,
    /// Sessions that take work and lack a connection that they need.
    pub disconnected: u64,
    /// Sessions that have yet to follow a change of the endpoints: they may be connected to one that has gone.
    pub moving: u64,
    /// Connections that broke.
    pub lost: u64,
    /// Connections made anew.
    pub restored: u64,
    /// Attempts at a connection that failed.
    pub refused: u64,
    /// How long the load waited for its first committed transaction after an idle time, connecting included, where that
    /// transaction ended in the interval.
    pub woken: Option<Nanos>,
    /// When the first transaction was committed at an endpoint that came while the load runs, since the start of the
    /// load, where that was in the interval. Each worker tells its first, perhaps in different intervals.
    pub reached: Option<Nanos>,
}

/// An interval, all workers together. Times are since the start of the load.
#[derive(Clone, Debug)]
pub struct Interval {
    /// The number of its phase: phases are numbered from 0 as they begin.
    pub phase: u32,
    /// When it began.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
    /// The series in which something happened.
    pub series: Vec<Series>,
    /// One for each tenant.
    pub tenants: Vec<TenantInterval>,
    /// Lateness of transactions that a free session waited for; `None` where there were none.
    pub lag: Option<WindowHistogram>,
    /// The share of its time that the busiest worker's thread was running, 0–1.
    pub busiest: f64,
    /// The share of its time for which the worker's thread that fared worst was ready to run and others had the
    /// processors, 0–1; `None` where the kernel keeps no account of it.
    pub starved: Option<f64>,
    /// Processor time of all workers' threads.
    pub cpu: Nanos,
}

impl TenantInterval {
    /// A tenant of which there is nothing to say yet.
    fn new(tenant: &str) -> Self {
        Self {
            tenant: tenant.to_owned(),
            arrivals: 0,
            dropped: 0,
            backlog: 0,
            sessions: 0,
            connected: 0,
            disconnected: 0,
            moving: 0,
            lost: 0,
            restored: 0,
            refused: 0,
            woken: None,
            reached: None,
        }
    }

    /// Adds what a worker has of it.
    pub(crate) fn add(&mut self, part: &TenantGauges) {
        self.arrivals += part.arrivals;
        self.dropped += part.dropped;
        self.backlog += part.backlog;
        self.sessions += part.sessions;
        self.connected += part.connected;
        self.disconnected += part.disconnected;
        self.moving += part.moving;
        self.lost += part.lost;
        self.restored += part.restored;
        self.refused += part.refused;
        self.woken = rest::shorter(self.woken, part.woken);
        self.reached = rest::shorter(self.reached, part.reached);
    }
}

impl Interval {
    /// An interval in which nothing happened yet, of phase 0.
    #[must_use]
    pub fn new(tenants: &[String], start: Nanos, end: Nanos) -> Self {
        Self {
            phase: 0,
            start,
            end,
            series: Vec::new(),
            tenants: tenants.iter().map(|name| TenantInterval::new(name)).collect(),
            lag: None,
            busiest: 0.0,
            starved: None,
            cpu: 0,
        }
    }

    /// Adds what a worker's thread had of the processors in a part of the interval, `length` long.
    pub fn add_use(&mut self, used: ThreadUse, length: Nanos) {
        // A worker that comes late to the end of an interval has used more than the interval's time.
        let share = |time: Nanos| (time as f64 / length as f64).min(1.0);
        self.cpu += used.cpu;
        self.busiest = self.busiest.max(share(used.cpu));
        if let Some(waited) = used.waited {
            self.starved = Some(self.starved.unwrap_or_default().max(share(waited)));
        }
    }
}

impl Series {
    /// A series in which nothing has happened yet.
    #[must_use]
    pub fn new(name: SeriesName) -> Self {
        Self {
            name,
            committed: 0,
            aborted: 0,
            failed: 0,
            uncertain: 0,
            retried: 0,
            retries: 0,
            affected: 0,
            errors: [0; CLASSES],
            latency: histogram::empty(),
            service: histogram::empty(),
            failures: None,
            unstarted: 0,
            censored: None,
        }
    }

    /// Adds what a worker has of it.
    pub(crate) fn add(&mut self, data: &SeriesData) {
        self.committed += data.committed;
        self.aborted += data.aborted;
        self.failed += data.failed;
        self.uncertain += data.uncertain;
        self.retried += data.retried;
        self.retries += data.retries;
        self.affected += data.affected;
        for (sum, count) in self.errors.iter_mut().zip(data.errors) {
            *sum += count;
        }
        for (sum, part) in [(&mut self.latency, &data.latency), (&mut self.service, &data.service)] {
            part.add_to(sum);
            data.prompt.add_to(sum);
        }
        self.unstarted += data.unstarted;
        data.failures.add_to_rare(&mut self.failures);
        data.censored.add_to_rare(&mut self.censored);
    }
}
