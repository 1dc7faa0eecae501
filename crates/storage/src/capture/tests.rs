//! Files of records as the library writes them, whole, torn and damaged.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::format::{HEADER, HEADER_ERROR, HEADER_LOST, HEADER_PROCESS, MAGIC, PAYLOAD, SLOT, Word, kind};
use super::fuzzing;
use super::{Record, Recording, RecordingError, Relations, page_view};
use crate::requests::{Operation, Process};
use crate::segments::Segments;

/// A file of records in the making.
struct Written(Vec<u8>);

impl Written {
    fn new(process: u32, error: u32, lost: u64) -> Self {
        let mut header = [0; HEADER];
        header[..MAGIC.len()].copy_from_slice(&MAGIC);
        header[HEADER_PROCESS..HEADER_PROCESS + 4].copy_from_slice(&process.to_ne_bytes());
        header[HEADER_ERROR..HEADER_ERROR + 4].copy_from_slice(&error.to_ne_bytes());
        header[HEADER_LOST..HEADER_LOST + 8].copy_from_slice(&lost.to_ne_bytes());
        Self(header.to_vec())
    }

    fn slot(&mut self, payload: &[u8], number: u32, detail: u16, kind: u8) {
        let at = self.0.len();
        self.0.extend_from_slice(payload);
        self.0.resize(at + PAYLOAD, 0);
        self.0.extend_from_slice(&Word { number, detail, kind }.packed().to_ne_bytes());
    }

    fn name(&mut self, kind: u8, number: u32, name: &str) {
        let parts: Vec<&[u8]> = name.as_bytes().chunks(PAYLOAD).collect();
        for (at, part) in parts.iter().enumerate() {
            self.slot(part, number, (parts.len() - 1 - at) as u16, kind);
        }
    }

    fn call(
        &mut self,
        kind: u8,
        (time, latency): (u64, u64),
        (offset, bytes): (u64, u32),
        file: u32,
        caller: u16,
    ) {
        let mut payload = [time.to_ne_bytes(), latency.to_ne_bytes(), offset.to_ne_bytes()].concat();
        payload.extend_from_slice(&bytes.to_ne_bytes());
        self.slot(&payload, file, caller, kind);
    }

