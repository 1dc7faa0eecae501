//! Values on PostgreSQL's wire: parameters out, columns in (manual, chapter 53 "Frontend/Backend Protocol"; the
//! binary forms are those of the types' send and receive functions).

mod encode;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzzing;
mod instant;
mod numeric;
mod shown;
#[cfg(test)]
mod tests;

use crate::contract::value::Value;

pub(crate) use encode::{Misfit, encode, encode_binary, write_copy_text, write_literal};
pub use shown::shown;

/// What a type's values look like on the wire, as far as this driver tells types apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Type {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Numeric,
    Bytea,
    Uuid,
    Date,
    Timestamp,
    Json,
    Jsonb,
    /// Text, whose binary form is the text itself.
    Text,
    /// Every type without a form of its own: its text form is given and taken.
    Other,
}

impl Type {
    /// The type of an object identifier (`pg_type.dat`).
    pub(crate) fn of(oid: u32) -> Self {
        match oid {
            16 => Self::Bool,
            21 => Self::Int2,
            23 => Self::Int4,
            20 => Self::Int8,
            26 => Self::Oid,
            700 => Self::Float4,
            701 => Self::Float8,
            1700 => Self::Numeric,
            17 => Self::Bytea,
            2950 => Self::Uuid,
            1082 => Self::Date,
            1114 | 1184 => Self::Timestamp,
            114 => Self::Json,
            3802 => Self::Jsonb,
            // text, varchar, char(n), name, and what has no type yet.
            25 | 1043 | 1042 | 19 | 705 => Self::Text,
            _ => Self::Other,
        }
    }

    const ALL: [Self; 16] = [
        Self::Bool,
        Self::Int2,
        Self::Int4,
        Self::Int8,
        Self::Oid,
        Self::Float4,
        Self::Float8,
        Self::Numeric,
        Self::Bytea,
        Self::Uuid,
        Self::Date,
        Self::Timestamp,
        Self::Json,
        Self::Jsonb,
        Self::Text,
        Self::Other,
    ];

    /// Whether a column of this type is asked for in binary. Numbers of any size and JSON come as text: their
    /// binary form would only have to be turned into text again.
    pub(crate) fn binary(self) -> bool {
        !matches!(self, Self::Numeric | Self::Json | Self::Jsonb | Self::Text | Self::Other)
    }

    /// The column's kind for [`decode`].
    pub(crate) fn kind(self, binary: bool) -> u32 {
        self as u32 * 2 + u32::from(binary)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bool => "boolean",
            Self::Int2 => "smallint",
            Self::Int4 => "integer",
            Self::Int8 => "bigint",
            Self::Oid => "oid",
            Self::Float4 => "real",
            Self::Float8 => "double precision",
            Self::Numeric => "numeric",
            Self::Bytea => "bytea",
            Self::Uuid => "uuid",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
            Self::Json => "json",
            Self::Jsonb => "jsonb",
            Self::Text => "text",
            Self::Other => "of the column",
        }
    }
}

/// Decodes a cell. Bytes that are not what the type should be are given as text, so that nothing is lost.
pub(crate) fn decode(kind: u32, cell: &[u8]) -> Value<'_> {
    let Some(&of) = Type::ALL.get(kind as usize / 2) else { return Value::Text(cell) };
    let decoded = if kind % 2 == 1 { decode_binary(of, cell) } else { decode_text(of, cell) };
    decoded.unwrap_or(Value::Text(cell))
}

fn decode_binary(of: Type, cell: &[u8]) -> Option<Value<'_>> {
    Some(match of {
        Type::Bool => match cell {
            [0] => Value::Bool(false),
            [1] => Value::Bool(true),
            _ => return None,
        },
        Type::Int2 => Value::Int(i16::from_be_bytes(cell.try_into().ok()?).into()),
        Type::Int4 => Value::Int(i32::from_be_bytes(cell.try_into().ok()?).into()),
        Type::Int8 => Value::Int(i64::from_be_bytes(cell.try_into().ok()?)),
        Type::Oid => Value::Int(u32::from_be_bytes(cell.try_into().ok()?).into()),
        Type::Float4 => Value::Float(f32::from_be_bytes(cell.try_into().ok()?).into()),
        Type::Float8 => Value::Float(f64::from_be_bytes(cell.try_into().ok()?)),
        Type::Bytea => Value::Bytes(cell),
        Type::Uuid => Value::Uuid(cell.try_into().ok()?),
        Type::Date => Value::Date(instant::date_from_wire(i32::from_be_bytes(cell.try_into().ok()?))),
        Type::Timestamp => {
            Value::Timestamp(instant::timestamp_from_wire(i64::from_be_bytes(cell.try_into().ok()?)))
        }
        Type::Numeric | Type::Json | Type::Jsonb | Type::Text | Type::Other => return None,
    })
}

fn decode_text(of: Type, cell: &[u8]) -> Option<Value<'_>> {
    let text = std::str::from_utf8(cell).ok()?;
    Some(match of {
        Type::Bool => match text {
            "f" => Value::Bool(false),
            "t" => Value::Bool(true),
            _ => return None,
        },
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid => Value::Int(text.parse().ok()?),
        // By way of its own size, as in binary: 0.1 is another number in 32 bits than in 64.
        Type::Float4 => Value::Float(text.parse::<f32>().ok()?.into()),
        Type::Float8 => Value::Float(text.parse().ok()?),
        Type::Numeric => Value::Numeric(text),
        Type::Uuid => Value::Uuid(parse_uuid(text)?),
        Type::Date => Value::Date(instant::parse_date(text)?),
        Type::Timestamp => Value::Timestamp(instant::parse_timestamp(text)?),
        Type::Json | Type::Jsonb => Value::Json(cell),
        Type::Bytea | Type::Text | Type::Other => return None,
    })
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let mut digits = text.bytes().filter(|byte| *byte != b'-');
    let mut uuid = [0; 16];
    for byte in &mut uuid {
        *byte = hex_pair(digits.next()?, digits.next()?)?;
    }
    digits.next().is_none().then_some(uuid)
}

fn hex_pair(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(high)? * 16 + digit(low)?) as u8)
}

/// The bytes of a bytea in its text form `\x…`; `None` where it is not in that form.
pub(crate) fn bytea_from_text(cell: &[u8]) -> Option<Vec<u8>> {
    let (pairs, odd) = cell.strip_prefix(b"\\x")?.as_chunks::<2>();
    if !odd.is_empty() {
        return None;
    }
    pairs.iter().map(|pair| hex_pair(pair[0], pair[1])).collect()
}
