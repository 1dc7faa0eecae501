//! Logs that are made here: their records are known, and where they are damaged.

use proptest::prelude::*;

use super::*;
use crate::capture::{self, Relations};
use crate::requests::{Operation, Process};
use crate::segments::Segments;
use fuzzing::{Made, PAGES, START};
use log_view::{Clock, Flushes, Redos};

const PAGE: usize = 8192;
const SEGMENT: usize = PAGES * PAGE;

impl Default for Made {
    fn default() -> Self {
        Self::new(PAGE, Vec::new())
    }
}

impl Made {
    /// A record with one block of a relation and so many bytes of data.
    fn change(&mut self, relation: u32, block: u32, data: u16) -> (u64, u64) {
        let mut body = vec![0, if data > 0 { 0x20 } else { 0 }];
        body.extend(data.to_le_bytes());
        body.extend([1663_u32, 5, relation, block].map(u32::to_le_bytes).concat());
        body.extend([255, 3]);
        body.extend(vec![7; usize::from(data) + 3]);
        self.push(10, 0, &body)
    }

    /// The record of a commit at a time of day.
    fn commit(&mut self, since_2000_us: i64) -> (u64, u64) {
        let mut body = vec![255, 8];
        body.extend(since_2000_us.to_le_bytes());
        self.push(1, 0, &body)
    }

    fn read(self) -> Result<Vec<Record>, WalError> {
        WalReader::new(self, Lsn(START), None).collect()
    }
}

#[test]
fn records_come_back_across_pages_and_segments() {
    let mut log = Made::default();
    let sizes = [0, 1, 8000, 100, 30000, 8192, 60000, 5];
    let places: Vec<_> = sizes.iter().map(|size| log.change(16384, 3, *size)).collect();
    let records = log.filled().read().unwrap();
    let found: Vec<_> = records.iter().map(|record| (record.lsn.0, record.end_lsn.0)).collect();
    assert_eq!(found, places);
    let bytes: Vec<_> = records.iter().map(|record| record.blocks[0].bytes).collect();
    assert_eq!(bytes, sizes.map(|size| 24 + 20 + 5 + u32::from(size)));
    assert_eq!(records[0].blocks[0].locator, Locator { tablespace: 1663, database: 5, relation: 16384 });
    assert_eq!((records[0].transaction, records[0].ended_us), (77, None));
}

#[test]
fn reading_may_begin_in_the_middle_of_a_record() {
    let mut log = Made::default();
    log.change(1, 1, 30000);
    let next = log.change(2, 2, 10);
    let records: Vec<_> =
        WalReader::new(log.filled(), Lsn(START + PAGE as u64), None).collect::<Result<_, _>>().unwrap();
    assert_eq!(records.iter().map(|record| record.lsn.0).collect::<Vec<_>>(), [next.0]);
}

#[test]
fn what_an_earlier_use_of_the_file_left_is_the_end() {
    let mut log = Made::default();
    log.change(1, 1, 10);
    let mut log = log.filled();
    let mut old = log.bytes.clone();
    log.bytes.append(&mut old);
    assert_eq!(log.clone().read().unwrap().len(), 1);
    // The next record would have gone on there.
    let mut torn = Made::default();
    torn.change(1, 1, 10);
    torn.change(1, 1, 20000);
    torn.bytes.truncate(PAGE);
    assert_eq!(torn.read().unwrap().len(), 1);
}

#[test]
fn a_log_that_is_shorter_than_it_should_be_is_an_error() {
    let mut log = Made::default();
    let (_, end) = log.change(1, 1, 10);
    let log = log.filled();
    let all = |end| WalReader::new(log.clone(), Lsn(START), Some(Lsn(end))).collect::<Result<Vec<_>, _>>();
    assert_eq!(all(end).unwrap().len(), 1);
    let error = all(end + 8).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the log at {}: the log ends here, before {}", Lsn(end), Lsn(end + 8))
    );
}

#[test]
fn a_wrong_byte_is_an_error_at_its_record() {
    let mut log = Made::default();
    log.change(1, 1, 100);
    let (second, _) = log.change(1, 2, 100);
    let mut log = log.filled();
    log.bytes[(second - START) as usize + 80] ^= 1;
    let error = log.read().unwrap_err();
    assert!(error.to_string().starts_with("the log at 1/000000C0: a record's checksum is "), "{error}");
}

/// A call of the server on the made log.
fn call(operation: Operation, time_us: u64, from: u64, to: u64) -> capture::Record {
    capture::Record {
        time_ns: time_us * 1000,
        latency_ns: 10_000,
        process: Process::Backend,
        operation,
        file: 0,
        offset: (from - START) % SEGMENT as u64,
        bytes: (to - from) as u32,
    }
}

/// The name of the file of a segment of `SEGMENT` bytes: real ones are larger, and their names count alike.
fn path(at: u64) -> String {
    format!("pg_wal/00000001{:08X}{:08X}", at >> 32, (at & 0xFFFF_FFFF) / SEGMENT as u64)
}

const EPOCH_US: i64 = 946_684_800_000_000;

/// The time of day is 1,000 s ahead of the monotonic clock, and begins in 2000.
fn clock() -> Clock {
    let at = |second: u64| (second * 1_000_000_000, (EPOCH_US + (second as i64 + 1000) * 1_000_000) * 1000);
    Clock(vec![at(0), at(10)])
}

