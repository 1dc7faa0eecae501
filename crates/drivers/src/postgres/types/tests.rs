//! What values look like on the wire, and that no bytes break the decoders.

use super::encode::write_text;
use super::*;
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
    fn numbers_are_the_same_in_binary_whether_they_come_as_decimals_or_as_text(
        units in any::<i64>(), scale in 0_u8..=18
    ) {
        let (mut from_decimal, mut from_text, mut text) = (Vec::new(), Vec::new(), Vec::new());
        numeric::from_decimal(units, scale, &mut from_decimal);
        write_text(Value::Decimal { units, scale }, &mut text);
        prop_assert!(numeric::from_text(std::str::from_utf8(&text).unwrap(), &mut from_text));
        prop_assert_eq!(from_text, from_decimal);
    }

    #[test]
    fn a_float_for_a_numeric_is_the_number_of_its_shortest_text(
        number in prop_oneof![
            any::<f64>(),
            any::<i64>().prop_map(|units| units as f64 / 100.0),
            (-100_000_i64..100_000).prop_map(|units| units as f64 / 100.0),
            (-1e15..1e15),
        ]
    ) {
        let mut text = Vec::new();
        if let Some(cents) = numeric::cents(number) {
            write_text(cents, &mut text);
            let shortest = if number == 0.0 { "0".to_owned() } else { number.to_string() };
            prop_assert_eq!(String::from_utf8(text).unwrap(), shortest);
        } else {
            let plain = number == (number * 100.0).round() / 100.0 && number.abs() < 9.99e12;
            prop_assert!(!plain, "{}", number);
        }
    }

    #[test]
    fn any_text_is_a_number_or_refused(text in "[-+]?[0-9eE.NaInfty ]{0,40}") {
        let mut out = Vec::new();
        let is_number = numeric::from_text(&text, &mut out);
        prop_assert_eq!(is_number, !out.is_empty());
        let size = text.strip_prefix(['-', '+']).unwrap_or(&text);
        let plain = size.chars().all(|next| next.is_ascii_digit() || next == '.')
            && size.matches('.').count() <= 1
            && size.contains(|next: char| next.is_ascii_digit());
        let special = ["nan", "inf", "infinity", "-inf", "-infinity"].contains(&&*text.to_ascii_lowercase());
        prop_assert_eq!(is_number, plain || special, "{}", text);
    }

    /// As a parameter, and in the two text forms that the simple mode and COPY have.
    #[test]
    fn values_of_every_type_come_back((of, value) in typed_value()) {
        let value = value.borrowed();
        let (binary, out) = encoded(of, value);
        same(decode(of.kind(binary), &out), value)?;
        prop_assert_eq!(binary, of.binary(), "{:?}", of);
        let mut text = Vec::new();
        write_text(value, &mut text);
        if of == Type::Bool {
            // The server writes one letter.
            text.truncate(1);
        }
        match bytea_from_text(&text).filter(|_| of == Type::Bytea) {
            Some(bytes) => same(Value::Bytes(&bytes), value)?,
            None => same(decode(of.kind(false), &text), value)?,
        }
        let (mut literal, mut cell) = (Vec::new(), Vec::new());
        text.clear();
        write_text(value, &mut text);
        write_literal(of, value, &mut literal).unwrap();
        write_copy_text(of, value, &mut cell).unwrap();
        prop_assert_eq!(&unescaped_literal(&literal), &text);
        prop_assert_eq!(&unescaped_cell(&cell), &text);
        prop_assert!(!cell.contains(&b'\n') && !cell.contains(&b'\t'));
    }

    #[test]
    fn bytes_that_are_no_value_are_given_as_they_are(
        kind in 0_u32..40, cell in prop::collection::vec(any::<u8>(), 0..40)
    ) {
        let lengths = [1, 2, 4, 8, 4, 4, 8, 0, 0, 16, 4, 8];
        let fixed = lengths.get(kind as usize / 2).filter(|length| kind % 2 == 1 && **length > 0);
        let value = decode(kind, &cell);
        if fixed.is_some_and(|length| *length != cell.len()) {
            prop_assert_eq!(value, Value::Text(&cell));
        }
        let _ = bytea_from_text(&cell);
    }

    #[test]
    fn any_value_is_encoded_or_refused_for_any_type(
        of in prop::sample::select(Type::ALL.to_vec()), (_, value) in typed_value()
    ) {
        let value = value.borrowed();
        let (mut bound, mut literal, mut copied, mut text) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let fits = encode(of, value, &mut bound).is_ok();
        prop_assert_eq!(write_literal(of, value, &mut literal).is_ok(), fits, "the modes differ");
        prop_assert_eq!(write_copy_text(of, value, &mut text).is_ok(), fits);
        prop_assert!(fits || encode_binary(of, value, &mut copied).is_err());
        prop_assert!(fits || bound.is_empty());
    }
}

