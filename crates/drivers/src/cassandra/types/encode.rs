//! Values on their way to the server.

use std::net::IpAddr;

use super::{EPOCH_DAY, Type};
use crate::contract::calendar::{DAY, parse_date, parse_time, parse_timestamp};
use crate::contract::value::{Value, write_plain};

/// Up to here a floating-point number keeps every whole number.
const TWO_TO_53: f64 = 9_007_199_254_740_992.0;

/// Writes a value as `[bytes]` of a type. The error says that it does not fit; then what was written is of no use.
#[inline]
pub(in crate::cassandra) fn encode(of: Type, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    let start = out.len();
    out.extend_from_slice(&(-1_i32).to_be_bytes());
    if value == Value::Null {
        return Ok(());
    }
    body(of, value, out).ok_or_else(|| misfit(of, value))?;
    let size = (out.len() - start - 4) as i32;
    out[start..start + 4].copy_from_slice(&size.to_be_bytes());
    Ok(())
}

#[cold]
fn misfit(of: Type, value: Value<'_>) -> String {
    let mut got = Vec::new();
    match value {
        Value::Bytes(bytes) => got = format!("{} bytes", bytes.len()).into_bytes(),
        _ => drop(write_plain(value, &mut got)),
    }
    // A text may be of any length; its beginning says which it is.
    let got: String = String::from_utf8_lossy(&got).chars().take(60).collect();
    format!("{got} does not fit the type {}", of.name())
}

#[inline]
fn body(of: Type, value: Value<'_>, out: &mut Vec<u8>) -> Option<()> {
    match of {
        Type::Ascii | Type::Varchar => drop(write_plain(value, out)),
        Type::Blob | Type::Custom => match value {
            Value::Bytes(bytes) | Value::Text(bytes) | Value::Json(bytes) => out.extend_from_slice(bytes),
            _ => return None,
        },
        Type::Bigint | Type::Counter => out.extend_from_slice(&integer::<i64>(value)?.to_be_bytes()),
        Type::Int => out.extend_from_slice(&integer::<i32>(value)?.to_be_bytes()),
        Type::Smallint => out.extend_from_slice(&integer::<i16>(value)?.to_be_bytes()),
        Type::Tinyint => out.extend_from_slice(&integer::<i8>(value)?.to_be_bytes()),
        Type::Boolean => out.push(truth(value)?.into()),
        Type::Double => out.extend_from_slice(&float(value)?.to_be_bytes()),
        Type::Float => {
            let number = float(value)?;
            // What is finite does not become infinite.
            let narrow = Some(number as f32).filter(|narrow| narrow.is_finite() || !number.is_finite());
            out.extend_from_slice(&narrow?.to_be_bytes());
        }
        Type::Varint => put_whole(whole(value)?, out),
        Type::Decimal => {
            let (units, scale) = decimal(value)?;
            out.extend_from_slice(&scale.to_be_bytes());
            put_whole(units, out);
        }
        // Milliseconds: what is between them is left out.
        Type::Timestamp => out.extend_from_slice(&micros(value)?.div_euclid(1000).to_be_bytes()),
        Type::Date => out.extend_from_slice(&days(value)?.to_be_bytes()),
        Type::Time => out.extend_from_slice(&time(value)?.to_be_bytes()),
        Type::Uuid | Type::Timeuuid => out.extend_from_slice(&uuid(value)?),
        Type::Inet => match text(value)?.parse().ok()? {
            IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
        },
    }
    Some(())
}

fn text(value: Value<'_>) -> Option<&str> {
    match value {
        Value::Text(text) | Value::Json(text) => std::str::from_utf8(text).ok(),
        Value::Numeric(text) => Some(text),
        _ => None,
    }
}

fn integer<T: TryFrom<i128>>(value: Value<'_>) -> Option<T> {
    T::try_from(whole(value)?).ok()
}

/// A whole number, also when a script gives it as a float: Lua knows only one kind of number.
fn whole(value: Value<'_>) -> Option<i128> {
    match value {
        Value::Int(number) => Some(number.into()),
        Value::Unsigned(number) => Some(number.into()),
        Value::Float(number) if number.fract() == 0.0 && number.abs() <= TWO_TO_53 => Some(number as i128),
        Value::Decimal { units, scale: 0 } => Some(units.into()),
        _ => text(value)?.parse().ok(),
    }
}

fn truth(value: Value<'_>) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(truth),
        _ => text(value)?.parse().ok(),
    }
}

fn float(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Float(number) => Some(number),
        Value::Int(number) => Some(number as f64),
        Value::Unsigned(number) => Some(number as f64),
        Value::Decimal { units, scale } => Some(units as f64 / 10_f64.powi(scale.into())),
        _ => text(value)?.parse().ok(),
    }
}

/// A number as `units / 10^scale`.
fn decimal(value: Value<'_>) -> Option<(i128, i32)> {
    match value {
        Value::Decimal { units, scale } => Some((units.into(), scale.into())),
        // The shortest digits that give the same number again.
        Value::Float(number) => digits(&number.to_string()),
        _ => text(value).map_or_else(|| Some((whole(value)?, 0)), digits),
    }
}

/// Reads `[-]12.50[E3]`.
fn digits(text: &str) -> Option<(i128, i32)> {
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (before, behind) = number.split_once('.').unwrap_or((number, ""));
    let is_number = behind.bytes().all(|digit| digit.is_ascii_digit());
    let units = format!("{before}{behind}").parse().ok().filter(|_| is_number)?;
    let scale = i32::try_from(behind.len()).ok()?.checked_sub(exponent.parse().ok()?)?;
    Some((units, scale))
}

/// Writes a number in as few bytes of two's complement as will do.
fn put_whole(number: i128, out: &mut Vec<u8>) {
    let bits = 128 - number.leading_zeros().max(number.leading_ones()) as usize;
    // One bit more for the sign.
    out.extend_from_slice(&number.to_be_bytes()[15 - bits / 8..]);
}

fn micros(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Timestamp(micros) => Some(micros),
        Value::Date(days) => Some(i64::from(days) * DAY),
        Value::Int(_) | Value::Float(_) => {
            // Seconds, as in all dialects.
            let micros = float(value)? * 1e6;
            (micros.abs() < 9e18).then(|| micros.round() as i64)
        }
        _ => parse_timestamp(text(value)?),
    }
}

fn days(value: Value<'_>) -> Option<u32> {
    let days = match value {
        Value::Date(days) => days.into(),
        Value::Text(_) | Value::Json(_) => {
            parse_date(text(value)?).or_else(|| Some(micros(value)?.div_euclid(DAY)))?
        }
        _ => micros(value)?.div_euclid(DAY),
    };
    i32::try_from(days).ok().map(|days| (days as u32).wrapping_add(EPOCH_DAY))
}

/// Nanoseconds since midnight.
fn time(value: Value<'_>) -> Option<i64> {
    let micros = match value {
        Value::Time(micros) => micros,
        _ => parse_time(text(value)?)?,
    };
    (0..DAY).contains(&micros).then(|| micros * 1000)
}

fn uuid(value: Value<'_>) -> Option<[u8; 16]> {
    if let Value::Uuid(bytes) = value {
        return Some(bytes);
    }
    let digits: String = text(value)?.chars().filter(|letter| *letter != '-').collect();
    let number = u128::from_str_radix(&digits, 16).ok()?;
    (digits.len() == 32).then(|| number.to_be_bytes())
}
