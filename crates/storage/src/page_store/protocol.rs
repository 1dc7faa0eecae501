//! The protocol of a page store, version 1, without I/O. All numbers are little-endian.
//!
//! A message is `length: u32` (of what follows), `kind: u8`, `id: u32`, and its fields in the order of [`Request`] and
//! [`Reply`]; a field of bytes is the last one and takes the rest. A client begins with [`Request::Hello`]. The server
//! answers each request once, with the request's `id`, in any order.

/// The version spoken here.
pub const VERSION: u16 = 1;
/// What a greeting begins with.
pub const MAGIC: [u8; 4] = *b"NSPS";
/// The most bytes that one append or one read carries.
pub const LONGEST_DATA: usize = 8 << 20;
/// The longest text of an error; the rest is cut.
pub const LONGEST_TEXT: usize = 512;
/// Kind and identifier.
const HEAD: usize = 5;
/// The longest fields before data.
const FIELDS: usize = 32;

/// What a client asks of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Says which version the client speaks.
    Hello {
        /// See [`VERSION`].
        version: u16,
    },
    /// Makes a segment empty, at LSN 0.
    Create {
        /// The segment's number.
        segment: u32,
    },
    /// Adds a record to a segment's log: these bytes stand at this offset from this LSN on.
    Append {
        /// The segment's number.
        segment: u32,
        /// The record's number in its segment's log, from 1 on, without gaps. Records may arrive in any order.
        lsn: u64,
        /// Where in the segment the bytes stand.
        offset: u64,
        /// The bytes.
        data: &'a [u8],
    },
    /// Adds a record by which a range is zero from this LSN on.
    Erase {
        /// The segment's number.
        segment: u32,
        /// See [`Request::Append`].
        lsn: u64,
        /// Where the range begins.
        offset: u64,
        /// How many bytes.
        bytes: u32,
    },
    /// Reads a range as it was when the record of this LSN had been added, and no later one.
    Read {
        /// The segment's number.
        segment: u32,
        /// See above.
        lsn: u64,
        /// Where the range begins.
        offset: u64,
        /// How many bytes; at most [`LONGEST_DATA`].
        bytes: u32,
    },
    /// Asks for the replica's counters.
    Statistics,
}

/// What a replica answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// The answer to a greeting.
    Welcome {
        /// The version that is spoken from here on.
        version: u16,
        /// The bytes of a page.
        page_size: u32,
    },
    /// It is done: for an append, the record is as durable as the replica makes records.
    Done,
    /// What was read.
    Data(&'a [u8]),
    /// Counters, in the order of `Statistics`, each 8 bytes.
    Counters(&'a [u8]),
    /// It was not done.
    Refused {
        /// Why.
        reason: Reason,
        /// The same in words, in UTF-8 as far as the server is honest.
        text: &'a [u8],
    },
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It means nothing, or not here.
    Invalid,
    /// There is no such segment.
    NoSegment,
    /// Pages of this LSN are kept no longer.
    Gone,
    /// There is no room, in memory or in a queue.
    Full,
    /// The replica's file has failed.
    Broken,
}

impl Reason {
    const ALL: [Self; 5] = [Self::Invalid, Self::NoSegment, Self::Gone, Self::Full, Self::Broken];
}

/// Bytes that are no message of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a message of a page store: {0}")]
pub struct Garbage(pub &'static str);

/// What stands at the start of the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A whole message.
    Whole {
        /// Its kind.
        kind: u8,
        /// The request's identifier.
        id: u32,
        /// Its fields.
        fields: &'a [u8],
        /// How many bytes the message takes.
        size: usize,
    },
    /// A part of one; the whole has so many bytes, as far as is known.
    Partial(usize),
}

/// Finds the message at the start of `bytes`; one that is too long is refused by its length.
pub fn frame(bytes: &[u8]) -> Result<Frame<'_>, Garbage> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(Frame::Partial(4 + HEAD)) };
    let length = u32::from_le_bytes(*length) as usize;
    if !(HEAD..=HEAD + FIELDS + LONGEST_DATA).contains(&length) {
        return Err(Garbage("its length is none"));
    }
    let Some(([kind, id @ ..], fields)) = rest.get(..length).and_then(<[u8]>::split_first_chunk::<HEAD>)
    else {
        return Ok(Frame::Partial(4 + length));
    };
    Ok(Frame::Whole { kind: *kind, id: u32::from_le_bytes(*id), fields, size: 4 + length })
}

