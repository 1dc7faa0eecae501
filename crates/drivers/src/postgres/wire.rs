//! Messages of the protocol, version 3.0 (manual, section 53.7 "Message Formats"): reading what a server sends,
//! writing what a client sends.

use crate::contract::error::Error;
#[cfg(any(test, feature = "fuzzing"))]
use crate::net::frame::CUT;
use crate::net::frame::shown;
use crate::postgres::sqlstate;

/// The longest message that is read: more than a row of any workload, less than a machine's memory.
pub(crate) const LONGEST: usize = 64 << 20;
/// PostgreSQL itself sends none of this size; what claims to is something else.
const LONGEST_OF_SERVERS: usize = 1 << 30;
/// The longest before the server has let the client in: nobody has proved anything yet.
pub(crate) const LONGEST_GREETING: usize = 64 << 10;
/// How much of an error's or a notice's text is kept, in bytes; of its detail as much again.
const LONGEST_TEXT: usize = 2048;
/// Codes have five characters.
const LONGEST_CODE: usize = 16;
/// What an error may come to at most: message, detail and code, and what stands between them and for the rest of each.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) const LONGEST_TOLD: usize = 2 * LONGEST_TEXT + LONGEST_CODE + 3 * CUT.len() + 5;
/// A message from the server: its type and its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) tag: u8,
    pub(crate) body: &'a [u8],
}

/// What stands at the start of the received bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// A whole message, and how many bytes it takes.
    Message(Message<'a>, usize),
    /// Only a part of a message; the whole has this many bytes, as far as is known.
    Partial(usize),
}

/// Finds the message at the start of `bytes`.
#[inline]
pub(crate) fn frame(bytes: &[u8]) -> Result<Frame<'_>, Error> {
    frame_within(bytes, LONGEST)
}

/// Finds the message at the start of `bytes`; one of more than `longest` bytes is refused by its header.
#[inline]
pub(crate) fn frame_within(bytes: &[u8], longest: usize) -> Result<Frame<'_>, Error> {
    let Some((header, rest)) = bytes.split_first_chunk::<5>() else { return Ok(Frame::Partial(5)) };
    let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
    if !(4..=longest).contains(&length) || !header[0].is_ascii_graphic() {
        return Err(refused(header[0], length, longest));
    }
    Ok(match rest.get(..length - 4) {
        Some(body) => Frame::Message(Message { tag: header[0], body }, length + 1),
        None => Frame::Partial(length + 1),
    })
}

#[cold]
fn refused(tag: u8, length: usize, longest: usize) -> Error {
    if !tag.is_ascii_alphanumeric() || length <= longest || length > LONGEST_OF_SERVERS {
        return garbage("the message header");
    }
    Error::connection_lost(format!(
        "the server sent a message of {length} bytes; at most {longest} are read{}",
        if longest == LONGEST_GREETING { " before it has let the client in" } else { "" }
    ))
}

/// The server sent what the protocol does not allow.
pub(crate) fn garbage(what: &str) -> Error {
    Error::connection_lost(format!("the server does not speak PostgreSQL's protocol: {what} makes no sense"))
}

/// Reads fields from a message's body, never beyond its end.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// So many bytes.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or_else(|| garbage("a short message"))?;
        self.0 = rest;
        Ok(*field)
    }

    /// A number of two bytes.
    pub fn i16(&mut self) -> Result<i16, Error> {
        self.take().map(i16::from_be_bytes)
    }

    /// A number of four bytes.
    pub fn u32(&mut self) -> Result<u32, Error> {
        self.take().map(u32::from_be_bytes)
    }

    /// A text that ends with a zero byte.
    pub fn text(&mut self) -> Result<&'a str, Error> {
        std::str::from_utf8(self.bytes()?).map_err(|_| garbage("a text that is not UTF-8"))
    }

    /// The bytes of a text that ends with a zero byte.
    pub fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or_else(|| garbage("an unended text"))?;
        let bytes = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Ok(bytes)
    }
}

/// Reads an `ErrorResponse` or `NoticeResponse`.
#[must_use]
pub fn error(body: &[u8]) -> Error {
    let (mut code, mut message, mut detail): (&[u8], &[u8], &[u8]) = (b"", b"", b"");
    for field in body.split(|byte| *byte == 0) {
        let Some((kind, text)) = field.split_first() else { continue };
        match kind {
            b'C' => code = text,
            b'M' => message = text,
            b'D' => detail = text,
            _ => {}
        }
    }
    let (code, mut message) = (shown(code, LONGEST_CODE), shown(message, LONGEST_TEXT));
    if !detail.is_empty() {
        message.push_str(": ");
        message.push_str(&shown(detail, LONGEST_TEXT));
    }
    sqlstate::error(code, message)
}

/// The number of rows in a `CommandComplete` tag: `UPDATE 5`, `INSERT 0 1`, `SELECT 3`; 0 where there is none.
#[inline]
#[must_use]
pub fn affected(body: &[u8]) -> u64 {
    let (mut rows, mut power) = (0_u64, 1_u64);
    for byte in body.iter().rev().skip_while(|byte| **byte == 0) {
        if !byte.is_ascii_digit() {
            break;
        }
        rows = rows.wrapping_add(u64::from(byte - b'0').wrapping_mul(power));
        power = power.wrapping_mul(10);
    }
    rows
}

/// The transaction status that a `ReadyForQuery` of the set-up tells: outside a transaction where it tells none.
pub(crate) fn status(body: &[u8]) -> u8 {
    body.first().copied().unwrap_or(b'I')
}

