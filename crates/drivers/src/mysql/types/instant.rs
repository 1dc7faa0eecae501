//! Dates and times in binary: a year of two bytes, month, day, hour, minute, second, microseconds of four bytes. What
//! is zero at the end is left out ("Binary Protocol Value", `ProtocolBinary::MYSQL_TYPE_DATE` and those after it).

use std::io::{self, Write};

use crate::contract::calendar::{self, DAY, civil_from_days, days_from_civil};
use crate::mysql::wire::Fields;

/// The longest TIME, 838:59:59, in microseconds.
const LONGEST_TIME: u64 = ((838 * 60 + 59) * 60 + 59) * 1_000_000;

/// The days of a date, in binary or as text. `None` where it is no day of the calendar: MySQL has 0000-00-00.
pub(super) fn date(cell: &[u8]) -> Option<i32> {
    let days = match *cell {
        [low, high, month, day] => days(u16::from_le_bytes([low, high]), month, day),
        _ => calendar::parse_date(std::str::from_utf8(cell).ok()?),
    };
    days.and_then(|days| i32::try_from(days).ok())
}

/// The microseconds of a time, in binary or as text.
pub(super) fn timestamp(cell: &[u8]) -> Option<i64> {
    if !matches!(cell.len(), 4 | 7 | 11) {
        return calendar::parse_timestamp(std::str::from_utf8(cell).ok()?);
    }
    let (day, clock) = cell.split_first_chunk::<4>()?;
    let midnight = days(u16::from_le_bytes([day[0], day[1]]), day[2], day[3])? * DAY;
    let Some((&[hour, minute, second], micros)) = clock.split_first_chunk::<3>() else {
        return Some(midnight);
    };
    let micros = micros.try_into().map_or(0, u32::from_le_bytes);
    if hour > 23 || minute > 59 || second > 59 || micros > 999_999 {
        return None;
    }
    let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
    Some(midnight + seconds * 1_000_000 + i64::from(micros))
}

fn days(year: u16, month: u8, day: u8) -> Option<i64> {
    let (year, month, day) = (i64::from(year), u32::from(month), u32::from(day));
    if year == 0 || !(1..=12).contains(&month) {
        return None;
    }
    let days = days_from_civil(year, month, day);
    (civil_from_days(days) == (year, month, day)).then_some(days)
}

/// Writes a date of the binary form that is no day of the calendar, as the server prints it.
pub(super) fn write_impossible(cell: &[u8], with_time: bool, out: &mut impl Write) -> io::Result<()> {
    let at = |place: usize| cell.get(place).copied().unwrap_or(0);
    let year = u16::from_le_bytes([at(0), at(1)]);
    write!(out, "{year:04}-{:02}-{:02}", at(2), at(3))?;
    if with_time {
        write!(out, " {:02}:{:02}:{:02}", at(4), at(5), at(6))?;
    }
    Ok(())
}

/// The microseconds of a TIME, as text or in binary: a sign, days of four bytes, hours, minutes, seconds, microseconds of
/// four bytes; `None` where it is none.
pub(super) fn time(cell: &[u8], as_text: bool) -> Option<i64> {
    if as_text {
        return calendar::parse_time(std::str::from_utf8(cell).ok()?);
    }
    if cell.is_empty() {
        return Some(0);
    }
    let mut fields = Fields(cell);
    let (negative, days, clock) = (fields.u8().ok()?, fields.u32().ok()?, fields.take::<3>().ok()?);
    let micros = if fields.0.is_empty() { 0 } else { fields.u32().ok()? };
    let [hours, minutes, seconds] = clock.map(i64::from);
    let seconds = ((i64::from(days) * 24 + hours) * 60 + minutes) * 60 + seconds;
    let size = seconds.checked_mul(1_000_000)?.checked_add(micros.into())?;
    Some(if negative == 0 { size } else { -size })
}

/// Writes a TIME in binary, without its length: 12 bytes; `false`, and nothing is written, where MySQL has none such.
pub(super) fn put_time(micros: i64, out: &mut Vec<u8>) -> bool {
    let size = micros.unsigned_abs();
    if size > LONGEST_TIME {
        return false;
    }
    let (seconds, part) = (size / 1_000_000, (size % 1_000_000) as u32);
    let (days, of_day) = ((seconds / 86_400) as u32, seconds % 86_400);
    out.push(u8::from(micros < 0));
    out.extend_from_slice(&days.to_le_bytes());
    out.extend_from_slice(&[(of_day / 3600) as u8, (of_day / 60 % 60) as u8, (of_day % 60) as u8]);
    out.extend_from_slice(&part.to_le_bytes());
    true
}

/// Writes a TIME as text; `false` as above.
pub(super) fn write_time(micros: i64, out: &mut Vec<u8>) -> bool {
    micros.unsigned_abs() <= LONGEST_TIME && calendar::write_time(micros, out).is_ok()
}

/// Year, month and day, where MySQL has them: in the years 1 to 9999.
fn civil(days: i64) -> Option<(u16, u8, u8)> {
    let (year, month, day) = civil_from_days(days);
    (1..=9999).contains(&year).then_some((year as u16, month as u8, day as u8))
}

/// Writes a date in binary, without its length; `false`, and nothing is written, where MySQL has no such date.
pub(super) fn put_date(days: i32, out: &mut Vec<u8>) -> bool {
    let Some((year, month, day)) = civil(days.into()) else { return false };
    let [low, high] = year.to_le_bytes();
    out.extend_from_slice(&[low, high, month, day]);
    true
}

/// Writes a time in binary, without its length: 11 bytes; `false`, and nothing is written, where MySQL has none such.
pub(super) fn put_timestamp(micros: i64, out: &mut Vec<u8>) -> bool {
    let Ok(days) = i32::try_from(micros.div_euclid(DAY)) else { return false };
    if !put_date(days, out) {
        return false;
    }
    let of_day = micros.rem_euclid(DAY);
    let seconds = of_day / 1_000_000;
    out.extend_from_slice(&[(seconds / 3600) as u8, (seconds / 60 % 60) as u8, (seconds % 60) as u8]);
    out.extend_from_slice(&((of_day % 1_000_000) as u32).to_le_bytes());
    true
}

/// Writes a date as text; `false` as above.
pub(super) fn write_date(days: i32, out: &mut Vec<u8>) -> bool {
    civil(days.into()).is_some_and(|(year, month, day)| write!(out, "{year:04}-{month:02}-{day:02}").is_ok())
}

/// Writes a time as text, without a zone; `false` as above.
pub(super) fn write_timestamp(micros: i64, out: &mut Vec<u8>) -> bool {
    let Ok(days) = i32::try_from(micros.div_euclid(DAY)) else { return false };
    if !write_date(days, out) {
        return false;
    }
    let of_day = micros.rem_euclid(DAY);
    let (seconds, part) = (of_day / 1_000_000, of_day % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    write!(out, " {hour:02}:{minute:02}:{second:02}.{part:06}").is_ok()
}
