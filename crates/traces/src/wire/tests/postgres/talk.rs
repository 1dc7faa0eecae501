//! Messages of `PostgreSQL`'s protocol.

use crate::wire::tests::Talk;

impl Talk {
    /// A connection that stands.
    pub(super) fn begun() -> Self {
        let opened = opening(3 << 16, &["user", "u", "database", "d"]);
        let greeted = [message(b'R', &[0; 4]), message(b'K', &[7; 8]), ready(b'I')].concat();
        Self::default()
            .client(&opened)
            .server(&message(b'R', &[0, 0, 0, 10]))
            .client(&message(b'p', b"x"))
            .server(&greeted)
    }
}

pub(super) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn texts(texts: &[&str]) -> Vec<u8> {
    texts.iter().flat_map(|text| [text.as_bytes(), b"\0"].concat()).collect()
}

/// What a client sends before anything else.
pub(super) fn opening(code: u32, parameters: &[&str]) -> Vec<u8> {
    let body = if parameters.is_empty() { Vec::new() } else { [texts(parameters), vec![0]].concat() };
    [&(body.len() as u32 + 8).to_be_bytes()[..], &code.to_be_bytes(), &body].concat()
}

pub(super) fn query(sql: &str) -> Vec<u8> {
    message(b'Q', &texts(&[sql]))
}

fn listed(types: &[u32]) -> Vec<u8> {
    let types_bytes = types.iter().flat_map(|oid| oid.to_be_bytes());
    (types.len() as u16).to_be_bytes().into_iter().chain(types_bytes).collect()
}

pub(super) fn parse(name: &str, sql: &str, types: &[u32]) -> Vec<u8> {
    message(b'P', &[texts(&[name, sql]), listed(types)].concat())
}

/// Binds values in a format, of which an empty list stands for text.
pub(super) fn bind(portal: &str, statement: &str, formats: &[u16], values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut body = texts(&[portal, statement]);
    body.extend((formats.len() as u16).to_be_bytes());
    body.extend(formats.iter().flat_map(|format| format.to_be_bytes()));
    body.extend((values.len() as u16).to_be_bytes());
    for value in values {
        body.extend(value.map_or(-1, |value| value.len() as i32).to_be_bytes());
        body.extend(value.unwrap_or_default());
    }
    body.extend([0, 0]);
    message(b'B', &body)
}

pub(super) fn execute(portal: &str, most: u32) -> Vec<u8> {
    message(b'E', &[texts(&[portal]), most.to_be_bytes().to_vec()].concat())
}

pub(super) fn describe(kind: &str, name: &str) -> Vec<u8> {
    message(b'D', &texts(&[&format!("{kind}{name}")]))
}

pub(super) fn close(kind: &str, name: &str) -> Vec<u8> {
    message(b'C', &texts(&[&format!("{kind}{name}")]))
}

pub(super) fn described(types: &[u32]) -> Vec<u8> {
    message(b't', &listed(types))
}

pub(super) fn done(tag: &str) -> Vec<u8> {
    message(b'C', &texts(&[tag]))
}

pub(super) fn failed(code: &str) -> Vec<u8> {
    let fields = ["SERROR".to_owned(), format!("C{code}"), "Mit failed".to_owned(), String::new()];
    message(b'E', &texts(&fields.each_ref().map(String::as_str)))
}

pub(super) fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

pub(super) const SYNC: &[u8] = b"S\0\0\0\x04";
pub(super) const PARSED: &[u8] = b"1\0\0\0\x04";
pub(super) const BOUND: &[u8] = b"2\0\0\0\x04";
pub(super) const CLOSED: &[u8] = b"3\0\0\0\x04";
pub(super) const SUSPENDED: &[u8] = b"s\0\0\0\x04";
pub(super) const EMPTY: &[u8] = b"I\0\0\0\x04";
pub(super) const NO_DATA: &[u8] = b"n\0\0\0\x04";
pub(super) const ROW: &[u8] = b"D\0\0\0\x0b\0\x01\0\0\0\x011";
pub(super) const COPY_IN: &[u8] = b"G\0\0\0\x07\0\0\0";
pub(super) const COPY_DATA: &[u8] = b"d\0\0\0\x061\n";
pub(super) const COPY_DONE: &[u8] = b"c\0\0\0\x04";
