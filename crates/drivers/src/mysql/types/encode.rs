//! Values on their way to the server: as a parameter in binary, as a literal in SQL, as a cell of LOAD DATA.
//!
//! The server converts a value to what the statement needs, so that only such values are refused here as MySQL does
//! not have at all.

use std::fmt;
use std::io::Write;

use super::{field, instant};
use crate::contract::value::{Value, write_decimal};
use crate::mysql::wire::put_string;

/// A value that MySQL does not have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    got: String,
    why: &'static str,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.got, self.why)
    }
}

#[cold]
fn misfit(value: Value<'_>) -> Misfit {
    let (got, why) = match value {
        Value::Float(number) => (number.to_string(), "is not a number that MySQL has: only finite ones are"),
        Value::Numeric(text) => (format!("{:?}", text.chars().take(60).collect::<String>()), "is no number"),
        Value::Date(days) => (format!("the date {days} days after 1970-01-01"), YEARS),
        Value::Timestamp(micros) => (format!("the time {micros} µs after 1970-01-01"), YEARS),
        Value::Time(micros) => {
            (format!("the time of {micros} µs"), "is beyond 838:59:59, where MySQL's TIME ends")
        }
        other => (format!("{other:?}").chars().take(60).collect(), "cannot be sent"),
    };
    Misfit { got, why }
}

const YEARS: &str = "is not in the years 1 to 9999, which MySQL has";

/// Whether the text is a decimal number as SQL has them.
fn is_numeric(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = |text: &str| digits(text.strip_prefix(['-', '+']).unwrap_or(text));
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (text, None),
    };
    let number = number.strip_prefix(['-', '+']).unwrap_or(number);
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    digits(whole) && digits(part) && exponent.is_none_or(unsigned)
}

/// The parameter has no sign ("`parameter_type`" of `COM_STMT_EXECUTE`).
pub(super) const PARAMETER_UNSIGNED: u8 = 0x80;

/// Encodes a parameter behind `out` and gives its type, and the flag of those without a sign in the second byte.
#[inline]
pub(crate) fn encode(value: Value<'_>, out: &mut Vec<u8>) -> Result<[u8; 2], Misfit> {
    let kind = match value {
        Value::Null => field::NULL,
        Value::Bool(value) => {
            out.push(value.into());
            field::TINY
        }
        Value::Int(number) => {
            out.extend_from_slice(&number.to_le_bytes());
            field::LONGLONG
        }
        Value::Unsigned(number) => {
            out.extend_from_slice(&number.to_le_bytes());
            return Ok([field::LONGLONG, PARAMETER_UNSIGNED]);
        }
        Value::Float(number) if number.is_finite() => {
            out.extend_from_slice(&number.to_le_bytes());
            field::DOUBLE
        }
        Value::Text(bytes) | Value::Json(bytes) => {
            put_string(out, bytes);
            field::VAR_STRING
        }
        Value::Bytes(bytes) => {
            put_string(out, bytes);
            field::BLOB
        }
        Value::Date(days) => {
            put_sized(out, |out| instant::put_date(days, out)).ok_or_else(|| misfit(value))?;
            field::DATE
        }
        Value::Timestamp(micros) => {
            put_sized(out, |out| instant::put_timestamp(micros, out)).ok_or_else(|| misfit(value))?;
            field::DATETIME
        }
        Value::Time(micros) => {
            put_sized(out, |out| instant::put_time(micros, out)).ok_or_else(|| misfit(value))?;
            field::TIME
        }
        Value::Decimal { .. } => {
            put_sized(out, |out| write_plain(value, out)).ok_or_else(|| misfit(value))?;
            field::NEWDECIMAL
        }
        Value::Numeric(text) if is_numeric(text) => {
            put_string(out, text.as_bytes());
            field::NEWDECIMAL
        }
        Value::Uuid(_) => {
            put_sized(out, |out| write_plain(value, out)).ok_or_else(|| misfit(value))?;
            field::VAR_STRING
        }
        Value::Float(_) | Value::Numeric(_) => return Err(misfit(value)),
    };
    Ok([kind, 0])
}

/// Writes a short body with its length, of one byte, before it; `None` where the body could not be written.
#[inline]
fn put_sized(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>) -> bool) -> Option<()> {
    let at = out.len();
    out.push(0);
    if !body(out) {
        return None;
    }
    out[at] = (out.len() - at - 1) as u8;
    Some(())
}

