//! A file of records: a header, then slots of one size, in the byte order of the machine. The library writes it, and
//! `nephoscope_storage::capture` reads it; both include this file.
//!
//! A slot ends with a word that is written last. While that is 0 the slot is unfinished, as a killed process leaves it.

/// How a file of records begins; its last byte is the version.
pub(crate) const MAGIC: [u8; 8] = *b"nephoIO\x01";

/// Bytes of the header: the magic, the process (u32), the error number that ended the recording (u32, 0 for none),
/// how many calls were not recorded (u64), when the file was made (u64, ns on `CLOCK_MONOTONIC`), and zeros.
pub(crate) const HEADER: usize = 40;

/// Where the process is in the header.
pub(crate) const HEADER_PROCESS: usize = 8;
/// Where the error number is in the header.
pub(crate) const HEADER_ERROR: usize = 12;
/// Where the number of calls that were not recorded is in the header.
pub(crate) const HEADER_LOST: usize = 16;
/// Where the time is in the header.
#[allow(dead_code)] // The name of the file has it as well.
pub(crate) const HEADER_TIME: usize = 24;

/// Bytes of a slot: 32 of payload, then the word. A call's payload is its time (u64, ns), its latency (u64, ns), its
/// offset (u64), its bytes (u32) and zeros; a name's is a part of the name, padded with zeros.
pub(crate) const SLOT: usize = 40;
/// Bytes of a slot's payload.
pub(crate) const PAYLOAD: usize = 32;

/// Marks a finished slot.
pub(crate) const FINISHED: u8 = 0xA5;

/// What a slot holds.
pub(crate) mod kind {
    /// A read.
    pub(crate) const READ: u8 = 1;
    /// A write.
    pub(crate) const WRITE: u8 = 2;
    /// A call that makes a file durable.
    pub(crate) const SYNC: u8 = 3;
    /// A part of the path of a file, relative to the data directory.
    pub(crate) const FILE: u8 = 4;
    /// A part of the words for a kind of caller.
    pub(crate) const CALLER: u8 = 5;
}

/// The last word of a slot, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// The file of a call; the file or the caller that a name is of.
    pub(crate) number: u32,
    /// The caller of a call; for a name, how many parts of it follow.
    pub(crate) detail: u16,
    /// One of [`kind`].
    pub(crate) kind: u8,
}

impl Word {
    /// The word as it is stored; never 0.
    #[allow(dead_code)] // Only tests of the reader write.
    pub(crate) const fn packed(self) -> u64 {
        self.number as u64 | (self.detail as u64) << 32 | (self.kind as u64) << 48 | (FINISHED as u64) << 56
    }

    /// What a stored word says; None if it is damaged.
    #[allow(dead_code)] // The library only writes.
    pub(crate) const fn unpacked(stored: u64) -> Option<Self> {
        if (stored >> 56) as u8 != FINISHED {
            return None;
        }
        Some(Self { number: stored as u32, detail: (stored >> 32) as u16, kind: (stored >> 48) as u8 })
    }
}
