//! The log view: which redo reached the disk with each flush of the log, and for which piece of which relation.
//!
//! In a database whose log is its database (Aurora, Neon, `veDB`) the compute tier sends nothing else to the storage
//! tier. One write request stands for the redo of one segment in one flush. Its time is when the flush began: its first
//! write since the flush before. Its latency is until the end of the sync.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;

use super::folder::parts_of;
use super::{Fork, Locator, Lsn, Pages, Record, WalError, WalFolder, WalReader, Wrong};
use crate::capture::{self, Recording, RecordingError, Relations};
use crate::requests::{Columns, Operation, Process, Request};
use crate::segments::Segments;

/// A flush of the log: writes, and the sync that ended them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flush {
    /// When its first write began, on `CLOCK_MONOTONIC`, in nanoseconds.
    pub time_ns: u64,
    /// Until its sync had ended, in nanoseconds.
    pub latency_ns: u64,
    /// Who asked for the sync.
    pub process: Process,
    /// All before this place is in it.
    pub least: Lsn,
    /// Nothing from this place on is in it. Between both is a page that was not full yet, and is written again.
    pub most: Lsn,
}

/// Finds the flushes among the calls of a server, which come in the order of their times.
#[derive(Debug, Default)]
pub struct Flushes {
    segment_bytes: u64,
    found: Vec<Flush>,
    first: Option<Lsn>,
    /// When the writes that no sync has followed yet began.
    open_ns: Option<u64>,
    written: u64,
}

impl Flushes {
    /// Of a log with segments of so many bytes.
    #[must_use]
    pub fn new(segment_bytes: u64) -> Self {
        Self { segment_bytes, ..Self::default() }
    }

    /// Looks at a call and the path of its file.
    pub fn see(&mut self, call: &capture::Record, path: &str) {
        let Some((_, high, low)) = path.strip_prefix("pg_wal/").and_then(parts_of) else {
            return;
        };
        let start = (u64::from(high) << 32).saturating_add(u64::from(low).saturating_mul(self.segment_bytes));
        let at = start.saturating_add(call.offset);
        match call.operation {
            Operation::Write => {
                self.first.get_or_insert(Lsn(at));
                if self.open_ns.is_none() {
                    // The first one says whether the page at the end of the flush before it was full.
                    self.open_ns = Some(call.time_ns);
                    if let Some(last) = self.found.last_mut() {
                        last.least = last.least.max(Lsn(at.min(last.most.0)));
                    }
                }
                self.written = self.written.max(at.saturating_add(u64::from(call.bytes)));
            }
            Operation::Sync => {
                let Some(began) = self.open_ns.take() else {
                    return;
                };
                let before = self.found.last().map_or(Lsn(0), |last| last.least);
                self.found.push(Flush {
                    time_ns: began,
                    latency_ns: (call.time_ns + call.latency_ns).saturating_sub(began),
                    process: call.process,
                    least: before,
                    most: Lsn(self.written),
                });
            }
            _ => {}
        }
    }

    /// The flushes so far, in their order.
    #[must_use]
    pub fn found(&self) -> &[Flush] {
        &self.found
    }

    /// Where the first write began; None where there was none.
    #[must_use]
    pub const fn first(&self) -> Option<Lsn> {
        self.first
    }
}

/// The server's time of day at times of `CLOCK_MONOTONIC`: pairs of both in nanoseconds, in ascending order.
#[derive(Clone, Debug, Default)]
pub struct Clock(pub Vec<(u64, i64)>);

/// Between 1970 and 2000.
const EPOCH_US: i64 = 946_684_800_000_000;

impl Clock {
    /// The time of day in microseconds since the year 2000: by the pair before, and the drift to the pair after it.
    fn since_2000_us(&self, time_ns: u64) -> i64 {
        let next = self.0.partition_point(|pair| pair.0 <= time_ns).clamp(1, self.0.len().max(2) - 1);
        let (Some(low), high) = (self.0.get(next - 1), self.0.get(next)) else {
            return i64::MAX;
        };
        let ahead = time_ns as f64 - low.0 as f64;
        let drift = high.map_or(1.0, |high| (high.1 - low.1) as f64 / (high.0 - low.0).max(1) as f64);
        (low.1 + (ahead * drift) as i64) / 1000 - EPOCH_US
    }
}

