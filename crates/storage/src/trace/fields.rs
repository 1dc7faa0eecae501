//! Fields of a line: numbers and times, checked, and how a message shows them.

use crate::Operation;

/// The most bytes of a field that a message shows.
const SHOWN: usize = 40;
/// Bytes of a sector, in the formats that count in sectors.
const SECTOR: u64 = 512;

/// A field as a message shows it: printable, and not long.
pub(super) fn show(field: &[u8]) -> String {
    let cut = &field[..field.len().min(SHOWN)];
    let more = if cut.len() < field.len() { "…" } else { "" };
    format!("`{}{more}`", cut.escape_ascii())
}

/// A number without a sign.
pub(super) fn unsigned(field: &[u8], what: &str) -> Result<u64, String> {
    let number = field.iter().try_fold(0_u64, |number, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    });
    match number {
        Some(number) if !field.is_empty() => Ok(number),
        _ => Err(format!("{what} is {} (allowed: a whole number up to {})", show(field), u64::MAX)),
    }
}

/// A number without a sign that fits 32 bits.
pub(super) fn small(field: &[u8], what: &str) -> Result<u32, String> {
    let number = unsigned(field, what)?;
    u32::try_from(number).map_err(|_| format!("{what} is {number} (allowed: up to {})", u32::MAX))
}

/// A number of sectors, in bytes.
pub(super) fn sectors(field: &[u8], what: &str) -> Result<u64, String> {
    let number = unsigned(field, what)?;
    number.checked_mul(SECTOR).ok_or_else(|| format!("{what} is {number} sectors, which is too far"))
}

/// Seconds with a fraction, in microseconds; what is below them is cut off.
pub(super) fn seconds(field: &[u8], what: &str) -> Result<i64, String> {
    let wrong = || format!("{what} is {} (allowed: seconds such as 12.345678)", show(field));
    let point = field.iter().position(|byte| *byte == b'.').unwrap_or(field.len());
    let (whole, fraction) = (&field[..point], field.get(point + 1..).unwrap_or_default());
    if !fraction.iter().all(u8::is_ascii_digit) || (point < field.len() && fraction.is_empty()) {
        return Err(wrong());
    }
    let mut micros: i64 = 0;
    for place in 0..6 {
        micros = micros * 10 + i64::from(fraction.get(place).map_or(0, |digit| digit - b'0'));
    }
    let whole = unsigned(whole, what).map_err(|_| wrong())?;
    i64::try_from(whole)
        .ok()
        .and_then(|whole| whole.checked_mul(1_000_000)?.checked_add(micros))
        .ok_or_else(wrong)
}

/// A whole number of some unit, of which `per_us` make a microsecond, in microseconds.
pub(super) fn ticks(field: &[u8], what: &str, per_us: u64) -> Result<i64, String> {
    // What is divided by more than one always fits.
    i64::try_from(unsigned(field, what)? / per_us)
        .map_err(|_| format!("{what} is {}, which is too late", show(field)))
}

/// `R` or `W`, `Read` or `Write`, as the format writes them, in any case.
pub(super) fn read_or_write(field: &[u8], read: &str, write: &str) -> Result<Operation, String> {
    if field.eq_ignore_ascii_case(read.as_bytes()) {
        Ok(Operation::Read)
    } else if field.eq_ignore_ascii_case(write.as_bytes()) {
        Ok(Operation::Write)
    } else {
        Err(format!("the operation is {} (allowed: {read}, {write})", show(field)))
    }
}

/// A field as text.
pub(super) fn text<'a>(field: &'a [u8], what: &str) -> Result<&'a str, String> {
    match std::str::from_utf8(field) {
        Ok(text) if !text.is_empty() => Ok(text),
        _ => Err(format!("{what} is {} (allowed: text in UTF-8)", show(field))),
    }
}

/// Exactly so many fields between commas, blanks around them left out; more only where `more` says so.
pub(super) fn commas<const N: usize>(line: &[u8], more: bool) -> Result<[&[u8]; N], String> {
    let mut found: [&[u8]; N] = [b""; N];
    let mut count = 0;
    for field in line.split(|byte| *byte == b',') {
        if let Some(place) = found.get_mut(count) {
            *place = field.trim_ascii();
        }
        count += 1;
    }
    if count == N || (more && count > N) {
        return Ok(found);
    }
    let or_more = if more { " or more" } else { "" };
    Err(format!("{count} fields between commas (allowed: {N}{or_more}) in {}", show(line)))
}

/// Words between blanks; what is beyond the last that is wanted is left out.
pub(super) fn words<const N: usize>(line: &[u8]) -> ([&[u8]; N], usize) {
    let mut found: [&[u8]; N] = [b""; N];
    let mut count = 0;
    for word in line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).take(N) {
        found[count] = word;
        count += 1;
    }
    (found, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_their_range_are_refused() {
        assert_eq!(unsigned(b"18446744073709551615", "n"), Ok(u64::MAX));
        for wrong in ["18446744073709551616", "", "-1", "1.5", "0x1", "1 "] {
            assert!(unsigned(wrong.as_bytes(), "n").is_err(), "{wrong}");
        }
        assert!(small(b"4294967296", "n").is_err());
        assert!(sectors(b"36028797018963968", "n").is_err());
    }

    #[test]
    fn seconds_become_microseconds() {
        assert_eq!(seconds(b"12.3456789", "t"), Ok(12_345_678));
        assert_eq!(seconds(b"0.5", "t"), Ok(500_000));
        assert_eq!(seconds(b"7", "t"), Ok(7_000_000));
        for wrong in ["", ".", "1.", "-1", "1.2.3", "1e3", "9223372036855", "12:00:01.5"] {
            assert!(seconds(wrong.as_bytes(), "t").is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_message_shows_no_more_than_is_printable_and_short() {
        assert_eq!(show(b"a\x1b[31m"), "`a\\x1b[31m`");
        assert!(show(&[b'x'; 10_000]).len() < 60);
    }
}
