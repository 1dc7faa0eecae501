//! The frames of version 5, in which whole answers and requests stand, with checksums of their own
//! (<https://github.com/apache/cassandra/blob/trunk/doc/native_protocol_v5.spec>, section 2). What version 4 calls a frame,
//! version 5 calls an envelope; here the outer frames are segments, as in other drivers. None is compressed.

use nephoscope_runtime::Inbox;

use super::wire::{Form, garbage};
use crate::contract::error::Error;
use crate::net::frame::make_room;

/// The bytes before a segment's contents, and those behind.
pub(super) const BEFORE: usize = 6;
const BEHIND: usize = 4;
/// The longest contents: their length has 17 bits.
const LONGEST: usize = (1 << 17) - 1;
/// The contents begin and end with a request or an answer.
const WHOLE: u32 = 1 << 17;
/// What the checksum of the contents begins with.
const SALT: [u8; 4] = [0xfa, 0x2d, 0x55, 0xca];

/// The checksum of the first three bytes.
fn crc24(bytes: [u8; 3]) -> u32 {
    bytes.into_iter().fold(0x0087_5060, |sum, byte| {
        (0..8).fold(sum ^ u32::from(byte) << 16, |sum, _| {
            let turned = sum << 1;
            if turned & 1 << 24 == 0 { turned } else { turned ^ 0x0197_4f0b }
        })
    })
}

/// The checksum of the contents.
fn crc32(contents: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&SALT);
    sum.update(contents);
    sum.finalize()
}

fn before(size: usize, flag: u32) -> [u8; BEFORE] {
    let mut bytes = [0; BEFORE];
    bytes[..3].copy_from_slice(&(size as u32 | flag).to_le_bytes()[..3]);
    let sum = crc24([bytes[0], bytes[1], bytes[2]]);
    bytes[3..].copy_from_slice(&sum.to_le_bytes()[..3]);
    bytes
}

/// Makes segments of what stands behind `start`, where room for the beginning of one was left.
#[inline]
pub(super) fn close(out: &mut Vec<u8>, start: usize) {
    let contents = &out[start + BEFORE..];
    if contents.len() > LONGEST {
        return close_long(out, start);
    }
    let (before, sum) = (before(contents.len(), WHOLE), crc32(contents));
    out[start..start + BEFORE].copy_from_slice(&before);
    out.extend_from_slice(&sum.to_le_bytes());
}

/// One that is too long for a segment stands in several.
#[cold]
fn close_long(out: &mut Vec<u8>, start: usize) {
    let contents = out.split_off(start + BEFORE);
    out.truncate(start);
    for part in contents.chunks(LONGEST) {
        out.extend_from_slice(&before(part.len(), 0));
        out.extend_from_slice(part);
        out.extend_from_slice(&crc32(part).to_le_bytes());
    }
}

/// The contents of the segments that have come.
#[derive(Default)]
pub(super) struct Segments {
    pub(super) contents: Inbox,
    /// What of a segment was damaged. What came before it is good.
    damaged: Option<&'static str>,
}

impl Segments {
    /// Takes whole segments from an inbox, and makes room there for the rest of the one that has begun.
    pub(super) fn take(&mut self, inbox: &mut Inbox) {
        let (mut used, mut least) = (0, BEFORE);
        while self.damaged.is_none()
            && let Some(before) = inbox.bytes()[used..].first_chunk::<BEFORE>()
        {
            let word = |at: usize| u32::from_le_bytes([before[at], before[at + 1], before[at + 2], 0]);
            if crc24([before[0], before[1], before[2]]) != word(3) {
                self.damaged = Some("header");
                break;
            }
            let size = word(0) as usize & LONGEST;
            let whole = BEFORE + size + BEHIND;
            let Some(segment) = inbox.bytes().get(used..used + whole) else {
                least = whole;
                break;
            };
            let (contents, sum) = segment[BEFORE..].split_at(size);
            if crc32(contents).to_le_bytes() != *sum {
                self.damaged = Some("contents");
                break;
            }
            self.contents.extend(contents);
            used += whole;
        }
        inbox.consume(used);
        make_room(inbox, least);
    }

    /// What is needed further can come.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.damaged.map_or(Ok(()), |what| Err(damaged(what)))
    }
}

/// How a connection speaks: how requests are written, and where answers are.
pub(super) struct Speech {
    pub(super) form: Form,
    pub(super) segments: Option<Box<Segments>>,
}

impl Speech {
    pub(super) fn new(form: Form) -> Self {
        Self { form, segments: form.segmented.then(Box::default) }
    }
}

#[cold]
fn damaged(what: &str) -> Error {
    garbage(&format!("a frame was damaged on its way: the checksum of its {what} is another"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(contents: &[u8]) -> Vec<u8> {
        let mut out = [&b"before"[..], &[0; BEFORE], contents].concat();
        close(&mut out, 6);
        out.split_off(6)
    }

    /// What comes of bytes in pieces.
    fn taken(bytes: &[u8], cut: usize) -> Result<Vec<u8>, Error> {
        let (mut inbox, mut segments) = (Inbox::default(), Segments::default());
        for piece in bytes.chunks(cut) {
            inbox.extend(piece);
            segments.take(&mut inbox);
            segments.check()?;
        }
        Ok(segments.contents.bytes().to_vec())
    }

    #[test]
    fn what_is_sent_is_what_comes_however_it_is_cut() {
        for size in [0, 1, 300, LONGEST, LONGEST + 1, 3 * LONGEST] {
            let contents: Vec<u8> = (0..size).map(|byte| byte as u8).collect();
            let bytes = [closed(&contents), closed(b"next")].concat();
            for cut in [1, 7, 4096, bytes.len()].into_iter().filter(|cut| *cut > 1 || size < 1000) {
                assert_eq!(taken(&bytes, cut).unwrap(), [&contents[..], b"next"].concat(), "{size} {cut}");
            }
        }
    }

    /// The first bytes that Cassandra 5.0 sends when it is ready: a segment of its own making.
    #[test]
    fn the_checksums_are_cassandras() {
        assert_eq!(closed(b"")[..3], [0, 0, 2]);
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_byte_that_is_another_is_told_as_damage() {
        let bytes = closed(b"contents");
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x10;
            let told = taken(&damaged, 64).unwrap_err().to_string();
            assert!(told.contains("damaged on its way"), "{place}: {told}");
        }
    }
}
