//! Values on their way to the server: as a bound parameter, as a literal in SQL, as a cell of COPY.

use std::fmt;
use std::io::Write;

use super::{Type, instant, numeric};
use crate::contract::calendar;
use crate::contract::value::{Value, write_decimal};

/// The value does not fit the parameter or column.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    wanted: &'static str,
    got: String,
    why: Why,
}

#[derive(Debug, PartialEq, Eq)]
enum Why {
    /// It is of another kind, or out of the type's range.
    Unfit,
    /// It could be sent as text, and only the binary form will do.
    OnlyText,
    /// It is a floating-point number that has more digits than it keeps.
    Rounded,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wanted, got, why } = self;
        match why {
            Why::Unfit => write!(f, "{got} does not fit the type {wanted}"),
            Why::OnlyText => write!(f, "the text {got:?} has no binary form of the type {wanted}"),
            Why::Rounded => write!(
                f,
                "{got} does not fit the type {wanted}: beyond 2^53 a number may have been rounded; write it as a text"
            ),
        }
    }
}

fn misfit(of: Type, value: Value<'_>, why: Why) -> Misfit {
    let mut got = Vec::new();
    match value {
        Value::Bytes(bytes) => got = format!("{} bytes", bytes.len()).into_bytes(),
        _ => write_text(value, &mut got),
    }
    // A text may be of any length; its beginning says which it is.
    let got = String::from_utf8_lossy(&got).chars().take(60).collect();
    Misfit { wanted: of.name(), got, why }
}

/// A whole number, also when a script gives it as a float: Lua knows only one kind of number.
fn whole(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Int(number) => Some(number),
        Value::Float(number) if number.fract() == 0.0 && number.abs() <= TWO_TO_53 => Some(number as i64),
        _ => None,
    }
}

/// Up to here a floating-point number keeps every whole number.
const TWO_TO_53: f64 = 9_007_199_254_740_992.0;

