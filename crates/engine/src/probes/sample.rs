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
        }
    }

    /// Which probe does it.
    #[must_use]
    pub fn probe(self) -> &'static str {
        match self {
            Self::Write | Self::Read => "availability",
            Self::Insert | Self::Update | Self::Delete => "lag",
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

/// The endpoints' roles and names, and the zero of times: what samples are written with.
#[derive(Clone, Debug)]
pub struct Legend {
    pub(crate) origin: Nanos,
    pub(crate) endpoints: Vec<(Role, String)>,
}

impl Legend {
    /// Samples as lines of JSON.
    #[must_use]
    pub fn lines(&self, samples: &[Sample]) -> String {
        samples.iter().flat_map(|sample| [self.row(sample).to_string(), "\n".to_owned()]).collect()
    }

    /// A sample as a row of the run directory (`docs/run-directory.md`).
    #[must_use]
    pub fn row(&self, sample: &Sample) -> Value {
        let seconds = |time: Nanos| (i128::from(time) - i128::from(self.origin)) as f64 / 1e9;
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

/// Where the probes' tasks leave samples until they are handed over.
pub(crate) struct Journal {
    samples: RefCell<Vec<Sample>>,
    sender: Sender<Vec<Sample>>,
}

impl Journal {
    pub(crate) fn new(sender: Sender<Vec<Sample>>) -> Self {
        Self { samples: RefCell::default(), sender }
    }

    pub(crate) fn add(&self, sample: Sample) {
        self.samples.borrow_mut().push(sample);
    }

    /// Hands over what there is.
    pub(crate) fn hand_over(&self) {
        let samples = self.samples.take();
        if !samples.is_empty() {
            // The reader is gone only with the probes.
            let _ = self.sender.send(samples);
        }
    }
}
