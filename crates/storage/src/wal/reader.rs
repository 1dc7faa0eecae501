//! Records out of pages.

use super::record::{CHECKSUM_AT, HEADER, Record, decode};
use super::{Lsn, WalError, Wrong, crc};

/// Where the pages of a log come from.
pub trait Pages {
    /// The bytes of a page, a power of two from 1 KiB to 64 KiB.
    fn page_bytes(&self) -> u64;

    /// The bytes of a segment, a multiple of a page's.
    fn segment_bytes(&self) -> u64;

    /// Gives the page that begins at a place; None if there is no such page.
    fn page(&mut self, at: u64) -> std::io::Result<Option<&[u8]>>;
}

/// Reads the records of a log, one after the other.
///
/// Without an end the log ends where the server has not written on: at a length of zero, at a page that is missing, or
/// at a page of an earlier use of the file. What is wrong before that is an error, after which nothing comes.
pub struct WalReader<P> {
    pages: P,
    at: u64,
    end: Option<u64>,
    /// Where the last record began.
    before: Option<u64>,
    record: Vec<u8>,
    version: u8,
    is_over: bool,
}

/// What the header of a page says.
struct PageHeader {
    bytes: u64,
    continues: bool,
    /// The record that ends in the page before was given up.
    abandons: bool,
    /// So much of a record is still to come.
    rest: u64,
}

const FIRST_IS_REST: u16 = 1;
const LONG: u16 = 2;
const ABANDONS: u16 = 8;
const SHORT_BYTES: u64 = 24;
const LONG_BYTES: u64 = 40;
/// PostgreSQL itself makes none longer.
const MOST_BYTES: u32 = 1020 << 20;

/// The server's major version by the mark of its pages.
const fn version_of(mark: u16) -> Option<u8> {
    Some(match mark {
        0xD106 => 13,
        0xD10D => 14,
        0xD110 => 15,
        0xD113 => 16,
        0xD116 => 17,
        0xD118 => 18,
        _ => return None,
    })
}

enum Step {
    Record(Record),
    /// A record that was never finished; the next one begins elsewhere.
    Abandoned,
    End,
}

impl<P: Pages> WalReader<P> {
    /// Reads from the first record that begins at a place or behind it in its page.
    ///
    /// `end` is where the log ends: then everything before it has to be there and to be right.
    pub fn new(pages: P, start: Lsn, end: Option<Lsn>) -> Self {
        Self {
            pages,
            at: start.0,
            end: end.map(|end| end.0),
            before: None,
            record: Vec::new(),
            version: 0,
            is_over: false,
        }
    }

    /// The server's major version; 0 before the first page was read.
    #[must_use]
    pub const fn version(&self) -> u8 {
        self.version
    }

    /// The header of a page that begins at a place; None where there is none, or one of an earlier use.
    fn header(&mut self, at: u64) -> Result<Option<PageHeader>, WalError> {
        let is_first = at.is_multiple_of(self.pages.segment_bytes());
        let page = match self.pages.page(at) {
            Ok(Some(page)) => page,
            Ok(None) => return Ok(None),
            Err(error) => return Err(Wrong::from(error).at(at)),
        };
        let mark = u16::from_le_bytes(bytes_at(page, 0));
        let address = u64::from_le_bytes(bytes_at(page, 8));
        // Zeros, or what the file held when it was another segment.
        if mark == 0 || (version_of(mark).is_some() && address < at) {
            return Ok(None);
        }
        self.version = version_of(mark).ok_or_else(|| Wrong::Mark(mark).at(at))?;
        let info = u16::from_le_bytes(bytes_at(page, 2));
        if address != at {
            return Err(Wrong::Header("it is of another place").at(at));
        }
        if (info & LONG != 0) != is_first {
            return Err(Wrong::Header("a long one begins each segment, and no other page").at(at));
        }
        Ok(Some(PageHeader {
            bytes: if is_first { LONG_BYTES } else { SHORT_BYTES },
            continues: info & FIRST_IS_REST != 0,
            abandons: info & ABANDONS != 0,
            rest: u64::from(u32::from_le_bytes(bytes_at(page, 16))),
        }))
    }