/// The time, the segment and the bytes of each write request.
fn viewed(log: &Made, flushes: Flushes) -> Vec<(u64, u32, u32)> {
    let start = flushes.first().unwrap();
    let mut redos = Redos::new(WalReader::new(log.clone(), start, None), flushes, clock());
    let names = [1, 2].map(|relation| (format!("base/5/{relation}"), format!("relation {relation}")));
    let mut segments = Segments::new(16 << 20).unwrap();
    let columns = redos.of_run(0, u64::MAX, &Relations::from_iter(names), &mut segments).unwrap();
    assert!(
        segments
            .table()
            .all(|(name, _)| name == "log" || name.starts_with("relation ") || name.starts_with("base/5/"))
    );
    (0..columns.len())
        .map(|at| columns.get(at))
        .map(|request| (request.time_us as u64, request.segment, request.bytes))
        .collect()
}

#[test]
fn each_flush_has_the_redo_that_was_written_when_it_began() {
    let mut log = Made::default();
    let time = |us: i64| 1_000_000_000 + us;
    log.change(1, 0, 100);
    log.change(1, 1, 200);
    log.change(2, 0, 300);
    log.commit(time(999));
    log.change(2, 0, 50); // of a transaction that goes on
    log.change(1, 0, 60);
    log.commit(time(1999));
    log.commit(time(2001));
    let log = log.filled();
    let mut flushes = Flushes::new(SEGMENT as u64);
    let page = START + PAGE as u64;
    for at in [1000, 2000, 3000] {
        flushes.see(&call(Operation::Write, at, START, page), &path(START));
        flushes.see(&call(Operation::Sync, at + 20, START, START), &path(START));
    }
    let (record, commit) = (24 + 20 + 5, 24 + 2 + 8);
    assert_eq!(flushes.found()[0].latency_ns, 30_000);
    assert_eq!(
        viewed(&log, flushes),
        [
            (1000, 0, commit),
            (1000, 1, 2 * record + 300),
            (1000, 2, record + 300),
            (2000, 0, commit),
            (2000, 1, record + 60),
            (2000, 2, record + 50),
            (3000, 0, commit),
        ]
    );
}

#[test]
fn full_pages_belong_to_the_flush_that_wrote_them() {
    let mut log = Made::default();
    let mut ends = Vec::new();
    for number in 0..40 {
        ends.push(log.change(number, 0, 2000).1);
    }
    let log = log.filled();
    let mut flushes = Flushes::new(SEGMENT as u64);
    let pages = log.bytes.len() / PAGE;
    for page in 0..pages {
        let from = START + (page * PAGE) as u64;
        flushes.see(&call(Operation::Write, page as u64 * 100, from, from + PAGE as u64), &path(from));
        flushes.see(&call(Operation::Sync, page as u64 * 100 + 20, from, from), &path(from));
    }
    let found = viewed(&log, flushes);
    let wanted: Vec<_> = ends.iter().map(|end| (end - 1 - START) / PAGE as u64 * 100).collect();
    assert_eq!(found.iter().map(|one| one.0).collect::<Vec<_>>(), wanted);
}

#[test]
fn a_write_without_a_sync_is_part_of_the_next_flush() {
    let mut flushes = Flushes::new(SEGMENT as u64);
    let page = |number: u64| START + number * PAGE as u64;
    flushes.see(&call(Operation::Write, 5, page(0), page(1)), &path(START));
    flushes.see(&call(Operation::Write, 6, page(1), page(2)), &path(START));
    flushes.see(&call(Operation::Write, 7, page(0), page(2)), "base/5/16384");
    flushes.see(&call(Operation::Sync, 8, page(0), page(0)), &path(START));
    flushes.see(&call(Operation::Sync, 9, page(0), page(0)), &path(START));
    // The first write says that the last page was written again; the second one goes on behind it.
    flushes.see(&call(Operation::Write, 10, page(1), page(2)), &path(START));
    flushes.see(&call(Operation::Write, 11, page(2), page(3)), &path(START));
    let found = flushes.found();
    assert_eq!((found.len(), found[0].time_ns, found[0].latency_ns), (1, 5000, 13_000));
    assert_eq!((found[0].least, found[0].most), (Lsn(page(1)), Lsn(page(2))));
}

fn some_log() -> Made {
    let mut log = Made::default();
    for number in 0..30 {
        log.change(number, number, (number * 97) as u16);
        log.commit(i64::from(number));
    }
    log.filled()
}

proptest! {
    #[test]
    fn damage_anywhere_never_panics_and_never_passes_for_another_record(
        hits in prop::collection::vec((0_usize..20_000, any::<u8>()), 1..8)
    ) {
        let whole = some_log();
        let right = whole.clone().read().unwrap();
        let mut damaged = whole;
        let length = damaged.bytes.len();
        for (at, byte) in hits {
            damaged.bytes[at % length] = byte;
        }
        let found: Vec<_> = WalReader::new(damaged, Lsn(START), None).map_while(Result::ok).collect();
        for record in found {
            prop_assert!(right.contains(&record), "{record:?}");
        }
    }

    #[test]
    fn any_bytes_with_a_right_checksum_never_panic(body in prop::collection::vec(any::<u8>(), 0..300), info: u8, rmgr: u8) {
        let mut log = Made::default();
        log.push(rmgr, info, &body);
        for record in WalReader::new(log.filled(), Lsn(START), None).flatten() {
            let images: u32 = record.blocks.iter().map(|block| block.image).sum();
            prop_assert_eq!(record.bytes + images, body.len() as u32 + 24);
            let shares: u32 = record.blocks.iter().map(|block| block.bytes).sum();
            prop_assert!(record.blocks.is_empty() || shares == record.bytes);
        }
    }
}

#[test]
fn seeds_of_the_fuzz_target_pass() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/wal");
    let seeds: Vec<_> = std::fs::read_dir(folder).unwrap().map(|seed| seed.unwrap().path()).collect();
    assert!(!seeds.is_empty());
    for seed in seeds {
        fuzzing::log(&std::fs::read(seed).unwrap());
    }
}