    /// A backend with a table and the log.
    fn backend() -> Self {
        let mut written = Self::new(7, 0, 0);
        written.name(kind::FILE, 0, "base/5/16384");
        written.name(kind::FILE, 1, "pg_wal/000000010000000000000001");
        written.name(kind::CALLER, 4, "client backend");
        written
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[&[u8]]) -> Self {
        let folder = std::env::temp_dir().join(format!("nephoscope-records-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (at, file) in files.iter().enumerate() {
            fs::write(folder.join(format!("{at}-0-0.io")), file).unwrap();
        }
        Self(folder)
    }

    fn open(&self) -> Result<Recording, RecordingError> {
        Recording::open(&self.0)
    }

    fn records(&self) -> Result<Vec<Record>, RecordingError> {
        self.open()?.records(0, u64::MAX).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn records_of_several_processes_come_in_order_of_time() {
    let mut one = Written::backend();
    one.call(kind::READ, (100, 5), (8192, 8192), 0, 4);
    one.call(kind::SYNC, (300, 900), (0, 0), 1, 4);
    let mut other = Written::new(8, 0, 0);
    other.name(kind::FILE, 0, "pg_wal/000000010000000000000001");
    other.name(kind::CALLER, 9, "walwriter");
    // It ended last, and began first.
    other.call(kind::WRITE, (250, 5), (8192, 512), 0, 9);
    other.call(kind::WRITE, (50, 5000), (0, 8192), 0, 9);
    let folder = Folder::new("order", &[&one.0, &other.0]);
    let recording = folder.open().unwrap();
    assert_eq!((recording.calls(), recording.processes(), recording.unfinished()), (4, 2, 0));
    let mut records = recording.records(0, u64::MAX);
    let found: Vec<_> = records.by_ref().map(|record| record.unwrap()).collect();
    let seen: Vec<_> =
        found.iter().map(|record| (record.time_ns, record.operation, record.process, record.file)).collect();
    let (log, table) = (0, 1);
    assert_eq!(records.paths().all(), ["pg_wal/000000010000000000000001", "base/5/16384"]);
    assert_eq!(
        seen,
        [
            (50, Operation::Write, Process::LogWriter, log),
            (100, Operation::Read, Process::Backend, table),
            (250, Operation::Write, Process::LogWriter, log),
            (300, Operation::Sync, Process::Backend, log),
        ]
    );
    assert_eq!(recording.records(100, 300).count(), 2);
    assert_eq!(recording.records(301, 400).count(), 0);
}

#[test]
fn the_page_view_counts_from_its_beginning_and_names_relations() {
    let mut written = Written::backend();
    written.name(kind::FILE, 2, "base/5/16384.1");
    written.call(kind::READ, (1_000_000, 1500), (20 << 20, 8192), 0, 4);
    written.call(kind::WRITE, (3_000_000, 2000), (8192, 8192), 2, 4);
    let folder = Folder::new("page-view", &[&written.0]);
    let relations = [("base/5/16384".to_owned(), "orders".to_owned())].into_iter().collect::<Relations>();
    let mut segments = Segments::new(16 << 20).unwrap();
    let view = page_view(&folder.open().unwrap(), 500_000, u64::MAX, &relations, &mut segments).unwrap();
    assert_eq!(view.time_us, [500, 2500]);
    assert_eq!(view.offset, [4 << 20, 8192]);
    assert_eq!(view.latency_us, [1.5, 2.0]);
    let named: Vec<_> = segments.table().map(|(name, chunk)| (name.to_owned(), chunk)).collect();
    assert_eq!(named, [("orders".to_owned(), 1), ("orders".to_owned(), 64)]);
}

#[test]
fn what_a_killed_process_did_not_finish_is_passed_over_and_counted() {
    let mut written = Written::backend();
    written.call(kind::READ, (100, 5), (0, 8192), 0, 4);
    written.0.extend_from_slice(&[0; SLOT]);
    written.call(kind::READ, (200, 5), (0, 8192), 0, 4);
    // What the file system gave and nobody used, and a part of a slot.
    written.0.extend_from_slice(&[0; 10 * SLOT + 7]);
    let folder = Folder::new("torn", &[&written.0, &[0; 500], &[]]);
    let recording = folder.open().unwrap();
    assert_eq!((recording.calls(), recording.unfinished(), recording.processes()), (2, 1, 1));
    assert_eq!(folder.records().unwrap().len(), 2);
}

#[test]
fn what_the_library_says_of_its_end_is_told() {
    let folder = Folder::new("ended", &[&Written::new(7, 28, 12).0, &Written::new(8, 0, 0).0]);
    let recording = folder.open().unwrap();
    assert_eq!((recording.lost(), recording.ended()), (12, vec![(7, 28)]));
}

#[test]
fn a_damaged_file_is_refused_by_name() {
    let mut nameless = Written::backend();
    nameless.call(kind::READ, (100, 5), (0, 8192), 9, 4);
    let mut unmarked = Written::backend();
    unmarked.call(kind::READ, (100, 5), (0, 8192), 0, 4);
    let last = unmarked.0.len() - 1;
    unmarked.0[last] = 1;
    let mut unknown = Written::backend();
    unknown.slot(&[], 0, 4, 77);
    let cases = [
        (nameless.0, "0-0-0.io is damaged: record 3 is of a file without a name"),
        (unmarked.0, "0-0-0.io is damaged: record 3 has no valid end"),
        (unknown.0, "0-0-0.io is damaged: record 3 is of an unknown kind"),
        (b"something else entirely".to_vec(), "0-0-0.io is no file of I/O records"),
    ];
    for (at, (bytes, expected)) in cases.iter().enumerate() {
        let message = Folder::new(&format!("damaged-{at}"), &[bytes]).records().unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    assert!(matches!(Recording::open(Path::new("/nonexistent")), Err(RecordingError::Unreadable { .. })));
}

#[test]
fn the_seeds_of_records_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/io_records");
    let seeds: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!seeds.is_empty(), "{} is empty", folder.display());
    for seed in seeds {
        fuzzing::records(&fs::read(seed).unwrap());
    }
}

proptest! {
    #[test]
    fn whatever_ended_when_all_calls_come_in_order_of_their_beginning(
        calls in prop::collection::vec((0_u64..1000, 0_u64..300, 0_u64..1 << 40, 0_u32..1 << 20), 0..200),
    ) {
        let mut calls = calls;
        // Threads of one process: a call is written when it has ended.
        calls.sort_by_key(|(time, latency, ..)| time + latency);
        let mut written = Written::backend();
        for (time, latency, offset, bytes) in &calls {
            written.call(kind::WRITE, (*time, *latency), (*offset, *bytes), 0, 4);
        }
        fuzzing::records(&written.0);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(
        changes in prop::collection::vec((0_usize..400, any::<u8>()), 0..20), cut in 0_usize..400,
    ) {
        let mut written = Written::backend();
        for time in [500, 100, 300] {
            written.call(kind::READ, (time, 5), (0, 8192), 0, 4);
        }
        for (at, byte) in changes {
            let length = written.0.len();
            written.0[at % length] = byte;
        }
        written.0.truncate(cut.max(1));
        fuzzing::records(&written.0);
    }

    #[test]
    fn no_random_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        let mut after_a_header = MAGIC.to_vec();
        after_a_header.extend_from_slice(&bytes);
        fuzzing::records(&bytes);
        fuzzing::records(&after_a_header);
    }
}
