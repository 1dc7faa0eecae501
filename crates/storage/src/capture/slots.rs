//! A file of records, slot by slot.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::error::RecordingError;
use super::format::{HEADER, HEADER_ERROR, HEADER_LOST, HEADER_PROCESS, MAGIC, PAYLOAD, SLOT, Word, kind};
use crate::requests::Operation;

/// Slots that are read at once.
const AT_ONCE: usize = 1600;

/// What the header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) process: u32,
    pub(crate) error: u32,
    pub(crate) lost: u64,
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Unfinished,
    Call(Call),
    /// A part of a file's path, and whether it is the last.
    File {
        number: u32,
        part: [u8; PAYLOAD],
        last: bool,
    },
    /// A part of a caller's words, and whether it is the last.
    Caller {
        number: u32,
        part: [u8; PAYLOAD],
        last: bool,
    },
}

/// A call, with the numbers of its own file of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) time_ns: u64,
    pub(crate) latency_ns: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
    pub(crate) file: u32,
    pub(crate) caller: u16,
    pub(crate) operation: Operation,
}

/// Reads slots one after the other.
pub(crate) struct Slots<R> {
    from: R,
    path: PathBuf,
    buffer: Vec<u8>,
    at: usize,
    /// How many slots have been read.
    pub(crate) read: u64,
    pub(crate) header: Header,
}

impl<R: Read> Slots<R> {
    /// Reads the header. None where the process ended before it had written one.
    pub(crate) fn new(from: R, path: &Path) -> Result<Option<Self>, RecordingError> {
        let mut slots = Self {
            from,
            path: path.to_owned(),
            buffer: Vec::new(),
            at: 0,
            read: 0,
            header: Header::default(),
        };
        let mut header = [0; HEADER];
        let got = slots.fill(&mut header)?;
        if header.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if got < HEADER || !header.starts_with(&MAGIC) {
            return Err(RecordingError::Foreign { path: slots.path });
        }
        let process = u32_at(&header, HEADER_PROCESS);
        slots.header =
            Header { process, error: u32_at(&header, HEADER_ERROR), lost: u64_at(&header, HEADER_LOST) };
        Ok(Some(slots))
    }

    /// The next slot; None at the end. A part of a slot at the end is none.
    pub(crate) fn next(&mut self) -> Result<Option<Slot>, RecordingError> {
        if self.buffer.len() - self.at < SLOT {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.resize(AT_ONCE * SLOT, 0);
            let got = self.fill(&mut buffer)?;
            buffer.truncate(got);
            (self.buffer, self.at) = (buffer, 0);
        }
        let Some(slot) = self.buffer.get(self.at..self.at + SLOT) else { return Ok(None) };
        let parsed = parse(slot);
        self.at += SLOT;
        self.read += 1;
        parsed.map(Some).map_err(|what| self.damaged(what))
    }

    /// That the slot which was read last is damaged.
    pub(crate) fn damaged(&self, what: &'static str) -> RecordingError {
        RecordingError::Damaged { path: self.path.clone(), record: self.read.saturating_sub(1), what }
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, RecordingError> {
        let mut got = 0;
        while got < buffer.len() {
            match self.from.read(&mut buffer[got..]) {
                Ok(0) => break,
                Ok(more) => got += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(RecordingError::Unreadable { path: self.path.clone(), error }),
            }
        }
        Ok(got)
    }
}

fn parse(slot: &[u8]) -> Result<Slot, &'static str> {
    let stored = u64_at(slot, PAYLOAD);
    if stored == 0 {
        return Ok(Slot::Unfinished);
    }
    let word = Word::unpacked(stored).ok_or("has no valid end")?;
    let mut part = [0; PAYLOAD];
    part.copy_from_slice(&slot[..PAYLOAD]);
    let (number, last) = (word.number, word.detail == 0);
    let operation = match word.kind {
        kind::READ => Operation::Read,
        kind::WRITE => Operation::Write,
        kind::SYNC => Operation::Sync,
        kind::FILE => return Ok(Slot::File { number, part, last }),
        kind::CALLER => return Ok(Slot::Caller { number, part, last }),
        _ => return Err("is of an unknown kind"),
    };
    Ok(Slot::Call(Call {
        time_ns: u64_at(slot, 0),
        latency_ns: u64_at(slot, 8),
        offset: u64_at(slot, 16),
        bytes: u32_at(slot, 24),
        file: number,
        caller: word.detail,
        operation,
    }))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(number)
}
