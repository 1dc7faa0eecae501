//! The recorder of one worker: counts and histograms of the open interval.
//!
//! Nothing here takes a lock, and nothing allocates for a transaction: a sample is a few additions. When an
//! interval ends, what it holds leaves in a [`Shard`] by a channel, and boxes that the receiver has read come back
//! to be used again.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender};

use nephoscope_drivers::{Error, ErrorClass};
use nephoscope_runtime::{Nanos, ThreadMeter, ThreadUse};

use crate::histogram::IntervalHistogram;
use crate::worker::tenant::Tenant;

/// How many error classes there are.
pub(crate) const CLASSES: usize = ErrorClass::ALL.len();

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    Aborted,
    Failed,
    /// Failed as far as the client knows, and perhaps committed: see [`Error::outcome_unknown`].
    Uncertain,
}

impl Outcome {
    /// Whether the client was told no success.
    fn has_failed(self) -> bool {
        matches!(self, Self::Failed | Self::Uncertain)
    }
}

/// One transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// When it should have started.
    pub(crate) intended: Nanos,
    /// When its first byte was sent.
    pub(crate) start: Nanos,
    /// When its last reply was read.
    pub(crate) end: Nanos,
    pub(crate) outcome: Outcome,
    /// How often it was tried.
    pub(crate) attempts: u32,
    /// Rows touched or returned.
    pub(crate) affected: u64,
    /// It had to wait for a session.
    pub(crate) has_waited: bool,
}

/// What one interval holds of one series.
#[derive(Default)]
pub(crate) struct SeriesData {
    pub(crate) committed: u64,
    pub(crate) aborted: u64,
    pub(crate) failed: u64,
    /// How many of the failed ones may have committed.
    pub(crate) uncertain: u64,
    pub(crate) retried: u64,
    pub(crate) retries: u64,
    pub(crate) affected: u64,
    pub(crate) errors: [u64; CLASSES],
    /// Latency and service time of committed transactions that started when they should, and latency and service time
    /// of the others.
    pub(crate) prompt: IntervalHistogram,
    pub(crate) latency: IntervalHistogram,
    pub(crate) service: IntervalHistogram,
    /// Latency of failed transactions.
    pub(crate) failures: IntervalHistogram,
    /// Arrivals of the phase that had not started when it ended, in its last interval.
    pub(crate) unstarted: u64,
    /// How long at least the latency is of those, and of transactions that have waited for a session and not ended.
    pub(crate) censored: IntervalHistogram,
}

impl SeriesData {
    /// Makes a used box fit to be used again; its histograms keep their memory.
    pub(crate) fn reset(&mut self) {
        let Self { mut prompt, mut latency, mut service, mut failures, mut censored, .. } =
            std::mem::take(self);
        for times in [&mut prompt, &mut latency, &mut service, &mut failures, &mut censored] {
            times.reset();
        }
        *self = Self { prompt, latency, service, failures, censored, ..Self::default() };
    }

    fn is_empty(&self) -> bool {
        let Self { committed, aborted, failed, errors, censored, .. } = self;
        committed + aborted + failed == 0 && errors.iter().all(|count| *count == 0) && censored.is_empty()
    }
}

/// An error as it is reported: the first of its kind in an interval speaks for all.
#[derive(Clone, Debug)]
pub(crate) struct ErrorNote {
    pub(crate) series: usize,
    pub(crate) class: ErrorClass,
    pub(crate) code: String,
    pub(crate) message: String,
    /// It leaves open what the server has done with what was sent.
    pub(crate) outcome_unknown: bool,
    pub(crate) count: u64,
}

impl ErrorNote {
    fn speaks_for(
        &self,
        series: usize,
        class: ErrorClass,
        outcome_unknown: bool,
        code: &str,
        message: &str,
    ) -> bool {
        // Messages of one kind often differ by a key only; the code tells them apart well enough.
        self.series == series
            && self.class == class
            && self.outcome_unknown == outcome_unknown
            && self.code == code
            && (!code.is_empty() || self.message == message)
    }

