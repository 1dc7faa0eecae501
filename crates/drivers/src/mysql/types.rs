//! Values on MySQL's wire: parameters out, columns in ("Binary Protocol Resultset", "Text Resultset Row").

mod encode;
mod instant;
mod literal;
mod rows;
#[cfg(test)]
mod tests;

use crate::contract::rows::{Column, Columns};
use crate::contract::value::Value;
use crate::mysql::wire::Definition;

pub(crate) use encode::{Misfit, encode, write_cell, write_literal};
pub use literal::{literal, text_literal};
pub(crate) use rows::{push_binary_row, push_text_row};

/// Types of columns and parameters ("`enum_field_types`").
pub(crate) mod field {
    pub(crate) const DECIMAL: u8 = 0x00;
    pub(crate) const TINY: u8 = 0x01;
    pub(crate) const SHORT: u8 = 0x02;
    pub(crate) const LONG: u8 = 0x03;
    pub(crate) const FLOAT: u8 = 0x04;
    pub(crate) const DOUBLE: u8 = 0x05;
    pub(crate) const NULL: u8 = 0x06;
    pub(crate) const TIMESTAMP: u8 = 0x07;
    pub(crate) const LONGLONG: u8 = 0x08;
    pub(crate) const INT24: u8 = 0x09;
    pub(crate) const DATE: u8 = 0x0a;
    pub(crate) const TIME: u8 = 0x0b;
    pub(crate) const DATETIME: u8 = 0x0c;
    pub(crate) const YEAR: u8 = 0x0d;
    pub(crate) const BIT: u8 = 0x10;
    pub(crate) const JSON: u8 = 0xf5;
    pub(crate) const NEWDECIMAL: u8 = 0xf6;
    pub(crate) const BLOB: u8 = 0xfc;
    pub(crate) const VAR_STRING: u8 = 0xfd;
}

/// The column has no sign ("`UNSIGNED_FLAG`").
const FLAG_UNSIGNED: u16 = 1 << 5;
/// The character set of bytes.
const CHARSET_BINARY: u16 = 63;

/// A column's kind for [`decode`]: its type, and these flags.
const UNSIGNED: u32 = 1 << 8;
/// Its characters are bytes.
const BINARY: u32 = 1 << 9;
/// Its cells are text, whatever the type.
const TEXT: u32 = 1 << 10;

/// The kind of a column, whose cells come as text or in binary.
pub(crate) fn kind(definition: &Definition<'_>, text: bool) -> u32 {
    let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
    u32::from(definition.kind)
        | flag(definition.flags & FLAG_UNSIGNED != 0, UNSIGNED)
        | flag(definition.charset == CHARSET_BINARY, BINARY)
        | flag(text, TEXT)
}

/// The columns of a result as the store of rows keeps them.
pub(crate) fn columns<'a>(definitions: impl Iterator<Item = Definition<'a>>, text: bool) -> Columns {
    let column = |definition: Definition<'_>| Column {
        name: String::from_utf8_lossy(definition.name).into(),
        kind: kind(&definition, text),
    };
    Columns { columns: definitions.map(column).collect(), decode, any_name: false }
}

/// Decodes a cell as the store of rows keeps it. Bytes that are not what the type should be are given as text, so that
/// nothing is lost.
pub(crate) fn decode(kind: u32, cell: &[u8]) -> Value<'_> {
    let decoded = match kind as u8 {
        field::TINY | field::SHORT | field::LONG | field::INT24 | field::LONGLONG | field::YEAR => {
            if kind & TEXT == 0 { integer(kind, cell) } else { None }.or_else(|| number(cell))
        }
        field::BIT => bits(cell),
        field::FLOAT if kind & TEXT != 0 => {
            // By way of its own size, as in binary: 0.1 is another number in 32 bits than in 64.
            text(cell).and_then(|text| text.parse::<f32>().ok()).map(|number| Value::Float(number.into()))
        }
        field::DOUBLE if kind & TEXT != 0 => text(cell).and_then(|text| text.parse().ok()).map(Value::Float),
        field::FLOAT => cell.try_into().ok().map(|cell| Value::Float(f32::from_le_bytes(cell).into())),
        field::DOUBLE => cell.try_into().ok().map(|cell| Value::Float(f64::from_le_bytes(cell))),
        field::DECIMAL | field::NEWDECIMAL => text(cell).map(Value::Numeric),
        field::DATE => instant::date(cell).map(Value::Date),
        field::DATETIME | field::TIMESTAMP => instant::timestamp(cell).map(Value::Timestamp),
        field::JSON => Some(Value::Json(cell)),
        field::TIME => instant::time(cell, kind & TEXT != 0).map(Value::Time),
        _ if kind & BINARY != 0 => Some(Value::Bytes(cell)),
        _ => None,
    };
    decoded.unwrap_or(Value::Text(cell))
}

fn text(cell: &[u8]) -> Option<&str> {
    std::str::from_utf8(cell).ok()
}

/// A number given as digits; one that does not fit 64 bits with a sign is still exact.
fn number(cell: &[u8]) -> Option<Value<'_>> {
    let digits = text(cell)?;
    let is_number = digits.strip_prefix('-').unwrap_or(digits).bytes().all(|byte| byte.is_ascii_digit());
    if digits.is_empty() || !is_number {
        return None;
    }
    let unsigned = || digits.parse().map_or(Value::Numeric(digits), Value::Unsigned);
    Some(digits.parse().map_or_else(|_| unsigned(), Value::Int))
}

/// An integer in binary.
#[inline]
fn integer(kind: u32, cell: &[u8]) -> Option<Value<'_>> {
    let unsigned = kind & UNSIGNED != 0;
    Some(Value::Int(match *cell {
        [byte] if unsigned => byte.into(),
        [byte] => (byte as i8).into(),
        [a, b] if unsigned => u16::from_le_bytes([a, b]).into(),
        [a, b] => i16::from_le_bytes([a, b]).into(),
        [a, b, c, d] if unsigned => u32::from_le_bytes([a, b, c, d]).into(),
        [a, b, c, d] => i32::from_le_bytes([a, b, c, d]).into(),
        _ if unsigned => return Some(Value::whole(u64::from_le_bytes(cell.try_into().ok()?))),
        _ => i64::from_le_bytes(cell.try_into().ok()?),
    }))
}

/// The bits of a BIT column as a number, the first byte being the highest.
fn bits(cell: &[u8]) -> Option<Value<'_>> {
    if cell.is_empty() || cell.len() > 8 {
        return None;
    }
    Some(Value::whole(cell.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte))))
}
