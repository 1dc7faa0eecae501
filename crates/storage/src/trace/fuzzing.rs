//! What the fuzz target in `fuzz/` calls; the tests replay its seeds.

use std::io::Cursor;

use super::{Entry, FORMATS, Format, LONGEST_DAYS, Reader, fio};
use crate::{Operation, Request, Segments};

const SEGMENT: u64 = 4096;
const DAY_US: i64 = 86_400 * 1_000_000;

/// A trace, of the format and with the options that its first byte says: it is refused with the number of a line, or its
/// requests are in order, lie in segments that are in the table, are not more than its lines, and mean the same when they
/// are written as fio's I/O log and read again.
///
/// # Panics
/// If they do not.
pub fn trace(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let format = FORMATS[usize::from(*choice) % FORMATS.len()];
    let option = usize::from(*choice) / FORMATS.len();
    let options = format
        .choices
        .iter()
        .map(|choice| (choice.name.to_owned(), choice.allowed[option % choice.allowed.len()].to_owned()));
    let lines = text.split(|byte| *byte == b'\n').count();
    match read(format, &options.collect::<Vec<_>>(), text) {
        Ok((requests, table)) => {
            assert!(requests.len() <= lines);
            assert!(requests.is_sorted_by_key(|request| request.time_us));
            assert!(requests.first().is_none_or(|request| request.time_us == 0));
            assert!(requests.last().is_none_or(|request| request.time_us <= LONGEST_DAYS * DAY_US));
            check_written(&requests, &table);
        }
        Err(why) => assert!(why.starts_with("seed: "), "{why}"),
    }
}

type Found = (Vec<Request>, Vec<(String, u32)>);

fn read(format: &Format, options: &[(String, String)], text: &[u8]) -> Result<Found, String> {
    let mut reader = Reader::new("seed", Cursor::new(text.to_vec()), format, options)?;
    let (mut segments, mut requests) = (Segments::new(SEGMENT)?, Vec::new());
    while let Some(columns) = reader.next(&mut segments)? {
        requests.extend((0..columns.len()).map(|at| columns.get(at)));
    }
    assert_eq!(reader.intake().taken(), requests.len() as u64);
    Ok((requests, segments.table().map(|(name, chunk)| (name.to_owned(), chunk)).collect()))
}

/// What is written for fio has no latencies, no place of a sync, and no names with blanks.
fn check_written(requests: &[Request], table: &[(String, u32)]) {
    let mut text = Vec::new();
    assert!(fio::write_header(&mut text, &["file"]).is_ok());
    for request in requests {
        assert!(request.offset < SEGMENT);
        let (name, chunk) = &table[request.segment as usize];
        assert!(!name.is_empty());
        let sync = request.operation == Operation::Sync;
        let entry = Entry {
            time_us: request.time_us,
            offset: if sync { 0 } else { u64::from(*chunk) * SEGMENT + request.offset },
            bytes: if sync { 0 } else { u64::from(request.bytes) },
            operation: request.operation,
            latency_us: f32::NAN,
        };
        assert!(fio::write_request(&mut text, "file", &entry).is_ok());
    }
    let (again, chunks) = match read(&fio::FORMAT, &[], &text) {
        Ok(found) => found,
        Err(why) => panic!("{why}"),
    };
    assert_eq!(again.len(), requests.len());
    for (again, request) in again.iter().zip(requests) {
        assert_eq!((again.time_us, again.operation), (request.time_us, request.operation));
        if request.operation != Operation::Sync {
            assert_eq!((again.offset, again.bytes), (request.offset, request.bytes));
            assert_eq!(chunks[again.segment as usize].1, table[request.segment as usize].1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::tests::EXAMPLES;

    #[test]
    fn the_seeds_of_traces_hold() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/trace");
        let seeds: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(seeds.len() >= EXAMPLES.len(), "{} lacks seeds", folder.display());
        for seed in seeds {
            super::trace(&fs::read(seed).unwrap());
        }
    }

    #[test]
    fn the_examples_hold_whatever_is_chosen() {
        for (at, (_, text, _)) in EXAMPLES.iter().enumerate() {
            for option in 0..3 {
                super::trace(&[&[(option * EXAMPLES.len() + at) as u8], text.as_bytes()].concat());
            }
        }
    }
}