    /// Whether another is of the same kind.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.speaks_for(other.series, other.class, other.outcome_unknown, &other.code, &other.message)
    }
}

/// What a worker says of one tenant at the end of an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TenantGauges {
    /// Arrivals whose intended start lay in the interval.
    pub(crate) arrivals: u64,
    /// Arrivals that found the backlog full.
    pub(crate) dropped: u64,
    /// Arrivals that wait, those included that the end of the phase leaves behind.
    pub(crate) backlog: u64,
    /// Sessions that take work.
    pub(crate) sessions: u64,
    /// Connections that stand.
    pub(crate) connected: u64,
    /// Sessions that take work and lack a connection that they need.
    pub(crate) disconnected: u64,
    /// Sessions that have yet to follow a change of the endpoints.
    pub(crate) moving: u64,
    /// Connections that broke, were made anew, and could not be made.
    pub(crate) lost: u64,
    pub(crate) restored: u64,
    pub(crate) refused: u64,
    /// How long the load waited for its first committed transaction after an idle time, where that came in the interval.
    pub(crate) woken: Option<Nanos>,
    /// When the first transaction was committed at an endpoint that came while the load runs, since its start,
    /// where that was in the interval.
    pub(crate) reached: Option<Nanos>,
}

/// What one worker has of one interval.
pub(crate) struct Shard {
    pub(crate) worker: usize,
    /// When its phase began, since the start of the load as the interval.
    pub(crate) phase: Nanos,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    /// The series in which something happened.
    pub(crate) series: Vec<(usize, Box<SeriesData>)>,
    pub(crate) lag: Option<IntervalHistogram>,
    pub(crate) tenants: Vec<TenantGauges>,
    pub(crate) errors: Vec<ErrorNote>,
    /// What the worker's thread had of the processors in the interval.
    pub(crate) used: ThreadUse,
}

/// Distinct errors kept of one interval; the counts by class are always whole.
const NOTES: usize = 32;

pub(crate) struct Recorder {
    worker: usize,
    /// The start of the load on the monotonic clock.
    origin: Nanos,
    length: Nanos,
    /// When the present phase began.
    phase: Nanos,
    start: Nanos,
    end: Nanos,
    // Boxed, so that a whole series changes hands as one pointer.
    #[allow(clippy::vec_box)]
    series: Vec<Box<SeriesData>>,
    lag: IntervalHistogram,
    notes: Vec<ErrorNote>,
    meter: Option<ThreadMeter>,
    shards: Sender<Shard>,
    used: Receiver<Box<SeriesData>>,
    spare: VecDeque<Box<SeriesData>>,
}

impl Recorder {
    /// A recorder for `series` series whose intervals have a length. Used boxes come back by `used`.
    pub(crate) fn new(
        worker: usize,
        series: usize,
        length: Nanos,
        shards: Sender<Shard>,
        used: Receiver<Box<SeriesData>>,
    ) -> Self {
        Self {
            worker,
            origin: 0,
            length,
            phase: 0,
            start: 0,
            end: Nanos::MAX,
            series: (0..series).map(|_| Box::default()).collect(),
            lag: IntervalHistogram::default(),
            notes: Vec::with_capacity(NOTES),
            meter: None,
            shards,
            used,
            spare: (0..series).map(|_| Box::default()).collect(),
        }
    }

    /// The load starts; intervals count from here.
    pub(crate) fn begin(&mut self, origin: Nanos) {
        self.origin = origin;
        self.start = 0;
        self.end = self.length;
        self.meter = Some(ThreadMeter::of_this_thread());
    }

    /// When the open interval ends, on the monotonic clock.
    pub(crate) fn ends(&self) -> Nanos {
        self.origin.saturating_add(self.end)
    }

