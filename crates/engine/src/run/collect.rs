//! From the workers' shards to the run's records.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use nephoscope_drivers::ErrorClass;
use nephoscope_runtime::Nanos;

use crate::heartbeat::Gap;
use crate::histogram;
use crate::run::history::History;
use crate::run::intake::{Ending, Recycle};
use crate::run::interval::{Interval, Series, SeriesName};
use crate::spec::PhaseSpec;
use crate::worker::recorder::{ErrorNote, Shard};

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
            interval: Interval::new(tenants, shard.start, shard.end),
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
            sum.add(gauges);
        }
        for (number, mut data) in shard.series {
            let index = *partial.indexes[number].get_or_insert_with(|| {
                interval.series.push(Series::new(names[number].clone()));
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
                let mut missed = Interval::new(&self.tenants, self.through, at);
                missed.phase = self.begun.saturating_sub(1);
                self.ready.push_back(Record::Interval(Box::new(missed)));
                self.through = at;
            }
            self.ready.push_back(Record::Phase { at, number: self.begun, spec });
            self.begun += 1;
        }
    }
}

#[cfg(test)]
mod tests;
