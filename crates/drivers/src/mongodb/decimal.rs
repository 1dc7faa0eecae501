//! Decimal numbers of 128 bits: IEEE 754-2008 in its binary encoding, with the lowest byte first
//! (<https://github.com/mongodb/specifications/blob/master/source/bson-decimal128/decimal128.md>).

use std::io::Write as _;

use crate::contract::value::Value;

/// What is added to exponents.
const BIAS: i32 = 6176;
const LARGEST_EXPONENT: i32 = 6111;
/// The largest coefficient: 34 digits.
const LARGEST: u128 = 10_u128.pow(34) - 1;
/// Behind the exponent's place.
const COEFFICIENT: u128 = (1 << 113) - 1;
const INFINITY: u128 = 0x78 << 120;
const NAN: u128 = 0x7C << 120;

/// The number `size * 10^exponent`. The coefficient has 34 digits at most, and the exponent is at home in 128 bits.
pub(super) fn encode(is_negative: bool, size: u128, exponent: i32) -> [u8; 16] {
    let bits = u128::from(is_negative) << 127 | ((exponent + BIAS) as u128) << 113 | size;
    bits.to_le_bytes()
}

/// The number that a text is; `None` where it is none, or has more digits than there is room for.
pub(super) fn parse(text: &str) -> Option<[u8; 16]> {
    let (is_negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let sign = u128::from(is_negative) << 127;
    match rest.to_ascii_lowercase().as_str() {
        "nan" => return Some(NAN.to_le_bytes()),
        "inf" | "infinity" => return Some((sign | INFINITY).to_le_bytes()),
        _ => {}
    }
    let (digits, exponent) = match rest.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (rest, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut size = 0_u128;
    for digit in whole.bytes().chain(fraction.bytes()) {
        let digit = char::from(digit).to_digit(10)?;
        size = size.checked_mul(10)?.checked_add(digit.into()).filter(|size| *size <= LARGEST)?;
    }
    let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    (-BIAS..=LARGEST_EXPONENT).contains(&exponent).then(|| encode(is_negative, size, exponent))
}

/// The number as a value; as text, in `scratch`, where it is large.
pub(super) fn value(bytes: [u8; 16], scratch: &mut Vec<u8>) -> Value<'_> {
    let bits = u128::from_le_bytes(bytes);
    let (is_negative, size, exponent) = parts(bits);
    if bits & INFINITY != INFINITY
        && let Ok(scale @ 0..=18) = u8::try_from(-exponent)
        && let Ok(units) = i64::try_from(size)
        && !(is_negative && units == 0)
    {
        return Value::Decimal { units: if is_negative { -units } else { units }, scale };
    }
    scratch.clear();
    write(bytes, scratch);
    Value::Numeric(std::str::from_utf8(scratch).unwrap_or("NaN"))
}

fn parts(bits: u128) -> (bool, u128, i32) {
    let is_negative = bits >> 127 == 1;
    // Coefficients of the other form have more than 34 digits, which stand for zero.
    if bits >> 125 & 3 == 3 {
        return (is_negative, 0, (bits >> 111 & 0x3FFF) as i32 - BIAS);
    }
    let size = Some(bits & COEFFICIENT).filter(|size| *size <= LARGEST).unwrap_or(0);
    (is_negative, size, (bits >> 113 & 0x3FFF) as i32 - BIAS)
}

/// Writes the number as text, as the specification has it.
pub(super) fn write(bytes: [u8; 16], out: &mut Vec<u8>) {
    let bits = u128::from_le_bytes(bytes);
    if bits & NAN == NAN {
        out.extend_from_slice(b"NaN");
        return;
    }
    let (is_negative, size, exponent) = parts(bits);
    if is_negative {
        out.push(b'-');
    }
    if bits & INFINITY == INFINITY {
        out.extend_from_slice(b"Infinity");
        return;
    }
    let digits = size.to_string();
    let scientific = exponent + digits.len() as i32 - 1;
    let point = digits.len() as i32 + exponent;
    // Writing into memory cannot fail.
    let _ = if exponent > 0 || scientific < -6 {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        write!(out, "{first}{dot}{rest}E{scientific:+}")
    } else if exponent == 0 {
        write!(out, "{digits}")
    } else if point > 0 {
        let (whole, fraction) = digits.split_at(point as usize);
        write!(out, "{whole}.{fraction}")
    } else {
        write!(out, "0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(bytes: [u8; 16]) -> String {
        let mut out = Vec::new();
        write(bytes, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// From the specification's own tests (`bson-corpus/tests/decimal128-1.json`).
    #[test]
    fn numbers_are_those_of_the_specification() {
        for (hexadecimal, shown) in [
            ("000000000000000000000000000040b0", "-0"),
            ("01000000000000000000000000004030", "1"),
            ("d2040000000000000000000000003430", "0.001234"),
            ("0000000000000000000000000000007c", "NaN"),
            ("00000000000000000000000000000078", "Infinity"),
            ("000000000000000000000000000000f8", "-Infinity"),
            ("0100000000000000000000000000fe5f", "1E+6111"),
        ] {
            let number = u128::from_str_radix(hexadecimal, 16).unwrap();
            assert_eq!(text(number.to_be_bytes()), shown);
            assert_eq!(parse(shown), Some(number.to_be_bytes()), "{shown}");
        }
    }

    #[test]
    fn what_is_no_number_or_has_no_room_is_refused() {
        let many = "1".repeat(35);
        for wrong in ["", "-", ".", "1e", "1x", "0x1", "1e99999", many.as_str()] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert!(parse(&"9".repeat(34)).is_some());
    }

    proptest! {
        #[test]
        fn a_decimal_comes_back(units in any::<i64>(), scale in 0_u8..=18) {
            prop_assume!(units != i64::MIN);
            let bytes = encode(units < 0, units.unsigned_abs().into(), -i32::from(scale));
            let mut scratch = Vec::new();
            prop_assert_eq!(value(bytes, &mut scratch), Value::Decimal { units, scale });
            prop_assert_eq!(parse(&text(bytes)), Some(bytes));
        }

        #[test]
        fn any_bits_are_a_number(bytes in any::<[u8; 16]>()) {
            let shown = text(bytes);
            prop_assert!(parse(&shown).is_some(), "{}", shown);
            value(bytes, &mut Vec::new());
        }
    }
}
