//! Values on PostgreSQL's wire: parameters out, columns in (manual, chapter 53 "Frontend/Backend Protocol"; the
//! binary forms are those of the types' send and receive functions).

use std::io::Write;

use crate::calendar;
use crate::value::Value;

/// Microseconds from 1970 to 2000, where PostgreSQL's timestamps begin.
const EPOCH_MICROS: i64 = 946_684_800_000_000;
/// Days from 1970 to 2000, where PostgreSQL's dates begin.
const EPOCH_DAYS: i32 = 10_957;

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
    /// Text, and every type without a form of its own: its text form is given and taken.
    Text,
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
            _ => Self::Text,
        }
    }

    const ALL: [Self; 15] = [
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
    ];

    /// Whether a column of this type is asked for in binary. Numbers of any size and JSON come as text: their
    /// binary form would only have to be turned into text again.
    pub(crate) fn binary(self) -> bool {
        !matches!(self, Self::Numeric | Self::Json | Self::Jsonb | Self::Text)
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
        Type::Bool => Value::Bool(*cell.first()? != 0),
        Type::Int2 => Value::Int(i16::from_be_bytes(cell.try_into().ok()?).into()),
        Type::Int4 => Value::Int(i32::from_be_bytes(cell.try_into().ok()?).into()),
        Type::Int8 => Value::Int(i64::from_be_bytes(cell.try_into().ok()?)),
        Type::Oid => Value::Int(u32::from_be_bytes(cell.try_into().ok()?).into()),
        Type::Float4 => Value::Float(f32::from_be_bytes(cell.try_into().ok()?).into()),
        Type::Float8 => Value::Float(f64::from_be_bytes(cell.try_into().ok()?)),
        Type::Bytea => Value::Bytes(cell),
        Type::Uuid => Value::Uuid(cell.try_into().ok()?),
        Type::Date => {
            let days = i32::from_be_bytes(cell.try_into().ok()?);
            // The extreme values stand for ±infinity and stay extreme.
            Value::Date(days.saturating_add(EPOCH_DAYS))
        }
        Type::Timestamp => {
            Value::Timestamp(i64::from_be_bytes(cell.try_into().ok()?).saturating_add(EPOCH_MICROS))
        }
        Type::Numeric | Type::Json | Type::Jsonb | Type::Text => return None,
    })
}

fn decode_text(of: Type, cell: &[u8]) -> Option<Value<'_>> {
    let text = std::str::from_utf8(cell).ok()?;
    Some(match of {
        Type::Bool => Value::Bool(text == "t"),
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid => Value::Int(text.parse().ok()?),
        Type::Float4 | Type::Float8 => Value::Float(text.parse().ok()?),
        Type::Numeric => Value::Numeric(text),
        Type::Uuid => Value::Uuid(parse_uuid(text)?),
        Type::Date => Value::Date(calendar::parse_date(text)?.try_into().ok()?),
        Type::Timestamp => Value::Timestamp(calendar::parse_timestamp(text)?),
        Type::Json | Type::Jsonb => Value::Json(cell),
        Type::Bytea | Type::Text => return None,
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
    let pairs = cell.strip_prefix(b"\\x")?.chunks_exact(2);
    pairs.map(|pair| hex_pair(pair[0], pair[1])).collect()
}

/// The value does not fit the parameter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    wanted: &'static str,
    got: String,
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} does not fit the type {}", self.got, self.wanted)
    }
}

fn misfit(of: Type, value: Value<'_>) -> Misfit {
    Misfit { wanted: of.name(), got: format!("{value:?}") }
}

/// A whole number, also when a script gives it as a float: Lua knows only one kind of number.
fn whole(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Int(number) => Some(number),
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 9.3e18 => Some(number as i64),
        _ => None,
    }
}

/// Microseconds since 1970 of a time given as itself, as a date, or as seconds.
fn micros(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Timestamp(micros) => Some(micros),
        Value::Date(days) => Some(i64::from(days) * calendar::DAY),
        Value::Int(seconds) => seconds.checked_mul(1_000_000),
        Value::Float(seconds) if seconds.abs() < 9e12 => Some((seconds * 1e6).round() as i64),
        _ => None,
    }
}

