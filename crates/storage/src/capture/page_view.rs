//! The page view: every read, write and sync of a recording as a request; and those alone that a view wants.

use super::error::RecordingError;
use super::record::Record;
use super::recording::Recording;
use super::relations::Relations;
use crate::requests::{Columns, Operation, Request};
use crate::segments::Segments;

/// The requests of the calls that began in a time, which is on `CLOCK_MONOTONIC` in nanoseconds; their times count from
/// its beginning.
///
/// # Errors
///
/// As those of [`Recording::open`].
pub fn page_view(
    recording: &Recording,
    from_ns: u64,
    to_ns: u64,
    relations: &Relations,
    segments: &mut Segments,
) -> Result<Columns, RecordingError> {
    view(recording, (from_ns, to_ns), relations, segments, |_, _| true)
}

/// As [`page_view`], of the calls alone that are wanted, by themselves and the paths of their files.
pub(crate) fn view(
    recording: &Recording,
    (from_ns, to_ns): (u64, u64),
    relations: &Relations,
    segments: &mut Segments,
    wanted: impl Fn(&Record, &str) -> bool,
) -> Result<Columns, RecordingError> {
    let mut columns = Columns::default();
    let mut files: Vec<(String, u64)> = Vec::new();
    let mut records = recording.records(from_ns, to_ns);
    while let Some(record) = records.next() {
        let record = record?;
        // Files are numbered as they are met.
        for path in &records.paths().all()[files.len()..] {
            files.push(relations.of_file(path));
        }
        if !wanted(&record, records.paths().get(record.file).unwrap_or_default()) {
            continue;
        }
        let (name, begins) = &files[record.file as usize];
        let (segment, offset) =
            segments.place(name, begins.saturating_add(record.offset)).map_err(RecordingError::Segments)?;
        columns.push(&Request {
            time_us: ((record.time_ns - from_ns) / 1000) as i64,
            segment,
            offset: if record.operation == Operation::Sync { 0 } else { offset },
            bytes: record.bytes,
            operation: record.operation,
            process: record.process,
            latency_us: (record.latency_ns as f64 / 1000.0) as f32,
        });
    }
    Ok(columns)
}
