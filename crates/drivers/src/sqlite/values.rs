//! Values as SQLite keeps them: integers, floats, text and bytes (<https://www.sqlite.org/datatype3.html>).
//!
//! What SQLite has no class for becomes text, exactly: decimals in digits, dates and times in the formats of its date
//! functions (<https://www.sqlite.org/lang_datefunc.html>) in UTC, UUIDs and JSON as they are written. Truth values are
//! 0 and 1.

use std::io::Write;

use super::raw::{Failure, Run};
use crate::contract::calendar::{self, DAY, civil_from_days};
use crate::contract::value::Value;

/// The years of SQLite's date functions.
const YEARS: std::ops::RangeInclusive<i64> = 0..=9999;

/// Why SQLite cannot take a value, if it cannot.
#[inline]
pub(super) fn misfit(value: Value<'_>) -> Option<&'static str> {
    let days = match value {
        Value::Float(number) if number.is_nan() => {
            return Some("NaN is no number that SQLite keeps; it would become NULL");
        }
        Value::Unsigned(_) => return Some("beyond 2^63 SQLite has no whole numbers; write it as a text"),
        Value::Date(days) => i64::from(days),
        Value::Timestamp(micros) => micros.div_euclid(DAY),
        _ => return None,
    };
    let is_known = YEARS.contains(&civil_from_days(days).0);
    (!is_known).then_some("SQLite's dates are those of the years 0 to 9999")
}

/// Gives a run a parameter. Texts and bytes are lent to it.
#[inline]
pub(super) fn bind<'a>(run: &mut Run<'a>, place: usize, value: Value<'a>) -> Result<(), Failure> {
    match value {
        Value::Null | Value::Int(_) | Value::Float(_) | Value::Text(_) | Value::Bytes(_) => {
            run.bind(place, value)
        }
        Value::Bool(value) => run.bind(place, Value::Int(value.into())),
        Value::Decimal { units, scale: 0 } => run.bind(place, Value::Int(units)),
        Value::Json(text) => run.bind(place, Value::Text(text)),
        Value::Numeric(text) => run.bind(place, Value::Text(text.as_bytes())),
        Value::Decimal { .. }
        | Value::Uuid(_)
        | Value::Date(_)
        | Value::Timestamp(_)
        | Value::Time(_)
        | Value::Unsigned(_) => bind_copy(run, place, value),
    }
}

/// Gives a run a parameter, texts and bytes copied.
pub(super) fn bind_copy(run: &mut Run<'_>, place: usize, value: Value<'_>) -> Result<(), Failure> {
    let mut text = Small { bytes: [0; 40], len: 0 };
    match value {
        Value::Bool(value) => run.bind_copy(place, Value::Int(value.into())),
        Value::Decimal { units, scale: 0 } => run.bind_copy(place, Value::Int(units)),
        Value::Json(json) => run.bind_copy(place, Value::Text(json)),
        Value::Numeric(digits) => run.bind_copy(place, Value::Text(digits.as_bytes())),
        Value::Null | Value::Int(_) | Value::Float(_) | Value::Text(_) | Value::Bytes(_) => {
            run.bind_copy(place, value)
        }
        Value::Decimal { .. }
        | Value::Uuid(_)
        | Value::Date(_)
        | Value::Timestamp(_)
        | Value::Time(_)
        | Value::Unsigned(_) => {
            write_text(value, &mut text);
            run.bind_copy(place, Value::Text(&text.bytes[..text.len]))
        }
    }
}

/// A short text that needs no memory of its own: the longest is a UUID, of 36 bytes.
struct Small {
    bytes: [u8; 40],
    len: usize,
}