/// Encodes a parameter behind `out` in the form in which the type is cheapest; says whether that is binary.
/// Text is sent as text to any type but bytea, so that a workload can write a value as SQL would.
pub(crate) fn encode(of: Type, value: Value<'_>, out: &mut Vec<u8>) -> Result<bool, Misfit> {
    let no = |_| misfit(of, value);
    match (of, value) {
        (Type::Bool, Value::Bool(value)) => out.push(u8::from(value)),
        (Type::Int2, _) if let Some(number) = whole(value) => {
            out.extend_from_slice(&i16::try_from(number).map_err(no)?.to_be_bytes());
        }
        (Type::Int4, _) if let Some(number) = whole(value) => {
            out.extend_from_slice(&i32::try_from(number).map_err(no)?.to_be_bytes());
        }
        (Type::Int8, _) if let Some(number) = whole(value) => out.extend_from_slice(&number.to_be_bytes()),
        (Type::Oid, _) if let Some(number) = whole(value) => {
            out.extend_from_slice(&u32::try_from(number).map_err(no)?.to_be_bytes());
        }
        (Type::Float4, Value::Int(number)) => out.extend_from_slice(&(number as f32).to_be_bytes()),
        (Type::Float4, Value::Float(number)) => out.extend_from_slice(&(number as f32).to_be_bytes()),
        (Type::Float8, Value::Int(number)) => out.extend_from_slice(&(number as f64).to_be_bytes()),
        (Type::Float8, Value::Float(number)) => out.extend_from_slice(&number.to_be_bytes()),
        (Type::Bytea, Value::Bytes(bytes) | Value::Text(bytes)) => out.extend_from_slice(bytes),
        (Type::Uuid, Value::Uuid(uuid)) => out.extend_from_slice(&uuid),
        (Type::Date, _) if let Some(micros) = micros(value) => {
            let days = i32::try_from(micros.div_euclid(calendar::DAY)).map_err(no)?;
            out.extend_from_slice(&days.saturating_sub(EPOCH_DAYS).to_be_bytes());
        }
        (Type::Timestamp, _) if let Some(micros) = micros(value) => {
            out.extend_from_slice(&micros.saturating_sub(EPOCH_MICROS).to_be_bytes());
        }
        (Type::Numeric, Value::Decimal { units, scale }) => {
            numeric_binary(units, scale, out);
        }
        _ => {
            return if encode_text(of, value, out) { Ok(false) } else { Err(misfit(of, value)) };
        }
    }
    Ok(true)
}

/// Writes the text form of a value where the type takes one; `false` where it does not.
fn encode_text(of: Type, value: Value<'_>, out: &mut Vec<u8>) -> bool {
    let is_text = matches!(of, Type::Text | Type::Json | Type::Jsonb);
    let is_number = matches!(of, Type::Numeric | Type::Float4 | Type::Float8);
    match value {
        Value::Text(text) | Value::Json(text) => out.extend_from_slice(text),
        Value::Numeric(text) => out.extend_from_slice(text.as_bytes()),
        Value::Bytes(bytes) if is_text => out.extend_from_slice(bytes),
        Value::Int(_) | Value::Float(_) | Value::Decimal { .. } if is_text || is_number => {
            write_text(value, out);
        }
        Value::Bool(_) | Value::Date(_) | Value::Timestamp(_) | Value::Uuid(_) if is_text => {
            write_text(value, out);
        }
        _ => return false,
    }
    true
}

/// Writes a value as text, without quotes. Writing into a vector cannot fail.
pub(crate) fn write_text(value: Value<'_>, out: &mut Vec<u8>) {
    let _ = match value {
        Value::Null => Ok(()),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Int(value) => write!(out, "{value}"),
        Value::Float(value) => write!(out, "{value}"),
        Value::Decimal { units, scale } => write_decimal(units, scale, out),
        Value::Numeric(text) => out.write_all(text.as_bytes()),
        Value::Text(bytes) | Value::Json(bytes) => out.write_all(bytes),
        Value::Bytes(bytes) => {
            out.extend_from_slice(b"\\x");
            bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
        }
        Value::Uuid(uuid) => uuid.iter().try_for_each(|byte| write!(out, "{byte:02x}")),
        Value::Date(days) => out.write_all(calendar::format_date(days.into()).as_bytes()),
        Value::Timestamp(micros) => out.write_all(calendar::format_timestamp(micros).as_bytes()),
    };
}