/// A value that holds its own bytes.
#[derive(Clone, Debug)]
enum Owned {
    Plain(Value<'static>),
    Numeric(String),
    Text(String),
    Json(String),
    Bytes(Vec<u8>),
}

impl Owned {
    fn borrowed(&self) -> Value<'_> {
        match self {
            Self::Plain(value) => *value,
            Self::Numeric(text) => Value::Numeric(text),
            Self::Text(text) => Value::Text(text.as_bytes()),
            Self::Json(text) => Value::Json(text.as_bytes()),
            Self::Bytes(bytes) => Value::Bytes(bytes),
        }
    }
}

/// A type, and a value that a database could give of it.
fn typed_value() -> impl Strategy<Value = (Type, Owned)> {
    let plain = |of, strategy: BoxedStrategy<Value<'static>>| {
        strategy.prop_map(move |value| (of, Owned::Plain(value))).boxed()
    };
    let text = "[^\0]{0,40}";
    prop::strategy::Union::new([
        plain(Type::Bool, any::<bool>().prop_map(Value::Bool).boxed()),
        plain(Type::Int2, any::<i16>().prop_map(|number| Value::Int(number.into())).boxed()),
        plain(Type::Int4, any::<i32>().prop_map(|number| Value::Int(number.into())).boxed()),
        plain(Type::Int8, any::<i64>().prop_map(Value::Int).boxed()),
        plain(Type::Oid, any::<u32>().prop_map(|number| Value::Int(number.into())).boxed()),
        plain(Type::Float4, any::<f32>().prop_map(|number| Value::Float(number.into())).boxed()),
        plain(Type::Float8, any::<f64>().prop_map(Value::Float).boxed()),
        plain(Type::Uuid, any::<[u8; 16]>().prop_map(Value::Uuid).boxed()),
        plain(
            Type::Date,
            prop_oneof![FIRST_DAY..=LAST_DAY, Just(i32::MIN), Just(i32::MAX)].prop_map(Value::Date).boxed(),
        ),
        plain(
            Type::Timestamp,
            prop_oneof![FIRST_MICROS..=i64::MAX, Just(i64::MIN), Just(i64::MAX)]
                .prop_map(Value::Timestamp)
                .boxed(),
        ),
        "-?[1-9][0-9]{0,40}(\\.[0-9]{1,30})?".prop_map(|text| (Type::Numeric, Owned::Numeric(text))).boxed(),
        text.prop_map(|text| (Type::Text, Owned::Text(text))).boxed(),
        text.prop_map(|text| (Type::Other, Owned::Text(text))).boxed(),
        text.prop_map(|text| (Type::Json, Owned::Json(text))).boxed(),
        text.prop_map(|text| (Type::Jsonb, Owned::Json(text))).boxed(),
        prop::collection::vec(any::<u8>(), 0..40)
            .prop_map(|bytes| (Type::Bytea, Owned::Bytes(bytes)))
            .boxed(),
    ])
}

/// The ends of what PostgreSQL knows: 24 November 4714 BC and 31 December 5,874,897.
const FIRST_DAY: i32 = -2_440_588;
const LAST_DAY: i32 = 2_145_042_905;
const FIRST_MICROS: i64 = -210_866_803_200_000_000;

fn same(got: Value<'_>, expected: Value<'_>) -> Result<(), TestCaseError> {
    match (got, expected) {
        (Value::Float(got), Value::Float(expected)) if expected.is_nan() => prop_assert!(got.is_nan()),
        (Value::Float(got), Value::Float(expected)) => prop_assert_eq!(got.to_bits(), expected.to_bits()),
        _ => prop_assert_eq!(got, expected),
    }
    Ok(())
}

/// What the server makes of a literal.
fn unescaped_literal(literal: &[u8]) -> Vec<u8> {
    let body = literal.strip_prefix(b" E").unwrap_or(literal);
    let mut bytes = body.strip_prefix(b"'").and_then(|body| body.strip_suffix(b"'")).unwrap().iter();
    let mut text = Vec::new();
    while let Some(byte) = bytes.next() {
        // Each of the two stands there twice.
        if matches!(byte, b'\'' | b'\\') {
            assert_eq!(bytes.next(), Some(byte));
        }
        text.push(*byte);
    }
    text
}

