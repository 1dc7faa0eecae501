//! Packets of MySQL's client/server protocol, and the fields in them.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html>,
//! <https://mariadb.com/kb/en/clientserver-protocol/>

mod codes;

use std::num::NonZeroU64;

use crate::contract::error::Error;
use crate::mysql::errors;
use crate::net::frame::shown;
pub use codes::{capability, command, status};

/// The payload of a packet that is followed by another one of the same message.
pub const FULL: usize = 0xff_ffff;
/// The longest message that is read: more than a row of any workload, less than a machine's memory.
pub(crate) const LONGEST: usize = 64 << 20;
/// The longest before the server has let the client in: nobody has proved anything yet.
pub(crate) const LONGEST_GREETING: usize = 64 << 10;
/// How much of an error's text is kept, in bytes.
const LONGEST_TEXT: usize = 2048;
/// Length and sequence number.
pub const HEADER: usize = 4;

/// What stands at the start of the received bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// A whole message of one packet: its payload, its sequence number, and how many bytes it takes.
    Packet(&'a [u8], u8, usize),
    /// A whole message of several packets: the sequence number of the last one, and how many bytes they take.
    Packets(u8, usize),
    /// Only a part of a message; as far as is known, the whole has this many bytes.
    Partial(usize),
}

/// Finds the message at the start of `bytes`; one of more than `longest` bytes is refused by its header.
#[inline]
pub(crate) fn frame(bytes: &[u8], longest: usize) -> Result<Frame<'_>, Error> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else { return Ok(Frame::Partial(HEADER)) };
    let length = length_of(*header);
    if length >= FULL.min(longest + 1) {
        return long(bytes, longest);
    }
    Ok(match rest.get(..length) {
        Some(payload) => Frame::Packet(payload, header[3], HEADER + length),
        None => Frame::Partial(HEADER + length),
    })
}

fn length_of([low, middle, high, _]: [u8; HEADER]) -> usize {
    u32::from_le_bytes([low, middle, high, 0]) as usize
}

/// A message of several packets: the last one is shorter than the others, and may be empty.
#[cold]
fn long(bytes: &[u8], longest: usize) -> Result<Frame<'_>, Error> {
    let (mut at, mut length, mut next) = (0, 0, None);
    loop {
        let Some(header) = bytes.get(at..).and_then(|rest| rest.first_chunk::<HEADER>()) else {
            return Ok(Frame::Partial(at + HEADER));
        };
        if next.is_some_and(|next| next != header[3]) {
            return Err(garbage("the order of its packets"));
        }
        let packet = length_of(*header);
        length += packet;
        if length > longest {
            return Err(Error::connection_lost(format!(
                "the server sent a message of {length} bytes or more; at most {longest} are read{}",
                if longest == LONGEST_GREETING { " before it has let the client in" } else { "" }
            )));
        }
        at += HEADER + packet;
        if at > bytes.len() {
            return Ok(Frame::Partial(at));
        }
        if packet < FULL {
            return Ok(Frame::Packets(header[3], at));
        }
        next = Some(header[3].wrapping_add(1));
    }
}

/// Puts the payloads of a message of several packets, of which nothing is missing, behind each other.
#[cold]
pub(crate) fn join(mut packets: &[u8], joined: &mut Vec<u8>) {
    joined.clear();
    while let Some((header, rest)) = packets.split_first_chunk::<HEADER>() {
        let (payload, rest) = rest.split_at(length_of(*header).min(rest.len()));
        joined.extend_from_slice(payload);
        packets = rest;
    }
}

/// Begins a packet, whose header comes at its end.
#[inline]
pub(crate) fn begin_packet(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    start
}

/// Ends the packet that begins at `start`: writes its header, and cuts it where it is too long for one. Gives the
/// sequence number that follows.
#[inline]
pub(crate) fn end_packet(out: &mut Vec<u8>, start: usize, sequence: u8) -> u8 {
    let length = out.len() - start - HEADER;
    if length >= FULL {
        return cut_packet(out, start, sequence);
    }
    out[start..start + HEADER].copy_from_slice(&header(length, sequence));
    sequence.wrapping_add(1)
}

fn header(length: usize, sequence: u8) -> [u8; HEADER] {
    let [low, middle, high, _] = (length as u32).to_le_bytes();
    [low, middle, high, sequence]
}

#[cold]
fn cut_packet(out: &mut Vec<u8>, start: usize, mut sequence: u8) -> u8 {
    let payload = out.split_off(start + HEADER);
    out.truncate(start);
    let mut rest = payload.as_slice();
    loop {
        let (piece, left) = rest.split_at(rest.len().min(FULL));
        out.extend_from_slice(&header(piece.len(), sequence));
        out.extend_from_slice(piece);
        sequence = sequence.wrapping_add(1);
        rest = left;
        // A full packet is followed by another one, if need be by an empty one.
        if piece.len() < FULL {
            return sequence;
        }
    }
}

