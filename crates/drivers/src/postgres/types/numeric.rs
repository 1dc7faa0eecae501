//! Decimal numbers in their text and binary forms (`numeric_send` and `numeric_recv` in PostgreSQL's
//! `numeric.c`: digits to the base of 10,000, aligned at the decimal point).

use std::fmt::Write as _;

use crate::contract::value::Value;

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITE: u16 = 0xD000;
const NEGATIVE_INFINITE: u16 = 0xF000;
/// What a numeric can hold: digits before and behind the point (manual, section 8.1.2).
const MOST_WHOLE: usize = 131_072;
const MOST_PART: usize = 16_383;

/// A number of at most two decimals as the exact value that its shortest text stands for. A script has its amounts of
/// money as floats, and the text of a float takes longer to find than all the rest of a parameter.
#[inline]
pub(super) fn cents(number: f64) -> Option<Value<'static>> {
    /// Every decimal of 15 digits is the shortest text of a float.
    const EXACT: f64 = 1e15;
    let hundredths = (number * 100.0).round();
    if hundredths.abs() >= EXACT || hundredths / 100.0 != number {
        return None;
    }
    let (mut units, mut scale) = (hundredths as i64, 2);
    while scale > 0 && units % 10 == 0 {
        (units, scale) = (units / 10, scale - 1);
    }
    Some(Value::Decimal { units, scale })
}

/// Writes `units / 10^scale` in binary.
pub(super) fn from_decimal(units: i64, scale: u8, out: &mut Vec<u8>) {
    let scale = scale.min(18);
    // Padded so that the digits behind the point come in whole groups of four.
    let behind = scale.div_ceil(4);
    let mut wide = u128::from(units.unsigned_abs()) * 10_u128.pow(u32::from(behind * 4 - scale));
    let mut digits = [0_u16; 12];
    let mut count = 0;
    // Dividing is slow where it need not be by a register.
    while wide > u128::from(u64::MAX) {
        digits[count] = (wide % 10_000) as u16;
        wide /= 10_000;
        count += 1;
    }
    let mut rest = wide as u64;
    while rest > 0 {
        digits[count] = (rest % 10_000) as u16;
        rest /= 10_000;
        count += 1;
    }
    let trailing = digits[..count].iter().take_while(|digit| **digit == 0).count();
    let sign = if units < 0 { NEGATIVE } else { 0 };
    let weight = if count == 0 { 0 } else { count as i16 - i16::from(behind) - 1 };
    put_head(count - trailing, weight, sign, scale.into(), out);
    for digit in digits[trailing..count].iter().rev() {
        out.extend_from_slice(&digit.to_be_bytes());
    }
}

/// Writes a number given as plain digits, or `NaN`, or an infinity, in binary; `false`, and nothing is written,
/// where it is not that.
pub(super) fn from_text(text: &str, out: &mut Vec<u8>) -> bool {
    let special = match text.to_ascii_lowercase().as_str() {
        "nan" => Some(NAN),
        "infinity" | "inf" => Some(INFINITE),
        "-infinity" | "-inf" => Some(NEGATIVE_INFINITE),
        _ => None,
    };
    if let Some(sign) = special {
        put_head(0, 0, sign, 0, out);
        return true;
    }
    let (sign, size) = match text.strip_prefix('-') {
        Some(size) => (NEGATIVE, size),
        None => (0, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, part) = size.split_once('.').unwrap_or((size, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = are_digits(whole) && are_digits(part) && !(whole.is_empty() && part.is_empty());
    let whole = whole.trim_start_matches('0');
    if !is_number || whole.len() > MOST_WHOLE || part.len() > MOST_PART {
        return false;
    }
    let mut digits = groups(whole, part);
    let leading = digits.iter().take_while(|digit| **digit == 0).count();
    let weight = (whole.len().div_ceil(4) as i32 - 1 - leading as i32) as i16;
    digits.drain(..leading);
    let used = digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
    digits.truncate(used);
    let (weight, sign) = if used == 0 { (0, 0) } else { (weight, sign) };
    put_head(used, weight, sign, part.len() as u16, out);
    for digit in digits {
        out.extend_from_slice(&digit.to_be_bytes());
    }
    true
}

/// Digits in groups of four, aligned at the point.
fn groups(whole: &str, part: &str) -> Vec<u16> {
    let number = |group: &[u8]| group.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
    let before = whole.as_bytes().rchunks(4).rev().map(number);
    let behind = part.as_bytes().chunks(4).map(|group| number(group) * 10_u16.pow(4 - group.len() as u32));
    before.chain(behind).collect()
}

/// The text of a number in binary, as `numeric_out` has it; `None` where the bytes are none.
pub(super) fn to_text(cell: &[u8]) -> Option<String> {
    let (words, odd) = cell.as_chunks::<2>();
    let word = |at: usize| words.get(at).map(|word| u16::from_be_bytes(*word));
    let (count, weight, sign, scale) = (word(0)?, i32::from(word(1)? as i16), word(2)?, word(3)?);
    let digits = words.get(4..).filter(|digits| odd.is_empty() && digits.len() == usize::from(count))?;
    match sign {
        NAN => return Some("NaN".to_owned()),
        INFINITE => return Some("Infinity".to_owned()),
        NEGATIVE_INFINITE => return Some("-Infinity".to_owned()),
        0 | NEGATIVE if usize::from(scale) <= MOST_PART => {}
        _ => return None,
    }
    let mut text = String::new();
    // The group of four digits whose weight is this power of 10,000.
    let group = |power: i32| {
        let at = usize::try_from(weight - power).ok();
        at.and_then(|at| digits.get(at)).map_or(0, |digit| u16::from_be_bytes(*digit))
    };
    let begin = if count == 0 { 0 } else { weight.max(0) };
    for power in (0..=begin).rev() {
        put_group(group(power), &mut text);
    }
    let whole = text.trim_start_matches('0');
    text = if whole.is_empty() { "0".to_owned() } else { whole.to_owned() };
    if scale > 0 {
        text.push('.');
        let end = text.len() + usize::from(scale);
        for power in 1..=i32::from(scale.div_ceil(4)) {
            put_group(group(-power), &mut text);
        }
        text.truncate(end);
    }
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    if sign == NEGATIVE && !is_zero {
        text.insert(0, '-');
    }
    digits.iter().all(|digit| u16::from_be_bytes(*digit) < 10_000).then_some(text)
}

fn put_group(digits: u16, text: &mut String) {
    // Writing into a text cannot fail.
    let _ = write!(text, "{digits:04}");
}

fn put_head(count: usize, weight: i16, sign: u16, scale: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&(count as u16).to_be_bytes());
    out.extend_from_slice(&weight.to_be_bytes());
    out.extend_from_slice(&sign.to_be_bytes());
    out.extend_from_slice(&scale.to_be_bytes());
}
