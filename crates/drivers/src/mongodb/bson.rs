//! BSON (<https://bsonspec.org/spec.html>) where it lies: elements are written behind one another, and read without a copy.

use super::decimal;
use super::extended;
use super::wire::garbage;
use crate::contract::cells;
use crate::contract::error::Error;
use crate::contract::rows::Rows;
use crate::contract::value::Value;

/// What an element is.
pub(super) mod kind {
    pub(in crate::mongodb) const DOUBLE: u8 = 0x01;
    pub(in crate::mongodb) const TEXT: u8 = 0x02;
    pub(in crate::mongodb) const DOCUMENT: u8 = 0x03;
    pub(in crate::mongodb) const ARRAY: u8 = 0x04;
    pub(in crate::mongodb) const BINARY: u8 = 0x05;
    pub(in crate::mongodb) const UNDEFINED: u8 = 0x06;
    pub(in crate::mongodb) const OBJECT_ID: u8 = 0x07;
    pub(in crate::mongodb) const BOOL: u8 = 0x08;
    pub(in crate::mongodb) const DATE: u8 = 0x09;
    pub(in crate::mongodb) const NULL: u8 = 0x0A;
    pub(in crate::mongodb) const REGEX: u8 = 0x0B;
    pub(in crate::mongodb) const POINTER: u8 = 0x0C;
    pub(in crate::mongodb) const CODE: u8 = 0x0D;
    pub(in crate::mongodb) const SYMBOL: u8 = 0x0E;
    pub(in crate::mongodb) const SCOPED_CODE: u8 = 0x0F;
    pub(in crate::mongodb) const INT32: u8 = 0x10;
    pub(in crate::mongodb) const TIMESTAMP: u8 = 0x11;
    pub(in crate::mongodb) const INT64: u8 = 0x12;
    pub(in crate::mongodb) const DECIMAL: u8 = 0x13;
    pub(in crate::mongodb) const MIN_KEY: u8 = 0xFF;
    pub(in crate::mongodb) const MAX_KEY: u8 = 0x7F;
}

/// Subtypes of binary values.
const GENERIC: u8 = 0;
const UUID: u8 = 4;

/// The shortest document: its length and its end.
const SHORTEST: usize = 5;
const MICROS_A_DAY: i64 = 86_400_000_000;

/// Begins a document: give what comes back to [`end`].
#[inline]
pub(super) fn begin(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; 4]);
    out.len() - 4
}

