//! A call of the server, as the preload library recorded it.

use crate::requests::{Operation, Process};

/// A read, a write or a sync of one of the server's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When the call began, on `CLOCK_MONOTONIC`, in nanoseconds.
    pub time_ns: u64,
    /// How long it took, in nanoseconds.
    pub latency_ns: u64,
    /// Who made it.
    pub process: Process,
    /// What it asked for.
    pub operation: Operation,
    /// The number of the file; its path, relative to the data directory, is in [`Paths`].
    pub file: u32,
    /// Where it began in the file, in bytes; 0 for a sync.
    pub offset: u64,
    /// How many bytes were read or written; 0 for a sync.
    pub bytes: u32,
}

/// The paths of the files of a recording, relative to the server's data directory; a file's place is its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    all: Vec<String>,
    numbers: std::collections::HashMap<String, u32>,
}

impl Paths {
    /// The number of a path, which is a new one if it was not known.
    pub fn number(&mut self, path: &str) -> u32 {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.all.push(path.to_owned());
        self.numbers.insert(path.to_owned(), number);
        number
    }

    /// The path of a file, if there is one of that number.
    #[must_use]
    pub fn get(&self, file: u32) -> Option<&str> {
        self.all.get(file as usize).map(String::as_str)
    }

    /// All paths, by number.
    #[must_use]
    pub fn all(&self) -> &[String] {
        &self.all
    }
}
