//! Frames of the native protocol, version 4
//! (<https://github.com/apache/cassandra/blob/trunk/doc/native_protocol_v4.spec>; sections are its), and what is another in
//! version 5, where they stand in [`segments`].

use super::segments;
use crate::contract::error::{Error, ErrorClass};
use crate::net::frame::{Part, shown};

/// The length of a frame's header (section 2).
pub(super) const HEADER: usize = 9;
/// The longest body that the protocol allows (section 2.5).
const LONGEST: usize = 256 << 20;
/// A response has the highest bit of its version besides.
const RESPONSE: u8 = 0x80;
/// How much of a server's text is shown.
const LONGEST_TEXT: usize = 2000;

/// How requests are written, and answers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) version: u8,
    /// Whether they stand in segments: in version 5, once STARTUP is answered.
    pub(super) segmented: bool,
}

impl Form {
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) const FOUR: Self = Self { version: 4, segmented: false };
    pub(super) const FIVE: Self = Self { version: 5, segmented: true };

    /// What a connection begins with, to speak a version.
    pub(super) fn begins(version: u8) -> Self {
        Self { version, segmented: false }
    }

    /// Whether it is version 5.
    #[inline]
    pub(super) fn is_five(self) -> bool {
        self.version == Self::FIVE.version
    }

    /// Flags of values, which have become longer (section 4.1.4).
    pub(super) fn put_flags(self, flags: u8, out: &mut Vec<u8>) {
        if self.is_five() {
            out.extend_from_slice(&[0; 3]);
        }
        out.push(flags);
    }
}

/// What a frame is (section 2.4).
pub(super) mod opcode {
    pub(in crate::cassandra) const ERROR: u8 = 0x00;
    pub(in crate::cassandra) const STARTUP: u8 = 0x01;
    pub(in crate::cassandra) const READY: u8 = 0x02;
    pub(in crate::cassandra) const AUTHENTICATE: u8 = 0x03;
    pub(in crate::cassandra) const QUERY: u8 = 0x07;
    pub(in crate::cassandra) const RESULT: u8 = 0x08;
    pub(in crate::cassandra) const PREPARE: u8 = 0x09;
    pub(in crate::cassandra) const EXECUTE: u8 = 0x0A;
    pub(in crate::cassandra) const EVENT: u8 = 0x0C;
    pub(in crate::cassandra) const AUTH_RESPONSE: u8 = 0x0F;
    pub(in crate::cassandra) const AUTH_SUCCESS: u8 = 0x10;
}

/// What a RESULT is (section 4.2.5).
pub(super) mod kind {
    pub(in crate::cassandra) const ROWS: i32 = 2;
    pub(in crate::cassandra) const PREPARED: i32 = 4;
    pub(in crate::cassandra) const SCHEMA_CHANGE: i32 = 5;
}

/// Flags of a request's values (section 4.1.4).
pub(super) mod flag {
    pub(in crate::cassandra) const VALUES: u8 = 0x01;
    pub(in crate::cassandra) const SKIP_METADATA: u8 = 0x02;
    pub(in crate::cassandra) const TIMESTAMP: u8 = 0x20;
}

/// Flags of a frame (section 2.2): what comes before the body proper.
mod before {
    pub(super) const COMPRESSED: u8 = 0x01;
    pub(super) const TRACING: u8 = 0x02;
    pub(super) const PAYLOAD: u8 = 0x04;
    pub(super) const WARNING: u8 = 0x08;
}

const OVERLOADED: i32 = 0x1001;
/// What a node says to every request while it ends, as an error of being overloaded
/// (`org.apache.cassandra.transport.Dispatcher`).
const LEAVING: &[u8] = b"Server is shutting down";

/// Errors that are more than a message (section 9).
pub(super) mod code {
    pub(in crate::cassandra) const PROTOCOL: &str = "0x000A";
    pub(in crate::cassandra) const CREDENTIALS: &str = "0x0100";
    pub(in crate::cassandra) const UNPREPARED: &str = "0x2500";
}

/// A whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    /// The request's number; negative for an event.
    pub(super) stream: i16,
    pub(super) opcode: u8,
    pub(super) body: &'a [u8],
}