    /// Adds a transaction. The interval in which it ended must be the open one: see [`Recorder::ends`].
    #[inline]
    pub(crate) fn add(&mut self, series: usize, sample: &Sample) {
        let data = &mut *self.series[series];
        data.affected += sample.affected;
        if sample.attempts > 1 {
            data.retries += u64::from(sample.attempts - 1);
            data.retried += u64::from(!sample.outcome.has_failed());
        }
        // Who has waited since an earlier phase is in its latency, and not in this one's.
        let is_carried = sample.has_waited && sample.intended < self.origin + self.phase;
        let latency = sample.end.saturating_sub(sample.intended);
        match sample.outcome {
            Outcome::Committed => {
                data.committed += 1;
                let service = sample.end.saturating_sub(sample.start);
                if !is_carried && service == latency {
                    data.prompt.record(latency);
                } else if !is_carried {
                    data.latency.record(latency);
                    data.service.record(service);
                }
            }
            Outcome::Aborted => data.aborted += 1,
            Outcome::Failed | Outcome::Uncertain => {
                data.failed += 1;
                data.uncertain += u64::from(sample.outcome == Outcome::Uncertain);
                if !is_carried {
                    data.failures.record(latency);
                }
            }
        }
    }

    /// The phase ends at a time on the monotonic clock: adds what it leaves behind, which is its own.
    pub(crate) fn end_phase(&mut self, tenants: &[Rc<Tenant>], at: Nanos) {
        for tenant in tenants {
            tenant.end_phase(at, |left| {
                let data = &mut *self.series[left.series];
                data.censored.record_n(left.waited, left.count);
                if !left.is_started {
                    data.unstarted += left.count;
                }
            });
        }
    }

    /// Adds the lateness of a transaction that a free session waited for.
    #[inline]
    pub(crate) fn add_lag(&mut self, lag: Nanos) {
        self.lag.record(lag);
    }

    /// Counts an error, and keeps its message if it is the first of its kind in the interval.
    pub(crate) fn add_error(&mut self, series: usize, error: &Error) {
        let class = error.class();
        let index = ErrorClass::ALL.iter().position(|other| *other == class).unwrap_or(CLASSES - 1);
        self.series[series].errors[index] += 1;
        self.note(series, error, error.outcome_unknown());
    }

    /// Keeps an error's message if it is the first of its kind in the interval, and how often it came. Nothing was sent
    /// over a connection that could not be made, so the caller says whether an outcome is unknown.
    pub(crate) fn note(&mut self, series: usize, error: &Error, outcome_unknown: bool) {
        let class = error.class();
        let (code, message) = (error.code(), error.message());
        let same = |note: &&mut ErrorNote| note.speaks_for(series, class, outcome_unknown, code, message);
        if let Some(note) = self.notes.iter_mut().find(same) {
            note.count += 1;
        } else if self.notes.len() < NOTES {
            let (code, message) = (code.to_owned(), message.to_owned());
            self.notes.push(ErrorNote { series, class, code, message, outcome_unknown, count: 1 });
        }
    }

    /// Ends the open interval at `end` (since the start of the load) and begins the next, which belongs to the phase
    /// that began at `phase`. `gauges` gives the tenants' at this moment. It is called only when an interval ends,
    /// because it resets them.
    pub(crate) fn rotate(&mut self, end: Nanos, phase: Nanos, gauges: impl FnOnce() -> Vec<TenantGauges>) {
        self.spare.extend(self.used.try_iter());
        if end > self.start {
            let mut series = Vec::new();
            for (index, data) in self.series.iter_mut().enumerate() {
                if !data.is_empty() {
                    let fresh = self.spare.pop_front().unwrap_or_default();
                    series.push((index, std::mem::replace(data, fresh)));
                }
            }
            let lag = (!self.lag.is_empty()).then(|| self.lag.clone());
            self.lag.reset();
            let shard = Shard {
                worker: self.worker,
                phase: self.phase,
                start: self.start,
                end,
                series,
                lag,
                tenants: gauges(),
                errors: std::mem::take(&mut self.notes),
                used: self.meter.as_mut().map(ThreadMeter::lap).unwrap_or_default(),
            };
            // The receiver is gone only when the run was given up.
            let _ = self.shards.send(shard);
            self.start = end;
        }
        self.phase = phase;
        // Intervals are counted from the start of their phase, so that only its last one may be shorter.
        self.end = phase + ((self.start - phase) / self.length + 1) * self.length;
    }
}

#[cfg(test)]
mod tests;
