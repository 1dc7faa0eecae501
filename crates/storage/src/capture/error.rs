//! What can be wrong with a recording.

use std::path::PathBuf;

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The folder or a file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file does not begin as files of records do.
    #[error("{} is no file of I/O records, or one of another version", path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
    },
    /// A record is not as it was written.
    #[error("{} is damaged: record {record} {what}", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// The place of the record in its file, counted from 0.
        record: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Its files have no numbers as segments.
    #[error("{0}")]
    Segments(String),
}
