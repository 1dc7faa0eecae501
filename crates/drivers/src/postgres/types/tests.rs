//! What values look like on the wire, and that no bytes break the decoders.

use super::encode::write_text;
use super::*;
use crate::calendar;
use proptest::prelude::*;

fn encoded(of: Type, value: Value<'_>) -> (bool, Vec<u8>) {
    let mut out = Vec::new();
    let binary = encode(of, value, &mut out).unwrap();
    (binary, out)
}

/// Reads the binary form of a numeric, as an independent check.
fn numeric_text(bytes: &[u8]) -> String {
    let field = |at: usize| i16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let (count, weight, sign, scale) = (field(0), i32::from(field(2)), field(4), field(6) as usize);
    let digit = |place: i32| {
        let at = weight - place;
        if at < 0 || at >= i32::from(count) { 0 } else { field(8 + 2 * at as usize) }
    };
    let digits = |places: Vec<i32>| {
        places.into_iter().map(|place| format!("{:04}", digit(place))).collect::<Vec<_>>().concat()
    };
    let whole = digits((0..=weight.max(0)).rev().collect());
    let part = digits((1..=5).map(|place| -place).collect());
    let whole = whole.trim_start_matches('0');
    let sign = if sign == 0 { "" } else { "-" };
    let whole = if whole.is_empty() { "0" } else { whole };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{}", &part[..scale]) }
}

proptest! {
    #[test]
    fn decimals_are_the_same_number_in_binary_and_in_text(units in any::<i64>(), scale in 0_u8..=18) {
        let (mut binary, mut text) = (Vec::new(), Vec::new());
        numeric::from_decimal(units, scale, &mut binary);
        write_text(Value::Decimal { units, scale }, &mut text);
        let text = String::from_utf8(text).unwrap();
        let negative_zero = units == 0 && text.starts_with('-');
        prop_assert!(!negative_zero);
        prop_assert_eq!(numeric_text(&binary), text);
    }

    #[test]
    fn binary_values_come_back(int in any::<i64>(), float in any::<f64>(), micros in -1_000_000_000_000_000_i64..4_000_000_000_000_000, uuid in any::<[u8; 16]>(), bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let cases = [
            (Type::Int8, Value::Int(int)),
            (Type::Float8, Value::Float(float)),
            (Type::Timestamp, Value::Timestamp(micros)),
            (Type::Date, Value::Date((micros / calendar::DAY) as i32)),
            (Type::Uuid, Value::Uuid(uuid)),
            (Type::Bytea, Value::Bytes(&bytes)),
            (Type::Bool, Value::Bool(int % 2 == 0)),
        ];
        for (of, value) in cases {
            let (binary, out) = encoded(of, value);
            let back = decode(of.kind(binary), &out);
            if float.is_nan() && of == Type::Float8 {
                prop_assert!(matches!(back, Value::Float(number) if number.is_nan()));
            } else {
                prop_assert_eq!(back, value);
            }
        }
    }

    #[test]
    fn no_cell_breaks_the_decoder(kind in any::<u32>(), cell in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = decode(kind % 40, &cell);
        let _ = bytea_from_text(&cell);
    }
}

#[test]
fn whole_floats_are_integers_and_others_are_refused() {
    assert_eq!(encoded(Type::Int4, Value::Float(7.0)), (true, vec![0, 0, 0, 7]));
    let error = encode(Type::Int4, Value::Float(7.5), &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "7.5 does not fit the type integer");
    assert!(encode(Type::Int4, Value::Int(3_000_000_000), &mut Vec::new()).is_err());
    assert!(encode(Type::Int4, Value::Bool(true), &mut Vec::new()).is_err());
    assert!(encode(Type::Bool, Value::Int(1), &mut Vec::new()).is_err());
}

#[test]
fn numbers_are_seconds_where_a_time_is_wanted() {
    let (_, from_number) = encoded(Type::Timestamp, Value::Float(1_700_000_000.25));
    let (_, from_time) = encoded(Type::Timestamp, Value::Timestamp(1_700_000_000_250_000));
    assert_eq!(from_number, from_time);
    assert_eq!(encoded(Type::Timestamp, Value::Text(b"now")), (false, b"now".to_vec()));
}

#[test]
fn literals_cannot_be_broken_out_of() {
    let literal = |of, value| {
        let mut out = Vec::new();
        write_literal(of, value, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(literal(Type::Text, Value::Text(b"o'clock")), "'o''clock'");
    assert_eq!(literal(Type::Text, Value::Text(b"a\\'; DROP")), " E'a\\\\''; DROP'");
    assert_eq!(literal(Type::Int4, Value::Float(-3.0)), "'-3'");
    assert_eq!(literal(Type::Timestamp, Value::Int(0)), "'1970-01-01 00:00:00.000000+00'");
    assert_eq!(literal(Type::Bytea, Value::Bytes(&[1, 255])), " E'\\\\x01ff'");
    assert_eq!(literal(Type::Text, Value::Null), "NULL");
    assert!(write_literal(Type::Text, Value::Text(b"a\0b"), &mut Vec::new()).is_err());
}

#[test]
fn bytea_text_is_read() {
    assert_eq!(bytea_from_text(b"\\x01ff"), Some(vec![1, 255]));
    assert_eq!(bytea_from_text(b"\\xzz"), None);
    assert_eq!(bytea_from_text(b"01ff"), None);
}