/// Adds a message whose body is written by `body`.
pub(crate) fn message(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    end_message(out, start);
}

/// Writes the length of the message whose length field lies at `start`.
#[inline]
pub(crate) fn end_message(out: &mut [u8], start: usize) {
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Adds a text and the zero byte that ends it. A zero byte within it would end it early and is left out.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}

pub(crate) fn query(out: &mut Vec<u8>, sql: &str) {
    message(out, b'Q', |out| put_text(out, sql));
}

/// Parses `sql` into the statement `name` (empty: the unnamed one), the types of its parameters left to the server.
pub(crate) fn parse(out: &mut Vec<u8>, name: &str, sql: &str) {
    message(out, b'P', |out| {
        put_text(out, name);
        put_text(out, sql);
        out.extend_from_slice(&[0, 0]);
    });
}

pub(crate) fn describe(out: &mut Vec<u8>, name: &str) {
    message(out, b'D', |out| {
        out.push(b'S');
        put_text(out, name);
    });
}

/// Forgets a statement; that there is none is no error.
pub(crate) fn close(out: &mut Vec<u8>, name: &str) {
    message(out, b'C', |out| {
        out.push(b'S');
        put_text(out, name);
    });
}

/// Binds the unnamed statement, which has no parameters, to the unnamed portal, every column as text, and describes that.
pub(crate) const BIND_TEXT: [u8; 20] = [b'B', 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, b'D', 0, 0, 0, 6, b'P', 0];
/// Executes the unnamed portal to its end.
pub(crate) const EXECUTE: [u8; 10] = [b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];
pub(crate) const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];
pub(crate) const TERMINATE: [u8; 5] = [b'X', 0, 0, 0, 4];
pub(crate) const COPY_DONE: [u8; 5] = [b'c', 0, 0, 0, 4];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_are_read_from_tags() {
        for (tag, rows) in
            [("UPDATE 5", 5), ("INSERT 0 1", 1), ("SELECT 1234567", 1_234_567), ("BEGIN", 0), ("", 0)]
        {
            assert_eq!(affected(format!("{tag}\0").as_bytes()), rows, "{tag}");
        }
    }

    #[test]
    fn errors_carry_code_class_and_message() {
        let error =
            error(b"SERROR\0VERROR\0C40001\0Mcould not serialize access\0Dby a concurrent update\0\0");
        assert_eq!(error.code(), "40001");
        assert_eq!(error.class(), crate::ErrorClass::Serialization);
        assert_eq!(error.message(), "could not serialize access: by a concurrent update");
    }

    #[test]
    fn a_text_that_is_not_utf8_is_shown_as_far_as_it_goes() {
        let error = error(b"SFEHLER\0C42P01\0MRelation \xbbkunden\xab fehlt\0\0");
        assert_eq!(error.message(), "Relation \u{fffd}kunden\u{fffd} fehlt");
        assert_eq!(error.code(), "42P01");
    }

    #[test]
    fn long_texts_are_cut_between_characters_and_say_so() {
        let long = "ä€".repeat(LONGEST_TEXT);
        let body = format!("SERROR\0C{long}\0M{long}\0D{long}\0\0");
        let error = error(body.as_bytes());
        let (message, detail) = error.message().split_once(": ").unwrap();
        for (text, longest) in [(message, LONGEST_TEXT), (detail, LONGEST_TEXT), (error.code(), LONGEST_CODE)]
        {
            let kept = text.strip_suffix(CUT).unwrap();
            assert!(long.starts_with(kept) && (longest - 3..=longest).contains(&kept.len()), "{text}");
        }
    }

    #[test]
    fn a_message_is_refused_by_its_header_where_it_is_too_long() {
        let header = |tag: u8, length: usize| [&[tag][..], &(length as u32).to_be_bytes()].concat();
        for longest in [LONGEST_GREETING, LONGEST] {
            assert_eq!(frame_within(&header(b'D', longest), longest).unwrap(), Frame::Partial(longest + 1));
            let error = frame_within(&header(b'D', longest + 1), longest).unwrap_err();
            assert_eq!(error.class(), crate::ErrorClass::ConnectionLost);
            assert!(error.message().contains(&format!("at most {longest} are read")), "{error}");
            for cut in 0..5 {
                let part = &header(b'D', longest + 1)[..cut];
                assert_eq!(frame_within(part, longest).unwrap(), Frame::Partial(5));
            }
        }
        assert!(frame(&header(b'D', 3)).unwrap_err().message().contains("makes no sense"));
        assert!(frame(b"HTTP/1.1 400").unwrap_err().message().contains("does not speak PostgreSQL"));
    }

    proptest! {
        #[test]
        fn foreign_bytes_break_nothing(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = frame(&bytes);
            let _ = error(&bytes);
            let _ = affected(&bytes);
            let mut fields = Fields(&bytes);
            while fields.text().is_ok() && fields.i16().is_ok() {}
        }

        #[test]
        fn a_frame_is_found_only_when_it_is_whole(tag in 33_u8..127, body in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut out = Vec::new();
            message(&mut out, tag, |out| out.extend_from_slice(&body));
            for cut in 0..out.len() {
                prop_assert!(matches!(frame(&out[..cut]), Ok(Frame::Partial(size)) if size > cut));
            }
            prop_assert_eq!(frame(&out).unwrap(), Frame::Message(Message { tag, body: &body }, out.len()));
        }
    }
}
