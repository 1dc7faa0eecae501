//! Messages of the wire protocol: `OP_MSG`, with one document each
//! (<https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/>).

use super::bson;
use crate::contract::error::Error;
use crate::net::frame::Part;

/// The length of a message's header.
const HEADER: usize = 16;
const OP_MSG: i32 = 2013;
/// What servers allow, and as much besides.
const LONGEST: usize = 2 * 48_000_000;
/// Flags of a message that have to be understood.
const CHECKSUM: u32 = 1;
const REQUIRED: u32 = 0xFFFF;
/// Kinds of sections: the command or its answer, and documents that belong to it.
const BODY: u8 = 0;
const SEQUENCE: u8 = 1;

pub(super) fn garbage(what: &str) -> Error {
    Error::connection_lost(format!("the server does not speak MongoDB's protocol: {what}"))
}

/// Begins a message with its number, and its command: give what comes back to [`end`].
#[inline]
pub(super) fn begin(out: &mut Vec<u8>, number: i32) -> (usize, usize) {
    let message = bson::begin(out);
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&0_i32.to_le_bytes());
    out.extend_from_slice(&OP_MSG.to_le_bytes());
    out.extend_from_slice(&0_u32.to_le_bytes());
    out.push(BODY);
    (message, bson::begin(out))
}

/// Ends a message and its command.
#[inline]
pub(super) fn end(out: &mut Vec<u8>, (message, command): (usize, usize)) {
    bson::end(out, command);
    end_length(out, message);
}

fn end_length(out: &mut [u8], start: usize) {
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Ends the command, and adds documents that belong to it as the array of this name.
pub(super) fn end_with(out: &mut Vec<u8>, (message, command): (usize, usize), name: &str, documents: &[u8]) {
    bson::end(out, command);
    out.push(SEQUENCE);
    let section = bson::begin(out);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    out.extend_from_slice(documents);
    end_length(out, section);
    end_length(out, message);
}

/// A whole message of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Message<'a> {
    /// The number of the message that it answers.
    pub(super) answers: i32,
    /// The document that is its body.
    pub(super) body: &'a [u8],
}

fn number(bytes: &[u8], at: usize) -> i32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| i32::from_le_bytes(*bytes))
}

/// The message at the beginning of the bytes, and how many of them it has.
#[inline]
pub(super) fn message(bytes: &[u8]) -> Result<Part<(Message<'_>, usize)>, Error> {
    if bytes.len() < HEADER {
        return Ok(Part::Partial(HEADER));
    }
    let size = usize::try_from(number(bytes, 0)).unwrap_or(0);
    if !(HEADER + 5..=LONGEST).contains(&size) {
        return Err(garbage("the length of a message"));
    }
    if number(bytes, 12) != OP_MSG {
        return Err(garbage("a message of another kind than OP_MSG"));
    }
    let Some(whole) = bytes.get(..size) else { return Ok(Part::Partial(size)) };
    let flags = number(whole, HEADER) as u32;
    if flags & REQUIRED & !CHECKSUM != 0 {
        return Err(garbage("a message with flags that were not asked for"));
    }
    let end = size - if flags & CHECKSUM == 0 { 0 } else { 4 };
    let sections = whole.get(HEADER + 4..end).unwrap_or_default();
    Ok(Part::Whole((Message { answers: number(whole, 8), body: body(sections)? }, size)))
}

/// The one document among the sections of a message.
fn body(sections: &[u8]) -> Result<&[u8], Error> {
    let (mut rest, mut found) = (sections, None);
    while let Some((kind, section)) = rest.split_first() {
        let size = match *kind {
            BODY => bson::document_size(section)?,
            SEQUENCE => usize::try_from(number(section, 0)).unwrap_or(0).max(4),
            _ => return Err(garbage("a section of no known kind")),
        };
        let (own, after) =
            section.split_at_checked(size).ok_or_else(|| garbage("a section beyond its message"))?;
        if *kind == BODY && found.replace(own).is_some() {
            return Err(garbage("a message of two bodies"));
        }
        rest = after;
    }
    found.ok_or_else(|| garbage("a message without a body"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn command(number: i32, text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let places = begin(&mut out, number);
        bson::put_text(&mut out, "a", text.as_bytes());
        end(&mut out, places);
        out
    }

    /// `{"a": "x"}` as message 7, written by hand from the manual.
    #[test]
    fn a_command_is_one_message() {
        let expected: &[u8] =
            b"\x23\0\0\0\x07\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\x0e\0\0\0\x02a\0\x02\0\0\0x\0\0";
        assert_eq!(command(7, "x"), expected);
        let mut out = Vec::new();
        let places = begin(&mut out, 7);
        end_with(&mut out, places, "documents", b"\x05\0\0\0\0");
        assert!(out.ends_with(b"\x05\0\0\0\0\x01\x13\0\0\0documents\0\x05\0\0\0\0"), "{out:?}");
        assert_eq!(number(&out, 0) as usize, out.len());
        let Part::Whole((read, size)) = message(&out).unwrap() else { panic!("it is whole") };
        assert_eq!((read.body, size), (&b"\x05\0\0\0\0"[..], out.len()));
    }

    #[test]
    fn what_was_not_asked_for_is_refused() {
        let whole = command(1, "x");
        for (at, byte) in [(0, 20), (3, 0x7F), (12, 1), (16, 2), (17, 1), (20, 2), (21, 4), (22, 1)] {
            let mut wrong = whole.clone();
            wrong[at] = byte;
            let read = message(&wrong);
            assert!(read.is_err(), "{at}: {read:?}");
        }
        let two = [&whole[..], &whole[20..]].concat();
        let mut two_bodies = two.clone();
        two_bodies[0] = two.len() as u8;
        assert!(message(&two_bodies).is_err());
        // A checksum is passed over.
        let mut checked = [&whole[..], b"abcd"].concat();
        (checked[0], checked[16]) = (checked.len() as u8, 1);
        assert!(matches!(message(&checked), Ok(Part::Whole((_, size))) if size == checked.len()));
    }

    proptest! {
        /// Of a whole message every piece asks for more, and never for more than there is.
        #[test]
        fn a_piece_asks_for_more(text in "[a-z]{0,40}", number in any::<i32>()) {
            let whole = command(number, &text);
            for cut in 0..whole.len() {
                let Part::Partial(size) = message(&whole[..cut]).unwrap() else { panic!("whole at {cut}") };
                prop_assert!((cut + 1..=whole.len()).contains(&size));
            }
            prop_assert!(matches!(message(&whole).unwrap(), Part::Whole((_, size)) if size == whole.len()));
        }

        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut framed = (bytes.len() as u32 + 16).to_le_bytes().to_vec();
            framed.extend_from_slice(b"\x01\0\0\0\x01\0\0\0\xdd\x07\0\0");
            framed.extend_from_slice(&bytes);
            let _ = message(&framed);
            let _ = message(&bytes);
        }
    }
}
