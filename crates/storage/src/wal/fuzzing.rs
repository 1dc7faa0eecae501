//! What the fuzz target in `fuzz/` calls, and logs that are made for tests.

use std::io;

use super::{Lsn, Pages, WalReader, crc};

/// Where made logs begin: behind the first half of a place's number, as real ones do.
pub(super) const START: u64 = 0x1_0000_0000;

/// A log in memory.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) page: usize,
    pub(super) bytes: Vec<u8>,
    before: u64,
}

/// Pages of a segment.
pub(super) const PAGES: usize = 4;

impl Pages for Made {
    fn page_bytes(&self) -> u64 {
        self.page as u64
    }

    fn segment_bytes(&self) -> u64 {
        (PAGES * self.page) as u64
    }

    fn page(&mut self, at: u64) -> io::Result<Option<&[u8]>> {
        let from = (at - START) as usize;
        Ok(self.bytes.get(from..from + self.page))
    }
}

impl Made {
    /// A log with these bytes, in pages of a size.
    pub(super) fn new(page: usize, bytes: Vec<u8>) -> Self {
        Self { page, bytes, before: 0 }
    }

    fn at(&self) -> u64 {
        START + self.bytes.len() as u64
    }

    /// Begins a page where the one before is full; `rest` of a record is still to come.
    fn header(&mut self, rest: usize) {
        if !self.bytes.len().is_multiple_of(self.page) {
            return;
        }
        let segment = PAGES * self.page;
        let is_long = self.bytes.len().is_multiple_of(segment);
        let at = self.at();
        self.bytes.extend(0xD118_u16.to_le_bytes());
        self.bytes.extend((u16::from(rest > 0) + if is_long { 2 } else { 0 }).to_le_bytes());
        self.bytes.extend(1_u32.to_le_bytes());
        self.bytes.extend(at.to_le_bytes());
        self.bytes.extend((rest as u32).to_le_bytes());
        self.bytes.extend([0; 4]);
        if is_long {
            self.bytes.extend([0; 8]);
            self.bytes.extend((segment as u32).to_le_bytes());
            self.bytes.extend((self.page as u32).to_le_bytes());
        }
    }

    /// Appends a record; gives where it begins and ends.
    pub(super) fn push(&mut self, rmgr: u8, info: u8, body: &[u8]) -> (u64, u64) {
        self.header(0);
        let lsn = self.at();
        let mut record = Vec::new();
        record.extend((body.len() as u32 + 24).to_le_bytes());
        record.extend(77_u32.to_le_bytes());
        record.extend(self.before.to_le_bytes());
        record.extend([info, rmgr, 0, 0]);
        let crc = crc::crc32c([body, &record]);
        record.extend(crc.to_le_bytes());
        record.extend(body);
        for (at, byte) in record.iter().enumerate() {
            self.header(record.len() - at);
            self.bytes.push(*byte);
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.before = lsn;
        (lsn, self.at())
    }

    /// Fills the last page, as the server does.
    pub(super) fn filled(mut self) -> Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(self.page), 0);
        self
    }
}

const SMALL: usize = 1024;

/// The bytes as a log, and as what a record holds whose checksum is right.
///
/// # Panics
/// If records overlap, or their parts do not add up.
pub fn log(data: &[u8]) {
    let mut whole = Made::new(SMALL, Vec::new());
    if let [rmgr, info, body @ ..] = data {
        whole.push(*rmgr, *info, body);
    }
    for log in [Made::new(SMALL, data.to_vec()), whole.filled()] {
        let mut last = START;
        for record in WalReader::new(log, Lsn(START), None).flatten() {
            assert!(last <= record.lsn.0 && record.lsn < record.end_lsn, "{record:?}");
            let images: u32 = record.blocks.iter().map(|block| block.image).sum();
            assert!(u64::from(record.bytes + images) <= record.end_lsn.0 - record.lsn.0, "{record:?}");
            let shares: u32 = record.blocks.iter().map(|block| block.bytes).sum();
            assert!(record.blocks.is_empty() || shares == record.bytes, "{record:?}");
            last = record.end_lsn.0;
        }
    }
}