/// What the server makes of a cell of COPY's text form.
fn unescaped_cell(cell: &[u8]) -> Vec<u8> {
    let mut bytes = cell.iter();
    let mut text = Vec::new();
    while let Some(byte) = bytes.next() {
        text.push(match byte {
            b'\\' => match bytes.next().unwrap() {
                b't' => b'\t',
                b'n' => b'\n',
                b'r' => b'\r',
                other => *other,
            },
            byte => *byte,
        });
    }
    text
}

#[test]
fn whole_floats_are_integers_and_others_are_refused() {
    assert_eq!(encoded(Type::Int4, Value::Float(7.0)), (true, vec![0, 0, 0, 7]));
    let error = encode(Type::Int4, Value::Float(7.5), &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "7.5 does not fit the type integer");
    let rounded = encode(Type::Int8, Value::Float(9_007_199_254_740_994.0), &mut Vec::new()).unwrap_err();
    assert!(rounded.to_string().ends_with("may have been rounded; write it as a text"), "{rounded}");
    assert_eq!(encoded(Type::Int8, Value::Float(9_007_199_254_740_992.0)).1, (1_i64 << 53).to_be_bytes());
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

#[test]
fn values_in_binary_are_shown_as_the_server_shows_them() {
    let micros = |micros: i64| micros.to_be_bytes().to_vec();
    let numeric = |text: &str| {
        let mut out = Vec::new();
        assert!(numeric::from_text(text, &mut out));
        out
    };
    for (oid, cell, text) in [
        (16, vec![1], "t"),
        (21, (-7_i16).to_be_bytes().to_vec(), "-7"),
        (26, u32::MAX.to_be_bytes().to_vec(), "4294967295"),
        (701, 1e15_f64.to_be_bytes().to_vec(), "1e+15"),
        (701, 123_456_789_012_345_f64.to_be_bytes().to_vec(), "123456789012345"),
        (701, (-0.000_012_5_f64).to_be_bytes().to_vec(), "-1.25e-05"),
        (701, 0.0001_f64.to_be_bytes().to_vec(), "0.0001"),
        (701, f64::NEG_INFINITY.to_be_bytes().to_vec(), "-Infinity"),
        (700, 1e6_f32.to_be_bytes().to_vec(), "1e+06"),
        (700, 0.1_f32.to_be_bytes().to_vec(), "0.1"),
        (25, "é".as_bytes().to_vec(), "é"),
        (3802, b"\x01{}".to_vec(), "{}"),
        (17, vec![0, 255], "\\x00ff"),
        (2950, (0..16).collect(), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (1700, numeric("-12345.0670"), "-12345.0670"),
        (1700, numeric("0.000012"), "0.000012"),
        (1700, numeric("10000"), "10000"),
        (1700, numeric("0.00"), "0.00"),
        (1700, numeric("NaN"), "NaN"),
        (1082, 0_i32.to_be_bytes().to_vec(), "2000-01-01"),
        (1082, i32::MAX.to_be_bytes().to_vec(), "infinity"),
        (1083, micros(3_600_500_000), "01:00:00.5"),
        (1114, micros(-500_000), "1999-12-31 23:59:59.5"),
        (1184, micros(0), "2000-01-01 00:00:00+00"),
        (1184, micros(-63_082_368_000_000_000), "0001-12-31 00:00:00+00 BC"),
        (1184, micros(i64::MAX), "infinity"),
    ] {
        assert_eq!(shown(oid, &cell).as_deref(), Some(text), "type {oid}");
    }
    for (oid, cell) in
        [(600, vec![0; 16]), (23, vec![1]), (25, vec![0xff]), (3802, b"{}".to_vec()), (1700, vec![0; 7])]
    {
        assert_eq!(shown(oid, &cell), None, "type {oid}");
    }
}

proptest! {
    #[test]
    fn any_bytes_of_any_type_are_shown_or_refused(
        oid in prop::sample::select(vec![16, 17, 20, 21, 23, 25, 26, 114, 700, 701, 1082, 1083, 1114, 1184, 1700, 2950, 3802]),
        cell in prop::collection::vec(any::<u8>(), 0..24)
    ) {
        let _ = shown(oid, &cell);
    }

    #[test]
    fn a_number_in_binary_is_shown_with_the_digits_that_it_was_made_of(text in "-?[1-9][0-9]{0,30}(\\.[0-9]{1,30})?") {
        let mut binary = Vec::new();
        prop_assert!(numeric::from_text(&text, &mut binary));
        prop_assert_eq!(shown(1700, &binary), Some(text));
    }
}
