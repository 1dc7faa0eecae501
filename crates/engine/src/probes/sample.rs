//! What probes have found.

use std::cell::RefCell;
use std::sync::mpsc::Sender;

use nephoscope_drivers::{Error, ErrorClass};
use nephoscope_runtime::Nanos;
use serde_json::{Value, json};

use crate::spec::Role;

/// What a probe did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Wrote its number; a probe of availability.
    Write,
    /// Read a row; a probe of availability.
    Read,
    /// Looked for a marker that was inserted.
    Insert,
    /// Looked for a marker that was updated.
    Update,
    /// Looked for a marker that was deleted.
    Delete,
    /// Looked for a register's version; a probe of consistency.
    Register,
}

impl Kind {
    /// The kind's name in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Register => "register",
        }
    }

    /// Which probe does it.
    #[must_use]
    pub fn probe(self) -> &'static str {
        match self {
            Self::Write | Self::Read => "availability",
            Self::Insert | Self::Update | Self::Delete => "lag",
            Self::Register => "consistency",
        }
    }
}

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered; the marker was seen.
    Ok,
    /// It met an error.
    Failed(ErrorClass),
    /// It was not sent, for nothing was free to send it by.
    Missing,
    /// The marker was not seen within the limit.
    NotSeen,
}

impl Outcome {
    /// The outcome's name in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed(class) => class.name(),
            Self::Missing => "missing",
            Self::NotSeen => "not_seen",
        }
    }
}

impl From<&Result<(), Error>> for Outcome {
    fn from(result: &Result<(), Error>) -> Self {
        result.as_ref().map_or_else(|error| Self::Failed(error.class()), |()| Self::Ok)
    }
}

/// One probe, or one marker on one replica. Times are on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// What it did.
    pub kind: Kind,
    /// To which of the endpoints, in the order in which they were given.
    pub endpoint: usize,
    /// Its number; markers have numbers of their own.
    pub number: u64,
    /// When it was due; of a marker, when its commit was acknowledged.
    pub time: Nanos,
    /// When it was sent; of a marker, when it was sent to be committed.
    pub sent: Option<Nanos>,
    /// When its answer was there; of a marker, the answer that showed it.
    pub end: Option<Nanos>,
    /// What became of it.
    pub outcome: Outcome,
    /// The lag is not shorter.
    pub lower: Option<Nanos>,
    /// The lag is not longer.
    pub upper: Option<Nanos>,
    /// How often a marker was looked for.
    pub polls: u64,
}

/// What probes of consistency check of their reads (`docs/metrics.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// A read that was due, and whether it was answered.
    Reads,
    /// A read that was sent and met an error.
    FailedReads,
    /// Whether a read is stale, some time after a write.
    Stale,
    /// A read that could not be sent before the next one was due, some time after a write.
    Missed,
    /// A read that is so many versions behind.
    Behind,
    /// Whether a session's read is older than one before.
    MonotonicReads,
    /// Whether a session's read is older than what it has written.
    ReadYourWrites,
    /// Whether a session's second write is there without its first.
    MonotonicWrites,
    /// Whether what a session wrote is there without what it had read.
    WritesFollowReads,
    /// Whether two writes were seen in opposite orders.
    LongFork,
    /// A register that was given up, because the outcome of a write is not known.
    Retired,
}

impl Check {
    /// The check's name in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::FailedReads => "failed_reads",
            Self::Stale => "stale",
            Self::Missed => "missed",
            Self::Behind => "behind",
            Self::MonotonicReads => "monotonic_reads",
            Self::ReadYourWrites => "read_your_writes",
            Self::MonotonicWrites => "monotonic_writes",
            Self::WritesFollowReads => "writes_follow_reads",
            Self::LongFork => "long_fork",
            Self::Retired => "retired",
        }
    }
}

/// What a check came to in a slice of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// When the slice began, on the monotonic clock.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
    /// Which endpoint was read; `None` for what is not of one alone.
    pub endpoint: Option<usize>,
    /// What was checked.
    pub check: Check,
    /// Of [`Check::Stale`] and [`Check::Missed`] where the bin of the time since the write begins, in milliseconds; of
    /// [`Check::Behind`] how many versions.
    pub place: Option<f64>,
    /// How often.
    pub trials: u64,
    /// How often it was so.
    pub hits: u64,
}

/// What probes have found since they were last asked.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// What each probe found.
    pub samples: Vec<Sample>,
    /// What checks have come to.
    pub counts: Vec<Count>,
}

impl Findings {
    fn is_empty(&self) -> bool {
        self.samples.is_empty() && self.counts.is_empty()
    }
}

/// The endpoints' roles and names, and the zero of times: what samples are written with.
#[derive(Clone, Debug)]
pub struct Legend {
    pub(crate) origin: Nanos,
    pub(crate) endpoints: Vec<(Role, String)>,
}

impl Legend {
    /// Samples as lines of JSON, and counts.
    #[must_use]
    pub fn lines(&self, found: &Findings) -> (String, String) {
        let lines = |rows: &mut dyn Iterator<Item = Value>| {
            rows.flat_map(|row| [row.to_string(), "\n".to_owned()]).collect::<String>()
        };
        (
            lines(&mut found.samples.iter().map(|sample| self.row(sample))),
            lines(&mut found.counts.iter().map(|count| self.count_row(count))),
        )
    }

    fn seconds(&self, time: Nanos) -> f64 {
        (i128::from(time) - i128::from(self.origin)) as f64 / 1e9
    }

    /// A count as a row of the run directory.
    fn count_row(&self, count: &Count) -> Value {
        let node = count.endpoint.and_then(|endpoint| self.endpoints.get(endpoint)).map(|(_, node)| node);
        json!({
            "start_s": self.seconds(count.start), "end_s": self.seconds(count.end), "check": count.check.name(),
            "node": node, "place": count.place, "trials": count.trials, "hits": count.hits,
        })
    }

    /// A sample as a row of the run directory (`docs/run-directory.md`).
    #[must_use]
    pub fn row(&self, sample: &Sample) -> Value {
        let seconds = |time: Nanos| self.seconds(time);
        let milliseconds = |time: Nanos| time as f64 / 1e6;
        let endpoint = self.endpoints.get(sample.endpoint);
        json!({
            "time_s": seconds(sample.time), "probe": sample.kind.probe(), "kind": sample.kind.name(),
            "role": endpoint.map(|(role, _)| role.name()), "node": endpoint.map(|(_, node)| node),
            "number": sample.number, "sent_s": sample.sent.map(seconds), "end_s": sample.end.map(seconds),
            "outcome": sample.outcome.name(), "lower_ms": sample.lower.map(milliseconds),
            "upper_ms": sample.upper.map(milliseconds), "polls": sample.polls,
        })
    }
}

/// Where the probes' tasks leave what they find until it is handed over.
pub(crate) struct Journal {
    found: RefCell<Findings>,
    sender: Sender<Findings>,
}

impl Journal {
    pub(crate) fn new(sender: Sender<Findings>) -> Self {
        Self { found: RefCell::default(), sender }
    }

    pub(crate) fn add(&self, sample: Sample) {
        self.found.borrow_mut().samples.push(sample);
    }

    pub(crate) fn count(&self, count: Count) {
        self.found.borrow_mut().counts.push(count);
    }

    /// Hands over what there is.
    pub(crate) fn hand_over(&self) {
        let found = self.found.take();
        if !found.is_empty() {
            // The reader is gone only with the probes.
            let _ = self.sender.send(found);
        }
    }
}