/// Writes a value as plain text, without quotes; `false` where MySQL does not have it.
fn write_plain(value: Value<'_>, out: &mut Vec<u8>) -> bool {
    match value {
        Value::Null => write!(out, "NULL").is_ok(),
        Value::Bool(value) => write!(out, "{}", u8::from(value)).is_ok(),
        Value::Int(number) => write!(out, "{number}").is_ok(),
        Value::Unsigned(number) => write!(out, "{number}").is_ok(),
        // With an exponent it is a floating-point number, without one a decimal one.
        Value::Float(number) if number.is_finite() => write!(out, "{number:e}").is_ok(),
        Value::Decimal { units, scale } => write_decimal(units, scale, out).is_ok(),
        Value::Numeric(text) if is_numeric(text) => out.write_all(text.as_bytes()).is_ok(),
        Value::Float(_) | Value::Numeric(_) => false,
        Value::Text(bytes) | Value::Json(bytes) | Value::Bytes(bytes) => out.write_all(bytes).is_ok(),
        Value::Uuid(uuid) => {
            for (place, byte) in uuid.iter().enumerate() {
                let dash = if matches!(place, 4 | 6 | 8 | 10) { "-" } else { "" };
                let _ = write!(out, "{dash}{byte:02x}");
            }
            true
        }
        Value::Date(days) => instant::write_date(days, out),
        Value::Timestamp(micros) => instant::write_timestamp(micros, out),
        Value::Time(micros) => instant::write_time(micros, out),
    }
}

pub(super) fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

/// Writes a value as an SQL literal, for the simple mode. Backslashes are written in hexadecimal digits, so that the
/// literal is read the same whether `sql_mode` has `NO_BACKSLASH_ESCAPES` or not.
pub(crate) fn write_literal(value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let start = out.len();
    let written = match value {
        Value::Bytes(bytes) => {
            out.extend_from_slice(b"_binary X'");
            write_hex(bytes, out);
            out.push(b'\'');
            true
        }
        Value::Text(bytes) | Value::Json(bytes) => {
            write_quoted(bytes, out);
            true
        }
        Value::Uuid(_) | Value::Date(_) | Value::Timestamp(_) | Value::Time(_) => {
            out.push(b'\'');
            let written = write_plain(value, out);
            out.push(b'\'');
            written
        }
        _ => write_plain(value, out),
    };
    if written {
        return Ok(());
    }
    out.truncate(start);
    Err(misfit(value))
}

fn write_quoted(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.iter().any(|byte| matches!(byte, b'\\' | 0)) {
        out.extend_from_slice(b"_utf8mb4 X'");
        write_hex(bytes, out);
    } else {
        out.push(b'\'');
        for byte in bytes {
            if *byte == b'\'' {
                out.push(b'\'');
            }
            out.push(*byte);
        }
    }
    out.push(b'\'');
}

/// Writes a cell of LOAD DATA ("Field and Line Handling": tabs between fields, backslashes escape). `hex` is for
/// columns of bytes.
#[inline]
pub(crate) fn write_cell(value: Value<'_>, hex: bool, out: &mut Vec<u8>) -> Result<(), Misfit> {
    match value {
        Value::Null => out.extend_from_slice(b"\\N"),
        Value::Text(bytes) | Value::Json(bytes) | Value::Bytes(bytes) if hex => write_hex(bytes, out),
        Value::Uuid(uuid) if hex => write_hex(&uuid, out),
        Value::Text(bytes) | Value::Json(bytes) | Value::Bytes(bytes) => {
            for byte in bytes {
                match byte {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    b'\t' => out.extend_from_slice(b"\\t"),
                    b'\n' => out.extend_from_slice(b"\\n"),
                    b'\r' => out.extend_from_slice(b"\\r"),
                    0 => out.extend_from_slice(b"\\0"),
                    _ => out.push(*byte),
                }
            }
        }
        _ => {
            let start = out.len();
            if !write_plain(value, out) {
                out.truncate(start);
                return Err(misfit(value));
            }
            if hex {
                let plain = out.split_off(start);
                write_hex(&plain, out);
            }
        }
    }
    Ok(())
}
