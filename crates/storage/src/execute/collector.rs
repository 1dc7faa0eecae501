//! From the workers' shards to the records of a run, as the engine writes them: a source in the place of a tenant, an
//! operation in that of a transaction.

use std::collections::BTreeMap;
use std::mem;

use nephoscope_engine::histogram::{self, WindowHistogram};
use nephoscope_engine::spec::Role;
use nephoscope_engine::{ErrorEvent, Interval, Record, Series, SeriesName, json as engine};
use nephoscope_runtime::Nanos;
use serde_json::{Value, json};

use crate::execute::recorder::{Note, OperationData, Shard};
use crate::execute::run::Options;
use crate::requests::Operation;

#[derive(Default)]
struct Totals {
    started: u64,
    done: u64,
    failed: u64,
    waited: u64,
    dropped: u64,
    unstarted: u64,
    in_flight: u64,
    cpu: Nanos,
    end: Nanos,
}

/// Puts shards together.
pub(crate) struct Collector {
    options: Options,
    /// The start of the execution in the time of the records.
    start: Nanos,
    requests: u64,
    /// The parts of intervals that have come.
    open: BTreeMap<u64, Vec<Shard>>,
    /// By worker: the number of its next interval; `None` once it has ended.
    next: Vec<Option<u64>>,
    ready: Vec<Value>,
    totals: Totals,
}

impl Collector {
    pub(crate) fn new(options: &Options, start: Nanos, requests: u64) -> Self {
        Self {
            options: options.clone(),
            start,
            requests,
            open: BTreeMap::new(),
            next: vec![Some(0); options.workers],
            ready: Vec::new(),
            totals: Totals::default(),
        }
    }

    /// A worker's part of an interval.
    pub(crate) fn add(&mut self, shard: Shard) {
        self.next[shard.worker] = Some(shard.number + 1);
        self.open.entry(shard.number).or_default().push(shard);
        self.give_whole();
    }

    /// A worker has ended.
    pub(crate) fn ended(&mut self, worker: usize) {
        self.next[worker] = None;
        self.give_whole();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.next.iter().all(Option::is_none)
    }

    /// The records that are whole.
    pub(crate) fn records(&mut self) -> Vec<Value> {
        mem::take(&mut self.ready)
    }

    /// What was done in all.
    pub(crate) fn end(&self) -> Value {
        let Totals { started, done, failed, waited, dropped, unstarted, in_flight, cpu, end } = self.totals;
        json!({
            "record": "end", "source": self.options.source, "requests": self.requests, "started": started,
            "done": done, "failed": failed, "waited": waited, "dropped": dropped, "unstarted": unstarted,
            "in_flight": in_flight, "cpu_s": cpu as f64 / 1e9, "end_s": (self.start + end) as f64 / 1e9,
            "complete": self.requests == done + failed + unstarted + in_flight,
        })
    }

    fn give_whole(&mut self) {
        let through = self.next.iter().flatten().min().copied().unwrap_or(u64::MAX);
        while let Some(entry) = self.open.first_entry() {
            if *entry.key() >= through {
                return;
            }
            let (number, shards) = entry.remove_entry();
            self.give(number, &shards);
        }
    }

    fn give(&mut self, number: u64, shards: &[Shard]) {
        let mut interval = self.nothing(number);
        let mut lateness: Vec<(String, WindowHistogram)> = Vec::new();
        let (mut waited, mut dropped) = (0, 0);
        for shard in shards {
            interval.end = interval.end.max(self.start + shard.end);
            let gauges = &mut interval.tenants[0];
            gauges.arrivals += shard.arrivals;
            gauges.dropped += shard.dropped;
            gauges.connected += shard.connected;
            gauges.lost += shard.lost;
            gauges.refused += shard.refused;
            let length = (shard.end - number * self.options.interval).max(1);
            interval.add_use(shard.used, length);
            (waited, dropped) = (waited + shard.waited, dropped + shard.dropped);
            self.totals.started += shard.started;
            self.totals.in_flight += shard.in_flight;
            self.totals.end = self.totals.end.max(shard.end);
        }
        for operation in Operation::ALL {
            let parts = || shards.iter().map(|shard| &shard.operations[operation as usize]);
            if let Some((series, late)) = self.series(operation, parts()) {
                lateness.push((series.name.transaction.clone(), late));
                interval.series.push(series);
            }
        }
        self.totals.waited += waited;
        self.totals.dropped += dropped;
        self.totals.cpu += interval.cpu;
        self.errors(shards, interval.end);
        self.ready.push(with_lateness(interval, &lateness, waited));
    }

    /// An operation's series, if anything has happened to it, and its lateness.
    fn series<'a>(
        &mut self,
        operation: Operation,
        parts: impl Iterator<Item = &'a OperationData>,
    ) -> Option<(Series, WindowHistogram)> {
        let mut series = Series::new(self.name(operation));
        let mut lateness = histogram::empty();
        for part in parts {
            series.committed += part.done;
            series.failed += part.failed;
            series.unstarted += part.unstarted;
            series.errors.iter_mut().zip(part.errors).for_each(|(sum, count)| *sum += count);
            part.latency.add_to(&mut series.latency);
            part.service.add_to(&mut series.service);
            part.lateness.add_to(&mut lateness);
            part.failures.add_to_rare(&mut series.failures);
            part.censored.add_to_rare(&mut series.censored);
        }
        self.totals.done += series.committed;
        self.totals.failed += series.failed;
        self.totals.unstarted += series.unstarted;
        let happened = series.committed + series.failed > 0 || series.censored.is_some();
        happened.then_some((series, lateness))
    }

    fn errors(&mut self, shards: &[Shard], at: Nanos) {
        let mut known: Vec<Note> = Vec::new();
        for note in shards.iter().flat_map(|shard| &shard.notes) {
            let like = |other: &&mut Note| other.operation == note.operation && other.class == note.class;
            match known.iter_mut().find(like) {
                Some(other) => other.count += note.count,
                None => known.push(note.clone()),
            }
        }
        for note in known {
            self.ready.push(engine::record(&Record::Error(ErrorEvent {
                at,
                name: self.name(note.operation),
                class: note.class,
                code: String::new(),
                message: note.message,
                outcome_unknown: false,
                count: note.count,
            })));
        }
    }

    fn name(&self, operation: Operation) -> SeriesName {
        let transaction = operation.name().to_owned();
        SeriesName { tenant: self.options.source.clone(), role: Role::Rw, transaction }
    }

    fn nothing(&self, number: u64) -> Interval {
        let start = self.start + number * self.options.interval;
        let mut interval = Interval::new(std::slice::from_ref(&self.options.source), start, start);
        interval.phase = self.options.phase;
        interval.tenants[0].sessions = self.options.depth as u64;
        interval
    }
}

/// The interval as the engine writes it; each series has its lateness besides, and the interval how many have waited.
fn with_lateness(mut interval: Interval, lateness: &[(String, WindowHistogram)], waited: u64) -> Value {
    let mut all = histogram::empty();
    for (_, late) in lateness {
        // Of one layout.
        let _ = all.add(late);
    }
    interval.lag = (!all.is_empty()).then_some(all);
    let mut value = engine::record(&Record::Interval(Box::new(interval)));
    value["waited"] = waited.into();
    for series in value["series"].as_array_mut().into_iter().flatten() {
        let name = series["transaction"].as_str().unwrap_or_default();
        if let Some((_, late)) = lateness.iter().find(|(of, late)| of == name && !late.is_empty()) {
            series["lateness_max_ms"] = (late.max() as f64 / 1e6).into();
            series["lateness"] = histogram::encode(late).into();
        }
    }
    value
}