impl Write for Small {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let mut room = &mut self.bytes[self.len..];
        let written = room.write(text)?;
        self.len += written;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes what becomes text. Writing into memory cannot fail.
fn write_text(value: Value<'_>, out: &mut impl Write) {
    let _ = match value {
        Value::Decimal { units, scale } => write_decimal(units, scale, out),
        Value::Uuid(uuid) => uuid.iter().enumerate().try_for_each(|(place, byte)| {
            let dash = if matches!(place, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(out, "{dash}{byte:02x}")
        }),
        Value::Date(days) => write_date(days.into(), out),
        Value::Timestamp(micros) => write_timestamp(micros, out),
        Value::Time(micros) => calendar::write_time(micros, out),
        Value::Unsigned(number) => write!(out, "{number}"),
        Value::Numeric(text) => out.write_all(text.as_bytes()),
        Value::Text(text) | Value::Json(text) => out.write_all(text),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Bytes(_) => Ok(()),
    };
}

fn write_decimal(units: i64, scale: u8, out: &mut impl Write) -> std::io::Result<()> {
    let sign = if units < 0 { "-" } else { "" };
    let scale = usize::from(scale.min(18));
    let power = 10_u64.pow(scale as u32);
    let (whole, part) = (units.unsigned_abs() / power, units.unsigned_abs() % power);
    if scale == 0 { write!(out, "{sign}{whole}") } else { write!(out, "{sign}{whole}.{part:0scale$}") }
}

fn write_date(days: i64, out: &mut impl Write) -> std::io::Result<()> {
    let (year, month, day) = civil_from_days(days);
    write!(out, "{year:04}-{month:02}-{day:02}")
}

/// As `CURRENT_TIMESTAMP` has it; microseconds stand behind a point where there are some.
fn write_timestamp(micros: i64, out: &mut impl Write) -> std::io::Result<()> {
    write_date(micros.div_euclid(DAY), out)?;
    let of_day = micros.rem_euclid(DAY);
    let (seconds, part) = (of_day / 1_000_000, of_day % 1_000_000);
    write!(out, " {:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    if part == 0 { Ok(()) } else { write!(out, ".{part:06}") }
}

/// Writes a value as an SQL literal, for the simple mode. What is negative stands in brackets: two minus signs would
/// begin a comment.
pub(super) fn write_literal(value: Value<'_>, out: &mut Vec<u8>) {
    let _ = match value {
        Value::Null => out.write_all(b"NULL"),
        Value::Bool(value) => write!(out, "{}", u8::from(value)),
        Value::Int(number) | Value::Decimal { units: number, scale: 0 } if number < 0 => {
            write!(out, "({number})")
        }
        Value::Int(number) | Value::Decimal { units: number, scale: 0 } => write!(out, "{number}"),
        Value::Float(number) => write_float(number, out),
        Value::Bytes(bytes) => write_blob(bytes, out),
        // A zero byte would end the statement.
        Value::Text(text) | Value::Json(text) if text.contains(&0) => write_cast(text, out),
        Value::Text(_)
        | Value::Json(_)
        | Value::Numeric(_)
        | Value::Decimal { .. }
        | Value::Uuid(_)
        | Value::Date(_)
        | Value::Timestamp(_)
        | Value::Unsigned(_)
        | Value::Time(_) => {
            write_quoted(value, out);
            Ok(())
        }
    };
}

fn write_quoted(value: Value<'_>, out: &mut Vec<u8>) {
    let mut plain = Vec::new();
    write_text(value, &mut plain);
    out.push(b'\'');
    for byte in plain {
        if byte == b'\'' {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'\'');
}

fn write_cast(text: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    out.write_all(b"CAST(")?;
    write_blob(text, out)?;
    out.write_all(b" AS TEXT)")
}

fn write_blob(bytes: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    out.write_all(b"x'")?;
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
    out.write_all(b"'")
}

/// Writes a float that is no NaN. Beyond every exponent lies infinity.
fn write_float(number: f64, out: &mut Vec<u8>) -> std::io::Result<()> {
    let (open, close) = if number.is_sign_negative() { ("(-", ")") } else { ("", "") };
    let size = number.abs();
    if size.is_infinite() { write!(out, "{open}9e999{close}") } else { write!(out, "{open}{size:?}{close}") }
}

#[cfg(test)]
mod tests {
    use super::super::raw::{Database, Step};
    use super::*;
    use libsqlite3_sys as ffi;
    use proptest::prelude::*;

    fn text(value: Value<'_>) -> String {
        let mut out = Vec::new();
        write_text(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_becomes_text_is_exact() {
        for (value, expected) in [
            (Value::Decimal { units: 1250, scale: 2 }, "12.50"),
            (Value::Decimal { units: -5, scale: 3 }, "-0.005"),
            (Value::Decimal { units: i64::MIN, scale: 18 }, "-9.223372036854775808"),
            (Value::Date(0), "1970-01-01"),
            (Value::Date(-719_528), "0000-01-01"),
            (Value::Timestamp(-1), "1969-12-31 23:59:59.999999"),
            (Value::Time(-3_661_500_000), "-01:01:01.5"),
            (Value::Timestamp(86_400_000_000), "1970-01-02 00:00:00"),
            (Value::Uuid([0xab; 16]), "abababab-abab-abab-abab-abababababab"),
        ] {
            assert_eq!(text(value), expected);
        }
    }

    #[test]
    fn what_sqlite_cannot_keep_is_refused() {
        for value in [
            Value::Float(f64::NAN),
            Value::Date(-719_529),
            Value::Timestamp(i64::MAX),
            Value::Unsigned(1 << 63),
        ] {
            assert!(misfit(value).is_some(), "{value:?}");
        }
        for value in [Value::Float(f64::INFINITY), Value::Date(-719_528), Value::Date(2_932_896)] {
            assert_eq!(misfit(value), None, "{value:?}");
        }
        assert!(misfit(Value::Date(2_932_897)).is_some());
    }

    #[test]
    fn literals_are_read_as_the_values_they_are() {
        let literal = |value| {
            let mut out = Vec::new();
            write_literal(value, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(literal(Value::Int(i64::MIN)), "(-9223372036854775808)");
        assert_eq!(literal(Value::Float(f64::NEG_INFINITY)), "(-9e999)");
        assert_eq!(literal(Value::Text(b"it's")), "'it''s'");
        assert_eq!(literal(Value::Text(b"a\0")), "CAST(x'6100' AS TEXT)");
        assert_eq!(literal(Value::Bytes(&[0, 255])), "x'00ff'");
    }

    /// What SQLite makes of a literal.
    fn read_back(value: Value<'_>, check: impl Fn(Value<'_>) -> bool) -> bool {
        let memory = Database::open(c":memory:", ffi::SQLITE_OPEN_READWRITE).unwrap();
        let mut sql = b"SELECT ".to_vec();
        write_literal(value, &mut sql);
        let mut statement = memory.prepare(&sql, false).unwrap().0.unwrap();
        let mut run = statement.run();
        assert_eq!(run.step().unwrap(), Step::Row);
        check(run.cell(0))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn literals_come_back_to_the_last_bit(
            number in any::<f64>(), whole in any::<i64>(), text in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let same = |got: Value<'_>| matches!(got, Value::Float(got) if got.to_bits() == number.to_bits());
            prop_assert!(read_back(Value::Float(number), same), "{number:?}");
            prop_assert!(read_back(Value::Int(whole), |got| got == Value::Int(whole)), "{whole}");
            prop_assert!(read_back(Value::Text(&text), |got| got == Value::Text(&text)), "{text:?}");
            prop_assert!(read_back(Value::Bytes(&text), |got| got == Value::Bytes(&text)), "{text:?}");
        }
    }
}
