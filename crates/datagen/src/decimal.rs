//! Decimal numbers as workload files write them.

use nephoscope_drivers::ConfigError;

/// The most digits that a decimal can have behind its point.
pub const MAX_SCALE: u8 = 18;

/// The units `number * 10^scale` of a decimal number written as text, such as `-12.5`, exactly.
///
/// An error says why the text is no such number: it has more digits behind the point than the scale, or it
/// does not fit 64 bits.
pub fn decimal_units(text: &str, scale: u8) -> Result<i64, ConfigError> {
    let refuse = |why: &str| ConfigError(format!("{text:?} {why}"));
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return Err(refuse("is not a decimal number such as 12.50"));
    }
    let fraction = fraction.trim_end_matches('0');
    let Some(missing) = usize::from(scale).checked_sub(fraction.len()) else {
        return Err(refuse(&format!("has more than {scale} digits behind the point")));
    };
    let too_large = || refuse(&format!("is too large for 64 bits at {scale} digits behind the point"));
    let mut units = 0_i64;
    for digit in whole.bytes().chain(fraction.bytes()).chain(std::iter::repeat_n(b'0', missing)) {
        let digit = i64::from(digit - b'0');
        let next =
            units.checked_mul(10).and_then(|units| units.checked_add(if negative { -digit } else { digit }));
        units = next.ok_or_else(too_large)?;
    }
    Ok(units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_exact() {
        assert_eq!(decimal_units("0.07", 2).unwrap(), 7);
        assert_eq!(decimal_units("-12.5", 2).unwrap(), -1250);
        assert_eq!(decimal_units("300000", 2).unwrap(), 30_000_000);
        assert_eq!(decimal_units("1.500", 1).unwrap(), 15);
        assert_eq!(decimal_units("-9223372036854775808", 0).unwrap(), i64::MIN);
        assert_eq!(decimal_units(&0.1_f64.to_string(), 18).unwrap(), 100_000_000_000_000_000);
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let message = |text, scale| decimal_units(text, scale).unwrap_err().0;
        assert_eq!(message("0.125", 2), r#""0.125" has more than 2 digits behind the point"#);
        assert_eq!(message("1e3", 2), r#""1e3" is not a decimal number such as 12.50"#);
        assert_eq!(message("", 2), r#""" is not a decimal number such as 12.50"#);
        assert_eq!(
            message("92233720368547758.08", 2),
            r#""92233720368547758.08" is too large for 64 bits at 2 digits behind the point"#
        );
    }
}
