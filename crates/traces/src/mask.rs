//! Values in the place of values: the form stays, and the same value has the same replacement throughout a trace.

use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::normal::Kind;

/// Replaces values by a keyed hash. The key is random and is kept nowhere else, so that no replacement can be undone.
pub struct Mask(hmac::Key);

impl Mask {
    /// A mask with a new key.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub fn new() -> Result<Self, String> {
        let mut key = [0; 16];
        SystemRandom::new().fill(&mut key).map_err(|_| "the system has no random numbers".to_owned())?;
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// The replacement of a value: digits by digits, letters by letters of the same case, other characters as they are;
    /// a number keeps its sign and its count of digits, a date is a date. NULL, true and false stay.
    #[must_use]
    pub fn masked(&self, kind: Kind, value: &str) -> String {
        if is_constant(kind, value) {
            return value.to_owned();
        }
        let mut noise = Noise { key: &self.0, value, block: 0, bytes: Vec::new() };
        let is_number = kind == Kind::Number || (kind == Kind::Bound && value.parse::<f64>().is_ok());
        let form = if is_number && !value.contains(['x', 'X']) {
            Form::Number
        } else if kind == Kind::Bits {
            Form::Bits
        } else if is_hex(kind, value) {
            Form::Hex
        } else {
            Form::Text
        };
        // What tells the base of a number or the form of a value is no digit of it.
        let prefix = ["\\x", "0x", "0X", "-0x", "0b", "0o"]
            .into_iter()
            .find(|prefix| form == Form::Hex && value.starts_with(prefix));
        let prefix = prefix.map_or(0, str::len);
        let mut out = value[..prefix].to_owned();
        let mut within = false;
        for next in value[prefix..].chars() {
            out.push(replaced(next, form, within, &mut noise));
            within = next.is_ascii_digit() || (within && matches!(next, '.' | '_'));
        }
        if form == Form::Text { keep_dates(value, out, &mut noise) } else { out }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Number,
    Hex,
    Bits,
    Text,
}

fn is_constant(kind: Kind, value: &str) -> bool {
    let names: &[&str] =
        if kind == Kind::Bound { &["null", "true", "false", "t", "f"] } else { &["null", "true", "false"] };
    kind == Kind::Constant || names.iter().any(|name| value.eq_ignore_ascii_case(name))
}

/// Whether letters of a value are digits of base 16.
fn is_hex(kind: Kind, value: &str) -> bool {
    let is_uuid = value.len() == 36
        && value.bytes().enumerate().all(|(at, byte)| {
            if matches!(at, 8 | 13 | 18 | 23) { byte == b'-' } else { byte.is_ascii_hexdigit() }
        });
    matches!(kind, Kind::Hex | Kind::Number) || is_uuid || value.starts_with("\\x")
}

fn replaced(next: char, form: Form, within: bool, noise: &mut Noise<'_>) -> char {
    match next {
        '0' | '1' if form == Form::Bits => char::from(b'0' + noise.below(2)),
        '0' if !within => '0',
        '1'..='9' if !within => char::from(b'1' + noise.below(9)),
        '0'..='9' => char::from(b'0' + noise.below(10)),
        // The exponent of a number, and words such as Infinity.
        _ if form == Form::Number => next,
        'a'..='f' if form == Form::Hex => char::from(b'a' + noise.below(6)),
        'A'..='F' if form == Form::Hex => char::from(b'A' + noise.below(6)),
        _ if next.is_uppercase() => char::from(b'A' + noise.below(26)),
        _ if next.is_alphabetic() => char::from(b'a' + noise.below(26)),
        _ if next.is_numeric() => char::from(b'0' + noise.below(10)),
        _ => next,
    }
}

/// Puts dates and times of day that can be into the places of those that were there.
fn keep_dates(value: &str, out: String, noise: &mut Noise<'_>) -> String {
    if !value.is_ascii() || !value.contains(['-', ':']) {
        return out;
    }
    let digits = |at: usize, count: usize| {
        value.as_bytes().get(at..at + count).is_some_and(|found| found.iter().all(u8::is_ascii_digit))
    };
    let is = |at: usize, byte: u8| value.as_bytes().get(at) == Some(&byte);
    let mut bytes = out.into_bytes();
    let mut set = |at: usize, number: u8| {
        bytes[at] = b'0' + number / 10;
        bytes[at + 1] = b'0' + number % 10;
    };
    for at in 0..value.len() {
        let begins = at == 0 || !value.as_bytes()[at - 1].is_ascii_digit();
        if begins
            && digits(at, 4)
            && is(at + 4, b'-')
            && digits(at + 5, 2)
            && is(at + 7, b'-')
            && digits(at + 8, 2)
        {
            set(at, 19 + noise.below(2));
            set(at + 5, 1 + noise.below(12));
            set(at + 8, 1 + noise.below(28));
        }
        if begins && digits(at, 2) && is(at + 2, b':') && digits(at + 3, 2) {
            set(at, noise.below(24));
            set(at + 3, noise.below(60));
            if is(at + 5, b':') && digits(at + 6, 2) {
                set(at + 6, noise.below(60));
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Bytes that depend on the key and the value alone.
struct Noise<'a> {
    key: &'a hmac::Key,
    value: &'a str,
    block: u32,
    bytes: Vec<u8>,
}

impl Noise<'_> {
    fn below(&mut self, limit: u8) -> u8 {
        if self.bytes.len() < 2 {
            let mut context = hmac::Context::with_key(self.key);
            context.update(&self.block.to_le_bytes());
            context.update(self.value.as_bytes());
            self.bytes.extend_from_slice(context.sign().as_ref());
            self.block += 1;
        }
        let pair = [self.bytes.pop().unwrap_or_default(), self.bytes.pop().unwrap_or_default()];
        (u16::from_le_bytes(pair) % u16::from(limit)) as u8
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_form_stays() {
        let mask = Mask::new().unwrap();
        for (kind, value, form) in [
            (Kind::Number, "-12345", "-ddddd"),
            (Kind::Number, "0.25", "0.dd"),
            (Kind::Number, "6.02e23", "d.ddedd"),
            (Kind::Text, "Anna Bär, 17", "Aaaa Aaa, dd"),
            (Kind::Text, "日本", "aa"),
            (Kind::Bound, "42", "dd"),
            (Kind::Bits, "0110", "dddd"),
            (Kind::Bound, "t", "t"),
            (Kind::Constant, "true", "true"),
        ] {
            let masked = mask.masked(kind, value);
            let shape = |text: &str| -> String {
                let of = |next: char| match next {
                    '0'..='9' => 'd',
                    'A'..='Z' => 'A',
                    'a'..='z' => 'a',
                    other => other,
                };
                text.chars().map(of).collect()
            };
            assert_eq!(shape(&masked).len(), shape(form).len(), "{value}: {masked}");
            assert_eq!(shape(&masked), shape(&form.replace('d', "0")), "{value}: {masked}");
            assert_eq!(masked, mask.masked(kind, value));
        }
        let other = Mask::new().unwrap();
        assert_ne!(
            mask.masked(Kind::Text, "a long enough text"),
            other.masked(Kind::Text, "a long enough text")
        );
    }

    #[test]
    fn dates_and_identifiers_stay_valid() {
        let mask = Mask::new().unwrap();
        let date = mask.masked(Kind::Text, "2024-02-29 23:59:58.123+01");
        let number = |from: usize, to: usize| date[from..to].parse::<u32>().unwrap();
        assert!((1..=12).contains(&number(5, 7)) && (1..=28).contains(&number(8, 10)), "{date}");
        assert!(number(11, 13) < 24 && number(14, 16) < 60 && number(17, 19) < 60, "{date}");
        let uuid = mask.masked(Kind::Bound, "123e4567-e89b-12d3-a456-426614174000");
        assert!(uuid.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()), "{uuid}");
        assert!(mask.masked(Kind::Bound, "\\xdeadbeef").starts_with("\\x"));
    }

    proptest! {
        #[test]
        fn any_value_is_taken(value in any::<String>(), kind in 0..Kind::ALL.len()) {
            let masked = Mask::new().unwrap().masked(Kind::ALL[kind], &value);
            prop_assert_eq!(masked.chars().count(), value.chars().count());
        }
    }
}
