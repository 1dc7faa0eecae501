//! What values look like on the wire, and that no bytes break the decoders.

use proptest::prelude::*;

use super::*;
use crate::contract::rows::Rows;
use crate::mysql::wire::Definition;

fn definition(kind: u8, flags: u16) -> Definition<'static> {
    Definition { name: b"c", charset: CHARSET_BINARY, kind, flags }
}

/// Reads a cell of a binary row of one column.
fn read(kind: u8, flags: u16, cell: &[u8]) -> Result<String, String> {
    let columns = std::rc::Rc::new(columns([definition(kind, flags)].into_iter(), false));
    let mut rows = Rows::default();
    let result = rows.begin(&columns);
    let payload = [&[0, 0], cell].concat();
    push_binary_row(&columns, &payload, &mut rows).map_err(|error| error.to_string())?;
    Ok(format!("{:?}", rows.value(result, 0, 0).unwrap()))
}

fn comes_back(value: Value<'_>) -> Result<(), TestCaseError> {
    let mut cell = Vec::new();
    let [kind, flag] = encode(value, &mut cell).unwrap();
    let flags = if flag == 0 { 0 } else { FLAG_UNSIGNED };
    prop_assert_eq!(read(kind, flags, &cell).unwrap(), format!("{value:?}"));
    Ok(())
}

proptest! {
    #[test]
    fn parameters_are_read_as_what_they_were(
        number in any::<i64>(), float in -1e300..1e300_f64, days in -719_162..=2_932_896_i32,
        micros in -62_135_596_800_000_000..253_402_300_800_000_000_i64,
        time in -3_020_399_000_000_i64..=3_020_399_000_000,
        bytes in prop::collection::vec(any::<u8>(), 0..300), digits in "-?[0-9]{1,40}\\.[0-9]{1,20}",
    ) {
        comes_back(Value::Int(number))?;
        comes_back(Value::whole(number as u64))?;
        comes_back(Value::Time(time))?;
        comes_back(Value::Float(float))?;
        comes_back(Value::Date(days))?;
        comes_back(Value::Timestamp(micros))?;
        comes_back(Value::Bytes(&bytes))?;
        comes_back(Value::Numeric(&digits))?;
    }

    #[test]
    fn whole_numbers_without_a_sign_are_exact(number in any::<u64>()) {
        let expected = format!("{:?}", Value::whole(number));
        prop_assert_eq!(&read(field::LONGLONG, FLAG_UNSIGNED, &number.to_le_bytes()).unwrap(), &expected);
        let bits = [&[8][..], &number.to_be_bytes()].concat();
        prop_assert_eq!(&read(field::BIT, FLAG_UNSIGNED, &bits).unwrap(), &expected);
    }

    #[test]
    fn a_literal_ends_where_its_quotes_do(text in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut literal = Vec::new();
        write_literal(Value::Text(&text), &mut literal).unwrap();
        let read = match literal.strip_prefix(b"_utf8mb4 X'") {
            Some(hex) => {
                let digits = std::str::from_utf8(hex.strip_suffix(b"'").unwrap()).unwrap();
                let pairs = (0..digits.len()).step_by(2);
                pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
            }
            None => {
                // Neither quotes alone nor backslashes stand within: every `sql_mode` reads the same.
                let inside = literal.strip_prefix(b"'").and_then(|rest| rest.strip_suffix(b"'")).unwrap();
                prop_assert!(!inside.contains(&b'\\'));
                let mut plain = Vec::new();
                let mut bytes = inside.iter();
                while let Some(byte) = bytes.next() {
                    if *byte == b'\'' {
                        prop_assert_eq!(bytes.next(), Some(&b'\''));
                    }
                    plain.push(*byte);
                }
                plain
            }
        };
        prop_assert_eq!(read, text);
    }

    #[test]
    fn no_row_breaks_it(kind in any::<u8>(), flags in any::<u16>(), cell in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = read(kind, flags, &cell);
        let _ = decode(u32::from(kind) | u32::from(flags) << 8, &cell);
    }
}

#[test]
fn what_the_calendar_does_not_have_is_text() {
    for (kind, cell, expected) in [
        (field::DATE, &[0][..], "0000-00-00"),
        (field::DATE, &[4, 0xe8, 7, 0, 0], "2024-00-00"),
        (field::DATE, &[4, 0xe7, 7, 2, 29], "2023-02-29"),
        (field::DATETIME, &[0], "0000-00-00 00:00:00"),
    ] {
        assert_eq!(read(kind, 0, cell).unwrap(), format!("{:?}", Value::Text(expected.as_bytes())));
    }
    for (cell, expected) in [
        (&[0][..], 0),
        (&[8, 1, 34, 0, 0, 0, 22, 59, 59], -3_020_399_000_000),
        (&[12, 0, 0, 0, 0, 0, 1, 2, 3, 64, 226, 1, 0], 3_723_123_456),
    ] {
        assert_eq!(read(field::TIME, 0, cell).unwrap(), format!("{:?}", Value::Time(expected)));
    }
    for cell in [&[][..], &[5], &[3, 0, 0, 0]] {
        assert!(read(field::TIME, 0, cell).is_err(), "{cell:?}");
    }
}

#[test]
fn values_that_mysql_does_not_have_are_refused() {
    for value in [
        Value::Float(f64::NAN),
        Value::Float(f64::NEG_INFINITY),
        Value::Numeric("NaN"),
        Value::Numeric("1 OR 1=1"),
        Value::Numeric(""),
        Value::Numeric("1e"),
        Value::Date(i32::MAX),
        Value::Date(-719_163),
        Value::Timestamp(i64::MAX),
        Value::Time(i64::MIN),
    ] {
        let mut out = b"before".to_vec();
        assert!(encode(value, &mut out.clone()).is_err(), "{value:?}");
        assert!(write_literal(value, &mut out).is_err(), "{value:?}");
        assert!(write_cell(value, false, &mut out).is_err(), "{value:?}");
        assert_eq!(out, b"before");
    }
}