    /// Goes to where a record begins. False at the end.
    fn seek(&mut self) -> Result<bool, WalError> {
        let page_bytes = self.pages.page_bytes();
        self.at = self.at.next_multiple_of(8);
        while self.at.is_multiple_of(page_bytes) {
            let Some(header) = self.header(self.at)? else {
                return self.ends();
            };
            let mut skipped = 0;
            if header.continues {
                if self.before.is_some() {
                    return Err(Wrong::Header("it continues a record, and none is open").at(self.at));
                }
                // The rest of a record that began before the start.
                skipped = header.rest.next_multiple_of(8);
            }
            let room = page_bytes - header.bytes;
            self.at += if skipped >= room { page_bytes } else { header.bytes + skipped };
        }
        Ok(true)
    }

    fn ends(&self) -> Result<bool, WalError> {
        match self.end {
            Some(end) if self.at < end => Err(Wrong::Short(Lsn(end)).at(self.at)),
            _ => Ok(false),
        }
    }

    fn step(&mut self) -> Result<Step, WalError> {
        if self.end.is_some_and(|end| self.at >= end) || !self.seek()? {
            return Ok(Step::End);
        }
        // The place at the end may be behind a page's header only.
        if self.end.is_some_and(|end| self.at >= end) {
            return Ok(Step::End);
        }
        let lsn = self.at;
        match self.gather(lsn)? {
            Gathered::Whole => {}
            Gathered::Abandoned => return Ok(Step::Abandoned),
            Gathered::Nothing => {
                self.ends()?;
                return Ok(Step::End);
            }
        }
        self.check(lsn)?;
        let end_lsn = self.at.next_multiple_of(8);
        let record = decode(&self.record, Lsn(lsn), Lsn(end_lsn), self.version).map_err(|why| why.at(lsn))?;
        self.before = Some(lsn);
        self.at =
            if record.is_switch() { end_lsn.next_multiple_of(self.pages.segment_bytes()) } else { end_lsn };
        Ok(Step::Record(record))
    }

    /// Puts the bytes of the record at `lsn` together; `at` is behind it then.
    fn gather(&mut self, lsn: u64) -> Result<Gathered, WalError> {
        let page_bytes = self.pages.page_bytes();
        let mut at = lsn;
        let mut length = None;
        self.record.clear();
        loop {
            let page_at = at - at % page_bytes;
            let page = match self.pages.page(page_at) {
                Ok(Some(page)) => page,
                Ok(None) => return Ok(Gathered::Nothing),
                Err(error) => return Err(Wrong::from(error).at(page_at)),
            };
            let here = &page[(at - page_at) as usize..];
            // Records begin at multiples of 8: their length is never cut.
            let total = *length.get_or_insert_with(|| u32::from_le_bytes(bytes_at(here, 0)));
            if total == 0 {
                return Ok(Gathered::Nothing);
            }
            if total < HEADER as u32 || total > MOST_BYTES {
                return Err(Wrong::Record("its length is impossible").at(lsn));
            }
            let missing = total as usize - self.record.len();
            let taken = missing.min(here.len());
            self.record.extend_from_slice(&here[..taken]);
            if taken == missing {
                self.at = at + taken as u64;
                return Ok(Gathered::Whole);
            }
            let next = page_at + page_bytes;
            let Some(header) = self.header(next)? else {
                return Ok(Gathered::Nothing);
            };
            if header.abandons {
                self.at = next;
                return Ok(Gathered::Abandoned);
            }
            if !header.continues || header.rest != (missing - taken) as u64 {
                return Err(Wrong::Header("it does not continue the record before it").at(next));
            }
            at = next + header.bytes;
        }
    }

    fn check(&self, lsn: u64) -> Result<(), WalError> {
        let stated = u32::from_le_bytes(bytes_at(&self.record, CHECKSUM_AT));
        let found = crc::crc32c([&self.record[HEADER..], &self.record[..CHECKSUM_AT]]);
        if found != stated {
            return Err(Wrong::Checksum { found, stated }.at(lsn));
        }
        let before = u64::from_le_bytes(bytes_at(&self.record, 8));
        if self.before.is_some_and(|last| last != before) {
            return Err(Wrong::Record("it does not follow the record before it").at(lsn));
        }
        Ok(())
    }
}

enum Gathered {
    Whole,
    Abandoned,
    Nothing,
}

/// Bytes of a page or a record, which are always long enough.
fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut found = [0; N];
    if let Some(there) = bytes.get(at..at + N) {
        found.copy_from_slice(there);
    }
    found
}

impl<P: Pages> Iterator for WalReader<P> {
    type Item = Result<Record, WalError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            match self.step() {
                Ok(Step::Record(record)) => return Some(Ok(record)),
                Ok(Step::Abandoned) => {}
                Ok(Step::End) => self.is_over = true,
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
