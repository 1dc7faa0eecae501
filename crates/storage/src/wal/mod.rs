//! `PostgreSQL`'s write-ahead log, versions 13 to 18: its records, each with the blocks that it changes and its size.
//!
//! The layout is that of the server's `access/xlogrecord.h` and `access/xlog_internal.h`.

mod crc;
mod folder;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod log_view;
mod reader;
mod record;
#[cfg(test)]
mod tests;

use std::fmt;

pub use folder::WalFolder;
pub use reader::{Pages, WalReader};
pub use record::{Block, Fork, Locator, Record};

/// A place in the log: its distance from the beginning, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:X}/{:08X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

/// Why the log cannot be read on.
#[derive(Debug, thiserror::Error)]
#[error("the log at {lsn}: {why}")]
pub struct WalError {
    /// The record or the page.
    pub lsn: Lsn,
    /// What is wrong there.
    pub why: Wrong,
}

/// What can be wrong with a log.
#[derive(Debug, thiserror::Error)]
pub enum Wrong {
    /// A file cannot be read.
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
    /// A page has another version's mark.
    #[error("a page has the mark {0:04X}, which is none of PostgreSQL 13 to 18")]
    Mark(u16),
    /// A page's header contradicts its place, or the record that it continues.
    #[error("a page's header is not right: {0}")]
    Header(&'static str),
    /// A record is not laid out as records are.
    #[error("a record is not right: {0}")]
    Record(&'static str),
    /// A record's bytes are not those that were written.
    #[error("a record's checksum is {found:08X}, and should be {stated:08X}")]
    Checksum {
        /// As it was computed.
        found: u32,
        /// As the record says.
        stated: u32,
    },
    /// What it changes has no number as a segment.
    #[error("{0}")]
    Segments(String),
    /// The log ends before the place that was named.
    #[error("the log ends here, before {0}")]
    Short(Lsn),
}

impl Wrong {
    pub(crate) fn at(self, lsn: u64) -> WalError {
        WalError { lsn: Lsn(lsn), why: self }
    }
}
