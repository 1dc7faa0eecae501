//! From the workers' shards to the run's records.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use nephoscope_drivers::ErrorClass;
use nephoscope_runtime::{Nanos, ThreadUse};

use crate::heartbeat::Gap;
use crate::histogram::{self, IntervalHistogram, WindowHistogram};
use crate::run::history::History;
use crate::run::intake::{Ending, Recycle};
use crate::spec::{PhaseSpec, Role};
use crate::worker::recorder::{CLASSES, ErrorNote, SeriesData, Shard, TenantGauges};
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
    /// Errors by class, in the order of [`ErrorClass::ALL`], each attempt counted.
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

impl Interval {
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

/// An error as it is reported: the first of its kind in an interval, and how often it came.
#[derive(Clone, Debug)]
pub struct ErrorEvent {
    /// The end of the interval in which it came.
    pub at: Nanos,
    /// The series it came in.
    pub name: SeriesName,
    /// Its class.
    pub class: ErrorClass,
    /// The server's code; empty where there is none.
    pub code: String,
    /// What was said.
    pub message: String,
    /// It leaves open what the server has done with what was sent: see
    /// [`nephoscope_drivers::Error::outcome_unknown`].
    pub outcome_unknown: bool,
    /// How often.
    pub count: u64,
}

/// What a run gives to its reader, in the order of time.
#[derive(Clone, Debug)]
pub enum Record {
    /// A phase begins.
    Phase {
        /// When.
        at: Nanos,
        /// Its number.
        number: u32,
        /// What it is.
        spec: Arc<PhaseSpec>,
    },
    /// Errors of one kind.
    Error(ErrorEvent),
    /// An interval has ended.
    Interval(Box<Interval>),
    /// The tool itself did not run for a while; told as soon as it is known.
    Gap(Gap),
    /// A history has ended, and this was found in it.
    History(Box<History>),
    /// The run has ended.
    End(Box<Ending>),
}

/// The parts of one interval that have come so far.
struct Partial {
    interval: Interval,
    /// Where each series is in the interval, by its number.
    indexes: Vec<Option<usize>>,
    notes: Vec<ErrorNote>,
}

/// An interval's place: when its phase began, and which of the phase's intervals it is.
type Place = (Nanos, u64);

/// How far a worker has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    Nowhere,
    Through(Place),
    Finished,
}

/// Puts the workers' shards together.
pub(crate) struct Collector {
    names: Vec<SeriesName>,
    /// The tenants, in the order of the gauges.
    tenants: Vec<String>,
    recycle: Vec<Recycle>,
    length: Nanos,
    /// Phases that have not begun, by the time at which they will.
    coming: BTreeMap<Nanos, Arc<PhaseSpec>>,
    /// How many phases have begun: phases are numbered as they begin.
    begun: u32,
    /// Intervals as far as they have come.
    open: BTreeMap<Place, Partial>,
    progress: Vec<Progress>,
    /// The end of the last interval that was given out.
    through: Nanos,
    ready: VecDeque<Record>,
    pub(crate) ended: bool,
}

impl Collector {
    pub(crate) fn new(
        names: Vec<SeriesName>,
        recycle: Vec<Recycle>,
        length: Nanos,
        coming: BTreeMap<Nanos, Arc<PhaseSpec>>,
    ) -> Self {
        let mut tenants: Vec<String> = names.iter().map(|name| name.tenant.clone()).collect();
        tenants.dedup();
        let progress = vec![Progress::Nowhere; recycle.len()];
        let (open, ready) = (BTreeMap::new(), VecDeque::new());
        Self {
            names,
            tenants,
            recycle,
            length,
            coming,
            begun: 0,
            open,
            progress,
            through: 0,
            ready,
            ended: false,
        }
    }

    /// The series, in the order of their numbers.
    pub(crate) fn names(&self) -> &[SeriesName] {
        &self.names
    }

    /// A phase will begin.
    pub(crate) fn announce(&mut self, at: Nanos, phase: Arc<PhaseSpec>) {
        self.coming.insert(at, phase);
    }

    /// The run ends at a time: phases that were to begin after it will not.
    pub(crate) fn end_at(&mut self, at: Nanos) {
        self.coming.retain(|begins, _| *begins <= at);
    }

    /// Lets a record be the next after those that are ready.
    pub(crate) fn tell(&mut self, record: Record) {
        self.ready.push_back(record);
    }

    /// The next record, if one is whole.
    pub(crate) fn take(&mut self) -> Option<Record> {
        self.ready.pop_front()
    }

