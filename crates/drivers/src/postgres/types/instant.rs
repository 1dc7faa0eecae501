//! Dates and times as PostgreSQL has them: counted from 2000, with an end at both sides that is for ever.

use crate::contract::calendar;
use crate::contract::value::Value;

/// Microseconds from 1970 to 2000, where PostgreSQL's timestamps begin.
const EPOCH_MICROS: i64 = 946_684_800_000_000;
/// Days from 1970 to 2000, where PostgreSQL's dates begin.
const EPOCH_DAYS: i32 = 10_957;

/// Days since 1970 as PostgreSQL counts them; the extreme values are ±infinity on both sides. `None` where that
/// lies before everything.
pub(super) fn date_to_wire(days: i32) -> Option<i32> {
    match days {
        i32::MIN | i32::MAX => Some(days),
        _ => days.checked_sub(EPOCH_DAYS),
    }
}

pub(super) fn date_from_wire(days: i32) -> i32 {
    if days == i32::MIN { days } else { days.saturating_add(EPOCH_DAYS) }
}

/// Microseconds since 1970 as PostgreSQL counts them; see [`date_to_wire`].
pub(super) fn timestamp_to_wire(micros: i64) -> Option<i64> {
    match micros {
        i64::MIN | i64::MAX => Some(micros),
        _ => micros.checked_sub(EPOCH_MICROS),
    }
}

pub(super) fn timestamp_from_wire(micros: i64) -> i64 {
    if micros == i64::MIN { micros } else { micros.saturating_add(EPOCH_MICROS) }
}

/// Microseconds since 1970 of a time given as itself, as a date, or as seconds.
pub(super) fn micros(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Timestamp(micros) => Some(micros),
        Value::Date(i32::MIN) => Some(i64::MIN),
        Value::Date(i32::MAX) => Some(i64::MAX),
        Value::Date(days) => i64::from(days).checked_mul(calendar::DAY),
        Value::Int(seconds) => seconds.checked_mul(1_000_000),
        Value::Float(seconds) if seconds.abs() < 9e12 => Some((seconds * 1e6).round() as i64),
        _ => None,
    }
}

/// Days since 1970 of a date given as itself, or of what [`micros`] takes.
pub(super) fn days(value: Value<'_>) -> Option<i32> {
    match value {
        Value::Date(days) => Some(days),
        _ => match micros(value)? {
            i64::MIN => Some(i32::MIN),
            i64::MAX => Some(i32::MAX),
            micros => i32::try_from(micros.div_euclid(calendar::DAY)).ok(),
        },
    }
}

/// Reads a date in PostgreSQL's ISO form.
pub(super) fn parse_date(text: &str) -> Option<i32> {
    match text {
        "infinity" => Some(i32::MAX),
        "-infinity" => Some(i32::MIN),
        _ => calendar::parse_date(text)?.try_into().ok(),
    }
}

/// Reads a timestamp, with a time zone or without, in PostgreSQL's ISO form.
pub(super) fn parse_timestamp(text: &str) -> Option<i64> {
    match text {
        "infinity" => Some(i64::MAX),
        "-infinity" => Some(i64::MIN),
        _ => calendar::parse_timestamp(text),
    }
}

/// Writes a date in PostgreSQL's ISO form.
pub(super) fn format_date(days: i32) -> String {
    match days {
        i32::MAX => "infinity".to_owned(),
        i32::MIN => "-infinity".to_owned(),
        days => calendar::format_date(days.into()),
    }
}

/// Writes a timestamp in PostgreSQL's ISO form.
pub(super) fn format_timestamp(micros: i64) -> String {
    match micros {
        i64::MAX => "infinity".to_owned(),
        i64::MIN => "-infinity".to_owned(),
        micros => calendar::format_timestamp(micros),
    }
}
