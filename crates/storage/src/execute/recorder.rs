//! What a worker counts, interval by interval.

use nephoscope_drivers::ErrorClass;
use nephoscope_engine::histogram::IntervalHistogram;
use nephoscope_runtime::{Nanos, ThreadMeter, ThreadUse};

use crate::execute::target::Failure;
use crate::requests::Operation;

/// How many classes of errors there are.
pub(crate) const CLASSES: usize = ErrorClass::ALL.len();

/// What an interval holds of an operation.
#[derive(Debug, Default)]
pub(crate) struct OperationData {
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) unstarted: u64,
    pub(crate) errors: [u64; CLASSES],
    /// From the intended start, of what was done.
    pub(crate) latency: IntervalHistogram,
    /// From the start, of the same.
    pub(crate) service: IntervalHistogram,
    /// From the intended start to the start, of all that ended.
    pub(crate) lateness: IntervalHistogram,
    pub(crate) failures: IntervalHistogram,
    pub(crate) censored: IntervalHistogram,
}

/// An error, and how often it came in an interval.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) operation: Operation,
    pub(crate) class: ErrorClass,
    pub(crate) message: String,
    pub(crate) count: u64,
}

/// What a worker has of an interval.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) worker: usize,
    /// Which interval, from 0.
    pub(crate) number: u64,
    pub(crate) operations: [OperationData; Operation::ALL.len()],
    /// Requests that fell due.
    pub(crate) arrivals: u64,
    /// Of those that started or were dropped: how many had found all sessions busy.
    pub(crate) waited: u64,
    /// Given up, as they had waited for longer than they may.
    pub(crate) dropped: u64,
    pub(crate) started: u64,
    /// Requests that were started and had not ended; of a worker's last interval alone.
    pub(crate) in_flight: u64,
    pub(crate) connected: u64,
    pub(crate) lost: u64,
    pub(crate) refused: u64,
    pub(crate) notes: Vec<Note>,
    /// What the worker's thread had of the processors.
    pub(crate) used: ThreadUse,
    /// When it ended, since the start.
    pub(crate) end: Nanos,
}

/// When a request started and ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) intended: Nanos,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
}

/// Counts what happens in the present interval.
pub(crate) struct Recorder {
    worker: usize,
    start: Nanos,
    length: Nanos,
    meter: ThreadMeter,
    pub(crate) connected: u64,
    pub(crate) shard: Shard,
}

impl Recorder {
    /// Intervals of a length from a start on.
    pub(crate) fn new(worker: usize, start: Nanos, length: Nanos) -> Self {
        let meter = ThreadMeter::of_this_thread();
        Self { worker, start, length, meter, connected: 0, shard: empty(worker, 0) }
    }

    /// The end of the present interval.
    pub(crate) fn until(&self) -> Nanos {
        self.start + (self.shard.number + 1) * self.length
    }

    /// The present interval ends at its end, or earlier if the execution does.
    pub(crate) fn roll(&mut self, end: Nanos) -> Shard {
        let mut shard = std::mem::replace(&mut self.shard, empty(self.worker, 0));
        self.shard.number = shard.number + 1;
        shard.used = self.meter.lap();
        shard.end = end - self.start;
        shard.connected = self.connected;
        shard
    }

    /// A request has ended.
    pub(crate) fn ended(&mut self, operation: Operation, times: Times, outcome: Result<(), Failure>) {
        let data = &mut self.shard.operations[operation as usize];
        data.lateness.record(times.start.saturating_sub(times.intended));
        let latency = times.end.saturating_sub(times.intended);
        match outcome {
            Ok(()) => {
                data.done += 1;
                data.latency.record(latency);
                data.service.record(times.end.saturating_sub(times.start));
            }
            Err(failure) => {
                data.failed += 1;
                data.failures.record(latency);
                self.note(operation, &failure);
            }
        }
    }

    /// A request was not started, or had not ended when the execution did: its latency is at least so long.
    pub(crate) fn censored(&mut self, operation: Operation, at_least: Nanos, started: bool) {
        let data = &mut self.shard.operations[operation as usize];
        data.unstarted += u64::from(!started);
        data.censored.record(at_least);
    }

    /// Counts an error by its class, and keeps the first words of it.
    pub(crate) fn note(&mut self, operation: Operation, failure: &Failure) {
        let class = match failure {
            Failure::Broken(_) => ErrorClass::ConnectionLost,
            Failure::Timeout(_) => ErrorClass::StatementTimeout,
            Failure::Refused(_) => ErrorClass::Other,
        };
        let place = ErrorClass::ALL.iter().position(|other| *other == class).unwrap_or(CLASSES - 1);
        self.shard.operations[operation as usize].errors[place] += 1;
        let like = |note: &&mut Note| note.operation == operation && note.class == class;
        match self.shard.notes.iter_mut().find(like) {
            Some(note) => note.count += 1,
            None => self.shard.notes.push(Note { operation, class, message: failure.to_string(), count: 1 }),
        }
    }
}

fn empty(worker: usize, number: u64) -> Shard {
    Shard {
        worker,
        number,
        operations: Default::default(),
        arrivals: 0,
        waited: 0,
        dropped: 0,
        started: 0,
        in_flight: 0,
        connected: 0,
        lost: 0,
        refused: 0,
        notes: Vec::new(),
        used: ThreadUse::default(),
        end: 0,
    }
}