/// The frame at the beginning of the bytes, and how many of them it takes.
#[inline]
pub(super) fn frame(version: u8, bytes: &[u8]) -> Result<Part<(Frame<'_>, usize)>, Error> {
    let Some(header) = bytes.first_chunk::<HEADER>() else {
        return match bytes.first() {
            Some(first) if first & RESPONSE == 0 => Err(garbage("the version of a frame")),
            _ => Ok(Part::Partial(HEADER)),
        };
    };
    let [first, flags, high, low, opcode, size @ ..] = *header;
    // A server that does not have the version says so in one that it has.
    if first != RESPONSE | version && (first & RESPONSE == 0 || opcode != opcode::ERROR) {
        return Err(garbage("the version of a frame"));
    }
    let size = u32::from_be_bytes(size) as usize;
    if size > LONGEST {
        return Err(garbage("the length of a frame"));
    }
    let whole = HEADER + size;
    let Some(body) = bytes.get(HEADER..whole) else { return Ok(Part::Partial(whole)) };
    let body = if flags == 0 { body } else { proper(flags, body)? };
    Ok(Part::Whole((Frame { stream: i16::from_be_bytes([high, low]), opcode, body }, whole)))
}

/// The body without what the flags say is before it.
#[cold]
fn proper(flags: u8, body: &[u8]) -> Result<&[u8], Error> {
    if flags & before::COMPRESSED != 0 {
        return Err(garbage("a compressed frame"));
    }
    let mut fields = Fields(body);
    if flags & before::TRACING != 0 {
        fields.take(16)?;
    }
    if flags & before::WARNING != 0 {
        for _ in 0..fields.u16()? {
            let warning = fields.string()?;
            tracing::debug!(warning = shown(warning, LONGEST_TEXT), "the server warns");
        }
    }
    if flags & before::PAYLOAD != 0 {
        for _ in 0..fields.u16()? {
            fields.string()?;
            fields.bytes()?;
        }
    }
    Ok(fields.0)
}

/// What is read of a body, from its beginning on (section 3).
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, size: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(size).ok_or_else(|| garbage("the end of a body"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(|| garbage("the end of a body"))?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, Error> {
        self.array().map(i32::from_be_bytes)
    }

    /// `[string]` and `[short bytes]`.
    pub(super) fn string(&mut self) -> Result<&'a [u8], Error> {
        let size = self.u16()?.into();
        self.take(size)
    }

    /// `[bytes]`; `None` is null.
    pub(super) fn bytes(&mut self) -> Result<Option<&'a [u8]>, Error> {
        usize::try_from(self.i32()?).ok().map(|size| self.take(size)).transpose()
    }

    /// A number of things, each of which takes a byte at least.
    pub(super) fn count(&mut self) -> Result<usize, Error> {
        let count = usize::try_from(self.i32()?).ok().filter(|count| *count <= self.0.len());
        count.ok_or_else(|| garbage("a number"))
    }
}

/// Begins a request; gives where.
#[inline]
pub(super) fn begin(out: &mut Vec<u8>, form: Form, opcode: u8, stream: i16) -> usize {
    let (start, [high, low]) = (out.len(), stream.to_be_bytes());
    if form.segmented {
        out.extend_from_slice(&[0; segments::BEFORE]);
    }
    out.extend_from_slice(&[form.version, 0, high, low, opcode, 0, 0, 0, 0]);
    start
}

/// Ends the request that was begun.
#[inline]
pub(super) fn end(out: &mut Vec<u8>, form: Form, start: usize) {
    let body = start + HEADER + if form.segmented { segments::BEFORE } else { 0 };
    let size = (out.len() - body) as u32;
    out[body - 4..body].copy_from_slice(&size.to_be_bytes());
    if form.segmented {
        segments::close(out, start);
    }
}

/// `[string]` and `[short bytes]`.
pub(super) fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text);
}

/// `[long string]` and `[bytes]`.
#[inline]
pub(super) fn put_long(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u32).to_be_bytes());
    out.extend_from_slice(text);
}

/// PREPARE, as a whole frame.
pub(super) fn put_prepare(out: &mut Vec<u8>, form: Form, stream: i16, cql: &str) {
    let start = begin(out, form, opcode::PREPARE, stream);
    put_long(out, cql.as_bytes());
    if form.is_five() {
        form.put_flags(0, out);
    }
    end(out, form, start);
}

/// The error of an answer that the protocol does not allow. Nothing after it can be read.
#[cold]
pub(super) fn garbage(what: &str) -> Error {
    Error::connection_lost(format!("the server does not speak version 4 or 5 of the protocol: {what}"))
}

/// Whether an error says that its node is about to end: its connections are of no use any more.
#[cold]
pub(super) fn is_leaving(error: &Error) -> bool {
    error.class() == ErrorClass::ShuttingDown && error.message() == String::from_utf8_lossy(LEAVING)
}