/// Fields, one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Garbage> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(Garbage("it lacks a field"))?;
        self.0 = rest;
        Ok(*field)
    }

    fn u16(&mut self) -> Result<u16, Garbage> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Garbage> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Garbage> {
        self.take().map(u64::from_le_bytes)
    }

    fn rest(&mut self, longest: usize) -> Result<&'a [u8], Garbage> {
        let rest = std::mem::take(&mut self.0);
        if rest.len() > longest { Err(Garbage("a field is too long")) } else { Ok(rest) }
    }

    fn end<T>(self, value: T) -> Result<T, Garbage> {
        if self.0.is_empty() { Ok(value) } else { Err(Garbage("it has bytes behind its last field")) }
    }
}

impl<'a> Request<'a> {
    /// Reads the fields of a kind.
    pub fn read(kind: u8, fields: &'a [u8]) -> Result<Self, Garbage> {
        let mut fields = Fields(fields);
        let request = match kind {
            1 if fields.take()? == MAGIC => Self::Hello { version: fields.u16()? },
            1 => return Err(Garbage("a greeting of another protocol")),
            2 => Self::Create { segment: fields.u32()? },
            3 => Self::Append {
                segment: fields.u32()?,
                lsn: fields.u64()?,
                offset: fields.u64()?,
                data: fields.rest(LONGEST_DATA)?,
            },
            4 => Self::Erase {
                segment: fields.u32()?,
                lsn: fields.u64()?,
                offset: fields.u64()?,
                bytes: fields.u32()?,
            },
            5 => Self::Read {
                segment: fields.u32()?,
                lsn: fields.u64()?,
                offset: fields.u64()?,
                bytes: fields.u32()?,
            },
            6 => Self::Statistics,
            _ => return Err(Garbage("no request has its kind")),
        };
        fields.end(request)
    }

    /// Writes the whole message behind `out`.
    pub fn write(&self, id: u32, out: &mut Vec<u8>) {
        let place = |segment: u32, lsn: u64, offset: u64| {
            [&segment.to_le_bytes()[..], &lsn.to_le_bytes(), &offset.to_le_bytes()].concat()
        };
        match *self {
            Self::Hello { version } => message(1, id, &[&MAGIC, &version.to_le_bytes()], out),
            Self::Create { segment } => message(2, id, &[&segment.to_le_bytes()], out),
            Self::Append { segment, lsn, offset, data } => {
                message(3, id, &[&place(segment, lsn, offset), data], out);
            }
            Self::Erase { segment, lsn, offset, bytes } => {
                message(4, id, &[&place(segment, lsn, offset), &bytes.to_le_bytes()], out);
            }
            Self::Read { segment, lsn, offset, bytes } => {
                message(5, id, &[&place(segment, lsn, offset), &bytes.to_le_bytes()], out);
            }
            Self::Statistics => message(6, id, &[], out),
        }
    }
}

impl<'a> Reply<'a> {
    /// Reads the fields of a kind.
    pub fn read(kind: u8, fields: &'a [u8]) -> Result<Self, Garbage> {
        let mut fields = Fields(fields);
        let reply = match kind {
            129 => Self::Welcome { version: fields.u16()?, page_size: fields.u32()? },
            130 => Self::Done,
            131 => Self::Data(fields.rest(LONGEST_DATA)?),
            132 => Self::Counters(fields.rest(LONGEST_TEXT)?),
            255 => {
                let [reason] = fields.take()?;
                let reason =
                    Reason::ALL.get(usize::from(reason)).ok_or(Garbage("there is no such reason"))?;
                Self::Refused { reason: *reason, text: fields.rest(LONGEST_TEXT)? }
            }
            _ => return Err(Garbage("no reply has its kind")),
        };
        fields.end(reply)
    }