    /// Adds what a worker has of an interval.
    pub(crate) fn add(&mut self, shard: Shard) {
        let place = (shard.phase, (shard.start - shard.phase) / self.length);
        let worker = shard.worker;
        let Self { names, tenants, .. } = self;
        let empty = || Partial {
            interval: nothing(tenants, shard.start, shard.end),
            indexes: vec![None; names.len()],
            notes: Vec::new(),
        };
        let partial = self.open.entry(place).or_insert_with(empty);
        let interval = &mut partial.interval;
        interval.end = interval.end.max(shard.end);
        interval.add_use(shard.used, shard.end - shard.start);
        if let Some(lag) = &shard.lag {
            lag.add_to(interval.lag.get_or_insert_with(histogram::empty));
        }
        for (sum, gauges) in interval.tenants.iter_mut().zip(&shard.tenants) {
            add_gauges(sum, gauges);
        }
        for (number, mut data) in shard.series {
            let index = *partial.indexes[number].get_or_insert_with(|| {
                interval.series.push(Series::of(&names[number]));
                interval.series.len() - 1
            });
            interval.series[index].add(&data);
            data.reset();
            // A worker that has finished takes nothing back.
            let _ = self.recycle[worker].send(data);
        }
        for note in shard.errors {
            match partial.notes.iter_mut().find(|known| known.is_like(&note)) {
                Some(known) => known.count += note.count,
                None => partial.notes.push(note),
            }
        }
        self.progress[worker] = self.progress[worker].max(Progress::Through(place));
        self.release();
    }

    /// A worker will send no more.
    pub(crate) fn finished(&mut self, worker: usize) {
        self.progress[worker] = Progress::Finished;
        self.release();
    }

    /// Gives out the intervals that every worker has gone through: a worker that has sent a later one, or this one,
    /// has nothing to add.
    fn release(&mut self) {
        let slowest = self.progress.iter().min().copied().unwrap_or(Progress::Finished);
        while let Some(entry) = self.open.first_entry() {
            let place = *entry.key();
            if slowest < Progress::Through(place) {
                break;
            }
            let Partial { mut interval, notes, .. } = entry.remove();
            self.begin_phases(place.0);
            interval.phase = self.begun.saturating_sub(1);
            // A worker that heard too late of a change ends its interval after the others; the phases' times hold.
            interval.start = self.through;
            let next = self.coming.first_key_value().map_or(Nanos::MAX, |(at, _)| *at);
            interval.end = interval.end.min(next).max(interval.start);
            self.through = interval.end;
            for note in notes {
                self.ready.push_back(Record::Error(ErrorEvent {
                    at: interval.end,
                    name: self.names[note.series].clone(),
                    class: note.class,
                    code: note.code,
                    message: note.message,
                    outcome_unknown: note.outcome_unknown,
                    count: note.count,
                }));
            }
            self.ready.push_back(Record::Interval(Box::new(interval)));
        }
    }

    /// Tells of the phases that have begun up to a time.
    fn begin_phases(&mut self, until: Nanos) {
        while let Some(entry) = self.coming.first_entry().filter(|entry| *entry.key() <= until) {
            let (at, spec) = entry.remove_entry();
            if self.through < at {
                // Every worker heard too late of the phase before: it has its time, and nothing in it.
                let mut missed = nothing(&self.tenants, self.through, at);
                missed.phase = self.begun.saturating_sub(1);
                self.ready.push_back(Record::Interval(Box::new(missed)));
                self.through = at;
            }
            self.ready.push_back(Record::Phase { at, number: self.begun, spec });
            self.begun += 1;
        }
    }
}

impl Series {
    /// A series in which nothing has happened yet.
    fn of(name: &SeriesName) -> Self {
        Self {
            name: name.clone(),
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
    fn add(&mut self, data: &SeriesData) {
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
        add_rare(&mut self.failures, &data.failures);
        add_rare(&mut self.censored, &data.censored);
    }
}

fn add_rare(sum: &mut Option<WindowHistogram>, part: &IntervalHistogram) {
    if !part.is_empty() {
        part.add_to(sum.get_or_insert_with(histogram::empty));
    }
}

/// An interval in which nothing happened yet.
fn nothing(tenants: &[String], start: Nanos, end: Nanos) -> Interval {
    Interval {
        phase: 0,
        start,
        end,
        series: Vec::new(),
        tenants: tenants.iter().map(|name| no_gauges(name)).collect(),
        lag: None,
        busiest: 0.0,
        starved: None,
        cpu: 0,
    }
}

fn no_gauges(tenant: &str) -> TenantInterval {
    TenantInterval {
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

fn add_gauges(sum: &mut TenantInterval, part: &TenantGauges) {
    sum.arrivals += part.arrivals;
    sum.dropped += part.dropped;
    sum.backlog += part.backlog;
    sum.sessions += part.sessions;
    sum.connected += part.connected;
    sum.disconnected += part.disconnected;
    sum.moving += part.moving;
    sum.lost += part.lost;
    sum.restored += part.restored;
    sum.refused += part.refused;
    sum.woken = rest::shorter(sum.woken, part.woken);
    sum.reached = rest::shorter(sum.reached, part.reached);
}

#[cfg(test)]
mod tests;