/// Ends a document.
#[inline]
pub(super) fn end(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Writes an element up to its value.
#[inline]
pub(super) fn put_head(out: &mut Vec<u8>, kind: u8, name: &str) {
    out.push(kind);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
}

/// Writes a text, which is UTF-8.
#[inline]
pub(super) fn put_text(out: &mut Vec<u8>, name: &str, text: &[u8]) {
    put_head(out, kind::TEXT, name);
    out.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
    out.extend_from_slice(text);
    out.push(0);
}

/// Writes a whole number, in 32 bits where it fits, as other drivers do.
#[inline]
pub(super) fn put_int(out: &mut Vec<u8>, name: &str, number: i64) {
    match i32::try_from(number) {
        Ok(number) => {
            put_head(out, kind::INT32, name);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Err(_) => put_long(out, name, number),
    }
}

/// Writes a whole number in 64 bits, which the numbers of cursors have.
pub(super) fn put_long(out: &mut Vec<u8>, name: &str, number: i64) {
    put_head(out, kind::INT64, name);
    out.extend_from_slice(&number.to_le_bytes());
}

pub(super) fn put_double(out: &mut Vec<u8>, name: &str, number: f64) {
    put_head(out, kind::DOUBLE, name);
    out.extend_from_slice(&number.to_le_bytes());
}

pub(super) fn put_bool(out: &mut Vec<u8>, name: &str, value: bool) {
    put_head(out, kind::BOOL, name);
    out.push(u8::from(value));
}

pub(super) fn put_binary(out: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    put_bytes(out, name, GENERIC, bytes);
}

fn put_bytes(out: &mut Vec<u8>, name: &str, subtype: u8, bytes: &[u8]) {
    put_head(out, kind::BINARY, name);
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.push(subtype);
    out.extend_from_slice(bytes);
}

/// Milliseconds since 1970.
fn put_date(out: &mut Vec<u8>, name: &str, millis: i64) {
    put_head(out, kind::DATE, name);
    out.extend_from_slice(&millis.to_le_bytes());
}

/// Writes a document whose elements `write` writes.
#[inline]
pub(super) fn put_document<T>(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    put_nested(out, kind::DOCUMENT, name, write)
}

/// Writes an array of one document.
#[inline]
pub(super) fn put_array_of_one<T>(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    put_nested(out, kind::ARRAY, name, |out| put_document(out, "0", write))
}

pub(super) fn put_nested<T>(
    out: &mut Vec<u8>,
    of: u8,
    name: &str,
    write: impl FnOnce(&mut Vec<u8>) -> T,
) -> T {
    put_head(out, of, name);
    let start = begin(out);
    let written = write(out);
    end(out, start);
    written
}

/// Writes a value of a workload. The error says why it has no place here.
#[inline]
pub(super) fn put_value(out: &mut Vec<u8>, name: &str, value: Value<'_>) -> Result<(), String> {
    match value {
        Value::Text(text) if std::str::from_utf8(text).is_ok() => put_text(out, name, text),
        Value::Text(_) => return Err("MongoDB keeps UTF-8 here".to_owned()),
        Value::Int(number) | Value::Time(number) => put_int(out, name, number),
        Value::Null => put_head(out, kind::NULL, name),
        Value::Bool(value) => put_bool(out, name, value),
        Value::Float(number) => put_double(out, name, number),
        Value::Unsigned(number) => put_decimal(out, name, decimal::encode(false, number.into(), 0)),
        Value::Decimal { units, scale } => {
            let size = units.unsigned_abs().into();
            put_decimal(out, name, decimal::encode(units < 0, size, -i32::from(scale)));
        }
        Value::Numeric(text) => {
            let found = decimal::parse(text).ok_or("it is no decimal number of at most 34 digits")?;
            put_decimal(out, name, found);
        }
        Value::Json(text) => return extended::put_json(out, name, text),
        Value::Bytes(bytes) => put_binary(out, name, bytes),
        Value::Uuid(bytes) => put_bytes(out, name, UUID, &bytes),
        Value::Date(days) => put_date(out, name, i64::from(days) * (MICROS_A_DAY / 1000)),
        Value::Timestamp(micros) => put_date(out, name, micros.div_euclid(1000)),
    }
    Ok(())
}

fn put_decimal(out: &mut Vec<u8>, name: &str, bytes: [u8; 16]) {
    put_head(out, kind::DECIMAL, name);
    out.extend_from_slice(&bytes);
}

/// An element as it lies in its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element<'a> {
    pub(super) kind: u8,
    pub(super) name: &'a [u8],
    /// The value's bytes.
    pub(super) body: &'a [u8],
}

/// The first bytes as a fixed number of them; zeros where there are fewer.
pub(super) fn fixed<const N: usize>(body: &[u8]) -> [u8; N] {
    body.first_chunk().copied().unwrap_or([0; N])
}

impl<'a> Element<'a> {
    /// The text, if it is one.
    pub(super) fn text(&self) -> Option<&'a [u8]> {
        match self.kind {
            kind::TEXT | kind::CODE | kind::SYMBOL => self.body.get(4..self.body.len() - 1),
            _ => None,
        }
    }

    /// The whole number, if it is one: servers send some as floating-point numbers.
    pub(super) fn int(&self) -> Option<i64> {
        match self.kind {
            kind::INT32 => Some(i32::from_le_bytes(fixed(self.body)).into()),
            kind::INT64 => Some(i64::from_le_bytes(fixed(self.body))),
            kind::DOUBLE => Some(f64::from_le_bytes(fixed(self.body)) as i64),
            _ => None,
        }
    }

    /// Whether it is true: `1`, `1.0` and `true` are.
    pub(super) fn is_true(&self) -> bool {
        if self.kind == kind::BOOL { self.body == [1] } else { self.int().is_some_and(|number| number != 0) }
    }

    /// The bytes of a document or an array.
    pub(super) fn document(&self) -> Option<&'a [u8]> {
        matches!(self.kind, kind::DOCUMENT | kind::ARRAY).then_some(self.body)
    }

    /// The bytes of a binary value.
    pub(super) fn binary(&self) -> Option<&'a [u8]> {
        (self.kind == kind::BINARY).then(|| &self.body[5..])
    }

    /// Adds it to the newest row, as the value that it is; what no value of a workload is, as Extended JSON.
    #[inline]
    pub(super) fn push(&self, rows: &mut Rows, scratch: &mut Vec<u8>) -> Result<(), Error> {
        let value = match self.kind {
            kind::TEXT | kind::SYMBOL | kind::CODE => Value::Text(self.text().unwrap_or_default()),
            kind::INT32 | kind::INT64 => Value::Int(self.int().unwrap_or_default()),
            kind::DOUBLE => Value::Float(f64::from_le_bytes(fixed(self.body))),
            kind::NULL | kind::UNDEFINED => Value::Null,
            kind::BOOL => Value::Bool(self.body == [1]),
            // The furthest dates have no microseconds of 64 bits.
            kind::DATE => Value::Timestamp(i64::from_le_bytes(fixed(self.body)).saturating_mul(1000)),
            kind::BINARY if self.body[4] == UUID && self.body.len() == 21 => {
                Value::Uuid(fixed(&self.body[5..]))
            }
            kind::BINARY => Value::Bytes(&self.body[5..]),
            kind::DECIMAL => decimal::value(fixed(self.body), scratch),
            _ => {
                scratch.clear();
                extended::write(self, scratch, 0)?;
                let plain = scratch.strip_prefix(b"{\"$oid\":\"").and_then(|rest| rest.strip_suffix(b"\"}"));
                plain.map_or(Value::Json(scratch), Value::Text)
            }
        };
        cells::push(value, rows);
        Ok(())
    }
}

