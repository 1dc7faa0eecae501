//! Where requests begin inside their segments: what is learned of it, counted here, and how it is written in a plan.
//!
//! A request goes on where the one before it in its segment ended (a run), or to a page at a distance in the order of
//! the segment's last accesses (an LRU stack, Mattson 1970), or, where no page is that far, to a new one. Pages keep
//! their nature: whether a run went on behind them, and how they were come to the last time.

mod bins;
mod counting;
mod memory;

use serde::Deserialize;

pub use self::bins::BINS;
pub(crate) use self::bins::of_bin;
pub use self::counting::{Counted, PatternCounts};
pub use self::memory::KINDS;
pub(crate) use self::memory::Memory;

/// What was learned, as a plan has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patterns {
    /// Laws, which segments share.
    pub laws: Vec<Law>,
    /// The segments of which something is known. In all others any page is as likely as any other.
    pub segments: Vec<Located>,
}

/// How the requests of a kind move inside their segments.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Law {
    /// The probability that a request goes on where the one before ended: after a page accessed for the first time, that
    /// was not in a run, or was; and after a page that was not gone on from the last time, or was.
    pub run: [f64; 4],
    /// Of the other requests, a bin of distances (below [`BINS`], or [`BINS`] for a page never accessed), a kind of page
    /// (below [`KINDS`]), and their weight.
    pub distances: Vec<(usize, u8, f64)>,
}

/// A segment of which something is known.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Located {
    /// Its number.
    pub segment: u32,
    /// Its pages, 1 at least: requests begin on none behind.
    pub pages: u32,
    /// The places of the laws of its reads and of its writes.
    pub laws: [usize; 2],
}