fn write_decimal(units: i64, scale: u8, out: &mut Vec<u8>) -> std::io::Result<()> {
    let power = 10_u64.pow(u32::from(scale.min(18)));
    let (size, sign) = (units.unsigned_abs(), if units < 0 { "-" } else { "" });
    if scale == 0 {
        return write!(out, "{sign}{size}");
    }
    write!(out, "{sign}{}.{:0width$}", size / power, size % power, width = usize::from(scale.min(18)))
}

/// A numeric in its binary form: digits to the base of 10,000, aligned at the decimal point.
pub(crate) fn numeric_binary(units: i64, scale: u8, out: &mut Vec<u8>) {
    let scale = u32::from(scale.min(18));
    let size = u128::from(units.unsigned_abs());
    // Padded so that the digits behind the point come in whole groups of four.
    let behind = scale.div_ceil(4);
    let mut rest = size * 10_u128.pow(behind * 4 - scale);
    let mut digits = [0_u16; 12];
    let mut count = 0;
    while rest > 0 {
        digits[count] = (rest % 10_000) as u16;
        rest /= 10_000;
        count += 1;
    }
    let weight = count as i16 - behind as i16 - 1;
    let trailing = digits[..count].iter().take_while(|digit| **digit == 0).count();
    let (weight, sign) = if count == 0 { (0, 0) } else { (weight, if units < 0 { 0x4000_u16 } else { 0 }) };
    out.extend_from_slice(&((count - trailing) as i16).to_be_bytes());
    out.extend_from_slice(&weight.to_be_bytes());
    out.extend_from_slice(&sign.to_be_bytes());
    out.extend_from_slice(&(scale as u16).to_be_bytes());
    for digit in digits[trailing..count].iter().rev() {
        out.extend_from_slice(&digit.to_be_bytes());
    }
}