/// Writes a whole command and gives the sequence number with which its answer begins.
pub(crate) fn command(out: &mut Vec<u8>, command: u8, body: &[u8]) -> u8 {
    let start = begin_packet(out);
    out.push(command);
    out.extend_from_slice(body);
    end_packet(out, start, 0)
}

/// `COM_QUIT` as a whole packet.
pub(crate) const GOODBYE: [u8; 5] = [1, 0, 0, 0, command::QUIT];

/// The server sent what the protocol does not allow.
#[cold]
pub(crate) fn garbage(what: &str) -> Error {
    Error::connection_lost(format!("the server does not speak MySQL's protocol: {what} makes no sense"))
}

/// Reads fields from a payload, never beyond its end.
#[derive(Clone, Copy)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// So many bytes.
    #[inline]
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or_else(|| garbage("a short packet"))?;
        self.0 = rest;
        Ok(*field)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Error> {
        self.take::<1>().map(|[byte]| byte)
    }

    /// A number of two bytes, the lowest first.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Error> {
        self.take().map(u16::from_le_bytes)
    }

    /// A number of four bytes, the lowest first.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Error> {
        self.take().map(u32::from_le_bytes)
    }

    /// A number of one to nine bytes (`Protocol::LengthEncodedInteger`).
    #[inline]
    pub fn number(&mut self) -> Result<u64, Error> {
        Ok(match self.u8()? {
            small @ 0..=0xfa => small.into(),
            0xfc => self.u16()?.into(),
            0xfd => {
                let [low, middle, high] = self.take()?;
                u32::from_le_bytes([low, middle, high, 0]).into()
            }
            0xfe => self.take().map(u64::from_le_bytes)?,
            _ => return Err(garbage("the length of a number")),
        })
    }

    /// Bytes of a length.
    #[inline]
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(|| garbage("a short packet"))?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Bytes with their length before them (`Protocol::LengthEncodedString`).
    #[inline]
    pub fn string(&mut self) -> Result<&'a [u8], Error> {
        let length = self.number()?;
        self.bytes(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// A cell of a text row: 0xfb is null ("Text Resultset Row").
    #[inline]
    pub(crate) fn text_cell(&mut self) -> Result<Option<&'a [u8]>, Error> {
        if let Some((0xfb, rest)) = self.0.split_first() {
            self.0 = rest;
            return Ok(None);
        }
        self.string().map(Some)
    }

    /// Bytes that end with a zero byte, or with the packet.
    pub fn until_zero(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let bytes = &self.0[..end];
        self.0 = self.0.get(end + 1..).unwrap_or_default();
        bytes
    }
}

/// Writes a number of one to nine bytes.
#[inline]
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64) {
    match number {
        0..=0xfa => out.push(number as u8),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(number as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&number.to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}

/// Writes bytes with their length before them.
#[inline]
pub(crate) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The end of a statement ("`OK_Packet`", "`EOF_Packet`").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End<'a> {
    /// How many rows were changed, or found, as the client has asked for.
    pub affected: u64,
    pub(crate) inserted_id: Option<NonZeroU64>,
    /// Flags, see [`status`].
    pub status: u16,
    pub(crate) warnings: u16,
    /// What the server says of the statement, for people.
    pub info: &'a [u8],
}

/// Reads an `OK_Packet`, whose first byte is 0, or 0xfe at the end of rows.
#[inline]
pub fn ok(payload: &[u8]) -> Result<End<'_>, Error> {
    let mut fields = Fields(payload.get(1..).unwrap_or_default());
    let affected = fields.number()?;
    let inserted_id = NonZeroU64::new(fields.number()?);
    let (status, warnings) = (fields.u16()?, fields.u16()?);
    Ok(End { affected, inserted_id, status, warnings, info: fields.0 })
}

/// Reads an `EOF_Packet`.
pub(crate) fn eof(payload: &[u8]) -> Result<End<'_>, Error> {
    let mut fields = Fields(payload.get(1..).unwrap_or_default());
    let (warnings, status) = (fields.u16()?, fields.u16()?);
    Ok(End { affected: 0, inserted_id: None, status, warnings, info: &[] })
}

/// Whether the packet ends columns or rows; `deprecated` says that `OK_Packet` has taken the place of `EOF_Packet`.
#[inline]
pub(crate) fn is_end(payload: &[u8], deprecated: bool) -> bool {
    payload.first() == Some(&0xfe) && if deprecated { payload.len() < FULL } else { payload.len() < 9 }
}

