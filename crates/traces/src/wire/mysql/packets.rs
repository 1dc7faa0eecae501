//! Messages in one direction of a connection, found in bytes that come in pieces of any size.

use nephoscope_drivers::mysql::HEADER;

use crate::wire::ROOM;
use crate::wire::kept::body;

/// A message, of one packet or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) body: &'a [u8],
    /// How long it is; the body may be the beginning of it alone.
    pub(super) length: usize,
    /// The sequence number of its first packet.
    pub(super) sequence: u8,
}

impl Message<'_> {
    pub(super) fn is_cut(&self) -> bool {
        self.body.len() < self.length
    }
}

/// Bytes of which a message consists that has not come to its end.
#[derive(Debug, Default)]
pub(super) struct Packets {
    header: Vec<u8>,
    body: Vec<u8>,
    /// How many bytes of the packet have not come.
    left: usize,
    /// The length of the message so far.
    length: usize,
    /// The sequence number of the message's first packet, once that has begun.
    sequence: Option<u8>,
    /// A message was given, and its body is of no use any more.
    is_given: bool,
}

impl Packets {
    /// The first message of some bytes, if it ends within them, and how many bytes were taken. At most so many bytes of its
    /// body are kept.
    pub(super) fn next<'a>(&'a mut self, bytes: &'a [u8], most: usize) -> (usize, Option<Message<'a>>) {
        self.tidy();
        let mut used = 0;
        if self.header.len() < HEADER {
            used = bytes.len().min(HEADER - self.header.len());
            self.header.extend_from_slice(&bytes[..used]);
            let Ok([low, middle, high, sequence]) = <[u8; HEADER]>::try_from(&*self.header) else {
                return (used, None);
            };
            self.left = u32::from_le_bytes([low, middle, high, 0]) as usize;
            self.length += self.left;
            self.sequence.get_or_insert(sequence);
        }
        let rest = &bytes[used..];
        let taken = rest.len().min(self.left);
        self.left -= taken;
        used += taken;
        let wanted = &rest[..taken.min(most.saturating_sub(self.body.len()))];
        // A packet of the longest length is followed by another one of the same message.
        let goes_on = self.header[..3] == [0xff; 3];
        if self.left > 0 || goes_on {
            self.body.extend_from_slice(wanted);
            if self.left == 0 {
                self.header.clear();
            }
            return (used, None);
        }
        self.is_given = true;
        let body = body(&mut self.body, wanted);
        (used, Some(Message { body, length: self.length, sequence: self.sequence.unwrap_or_default() }))
    }

    fn tidy(&mut self) {
        if std::mem::take(&mut self.is_given) {
            self.header.clear();
            self.body.clear();
            self.body.shrink_to(ROOM);
            (self.length, self.sequence) = (0, None);
        }
    }
}