/// The value as the type takes it, the same in every statement mode. What is text is left to the server, so that
/// a workload can write a value as SQL would.
#[inline]
fn fit(of: Type, value: Value<'_>) -> Result<Value<'_>, Misfit> {
    let fitting = match (of, value) {
        (Type::Text | Type::Json | Type::Jsonb | Type::Other, Value::Bytes(bytes)) => {
            Some(Value::Text(bytes))
        }
        (Type::Bytea, Value::Text(bytes)) => Some(Value::Bytes(bytes)),
        // What is finite does not become infinite.
        (Type::Float4, Value::Float(number)) if number.is_finite() && (number as f32).is_infinite() => None,
        (Type::Numeric, Value::Float(number)) => Some(numeric::cents(number).unwrap_or(value)),
        (_, Value::Text(_) | Value::Json(_) | Value::Numeric(_))
        | (Type::Text | Type::Json | Type::Jsonb | Type::Other, _)
        | (Type::Bool, Value::Bool(_))
        | (Type::Bytea, Value::Bytes(_))
        | (Type::Uuid, Value::Uuid(_))
        | (Type::Float4 | Type::Float8, Value::Float(_) | Value::Decimal { .. })
        | (Type::Numeric, Value::Decimal { .. } | Value::Unsigned(_)) => Some(value),
        (Type::Int2, _) => whole(value).filter(|number| i16::try_from(*number).is_ok()).map(Value::Int),
        (Type::Int4, _) => whole(value).filter(|number| i32::try_from(*number).is_ok()).map(Value::Int),
        (Type::Oid, _) => whole(value).filter(|number| u32::try_from(*number).is_ok()).map(Value::Int),
        (Type::Int8, _) => whole(value).map(Value::Int),
        (Type::Float4 | Type::Float8, Value::Int(number)) => Some(Value::Float(number as f64)),
        (Type::Float4 | Type::Float8, Value::Unsigned(number)) => Some(Value::Float(number as f64)),
        (Type::Numeric, Value::Int(units)) => Some(Value::Decimal { units, scale: 0 }),
        (Type::Date, _) => {
            instant::days(value).filter(|days| instant::date_to_wire(*days).is_some()).map(Value::Date)
        }
        (Type::Timestamp, _) => instant::micros(value)
            .filter(|micros| instant::timestamp_to_wire(*micros).is_some())
            .map(Value::Timestamp),
        _ => None,
    };
    fitting.ok_or_else(|| {
        let is_rounded = |number: f64| of == Type::Int8 && number.fract() == 0.0 && number.abs() > TWO_TO_53;
        let rounded = matches!(value, Value::Float(number) if is_rounded(number));
        misfit(of, value, if rounded { Why::Rounded } else { Why::Unfit })
    })
}

/// Encodes a parameter behind `out` in the form in which the type is cheapest; says whether that is binary.
#[inline]
pub(crate) fn encode(of: Type, value: Value<'_>, out: &mut Vec<u8>) -> Result<bool, Misfit> {
    let value = fit(of, value)?;
    if binary(of, value, out) {
        return Ok(true);
    }
    text(of, value, out)?;
    Ok(false)
}

/// Writes the text form of a value that fits. No type's text holds a zero byte; nothing is written where one is.
#[inline]
fn text(of: Type, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let start = out.len();
    write_text(value, out);
    if out[start..].contains(&0) {
        out.truncate(start);
        return Err(misfit(of, value, Why::Unfit));
    }
    Ok(())
}

/// Encodes a cell of COPY's binary form, where nothing else will do.
#[inline]
pub(crate) fn encode_binary(of: Type, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let fitting = fit(of, value)?;
    if binary(of, fitting, out) {
        return Ok(());
    }
    let start = out.len();
    match (of, fitting) {
        // The text is the binary form; that of jsonb has a version before it.
        (Type::Text | Type::Json, _) => text(of, fitting, out)?,
        (Type::Jsonb, _) => {
            out.push(1);
            text(of, fitting, out)?;
        }
        (Type::Float4 | Type::Float8, Value::Decimal { .. } | Value::Numeric(_)) => {
            let number = float(fitting).ok_or_else(|| misfit(of, value, Why::Unfit))?;
            binary(of, Value::Float(number), out);
        }
        (Type::Numeric, _) => {
            write_text(fitting, out);
            let text = out.split_off(start);
            if !std::str::from_utf8(&text).is_ok_and(|text| numeric::from_text(text, out)) {
                return Err(misfit(of, value, Why::Unfit));
            }
        }
        _ => return Err(misfit(of, value, Why::OnlyText)),
    }
    Ok(())
}

fn float(value: Value<'_>) -> Option<f64> {
    let mut text = Vec::new();
    write_text(value, &mut text);
    std::str::from_utf8(&text).ok()?.parse().ok()
}

/// Writes the binary form of a value that fits; `false`, and nothing is written, where it has none or the text
/// is as good.
#[inline]
fn binary(of: Type, value: Value<'_>, out: &mut Vec<u8>) -> bool {
    match (of, value) {
        (Type::Bool, Value::Bool(value)) => out.push(u8::from(value)),
        (Type::Int2, Value::Int(number)) => out.extend_from_slice(&(number as i16).to_be_bytes()),
        (Type::Int4, Value::Int(number)) => out.extend_from_slice(&(number as i32).to_be_bytes()),
        (Type::Int8, Value::Int(number)) => out.extend_from_slice(&number.to_be_bytes()),
        (Type::Oid, Value::Int(number)) => out.extend_from_slice(&(number as u32).to_be_bytes()),
        (Type::Float4, Value::Float(number)) => out.extend_from_slice(&(number as f32).to_be_bytes()),
        (Type::Float8, Value::Float(number)) => out.extend_from_slice(&number.to_be_bytes()),
        (Type::Bytea, Value::Bytes(bytes)) => out.extend_from_slice(bytes),
        (Type::Uuid, Value::Uuid(uuid)) => out.extend_from_slice(&uuid),
        (Type::Numeric, Value::Decimal { units, scale }) => numeric::from_decimal(units, scale, out),
        (Type::Date, Value::Date(days)) => {
            out.extend_from_slice(&instant::date_to_wire(days).unwrap_or(days).to_be_bytes());
        }
        (Type::Timestamp, Value::Timestamp(micros)) => {
            out.extend_from_slice(&instant::timestamp_to_wire(micros).unwrap_or(micros).to_be_bytes());
        }
        _ => return false,
    }
    true
}

/// Writes a value as text, without quotes. Writing into a vector cannot fail.
pub(super) fn write_text(value: Value<'_>, out: &mut Vec<u8>) {
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
        Value::Uuid(uuid) => uuid.iter().enumerate().try_for_each(|(place, byte)| {
            let dash = if matches!(place, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(out, "{dash}{byte:02x}")
        }),
        Value::Date(days) => out.write_all(instant::format_date(days).as_bytes()),
        Value::Unsigned(value) => write!(out, "{value}"),
        Value::Time(micros) => calendar::write_time(micros, out),
        Value::Timestamp(micros) => out.write_all(instant::format_timestamp(micros).as_bytes()),
    };
}

/// Writes a value as an SQL literal, for the simple mode. The type makes the server see a parameter as what it
/// is: a bare number would not be taken for a timestamp.
pub(crate) fn write_literal(of: Type, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    if value == Value::Null {
        out.extend_from_slice(b"NULL");
        return Ok(());
    }
    let mut plain = Vec::new();
    text(of, fit(of, value)?, &mut plain)?;
    // E'' is read the same whatever standard_conforming_strings says.
    out.extend_from_slice(if plain.contains(&b'\\') { b" E'" } else { b"'" });
    for byte in plain {
        if byte == b'\'' || byte == b'\\' {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'\'');
    Ok(())
}

/// Writes a cell of COPY's text form (manual, COPY, "Text Format").
pub(crate) fn write_copy_text(of: Type, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    if value == Value::Null {
        out.extend_from_slice(b"\\N");
        return Ok(());
    }
    let mut plain = Vec::new();
    text(of, fit(of, value)?, &mut plain)?;
    for byte in plain {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            _ => out.push(byte),
        }
    }
    Ok(())
}