/// What a record says, as far as the view needs it.
struct Redo {
    end: u64,
    ended_us: Option<i64>,
    parts: Vec<(Place, u64, u64)>,
}

/// Where redo belongs: a piece of a relation, or the log itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Log,
    Relation(Locator, Fork, u64),
}

/// The name of the segment that has the redo of no relation.
pub const LOG: &str = "log";
/// Of a page of a relation.
const BLOCK_BYTES: u64 = 8192;

/// Makes the write requests of a recording, run by run.
pub struct Redos<W> {
    records: W,
    clock: Clock,
    flushes: std::vec::IntoIter<Flush>,
    ahead: VecDeque<Redo>,
    is_over: bool,
}

impl<W: Iterator<Item = Result<Record, WalError>>> Redos<W> {
    /// Takes the flushes of a recording, and the records of the log from the first one on.
    pub fn new(records: W, flushes: Flushes, clock: Clock) -> Self {
        let mut flushes = flushes.found;
        if let Some(last) = flushes.last_mut() {
            // What the log has there was written by then.
            last.least = last.most;
        }
        let flushes = flushes.into_iter();
        Self { records, clock, flushes, ahead: VecDeque::new(), is_over: false }
    }

    /// The requests of the flushes that began in a time, which is on `CLOCK_MONOTONIC` in nanoseconds; their times count
    /// from its beginning. It is behind the times that were asked for before.
    pub fn of_run(
        &mut self,
        from_ns: u64,
        to_ns: u64,
        relations: &Relations,
        segments: &mut Segments,
    ) -> Result<Columns, WalError> {
        let mut columns = Columns::default();
        let mut names = HashMap::new();
        while let Some(flush) = self.flushes.as_slice().first().copied().filter(|flush| flush.time_ns < to_ns)
        {
            self.flushes.next();
            let sums = self.of_flush(&flush, segments.bytes())?;
            if flush.time_ns < from_ns {
                continue;
            }
            for (place, (offset, bytes)) in sums {
                let placed = match place {
                    Place::Log => segments.place(LOG, offset),
                    Place::Relation(locator, fork, _) => {
                        let name = || relations.of_file(&path_of(locator, fork)).0;
                        segments.place(names.entry((locator, fork)).or_insert_with(name), offset)
                    }
                };
                let (segment, offset) = placed.map_err(|why| Wrong::Segments(why).at(flush.most.0))?;
                columns.push(&Request {
                    time_us: ((flush.time_ns - from_ns) / 1000) as i64,
                    segment,
                    offset,
                    bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
                    operation: Operation::Write,
                    process: flush.process,
                    latency_us: (flush.latency_ns as f64 / 1000.0) as f32,
                });
            }
        }
        Ok(columns)
    }

    /// The redo of the next flush: for each place the offset of its first block, and the bytes.
    fn of_flush(&mut self, flush: &Flush, chunk_bytes: u64) -> Result<BTreeMap<Place, (u64, u64)>, WalError> {
        while !self.is_over && self.ahead.back().is_none_or(|last| last.end <= flush.most.0) {
            match self.records.next().transpose()? {
                Some(record) => self.ahead.push_back(redo_of(&record, chunk_bytes)),
                None => self.is_over = true,
            }
        }
        let limit_us = self.clock.since_2000_us(flush.time_ns);
        // Commits tell how far the page that was not full had come.
        let reached = self
            .ahead
            .iter()
            .take_while(|redo| redo.end <= flush.most.0)
            .filter(|redo| redo.ended_us.is_some_and(|ended| ended <= limit_us))
            .fold(flush.least.0, |reached, redo| reached.max(redo.end));
        let mut sums: BTreeMap<Place, (u64, u64)> = BTreeMap::new();
        while let Some(redo) = self.ahead.pop_front_if(|redo| redo.end <= reached) {
            for (place, offset, bytes) in redo.parts {
                sums.entry(place).or_insert((offset, 0)).1 += bytes;
            }
        }
        Ok(sums)
    }
}

