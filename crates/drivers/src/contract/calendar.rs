//! Dates and times of the proleptic Gregorian calendar, without time zones: what SQL text holds.

use std::io::{self, Write};

/// Microseconds in a day.
pub const DAY: i64 = 86_400_000_000;

/// Days from 1970-01-01 to a date. After Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
#[must_use]
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month = i64::from(month);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The date (year, month, day) that lies `days` after 1970-01-01. The inverse of [`days_from_civil`].
#[must_use]
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted + 2) / 5 + 1) as u32;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// A number of at least `least` and at most nine digits.
fn digits(text: &str, least: usize) -> Option<i64> {
    ((least..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

/// A number of two digits.
fn pair(text: &str) -> Option<i64> {
    digits(text, 2).filter(|_| text.len() == 2)
}

/// Reads `ss[.ffffff]` as microseconds.
fn seconds(text: &str) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let whole = pair(whole).filter(|seconds| *seconds < 60 && part.len() <= 6)?;
    Some(whole * 1_000_000 + digits(part, 1)? * 10_i64.pow(6 - part.len() as u32))
}

/// Splits the mark of the years before Christ off a date or time. There is no year 0: before 1 is 1 BC.
fn before_christ(text: &str) -> (&str, bool) {
    text.strip_suffix(" BC").map_or((text, false), |text| (text, true))
}

/// Reads `YYYY-MM-DD` or `YYYY-MM-DD BC` as days since 1970-01-01; `None` where that is not a date.
#[must_use]
pub fn parse_date(text: &str) -> Option<i64> {
    let (text, before_christ) = before_christ(text);
    date(text, before_christ)
}

fn date(text: &str, before_christ: bool) -> Option<i64> {
    let mut parts = text.splitn(3, '-');
    let (year, month, day) = (digits(parts.next()?, 4)?, pair(parts.next()?)?, pair(parts.next()?)?);
    let (month, day) = (u32::try_from(month).ok()?, u32::try_from(day).ok()?);
    let year = if year > 0 && before_christ { 1 - year } else { Some(year).filter(|year| *year > 0)? };
    let days = (1..=12).contains(&month).then(|| days_from_civil(year, month, day))?;
    // A day that the month does not have comes back as a day of the next month.
    (civil_from_days(days) == (year, month, day)).then_some(days)
}

/// Reads `YYYY-MM-DD[ T]hh:mm[:ss[.ffffff]][Z|±hh[:mm[:ss]]][ BC]` as microseconds since 1970-01-01 00:00 UTC (a
/// text without a zone is taken as UTC); a date alone is its midnight. `None` where that is not a time.
#[must_use]
pub fn parse_timestamp(text: &str) -> Option<i64> {
    let (text, before_christ) = before_christ(text);
    let Some(split) = text.find([' ', 'T']) else {
        return date(text, before_christ)?.checked_mul(DAY);
    };
    let midnight = date(&text[..split], before_christ)?.checked_mul(DAY)?;
    let time = &text[split + 1..];
    let (clock, zone) = match time.find(['Z', '+', '-']) {
        Some(at) => (&time[..at], parse_zone(&time[at..])?),
        None => (time, 0),
    };
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (pair(parts.next()?)?, pair(parts.next()?)?);
    let micros = parts.next().map_or(Some(0), seconds)?;
    if hour >= 24 || minute >= 60 {
        return None;
    }
    midnight.checked_add(((hour * 60 + minute) * 60 - zone) * 1_000_000 + micros)
}

/// Seconds east of UTC. There are seconds in the local times of before there were time zones.
fn parse_zone(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first()? {
        b'Z' => return (text.len() == 1).then_some(0),
        b'+' => 1,
        _ => -1,
    };
    let mut parts = text[1..].splitn(3, ':');
    let hours = pair(parts.next()?)?;
    let mut next = || parts.next().map_or(Some(0), pair);
    let (minutes, seconds) = (next()?, next()?);
    Some(sign * ((hours * 60 + minutes) * 60 + seconds))
}

/// A day of the year as `YYYY-MM-DD`, and what has to stand at the end for the years before Christ.
fn written(days: i64) -> (String, &'static str) {
    let (year, month, day) = civil_from_days(days);
    let (year, end) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    (format!("{year:04}-{month:02}-{day:02}"), end)
}

/// Writes a date as `YYYY-MM-DD`, with ` BC` behind it before the year 1.
#[must_use]
pub fn format_date(days: i64) -> String {
    let (date, end) = written(days);
    date + end
}

/// Writes a time as `YYYY-MM-DD hh:mm:ss.ffffff+00`, with ` BC` behind it before the year 1.
#[must_use]
pub fn format_timestamp(micros: i64) -> String {
    let of_day = micros.rem_euclid(DAY);
    let (seconds, part) = (of_day / 1_000_000, of_day % 1_000_000);
    let (date, end) = written(micros.div_euclid(DAY));
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{date} {hour:02}:{minute:02}:{second:02}.{part:06}+00{end}")
}

/// Writes a time of day or a length of time as `[-]hh:mm:ss[.ffffff]`, without zeros at its end.
pub fn write_time(micros: i64, out: &mut impl Write) -> io::Result<()> {
    let sign = if micros < 0 { "-" } else { "" };
    let (seconds, part) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
    write!(out, "{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    if part == 0 {
        return Ok(());
    }
    let digits = format!("{part:06}");
    write!(out, ".{}", digits.trim_end_matches('0'))
}

/// Reads what [`write_time`] writes, as microseconds; `None` where that is no time.
#[must_use]
pub fn parse_time(text: &str) -> Option<i64> {
    let (sign, size) = text.strip_prefix('-').map_or((1, text), |size| (-1, size));
    let mut parts = size.splitn(3, ':');
    let (hours, minutes, micros) = (digits(parts.next()?, 2)?, pair(parts.next()?)?, seconds(parts.next()?)?);
    (minutes < 60).then(|| sign * ((hours * 60 + minutes) * 60_000_000 + micros))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_dates_and_times() {
        assert_eq!(parse_date("1970-01-01"), Some(0));
        assert_eq!(parse_date("2000-01-01"), Some(10_957));
        assert_eq!(parse_date("2000-02-29"), Some(11_016));
        for wrong in [
            "1900-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-01-32",
            "2024-1",
            "24-01-01",
            "0000-01-01",
            "today",
            "",
        ] {
            assert_eq!(parse_date(wrong), None, "{wrong}");
        }
        assert_eq!(parse_timestamp("2000-01-01 00:00:00+00"), Some(946_684_800_000_000));
        assert_eq!(parse_timestamp("2000-01-01T01:30:00.25+01:30"), Some(946_684_800_250_000));
        assert_eq!(parse_timestamp("2000-01-01 00:00:00.000001"), Some(946_684_800_000_001));
        assert_eq!(parse_timestamp("1969-12-31 23:59:59Z"), Some(-1_000_000));
        assert_eq!(parse_timestamp("2000-01-01"), Some(946_684_800_000_000));
        assert_eq!(parse_timestamp("0001-01-01 00:00:00"), Some(-62_135_596_800_000_000));
        assert_eq!(parse_timestamp("0001-12-31 23:59:59.999999+00 BC"), Some(-62_135_596_800_000_001));
        assert_eq!(parse_timestamp("1900-01-01 00:19:32+00:19:32"), parse_timestamp("1900-01-01"));
        for wrong in [
            "0000-01-01 00:00 BC",
            "2000-01-01 00:00+01:00:00:00",
            "999999999-01-01",
            "2000-01-01 25:00",
            "2000-01-01 10",
            "2000-01-01 10:00:00.1234567",
            "2000-01-01 1:2:3",
            "2000-01-01 10:00:60",
            "2000-01-01 10:00.",
        ] {
            assert_eq!(parse_timestamp(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn dates_come_back(days in -700_000_i64..3_000_000) {
            let (year, month, day) = civil_from_days(days);
            prop_assert_eq!(days_from_civil(year, month, day), days);
            prop_assert_eq!(parse_date(&format_date(days)), Some(days));
        }

        #[test]
        fn timestamps_come_back(micros in any::<i64>()) {
            prop_assert_eq!(parse_timestamp(&format_timestamp(micros)), Some(micros));
        }

        #[test]
        fn times_come_back(micros in -3_020_399_000_000_i64..=3_020_399_999_999) {
            let mut text = Vec::new();
            write_time(micros, &mut text).unwrap();
            prop_assert_eq!(parse_time(std::str::from_utf8(&text).unwrap()), Some(micros));
        }

        #[test]
        fn no_text_breaks_it(text in "[0-9T:+.Z é-]{0,30}") {
            let _ = (parse_date(&text), parse_timestamp(&text), parse_time(&text));
        }
    }
}
