//! Histories as text: our own lines, and Elle's maps in EDN and JSON. All are read in one pass, transaction by
//! transaction.

mod elle;
mod export;
mod maps;
mod own;

use std::fmt;
use std::io::BufRead;

use crate::history::Transaction;

pub use export::{Dialect, Family, export};
pub use own::{HEADER, write_line};

/// What is wrong with a history's text, and in which line, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line.
    pub line: u64,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "line {}: {}", self.line, self.message)
    }
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Transactions.
    pub transactions: u64,
    /// Operations of other kinds than transactions: a nemesis', say.
    pub skipped: u64,
    /// The history says that it ends before its run did.
    pub is_cut: bool,
}

/// Reads a history, whichever form it has, and hands each transaction on as it ends. It holds one transaction of each
/// session at a time.
///
/// # Errors
/// Where the text cannot be read, with the line; or what `each` says, with the line that the transaction ended in.
pub fn read(
    mut input: impl BufRead,
    mut each: impl FnMut(&Transaction) -> Result<(), String>,
) -> Result<Told, Fault> {
    let first = input.fill_buf().map_err(|error| Fault { line: 1, message: error.to_string() })?;
    if first.starts_with(HEADER.as_bytes()) {
        own::read(input, &mut each)
    } else {
        elle::read(input, &mut each)
    }
}
