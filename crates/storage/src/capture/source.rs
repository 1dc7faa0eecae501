//! The records of one process, in the order in which its calls began.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};
use std::io::Read;
use std::path::Path;

use super::callers::Caller;
use super::error::RecordingError;
use super::format::PAYLOAD;
use super::record::{Paths, Record};
use super::slots::{Call, Header, Slot, Slots};
use crate::requests::Operation;

/// What one look at a whole file tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) header: Header,
    /// Slots up to the last that is finished.
    pub(crate) slots: u64,
    pub(crate) calls: u64,
    /// Slots that are not finished although later ones are.
    pub(crate) unfinished: u64,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    /// A call is written when it has ended, so one that began earlier may come later: by so much at most.
    pub(crate) late_ns: u64,
}

impl Summary {
    pub(crate) fn of(from: impl Read, path: &Path) -> Result<Self, RecordingError> {
        let Some(mut slots) = Slots::new(from, path)? else { return Ok(Self::default()) };
        let mut summary = Self { header: slots.header, first_ns: u64::MAX, ..Self::default() };
        let mut finished = 0;
        while let Some(slot) = slots.next()? {
            if slot == Slot::Unfinished {
                continue;
            }
            finished += 1;
            summary.slots = slots.read;
            if let Slot::Call(call) = slot {
                summary.add(&call);
            }
        }
        summary.unfinished = summary.slots - finished;
        Ok(summary)
    }

    fn add(&mut self, call: &Call) {
        self.calls += 1;
        self.first_ns = self.first_ns.min(call.time_ns);
        self.late_ns = self.late_ns.max(self.last_ns.saturating_sub(call.time_ns));
        self.last_ns = self.last_ns.max(call.time_ns);
    }
}

/// The most bytes that a name may have.
const LONGEST_NAME: usize = 4096;

/// Names that come in parts.
#[derive(Default)]
struct Names {
    unfinished: HashMap<(bool, u32), Vec<u8>>,
}

impl Names {
    /// Takes a part; the whole name with its last one.
    fn take(
        &mut self,
        key: (bool, u32),
        part: [u8; PAYLOAD],
        last: bool,
    ) -> Result<Option<String>, &'static str> {
        let name = self.unfinished.entry(key).or_default();
        let length = if last { part.iter().position(|byte| *byte == 0).unwrap_or(PAYLOAD) } else { PAYLOAD };
        name.extend_from_slice(&part[..length]);
        if name.len() > LONGEST_NAME {
            return Err("is a name without an end");
        }
        if !last {
            return Ok(None);
        }
        let whole = self.unfinished.remove(&key).unwrap_or_default();
        Ok(Some(String::from_utf8_lossy(&whole).into_owned()))
    }
}

/// A record among others, ordered by its time; of one time, by a number.
#[derive(PartialEq, Eq)]
pub(crate) struct Ordered {
    pub(crate) record: Record,
    pub(crate) number: u64,
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.record.time_ns, self.number).cmp(&(other.record.time_ns, other.number))
    }
}

/// Reads the records of a file.
pub(crate) struct Source<R> {
    slots: Slots<R>,
    summary: Summary,
    names: Names,
    files: HashMap<u32, u32>,
    callers: HashMap<u32, Caller>,
    /// Records that wait for those that began before them.
    waiting: BinaryHeap<Reverse<Ordered>>,
    latest_ns: u64,
    ended: bool,
}

impl<R: Read> Source<R> {
    /// Begins to read; None where there is nothing.
    pub(crate) fn new(from: R, path: &Path, summary: Summary) -> Result<Option<Self>, RecordingError> {
        let Some(slots) = Slots::new(from, path)? else { return Ok(None) };
        Ok(Some(Self {
            slots,
            summary,
            names: Names::default(),
            files: HashMap::new(),
            callers: HashMap::new(),
            waiting: BinaryHeap::new(),
            latest_ns: 0,
            ended: false,
        }))
    }

    /// The next record; None at the end.
    pub(crate) fn next(&mut self, paths: &mut Paths) -> Result<Option<Record>, RecordingError> {
        loop {
            let settled = self.latest_ns.saturating_sub(self.summary.late_ns);
            let is_next = |next: &Reverse<Ordered>| self.ended || next.0.record.time_ns <= settled;
            if self.waiting.peek().is_some_and(is_next) {
                return Ok(self.waiting.pop().map(|Reverse(next)| next.record));
            }
            if self.ended {
                return Ok(None);
            }
            self.read(paths)?;
        }
    }

    fn read(&mut self, paths: &mut Paths) -> Result<(), RecordingError> {
        // What has been written since the summary was made is not looked at: it may come too late.
        if self.slots.read >= self.summary.slots {
            self.ended = true;
            return Ok(());
        }
        let understood = match self.slots.next()? {
            None => {
                self.ended = true;
                Ok(())
            }
            Some(Slot::Unfinished) => Ok(()),
            Some(Slot::File { number, part, last }) => {
                self.names.take((true, number), part, last).map(|name| {
                    if let Some(name) = name {
                        self.files.insert(number, paths.number(&name));
                    }
                })
            }
            Some(Slot::Caller { number, part, last }) => {
                self.names.take((false, number), part, last).map(|name| {
                    if let Some(name) = name {
                        self.callers.insert(number, Caller::of(&name));
                    }
                })
            }
            Some(Slot::Call(call)) => self.take(&call, paths),
        };
        understood.map_err(|what| self.slots.damaged(what))
    }

    fn take(&mut self, call: &Call, paths: &Paths) -> Result<(), &'static str> {
        let file = *self.files.get(&call.file).ok_or("is of a file without a name")?;
        let caller = *self.callers.get(&u32::from(call.caller)).ok_or("is of a caller without a name")?;
        let process = caller.process(paths.get(file).unwrap_or_default(), call.operation);
        let Call { time_ns, latency_ns, offset, bytes, operation, .. } = *call;
        let bytes = if operation == Operation::Sync { 0 } else { bytes };
        let record = Record { time_ns, latency_ns, process, operation, file, offset, bytes };
        self.waiting.push(Reverse(Ordered { record, number: self.slots.read }));
        self.latest_ns = self.latest_ns.max(time_ns);
        Ok(())
    }
}
