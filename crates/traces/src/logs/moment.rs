//! Times of day as logs write them.

/// A time, and what the log says of its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment<'a> {
    /// In microseconds since 1970; of UTC where the offset is known, else as the clock shows it.
    pub(crate) micros: i64,
    /// `UTC` where the offset is known, else the zone's abbreviation, or nothing.
    pub(crate) zone: &'a str,
}

/// Reads `2026-01-31 23:59:59.123 UTC`, `2026-01-31T23:59:59.123456Z`, and the same without a fraction or a zone.
pub(crate) fn moment(text: &str) -> Option<Moment<'_>> {
    let bytes = text.as_bytes();
    let date = bytes.get(..10)?;
    if date[4] != b'-' || date[7] != b'-' || !matches!(bytes.get(10), Some(b' ' | b'T')) {
        return None;
    }
    let days = days(number(&bytes[..4])?, number(&bytes[5..7])?, number(&bytes[8..10])?)?;
    let mut micros = days * 86_400_000_000 + time_of_day(bytes.get(11..19)?)?;
    let mut rest = text.get(19..)?;
    if let Some(fraction) = rest.strip_prefix('.') {
        let size = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if size == 0 || size > 6 {
            return None;
        }
        micros += number(&fraction.as_bytes()[..size])? * 10_i64.pow(6 - size as u32);
        rest = &fraction[size..];
    }
    let zone = rest.trim();
    if matches!(zone, "Z" | "UTC" | "GMT") {
        return Some(Moment { micros, zone: "UTC" });
    }
    match offset(zone) {
        Some(offset) => Some(Moment { micros: micros - offset, zone: "UTC" }),
        None if zone.bytes().all(|byte| byte.is_ascii_alphabetic()) => Some(Moment { micros, zone }),
        None => None,
    }
}

/// Reads `23:59:59`, or ` 3:59:59`, as microseconds of the day.
pub(crate) fn time_of_day(text: &[u8]) -> Option<i64> {
    if text.len() != 8 || text[2] != b':' || text[5] != b':' {
        return None;
    }
    let hour = number(if text[0] == b' ' { &text[1..2] } else { &text[..2] })?;
    let (minute, second) = (number(&text[3..5])?, number(&text[6..])?);
    (hour < 24 && minute < 60 && second < 61).then_some(((hour * 60 + minute) * 60 + second) * 1_000_000)
}

/// Days since 1970 (<https://howardhinnant.github.io/date_algorithms.html>).
pub(crate) fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(1970..=9999).contains(&year) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// Reads `+01`, `-0330`, `+05:30` as microseconds.
fn offset(zone: &str) -> Option<i64> {
    let (sign, rest) = match zone.as_bytes().split_first()? {
        (b'+', rest) => (1, rest),
        (b'-', rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest {
        [_, _] => (number(rest)?, 0),
        [h, i, m, n] | [h, i, b':', m, n] => (number(&[*h, *i])?, number(&[*m, *n])?),
        _ => return None,
    };
    Some(sign * (hours * 60 + minutes) * 60_000_000)
}

pub(crate) fn number(digits: &[u8]) -> Option<i64> {
    let all = digits.iter().all(u8::is_ascii_digit) && digits.len() < 18 && !digits.is_empty();
    all.then(|| digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_microseconds_of_utc_where_the_zone_is_known() {
        for (text, micros, zone) in [
            ("1970-01-01 00:00:00.001 UTC", 1000, "UTC"),
            ("2024-02-29T12:00:00.000001Z", 1_709_208_000_000_001, "UTC"),
            ("2024-02-29 13:30:00.5 +0130", 1_709_208_000_500_000, "UTC"),
            ("2024-02-29 09:00:00 -03", 1_709_208_000_000_000, "UTC"),
            ("2024-02-29 12:00:00.000 CET", 1_709_208_000_000_000, "CET"),
            ("2024-02-29 12:00:00", 1_709_208_000_000_000, ""),
        ] {
            assert_eq!(moment(text), Some(Moment { micros, zone }), "{text}");
        }
        for text in [
            "",
            "2024-02-29",
            "2024-13-01 00:00:00",
            "2024-02-29 25:00:00",
            "2024-02-29 12:00:00.1234567 UTC",
            "é",
        ] {
            assert_eq!(moment(text), None, "{text}");
        }
    }
}
