//! Values in binary as the server itself would show them.

use std::fmt::LowerExp;

use super::encode::write_text;
use super::{Type, decode_binary, instant, numeric};
use crate::contract::calendar;
use crate::contract::value::Value;

const TIME: u32 = 1083;
const TIMESTAMP_WITH_ZONE: u32 = 1184;

/// The text of a value in binary, as the type's output function writes it with the server's default settings, in UTC;
/// `None` where the type is none of those known here, or the bytes are none of it.
#[must_use]
pub fn shown(oid: u32, cell: &[u8]) -> Option<String> {
    if oid == TIME {
        let micros = i64::from_be_bytes(cell.try_into().ok()?);
        return (0..=calendar::DAY).contains(&micros).then(|| time(micros));
    }
    let of = Type::of(oid);
    let value = match of {
        Type::Other => return None,
        Type::Numeric => return numeric::to_text(cell),
        Type::Text | Type::Json => Value::Text(cell),
        // Its version stands before it.
        Type::Jsonb => Value::Text(cell.strip_prefix(&[1])?),
        _ => decode_binary(of, cell)?,
    };
    Some(match value {
        Value::Bool(value) => if value { "t" } else { "f" }.to_owned(),
        Value::Float(number) if of == Type::Float4 => float(&(number as f32), number, 6),
        Value::Float(number) => float(&number, number, 15),
        Value::Timestamp(micros) => timestamp(micros, oid == TIMESTAMP_WITH_ZONE),
        value => {
            let mut text = Vec::new();
            write_text(value, &mut text);
            String::from_utf8(text).ok()?
        }
    })
}

/// The shortest text of a number, with an exponent where there would be more than so many digits before the point, or
/// four zeros behind it.
fn float<F: LowerExp + ToString>(shortest: &F, number: f64, digits: i32) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let text = format!("{shortest:e}");
    let (size, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..digits).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{size}e{sign}{:02}", exponent.abs())
        }
        _ => shortest.to_string(),
    }
}

fn time(micros: i64) -> String {
    let mut text = Vec::new();
    // Writing into a vector cannot fail.
    let _ = calendar::write_time(micros, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn timestamp(micros: i64, with_zone: bool) -> String {
    if matches!(micros, i64::MIN | i64::MAX) {
        return instant::format_timestamp(micros);
    }
    let date = calendar::format_date(micros.div_euclid(calendar::DAY));
    let (date, era) = date.strip_suffix(" BC").map_or((&*date, ""), |date| (date, " BC"));
    let zone = if with_zone { "+00" } else { "" };
    format!("{date} {}{zone}{era}", time(micros.rem_euclid(calendar::DAY)))
}