/// Reads the end of rows.
#[inline]
pub fn end(payload: &[u8], deprecated: bool) -> Result<End<'_>, Error> {
    if deprecated { ok(payload) } else { eof(payload) }
}

/// Reads an `ERR_Packet`. Before the capabilities are agreed on it has no SQLSTATE.
pub fn error(payload: &[u8]) -> Error {
    let Some((number, mut text)) = payload.get(1..).and_then(<[u8]>::split_first_chunk::<2>) else {
        return garbage("an error");
    };
    if let Some((state, rest)) = text.split_first_chunk::<6>()
        && state[0] == b'#'
    {
        text = rest;
    }
    errors::error(u16::from_le_bytes(*number), shown(text, LONGEST_TEXT))
}

/// A column as the server describes it ("`ColumnDefinition41`").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Definition<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) charset: u16,
    pub(crate) kind: u8,
    pub(crate) flags: u16,
}

/// Reads the description of a column.
pub(crate) fn definition(payload: &[u8]) -> Result<Definition<'_>, Error> {
    let mut fields = Fields(payload);
    // The catalogue, the schema, the table by both its names.
    for _ in 0..4 {
        fields.string()?;
    }
    let name = fields.string()?;
    let _original = fields.string()?;
    let mut fixed = Fields(fields.string()?);
    let charset = fixed.u16()?;
    let _length = fixed.u32()?;
    Ok(Definition { name, charset, kind: fixed.u8()?, flags: fixed.u16()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(payload: &[u8], sequence: u8) -> Vec<u8> {
        let mut out = vec![9];
        let start = begin_packet(&mut out);
        out.extend_from_slice(payload);
        end_packet(&mut out, start, sequence);
        out.split_off(1)
    }

    #[test]
    fn a_packet_of_any_length_comes_back() {
        for (length, packets) in [(0, 1), (1, 1), (FULL - 1, 1), (FULL, 2), (FULL + 1, 2), (2 * FULL, 3)] {
            let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let sent = packet(&payload, 255);
            assert_eq!(sent.len(), length + packets * HEADER);
            match frame(&sent, LONGEST).unwrap() {
                Frame::Packet(found, 255, size) => {
                    assert_eq!((packets, size), (1, sent.len()));
                    assert!(found == payload);
                }
                Frame::Packets(last, size) => {
                    let mut joined = Vec::new();
                    join(&sent, &mut joined);
                    assert!(joined == payload);
                    assert_eq!((last, size), (packets as u8 - 2, sent.len()));
                }
                other => panic!("{other:?}"),
            }
            for end in [0, 3, HEADER - 1, sent.len() - 1] {
                let partial = frame(&sent[..end.min(sent.len() - 1)], LONGEST).unwrap();
                assert!(matches!(partial, Frame::Partial(size) if size > end && size <= sent.len()));
            }
        }
    }

    #[test]
    fn what_is_too_long_is_refused_by_its_header() {
        let told = |bytes: &[u8], longest| frame(bytes, longest).unwrap_err().message().to_owned();
        assert!(told(&[1, 0, 1, 0], LONGEST_GREETING).contains("before it has let the client in"));
        let full = packet(&vec![0; FULL - 1], 0);
        let many = [&[0xff, 0xff, 0xff, 0][..], &vec![0; FULL], &[0xff, 0xff, 0xff, 7]].concat();
        assert!(matches!(frame(&full, LONGEST), Ok(Frame::Packet(..))));
        assert!(told(&many, LONGEST).contains("the order of its packets"));
        assert!(told(&[0xff, 0xff, 0xff, 0], FULL - 1).contains("at most"));
    }

    #[test]
    fn an_error_is_read_with_and_without_its_state() {
        let with = error(b"\xff\x15\x04#28000Access denied");
        assert_eq!((with.code(), with.message()), ("1045", "Access denied"));
        let without = error(b"\xff\x10\x04Too many connections");
        assert_eq!((without.code(), without.message()), ("1040", "Too many connections"));
        assert!(error(b"\xff\x10").message().contains("an error makes no sense"));
    }

    proptest! {
        #[test]
        fn numbers_come_back(number in prop_oneof![any::<u64>(), 0..70_000_u64, 0xff_fff0..0x100_0010_u64]) {
            let mut out = Vec::new();
            put_number(&mut out, number);
            let mut fields = Fields(&out);
            prop_assert_eq!(fields.number().unwrap(), number);
            prop_assert!(fields.0.is_empty());
            for end in 0..out.len() {
                prop_assert!(Fields(&out[..end]).number().is_err());
            }
        }

        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = (frame(&bytes, LONGEST), ok(&bytes), eof(&bytes), definition(&bytes), error(&bytes));
            let mut fields = Fields(&bytes);
            while !fields.0.is_empty() && fields.text_cell().is_ok() {}
        }
    }
}
