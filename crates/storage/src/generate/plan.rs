//! What is to be generated, as it is written in JSON, and what is wrong with it.

use serde::Deserialize;
use thiserror::Error;

use crate::Process;
use crate::patterns::Patterns;

/// What is to be generated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The same seed gives the same requests, whatever the number of threads and the size of the batches.
    pub seed: u64,
    /// The size of a segment.
    pub segment_bytes: u64,
    /// Offsets are multiples of this; also how many bytes a read has whose cell names no sizes.
    pub page_bytes: u32,
    /// How the requests of a second lie in it, of the sources without bursts.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Bursts that sources name by their places.
    #[serde(default)]
    pub bursts: Vec<Bursts>,
    /// Of each cell its segment; the size of the buffer in KB, rounded up, 0 for a read; and the place of its sizes, none
    /// where a write has just so many KB.
    pub cells: Vec<(u32, u32, Option<usize>)>,
    /// Numbers of bytes that are equally likely.
    #[serde(default)]
    pub sizes: Vec<Vec<u32>>,
    /// Where requests come from: a stream, or a stream in one part of a composition.
    pub sources: Vec<Source>,
    /// Where requests begin inside their segments.
    #[serde(default)]
    pub patterns: Patterns,
}

/// How the requests of a second lie in it; their number is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Of n requests, one lies in each n-th of the second.
    #[default]
    Stratified,
    /// As those of a Poisson process of which the number is known: anywhere, independently.
    Poisson,
}

/// Groups of requests that follow each other closely. A source draws one after another, each as likely as any other, until
/// a second has its number of requests; those too many are left out of the first bursts. What reaches over the end of the second
/// goes to its beginning.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// How the beginnings of a second's bursts lie in it.
    pub starts: Arrivals,
    /// How many requests each burst has, 1 at least.
    pub sizes: Vec<u32>,
    /// When each request comes, in microseconds from the beginning of its burst, below 1,000,000; burst by burst.
    pub offsets_us: Vec<u32>,
    /// What each request asks for: 0 to read, 1 to write. A second whose cells are drawn otherwise overrules it.
    pub operations: Vec<u8>,
}

/// Where requests come from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The kind of process that makes them, by its name in a corpus.
    pub process: String,
    /// How many in each second; seconds behind the end have none.
    pub counts: Vec<u32>,
    /// The weight of each cell.
    pub weights: Vec<f64>,
    /// The place of its bursts in the plan; without them its requests lie as `arrivals` says.
    #[serde(default)]
    pub bursts: Option<usize>,
}

/// What is wrong with a plan.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PlanError {
    /// Sizes that no request fits into.
    #[error("a page of {page_bytes} bytes does not fit into a segment of {segment_bytes}")]
    Page {
        /// The page.
        page_bytes: u32,
        /// The segment.
        segment_bytes: u64,
    },
    /// A name that is none.
    #[error("no kind of process is called {0:?}")]
    Process(String),
    /// Lengths that differ.
    #[error("there are {weights} weights for {cells} cells")]
    Weights {
        /// So many weights.
        weights: usize,
        /// So many cells.
        cells: usize,
    },
    /// Weights that are no distribution, although there are requests to be drawn from it.
    #[error(
        "the weights of the cells are no distribution: none may be negative or infinite, one must be above 0"
    )]
    Distribution,
    /// A second with more requests than a number of 32 bits holds.
    #[error("second {second} has {requests} requests; at most {} are possible", u32::MAX)]
    TooMany {
        /// Which second.
        second: usize,
        /// How many.
        requests: u64,
    },
    /// Sizes that are not there, or empty.
    #[error("cell {cell} has no sizes: there is no such list, or nothing in it")]
    NoSizes {
        /// The place of the cell.
        cell: usize,
    },
    /// A size in KB whose bytes are no number of 32 bits.
    #[error("{size_kb} KB are more than a request may have")]
    TooLarge {
        /// The size.
        size_kb: u32,
    },
    /// Patterns that are none.
    #[error(
        "the patterns of offsets are damaged: a probability, a bin, a law's place or a number of pages is wrong"
    )]
    Pattern,
    /// Bursts that are none.
    #[error("the bursts are damaged: a size, a time, an operation or a source's place of bursts is wrong")]
    Bursts,
    /// A run so long that its times are no number of 64 bits.
    #[error("{seconds} seconds are more than a run may have")]
    TooLong {
        /// How long.
        seconds: usize,
    },
}

impl Plan {
    /// How many seconds there are.
    #[must_use]
    pub fn seconds(&self) -> usize {
        self.sources.iter().map(|source| source.counts.len()).max().unwrap_or(0)
    }
}

impl Source {
    pub(super) fn kind(&self) -> Result<Process, PlanError> {
        let found = Process::ALL.into_iter().find(|process| process.name() == self.process);
        found.ok_or_else(|| PlanError::Process(self.process.clone()))
    }
}
