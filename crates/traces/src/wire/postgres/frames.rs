//! Messages in one direction of a connection, found in bytes that come in pieces of any size.

use crate::reader::LONGEST;
use crate::wire::ROOM;
use crate::wire::kept::{Foreign, body};

/// What is kept of a message that is too long, or of which only the beginning matters: a name, or an error's code.
const BEGINNING: usize = 1024;
/// `PostgreSQL` itself sends and takes none of this size.
const LONGEST_OF_ALL: usize = 1 << 30;

/// How much of a message is looked at.
#[derive(Clone, Copy)]
pub(super) enum Keep {
    /// Its type alone; the body is passed over.
    Type,
    Beginning,
    /// All of it, unless it is too long: then its beginning.
    All,
}

impl Keep {
    fn bytes(self, length: usize) -> usize {
        match self {
            Self::Type => 0,
            Self::All if length <= LONGEST => length,
            Self::All | Self::Beginning => length.min(BEGINNING),
        }
    }
}

/// A message, without its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) tag: u8,
    pub(super) body: &'a [u8],
    /// Whether the body is longer than what was kept of it.
    pub(super) is_cut: bool,
}

/// Bytes of which a message consists that has not come to its end.
#[derive(Debug, Default)]
pub(super) struct Frames {
    header: Vec<u8>,
    body: Vec<u8>,
    /// How many bytes of the body are to be kept, and how many have not come.
    kept: usize,
    left: usize,
    is_cut: bool,
    /// A message was given, and its body is of no use any more.
    is_given: bool,
}

impl Frames {
    /// The first message of some bytes, if it ends within them, and how many bytes were taken. `keep` says how much of a
    /// type is wanted, and nothing where there is no such type.
    pub(super) fn next<'a>(
        &'a mut self,
        bytes: &'a [u8],
        keep: fn(u8) -> Option<Keep>,
    ) -> Result<(usize, Option<Message<'a>>), Foreign> {
        self.tidy();
        let mut used = 0;
        if self.header.len() < 5 {
            used = bytes.len().min(5 - self.header.len());
            self.header.extend_from_slice(&bytes[..used]);
            let Ok([tag, length @ ..]) = <[u8; 5]>::try_from(&*self.header) else { return Ok((used, None)) };
            let length = u32::from_be_bytes(length) as usize;
            let keep = keep(tag).filter(|_| (4..=LONGEST_OF_ALL).contains(&length)).ok_or(Foreign)?;
            self.left = length - 4;
            self.kept = keep.bytes(self.left);
            self.is_cut = self.kept < self.left;
        }
        let tag = self.header[0];
        let rest = &bytes[used..];
        let taken = rest.len().min(self.left);
        let is_whole = taken == self.left;
        self.left -= taken;
        let wanted = &rest[..taken.min(self.kept - self.body.len())];
        used += taken;
        if !is_whole {
            self.body.extend_from_slice(wanted);
            return Ok((used, None));
        }
        self.is_given = true;
        let body = body(&mut self.body, wanted);
        Ok((used, Some(Message { tag, body, is_cut: self.is_cut })))
    }

    fn tidy(&mut self) {
        if std::mem::take(&mut self.is_given) {
            self.header.clear();
            self.body.clear();
            self.body.shrink_to(ROOM);
        }
    }
}