    /// Writes the whole message behind `out`.
    pub fn write(&self, id: u32, out: &mut Vec<u8>) {
        match *self {
            Self::Welcome { version, page_size } => {
                message(129, id, &[&version.to_le_bytes(), &page_size.to_le_bytes()], out);
            }
            Self::Done => message(130, id, &[], out),
            Self::Data(data) => message(131, id, &[data], out),
            Self::Counters(counters) => message(132, id, &[counters], out),
            Self::Refused { reason, text } => {
                message(255, id, &[&[reason as u8], &text[..text.len().min(LONGEST_TEXT)]], out);
            }
        }
    }
}

fn message(kind: u8, id: u32, fields: &[&[u8]], out: &mut Vec<u8>) {
    let length = HEAD + fields.iter().map(|field| field.len()).sum::<usize>();
    out.extend_from_slice(&(length as u32).to_le_bytes());
    out.push(kind);
    out.extend_from_slice(&id.to_le_bytes());
    for field in fields {
        out.extend_from_slice(field);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(bytes: &[u8]) -> (u8, u32, &[u8], usize) {
        match frame(bytes).unwrap() {
            Frame::Whole { kind, id, fields, size } => (kind, id, fields, size),
            Frame::Partial(size) => panic!("a part of {size} bytes"),
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80), kind in any::<u8>()) {
            let _ = frame(&bytes);
            if let Ok(request) = Request::read(kind, &bytes) {
                let mut out = Vec::new();
                request.write(7, &mut out);
                prop_assert_eq!(whole(&out), (kind, 7, &bytes[..], out.len()));
            }
            if let Ok(reply) = Reply::read(kind, &bytes) {
                let mut out = Vec::new();
                reply.write(8, &mut out);
                prop_assert_eq!(whole(&out), (kind, 8, &bytes[..], out.len()));
            }
        }

        #[test]
        fn requests_come_back(
            (kind, segment, lsn, offset) in (0..6, any::<u32>(), any::<u64>(), any::<u64>()),
            bytes in any::<u32>(),
            data in prop::collection::vec(any::<u8>(), 0..50),
        ) {
            let request = match kind {
                0 => Request::Hello { version: bytes as u16 },
                1 => Request::Create { segment },
                2 => Request::Append { segment, lsn, offset, data: &data },
                3 => Request::Erase { segment, lsn, offset, bytes },
                4 => Request::Read { segment, lsn, offset, bytes },
                _ => Request::Statistics,
            };
            let mut out = Vec::new();
            request.write(bytes, &mut out);
            for cut in 0..out.len() {
                prop_assert!(matches!(frame(&out[..cut]), Ok(Frame::Partial(size)) if size <= out.len() && size > cut));
            }
            let (kind, id, fields, _) = whole(&out);
            prop_assert_eq!((Request::read(kind, fields), id), (Ok(request), bytes));
        }

        #[test]
        fn replies_come_back(kind in 0..5, number in any::<u32>(), data in prop::collection::vec(any::<u8>(), 0..50)) {
            let reply = match kind {
                0 => Reply::Welcome { version: number as u16, page_size: number },
                1 => Reply::Done,
                2 => Reply::Data(&data),
                3 => Reply::Counters(&data),
                _ => Reply::Refused { reason: Reason::ALL[number as usize % 5], text: &data },
            };
            let mut out = Vec::new();
            reply.write(number, &mut out);
            let (kind, id, fields, _) = whole(&out);
            prop_assert_eq!((Reply::read(kind, fields), id), (Ok(reply), number));
        }
    }

    #[test]
    fn a_length_that_is_none_is_refused_by_its_header() {
        for length in [0, 4, u32::MAX, (LONGEST_DATA + 100) as u32] {
            assert!(frame(&length.to_le_bytes()).is_err(), "{length}");
        }
    }
}