/// ERROR, in the classes of all drivers (section 9). Writes of which the server does not say that nothing was done have
/// an unknown outcome.
#[cold]
pub(super) fn error(body: &[u8]) -> Error {
    let mut fields = Fields(body);
    let (Ok(number), Ok(message)) = (fields.i32(), fields.string()) else { return garbage("an error") };
    let (class, is_open) = match number {
        OVERLOADED if message == LEAVING => (ErrorClass::ShuttingDown, false),
        // Unavailable, Is_bootstrapping, Unprepared: nothing was done, and the same may succeed later.
        0x1000 | 0x1002 | 0x2500 => (ErrorClass::ShuttingDown, false),
        OVERLOADED => (ErrorClass::Throttled, false),
        // Write_timeout, CAS_write_unknown.
        0x1100 | 0x1700 => (ErrorClass::StatementTimeout, true),
        0x1200 => (ErrorClass::StatementTimeout, false),
        // Server error, Truncate_error, Write_failure, CDC_write_failure.
        0x0000 | 0x1003 | 0x1500 | 0x1600 => (ErrorClass::Other, true),
        _ => (ErrorClass::Other, false),
    };
    let error = Error::new(class, format!("0x{number:04X}"), shown(message, LONGEST_TEXT));
    if is_open { error.with_unknown_outcome() } else { error.with_known_outcome() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(flags: u8, opcode: u8, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let start = begin(&mut out, Form::FOUR, opcode, 7);
        out.extend_from_slice(body);
        end(&mut out, Form::FOUR, start);
        (out[0], out[1]) = (RESPONSE | 4, flags);
        out
    }

    #[test]
    fn a_frame_is_read_when_it_is_whole() {
        let bytes = answer(0, opcode::READY, b"xy");
        for end in 0..bytes.len() {
            let least = if end < HEADER { HEADER } else { bytes.len() };
            assert_eq!(frame(4, &bytes[..end]).unwrap(), Part::Partial(least));
        }
        let whole = Frame { stream: 7, opcode: opcode::READY, body: b"xy" };
        assert_eq!(frame(4, &[&bytes[..], b"z"].concat()).unwrap(), Part::Whole((whole, bytes.len())));
    }

    #[test]
    fn what_stands_before_a_body_is_left_out() {
        let warned = [&[7; 16][..], b"\0\x01\0\x02no\0\x01\0\x01k\xff\xff\xff\xffbody"].concat();
        let bytes = answer(0x0E, opcode::RESULT, &warned);
        let Part::Whole((found, _)) = frame(4, &bytes).unwrap() else { panic!() };
        assert_eq!(found.body, b"body");
        assert!(frame(4, &answer(0x01, opcode::RESULT, b"")).is_err(), "nothing asks for compression");
    }

    #[test]
    fn another_version_may_say_no_and_nothing_else() {
        let mut bytes = answer(0, opcode::ERROR, b"");
        bytes[0] = 0x83;
        assert!(frame(4, &bytes).is_ok());
        bytes[4] = opcode::RESULT;
        assert!(frame(4, &bytes).is_err());
        bytes[0] = 4;
        assert!(frame(4, &bytes[..1]).is_err(), "a request in place of an answer");
    }

    #[test]
    fn a_node_that_ends_is_not_overloaded() {
        let told = |message: &[u8]| {
            let mut body = OVERLOADED.to_be_bytes().to_vec();
            put_string(&mut body, message);
            error(&body)
        };
        let (leaving, overloaded) = (told(LEAVING), told(b"Too many requests"));
        assert_eq!((leaving.class(), is_leaving(&leaving)), (ErrorClass::ShuttingDown, true));
        assert_eq!((overloaded.class(), is_leaving(&overloaded)), (ErrorClass::Throttled, false));
    }

    #[test]
    fn errors_have_a_class_and_say_whether_something_was_done() {
        let of = |number: i32| {
            let error = error(&[&number.to_be_bytes()[..], b"\0\x02no"].concat());
            (error.class(), error.outcome_unknown(), error.code().to_owned())
        };
        for (number, class, is_open, code) in [
            (0x1000, ErrorClass::ShuttingDown, false, "0x1000"),
            (0x1001, ErrorClass::Throttled, false, "0x1001"),
            (0x1100, ErrorClass::StatementTimeout, true, "0x1100"),
            (0x1200, ErrorClass::StatementTimeout, false, "0x1200"),
            (0x1500, ErrorClass::Other, true, "0x1500"),
            (0x2200, ErrorClass::Other, false, "0x2200"),
            (0x0100, ErrorClass::Other, false, code::CREDENTIALS),
            (0x2500, ErrorClass::ShuttingDown, false, code::UNPREPARED),
        ] {
            assert_eq!(of(number), (class, is_open, code.to_owned()));
        }
    }
}