fn redo_of(record: &Record, chunk_bytes: u64) -> Redo {
    let mut parts = Vec::with_capacity(record.blocks.len().max(1));
    if record.blocks.is_empty() {
        parts.push((Place::Log, record.lsn.0 % chunk_bytes, u64::from(record.bytes)));
    } else if !record.is_hint() {
        // A storage tier that has the log needs no images of pages whose hint bits changed.
        for block in &record.blocks {
            let offset = u64::from(block.block) * BLOCK_BYTES;
            let place = Place::Relation(block.locator, block.fork, offset / chunk_bytes);
            parts.push((place, offset, u64::from(block.bytes) + u64::from(block.image)));
        }
    }
    Redo { end: record.end_lsn.0, ended_us: record.ended_us, parts }
}

/// The path of a relation's first file below the data directory.
fn path_of(locator: Locator, fork: Fork) -> String {
    const DEFAULT: u32 = 1663;
    const GLOBAL: u32 = 1664;
    let Locator { tablespace, database, relation } = locator;
    let suffix = fork.suffix();
    match tablespace {
        GLOBAL => format!("global/{relation}{suffix}"),
        DEFAULT => format!("base/{database}/{relation}{suffix}"),
        other => format!("pg_tblspc/{other}/{database}/{relation}{suffix}"),
    }
}

/// A recording of `PostgreSQL` with its log, as the log view has it.
pub struct LogView {
    redos: Redos<WalReader<WalFolder>>,
    /// How often the log was flushed.
    pub flushes: usize,
    /// Where the first flush begins.
    pub first: Lsn,
}

/// Why a recording cannot be seen as a log.
#[derive(Debug, thiserror::Error)]
pub enum LogViewError {
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] WalError),
    /// There is no log.
    #[error("{0}")]
    Folder(#[from] std::io::Error),
}

impl LogView {
    /// Looks for the flushes in a recording. `folder` is `pg_wal`, in which nothing is missing since the first of them.
    pub fn open(recording: &Recording, folder: &Path, clock: Clock) -> Result<Self, LogViewError> {
        let folder = WalFolder::open(folder)?;
        let mut flushes = Flushes::new(folder.segment_bytes());
        let mut calls = recording.records(0, u64::MAX);
        while let Some(call) = calls.next() {
            let call = call?;
            flushes.see(&call, calls.paths().get(call.file).unwrap_or_default());
        }
        let start = flushes.first.unwrap_or_else(|| folder.first());
        let found = flushes.found.len();
        let redos = Redos::new(WalReader::new(folder, start, None), flushes, clock);
        Ok(Self { redos, flushes: found, first: start })
    }

    /// The requests of a run: what was read, as it was; what was written, as redo. The runs come in their order.
    pub fn of_run(
        &mut self,
        recording: &Recording,
        from_ns: u64,
        to_ns: u64,
        relations: &Relations,
        segments: &mut Segments,
    ) -> Result<Columns, LogViewError> {
        let reads = log_calls(recording, from_ns, to_ns, relations, segments)?;
        let writes = self.redos.of_run(from_ns, to_ns, relations, segments)?;
        Ok(reads.merged(&writes))
    }
}

/// What of a run is in the log view of any product as it was: reads, and the log of `InnoDB`.
pub fn log_calls(
    recording: &Recording,
    from_ns: u64,
    to_ns: u64,
    relations: &Relations,
    segments: &mut Segments,
) -> Result<Columns, RecordingError> {
    capture::view(recording, (from_ns, to_ns), relations, segments, |call, path| {
        let is_log = path.starts_with("ib_logfile");
        (call.operation == Operation::Read) != is_log && !path.starts_with("pg_wal/")
    })
}
