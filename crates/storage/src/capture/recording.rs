//! A folder of files of records: what it holds, and its records in the order in which the calls began.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::error::RecordingError;
use super::record::{Paths, Record};
use super::source::{Ordered, Source, Summary};

/// How the names of files of records end.
const SUFFIX: &str = "io";

/// What the server's processes recorded up to the time of the opening; they may go on.
pub struct Recording {
    files: Vec<(PathBuf, Summary)>,
}

impl Recording {
    /// Looks through all files of a folder. Each is read once here, and once more for its records.
    ///
    /// # Errors
    ///
    /// A file cannot be read, is foreign, or is damaged.
    pub fn open(folder: &Path) -> Result<Self, RecordingError> {
        let unreadable = |error| RecordingError::Unreadable { path: folder.to_owned(), error };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|suffix| suffix == SUFFIX) {
                let summary = Summary::of(open(&path)?, &path)?;
                files.push((path, summary));
            }
        }
        files.sort_by(|one, other| (one.1.first_ns, &one.0).cmp(&(other.1.first_ns, &other.0)));
        Ok(Self { files })
    }

    /// How many calls were recorded.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.files.iter().map(|(_, summary)| summary.calls).sum()
    }

    /// How many calls could not be recorded, because a file could not grow.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.files.iter().map(|(_, summary)| summary.header.lost).sum()
    }

    /// How many records were begun and not finished, because the process was killed.
    #[must_use]
    pub fn unfinished(&self) -> u64 {
        self.files.iter().map(|(_, summary)| summary.unfinished).sum()
    }

    /// The processes whose recording ended early, each with the error number of the system.
    #[must_use]
    pub fn ended(&self) -> Vec<(u32, u32)> {
        let headers = self.files.iter().map(|(_, summary)| summary.header);
        headers.filter(|header| header.error != 0).map(|header| (header.process, header.error)).collect()
    }

    /// How many processes have recorded something.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.files.iter().filter(|(_, summary)| summary.calls > 0).count()
    }

    /// The records of the calls that began in a time, which is on `CLOCK_MONOTONIC` in nanoseconds, in that order.
    #[must_use]
    pub fn records(&self, from_ns: u64, to_ns: u64) -> Records<'_> {
        let overlapping =
            |summary: &Summary| summary.calls > 0 && summary.first_ns < to_ns && summary.last_ns >= from_ns;
        let files = self.files.iter().filter(|(_, summary)| overlapping(summary)).collect();
        let paths = Paths::default();
        Records { files, opened: 0, sources: Vec::new(), next: BinaryHeap::new(), paths, from_ns, to_ns }
    }
}

/// Records of all processes, merged. Only files whose times overlap are open at once.
pub struct Records<'recording> {
    files: Vec<&'recording (PathBuf, Summary)>,
    opened: usize,
    sources: Vec<Option<Source<File>>>,
    next: BinaryHeap<Reverse<Ordered>>,
    paths: Paths,
    from_ns: u64,
    to_ns: u64,
}

impl Records<'_> {
    /// The paths of the files of the records so far.
    #[must_use]
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The paths alone, when all records have been read.
    #[must_use]
    pub fn into_paths(self) -> Paths {
        self.paths
    }

    fn advance(&mut self) -> Result<Option<Record>, RecordingError> {
        loop {
            self.open_next()?;
            let Some(Reverse(Ordered { record, number })) = self.next.pop() else { return Ok(None) };
            if record.time_ns >= self.to_ns {
                return Ok(None);
            }
            self.pull(number as usize)?;
            if record.time_ns >= self.from_ns {
                return Ok(Some(record));
            }
        }
    }

    /// Opens the files that may have the next record.
    fn open_next(&mut self) -> Result<(), RecordingError> {
        while let Some((path, summary)) = self.files.get(self.opened) {
            if self.next.peek().is_some_and(|Reverse(next)| next.record.time_ns < summary.first_ns) {
                break;
            }
            self.opened += 1;
            self.sources.push(Source::new(open(path)?, path, *summary)?);
            self.pull(self.sources.len() - 1)?;
        }
        Ok(())
    }

    fn pull(&mut self, source: usize) -> Result<(), RecordingError> {
        let Some(reader) = &mut self.sources[source] else { return Ok(()) };
        match reader.next(&mut self.paths)? {
            Some(record) => self.next.push(Reverse(Ordered { record, number: source as u64 })),
            None => self.sources[source] = None,
        }
        Ok(())
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}

fn open(path: &Path) -> Result<File, RecordingError> {
    File::open(path).map_err(|error| RecordingError::Unreadable { path: path.to_owned(), error })
}
