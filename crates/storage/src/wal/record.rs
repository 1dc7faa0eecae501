//! What a record says, from its bytes.

use super::Wrong;

/// Of a record's header.
pub(super) const HEADER: usize = 24;
/// Where the checksum stands in it.
pub(super) const CHECKSUM_AT: usize = 20;

/// The file of a relation, as the log names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locator {
    /// The object number of the tablespace.
    pub tablespace: u32,
    /// The object number of the database; 0 for what all databases share.
    pub database: u32,
    /// The number in the name of the file.
    pub relation: u32,
}

/// One of the files of a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Fork {
    /// The rows, or the entries of an index.
    Main,
    /// The free space map.
    FreeSpace,
    /// The visibility map.
    Visibility,
    /// The empty state of an unlogged relation.
    Init,
}

impl Fork {
    /// All of them, in the order of their numbers in the log.
    pub const ALL: [Self; 4] = [Self::Main, Self::FreeSpace, Self::Visibility, Self::Init];

    /// The end of its file's name.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::FreeSpace => "_fsm",
            Self::Visibility => "_vm",
            Self::Init => "_init",
        }
    }
}

/// A block that a record changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The relation.
    pub locator: Locator,
    /// Which of its files.
    pub fork: Fork,
    /// The number of the block in it.
    pub block: u32,
    /// The block's share of [`Record::bytes`]: its own header and data; of the first block also the rest of the record.
    pub bytes: u32,
    /// The bytes of the image of the whole page, if there is one; 0 if not.
    pub image: u32,
}

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where it begins.
    pub lsn: super::Lsn,
    /// Behind its last byte, rounded up to 8.
    pub end_lsn: super::Lsn,
    /// The number of its resource manager.
    pub rmgr: u8,
    /// What it is among the records of its resource manager.
    pub info: u8,
    /// The transaction; 0 if none.
    pub transaction: u32,
    /// Its size in bytes without the images of pages: what `pg_waldump` calls `rec`.
    pub bytes: u32,
    /// The blocks that it changes.
    pub blocks: Vec<Block>,
    /// When its transaction ended, in microseconds since the year 2000 by the server's clock: of commits and aborts.
    pub ended_us: Option<i64>,
}

const XLOG: u8 = 0;
const TRANSACTION: u8 = 1;
const XLOG_SWITCH: u8 = 0x40;
const XLOG_FPI_FOR_HINT: u8 = 0xA0;
const OPERATION: u8 = 0x70;
const ENDS: [u8; 4] = [0x00, 0x20, 0x30, 0x40];

impl Record {
    /// Whether the rest of its segment is left empty.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        self.rmgr == XLOG && self.info & 0xF0 == XLOG_SWITCH
    }

    /// Whether it is there only to protect a page whose hint bits changed: no redo.
    #[must_use]
    pub fn is_hint(&self) -> bool {
        self.rmgr == XLOG && self.info & 0xF0 == XLOG_FPI_FOR_HINT
    }
}

/// Takes bytes from the front.
struct Front<'a>(&'a [u8]);

impl<'a> Front<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Wrong> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Wrong::Record("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Wrong> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn byte(&mut self) -> Result<u8, Wrong> {
        Ok(self.array::<1>()?[0])
    }

    fn half(&mut self) -> Result<u16, Wrong> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn word(&mut self) -> Result<u32, Wrong> {
        Ok(u32::from_le_bytes(self.array()?))
    }
}

const MOST_BLOCK_ID: u8 = 32;
const TOP_TRANSACTION: u8 = 252;
const ORIGIN: u8 = 253;
const LONG_DATA: u8 = 254;
const SHORT_DATA: u8 = 255;

const FORK: u8 = 0x0F;
const HAS_IMAGE: u8 = 0x10;
const HAS_DATA: u8 = 0x20;
const SAME_RELATION: u8 = 0x80;

const HAS_HOLE: u8 = 0x01;

/// What the headers of a record's parts say.
struct Parts {
    blocks: Vec<Block>,
    /// Of all images.
    images: usize,
    /// Of all blocks' data.
    data: usize,
    /// Of the record's own data.
    main: usize,
}