/// The element of a name, if the document has one.
pub(super) fn find<'a>(document: &'a [u8], name: &str) -> Result<Option<Element<'a>>, Error> {
    let mut elements = Elements::of(document)?;
    while let Some(element) = elements.next()? {
        if element.name == name.as_bytes() {
            return Ok(Some(element));
        }
    }
    Ok(None)
}

/// The elements of a document, one after another.
#[derive(Clone)]
pub(super) struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    /// Those of a document that is there as a whole.
    #[inline]
    pub(super) fn of(document: &'a [u8]) -> Result<Self, Error> {
        match document_size(document)? {
            size if size == document.len() => Ok(Self { rest: &document[4..size - 1] }),
            _ => Err(garbage("a document of another length")),
        }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Element<'a>>, Error> {
        let Some((kind, rest)) = self.rest.split_first() else { return Ok(None) };
        let (name, rest) = letters(rest)?;
        let size = value_size(*kind, rest)?;
        let (body, rest) =
            rest.split_at_checked(size).ok_or_else(|| garbage("a value beyond its document"))?;
        self.rest = rest;
        Ok(Some(Element { kind: *kind, name, body }))
    }
}

/// The letters before a zero, and what follows that.
#[inline]
fn letters(bytes: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let end = bytes.iter().position(|byte| *byte == 0).ok_or_else(|| garbage("a name without an end"))?;
    Ok((&bytes[..end], &bytes[end + 1..]))
}

/// The length that stands at the beginning.
fn length(bytes: &[u8]) -> Result<usize, Error> {
    let length = bytes.first_chunk().map(|length| i32::from_le_bytes(*length));
    length.and_then(|length| usize::try_from(length).ok()).ok_or_else(|| garbage("a length"))
}

/// The length of the document that begins here and is there as a whole.
#[inline]
pub(super) fn document_size(bytes: &[u8]) -> Result<usize, Error> {
    let size = length(bytes)?;
    if size < SHORTEST || bytes.get(size - 1) != Some(&0) {
        return Err(garbage("a document without an end"));
    }
    Ok(size)
}

/// How many bytes the value has that begins here.
#[inline]
fn value_size(kind: u8, bytes: &[u8]) -> Result<usize, Error> {
    Ok(match kind {
        kind::TEXT | kind::CODE | kind::SYMBOL => text_size(bytes)?,
        kind::INT32 => 4,
        kind::DOUBLE | kind::DATE | kind::TIMESTAMP | kind::INT64 => 8,
        kind::NULL | kind::UNDEFINED | kind::MIN_KEY | kind::MAX_KEY => 0,
        kind::DOCUMENT | kind::ARRAY => document_size(bytes)?,
        kind::BINARY => length(bytes)?.saturating_add(5),
        kind::OBJECT_ID => 12,
        kind::BOOL => 1,
        kind::REGEX => {
            let (pattern, rest) = letters(bytes)?;
            pattern.len() + letters(rest)?.0.len() + 2
        }
        kind::POINTER => text_size(bytes)? + 12,
        kind::SCOPED_CODE => length(bytes)?.max(4),
        kind::DECIMAL => 16,
        _ => return Err(garbage("a value of no known type")),
    })
}

fn text_size(bytes: &[u8]) -> Result<usize, Error> {
    let size = length(bytes)?.saturating_add(4);
    if size == 4 || bytes.get(size - 1) != Some(&0) {
        return Err(garbage("a text without an end"));
    }
    Ok(size)
}