/// Writes a value as an SQL literal, for the simple mode. The type makes the server see a parameter as what it
/// is: a bare number would not be taken for a timestamp.
pub(crate) fn write_literal(of: Type, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let value = match (of, value) {
        (Type::Timestamp, _) => micros(value).map_or(value, Value::Timestamp),
        (Type::Date, _) => micros(value)
            .and_then(|micros| i32::try_from(micros.div_euclid(calendar::DAY)).ok())
            .map_or(value, Value::Date),
        (Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid, Value::Float(_)) => {
            Value::Int(whole(value).ok_or_else(|| misfit(of, value))?)
        }
        (Type::Bytea, Value::Text(bytes)) => Value::Bytes(bytes),
        _ => value,
    };
    if value == Value::Null {
        out.extend_from_slice(b"NULL");
        return Ok(());
    }
    let mut text = Vec::new();
    write_text(value, &mut text);
    if text.contains(&0) {
        return Err(misfit(of, value));
    }
    // E'' is read the same whatever standard_conforming_strings says.
    out.extend_from_slice(if text.contains(&b'\\') { b" E'" } else { b"'" });
    for byte in text {
        if byte == b'\'' || byte == b'\\' {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'\'');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(of: Type, value: Value<'_>) -> (bool, Vec<u8>) {
        let mut out = Vec::new();
        let binary = encode(of, value, &mut out).unwrap();
        (binary, out)
    }

    /// Reads the binary form of a numeric, as an independent check.
    fn numeric_text(bytes: &[u8]) -> String {
        let field = |at: usize| i16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let (count, weight, sign, scale) = (field(0), i32::from(field(2)), field(4), field(6) as usize);
        let digit = |place: i32| {
            let at = weight - place;
            if at < 0 || at >= i32::from(count) { 0 } else { field(8 + 2 * at as usize) }
        };
        let digits = |places: Vec<i32>| {
            places.into_iter().map(|place| format!("{:04}", digit(place))).collect::<Vec<_>>().concat()
        };
        let whole = digits((0..=weight.max(0)).rev().collect());
        let part = digits((1..=5).map(|place| -place).collect());
        let whole = whole.trim_start_matches('0');
        let sign = if sign == 0 { "" } else { "-" };
        let whole = if whole.is_empty() { "0" } else { whole };
        if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{}", &part[..scale]) }
    }

    proptest! {
        #[test]
        fn decimals_are_the_same_number_in_binary_and_in_text(units in any::<i64>(), scale in 0_u8..=18) {
            let (mut binary, mut text) = (Vec::new(), Vec::new());
            numeric_binary(units, scale, &mut binary);
            write_text(Value::Decimal { units, scale }, &mut text);
            let text = String::from_utf8(text).unwrap();
            let negative_zero = units == 0 && text.starts_with('-');
            prop_assert!(!negative_zero);
            prop_assert_eq!(numeric_text(&binary), text);
        }

        #[test]
        fn binary_values_come_back(int in any::<i64>(), float in any::<f64>(), micros in -1_000_000_000_000_000_i64..4_000_000_000_000_000, uuid in any::<[u8; 16]>(), bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let cases = [
                (Type::Int8, Value::Int(int)),
                (Type::Float8, Value::Float(float)),
                (Type::Timestamp, Value::Timestamp(micros)),
                (Type::Date, Value::Date((micros / calendar::DAY) as i32)),
                (Type::Uuid, Value::Uuid(uuid)),
                (Type::Bytea, Value::Bytes(&bytes)),
                (Type::Bool, Value::Bool(int % 2 == 0)),
            ];
            for (of, value) in cases {
                let (binary, out) = encoded(of, value);
                let back = decode(of.kind(binary), &out);
                if float.is_nan() && of == Type::Float8 {
                    prop_assert!(matches!(back, Value::Float(number) if number.is_nan()));
                } else {
                    prop_assert_eq!(back, value);
                }
            }
        }

        #[test]
        fn no_cell_breaks_the_decoder(kind in any::<u32>(), cell in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = decode(kind % 40, &cell);
            let _ = bytea_from_text(&cell);
        }
    }

    #[test]
    fn whole_floats_are_integers_and_others_are_refused() {
        assert_eq!(encoded(Type::Int4, Value::Float(7.0)), (true, vec![0, 0, 0, 7]));
        let error = encode(Type::Int4, Value::Float(7.5), &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "Float(7.5) does not fit the type integer");
        assert!(encode(Type::Int4, Value::Int(3_000_000_000), &mut Vec::new()).is_err());
        assert!(encode(Type::Int4, Value::Bool(true), &mut Vec::new()).is_err());
        assert!(encode(Type::Bool, Value::Int(1), &mut Vec::new()).is_err());
    }

    #[test]
    fn numbers_are_seconds_where_a_time_is_wanted() {
        let (_, from_number) = encoded(Type::Timestamp, Value::Float(1_700_000_000.25));
        let (_, from_time) = encoded(Type::Timestamp, Value::Timestamp(1_700_000_000_250_000));
        assert_eq!(from_number, from_time);
        assert_eq!(encoded(Type::Timestamp, Value::Text(b"now")), (false, b"now".to_vec()));
    }

    #[test]
    fn literals_cannot_be_broken_out_of() {
        let literal = |of, value| {
            let mut out = Vec::new();
            write_literal(of, value, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(literal(Type::Text, Value::Text(b"o'clock")), "'o''clock'");
        assert_eq!(literal(Type::Text, Value::Text(b"a\\'; DROP")), " E'a\\\\''; DROP'");
        assert_eq!(literal(Type::Int4, Value::Float(-3.0)), "'-3'");
        assert_eq!(literal(Type::Timestamp, Value::Int(0)), "'1970-01-01 00:00:00.000000+00'");
        assert_eq!(literal(Type::Bytea, Value::Bytes(&[1, 255])), " E'\\\\x01ff'");
        assert_eq!(literal(Type::Text, Value::Null), "NULL");
        assert!(write_literal(Type::Text, Value::Text(b"a\0b"), &mut Vec::new()).is_err());
    }

    #[test]
    fn bytea_text_is_read() {
        assert_eq!(bytea_from_text(b"\\x01ff"), Some(vec![1, 255]));
        assert_eq!(bytea_from_text(b"\\xzz"), None);
        assert_eq!(bytea_from_text(b"01ff"), None);
    }
}
