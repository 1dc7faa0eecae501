//! Messages of the protocol of `MySQL` and `MariaDB`.

use crate::wire::tests::Talk;

/// Capabilities: a database, version 4.1, lengths of one byte; and the end of rows as `OK_Packet`.
pub(super) const PLAIN: u32 = 1 | 1 << 3 | 1 << 9 | 1 << 15;
pub(super) const MODERN: u32 = PLAIN | 1 << 24;

impl Talk {
    /// A connection of which client and server can do this.
    pub(super) fn logged_in(capabilities: u32, more: u32) -> Self {
        Self::default()
            .server(&greeting(capabilities, more))
            .client(&answer(capabilities, more))
            .server(&packet(2, b"\xfecaching_sha2_password\0nonce"))
            .client(&packet(3, b"proof"))
            .server(&packet(4, b"\x01\x03"))
            .server(&packet(5, &ok_body(0, 0, 2, b"")))
    }

    /// One of `MySQL`'s clients.
    pub(super) fn modern() -> Self {
        Self::logged_in(MODERN, 0)
    }
}

pub(super) fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    let [low, middle, high, _] = (body.len() as u32).to_le_bytes();
    [&[low, middle, high, sequence][..], body].concat()
}

pub(super) fn greeting(capabilities: u32, more: u32) -> Vec<u8> {
    let [a, b, c, d] = capabilities.to_le_bytes();
    let fixed = [&[7, 0, 0, 0][..], b"abcdefgh\0", &[a, b, 45, 2, 0, c, d, 21], &[0; 6], &more.to_le_bytes()];
    packet(0, &[&b"\x0a10.11.8-MariaDB\0"[..], &fixed.concat(), b"ijklmnopqrst\0plugin\0"].concat())
}

pub(super) fn answer(capabilities: u32, more: u32) -> Vec<u8> {
    let settings = [&capabilities.to_le_bytes()[..], &[0; 4], &[45], &[0; 19], &more.to_le_bytes()].concat();
    packet(1, &[&settings[..], b"me\0\x03abcd\0plugin\0"].concat())
}

pub(super) fn command(kind: u8, body: &[u8]) -> Vec<u8> {
    packet(0, &[&[kind][..], body].concat())
}

pub(super) fn query(sql: &str) -> Vec<u8> {
    command(3, sql.as_bytes())
}

pub(super) fn prepare(sql: &str) -> Vec<u8> {
    command(0x16, sql.as_bytes())
}

/// An execution, with the types of its parameters if they are sent.
pub(super) fn execute(number: u32, nulls: u8, types: Option<&[u8]>, values: &[u8]) -> Vec<u8> {
    let bound = types.map_or(vec![0], |types| [&[1], types].concat());
    let body = [&number.to_le_bytes()[..], &[0, 1, 0, 0, 0, nulls], &bound, values].concat();
    command(0x17, &body)
}

/// An execution of a statement without parameters.
pub(super) fn run(number: u32, cursor: u8) -> Vec<u8> {
    command(0x17, &[&number.to_le_bytes()[..], &[cursor, 1, 0, 0, 0]].concat())
}

pub(super) fn of(kind: u8, number: u32) -> Vec<u8> {
    command(kind, &number.to_le_bytes())
}

fn ok_body(mark: u8, rows: u8, status: u16, info: &[u8]) -> Vec<u8> {
    [&[mark, rows, 0][..], &status.to_le_bytes(), &[0, 0], info].concat()
}

/// So many rows were changed.
pub(super) fn done(rows: u8) -> Vec<u8> {
    packet(1, &ok_body(0, rows, 2, b""))
}

pub(super) fn told(rows: u8, info: &str) -> Vec<u8> {
    packet(1, &ok_body(0, rows, 2, info.as_bytes()))
}

/// The end of rows; a status of 8 is that another result follows, 64 that there is a cursor.
pub(super) fn end(status: u16) -> Vec<u8> {
    packet(5, &ok_body(0xfe, 0, status, b""))
}

pub(super) fn eof(status: u16) -> Vec<u8> {
    packet(5, &[&[0xfe, 0, 0][..], &status.to_le_bytes()].concat())
}

pub(super) fn failed(number: u16) -> Vec<u8> {
    packet(1, &[&[0xff][..], &number.to_le_bytes(), b"#42000no"].concat())
}

pub(super) fn prepared(number: u32, columns: u8, places: u8) -> Vec<u8> {
    let fixed = [&[0][..], &number.to_le_bytes(), &[columns, 0, places, 0, 0, 0, 0, 1]];
    packet(1, &fixed.concat())
}

/// What describes a column or a parameter: nothing of it is looked at.
pub(super) const DEFINITION: &[u8] = b"\x05\0\0\x02\x03def?";
/// A row of one text, and one of the binary form.
pub(super) const ROW: &[u8] = b"\x02\0\0\x03\x011";
pub(super) const BINARY: &[u8] = b"\x03\0\0\x03\0\0\x01";
/// A result of one column begins.
pub(super) const ONE: &[u8] = b"\x01\0\0\x01\x01";