/// Reads a whole record whose checksum is right. `version` is the server's major version.
pub(super) fn decode(
    bytes: &[u8],
    lsn: super::Lsn,
    end_lsn: super::Lsn,
    version: u8,
) -> Result<Record, Wrong> {
    let mut front = Front(bytes);
    let total = front.word()?;
    let transaction = front.word()?;
    front.take(8)?; // where the record before it begins
    let (info, rmgr) = (front.byte()?, front.byte()?);
    front.take(HEADER - 18)?;
    let mut parts = headers(&mut front, version)?;
    front.take(parts.images + parts.data)?;
    let main = front.0;
    if main.len() != parts.main {
        return Err(Wrong::Record("its parts are longer or shorter than it says"));
    }
    let rec = total - parts.images as u32;
    let others: u32 = parts.blocks.iter().skip(1).map(|block| block.bytes).sum();
    if let Some(first) = parts.blocks.first_mut() {
        first.bytes = rec.checked_sub(others).ok_or(Wrong::Record("its blocks are longer than itself"))?;
    }
    let ends = rmgr == TRANSACTION && ENDS.contains(&(info & OPERATION));
    let ended_us = main.first_chunk::<8>().filter(|_| ends).map(|time| i64::from_le_bytes(*time));
    Ok(Record { lsn, end_lsn, rmgr, info, transaction, bytes: rec, blocks: parts.blocks, ended_us })
}

/// Reads headers up to where the parts themselves begin: they fill the rest of the record.
fn headers(front: &mut Front<'_>, version: u8) -> Result<Parts, Wrong> {
    let mut parts = Parts { blocks: Vec::new(), images: 0, data: 0, main: 0 };
    let (mut last_id, mut relation) = (None, None);
    // The record's own data is announced last.
    while front.0.len() > parts.images + parts.data + parts.main {
        match front.byte()? {
            SHORT_DATA => {
                parts.main = usize::from(front.byte()?);
                break;
            }
            LONG_DATA => {
                parts.main = front.word()? as usize;
                break;
            }
            ORIGIN => drop(front.half()?),
            TOP_TRANSACTION => drop(front.word()?),
            id if id <= MOST_BLOCK_ID => {
                if last_id.replace(id).is_some_and(|last| last >= id) {
                    return Err(Wrong::Record("its blocks are out of order"));
                }
                block(front, &mut parts, &mut relation, version)?;
            }
            _ => return Err(Wrong::Record("a part is of no known kind")),
        }
    }
    Ok(parts)
}

fn block(
    front: &mut Front<'_>,
    parts: &mut Parts,
    relation: &mut Option<Locator>,
    version: u8,
) -> Result<(), Wrong> {
    let before = front.0.len() + 1; // its number has been taken
    let flags = front.byte()?;
    let fork =
        *Fork::ALL.get(usize::from(flags & FORK)).ok_or(Wrong::Record("a block is of no known fork"))?;
    let data = usize::from(front.half()?);
    if (flags & HAS_DATA != 0) != (data > 0) {
        return Err(Wrong::Record("a block's data contradicts its flags"));
    }
    let mut image = 0;
    if flags & HAS_IMAGE != 0 {
        image = usize::from(front.half()?);
        front.half()?; // where the hole begins
        let how = front.byte()?;
        let compressed = if version >= 15 { 0x1C } else { 0x02 };
        if how & HAS_HOLE != 0 && how & compressed != 0 {
            front.half()?; // how long the hole is
        }
    }
    if flags & SAME_RELATION == 0 {
        *relation =
            Some(Locator { tablespace: front.word()?, database: front.word()?, relation: front.word()? });
    }
    let locator =
        relation.ok_or(Wrong::Record("a block has the relation of the one before, and is the first"))?;
    let number = front.word()?;
    let bytes = before - front.0.len() + data;
    parts.images += image;
    parts.data += data;
    parts.blocks.push(Block { locator, fork, block: number, bytes: bytes as u32, image: image as u32 });
    Ok(())
}
