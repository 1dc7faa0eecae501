//! Values go out as parameters and come back as columns, the same in every statement mode.

use nephoscope_drivers::{Command, ConnectionState, Error, Value, Want};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::client::Client;
use crate::fixtures::Fixture;
use crate::fixtures::postgres::Postgres;
use crate::fixtures::sqlite;

/// The SQL types of the suite.
const TYPES: [&str; 17] = [
    "bool",
    "int2",
    "int4",
    "int8",
    "oid",
    "float4",
    "float8",
    "numeric",
    "text",
    "bytea",
    "uuid",
    "date",
    "timestamp",
    "timestamptz",
    "json",
    "jsonb",
    "varchar",
];

/// A connection with a statement for each type, called as the type, that gives its parameter back.
fn echo(fixture: &dyn Fixture) -> Client {
    let statements = TYPES.map(|of| (of, format!("SELECT :value::{of} AS value")));
    let statements: Vec<(&str, &str)> = statements.iter().map(|(of, sql)| (*of, sql.as_str())).collect();
    Client::new(&*fixture.open("types"), &statements)
}

/// Sends a value as a type and says whether `expected` comes back; floats are compared by their bits. SQLite knows
/// no types but its own: there it is what it makes of the value.
fn comes_back(client: &mut Client, of: &str, value: Value<'_>, expected: Value<'_>) -> Result<(), String> {
    client.rows.clear();
    if client.speaks(nephoscope_drivers::sqlite::DIALECT) {
        return sqlite::comes_back(client, of, value);
    }
    let reply = client.call(of, &[value]).map_err(|error| format!("{of} {value:?}: {error}"))?;
    let got = client.value(reply);
    let same = match (got, expected) {
        (Value::Float(got), Value::Float(expected)) if expected.is_nan() => got.is_nan(),
        (Value::Float(got), Value::Float(expected)) => got.to_bits() == expected.to_bits(),
        (got, expected) => got == expected,
    };
    if same { Ok(()) } else { Err(format!("{of}: {got:?} came back for {expected:?}")) }
}

const fn decimal(units: i64, scale: u8) -> Value<'static> {
    Value::Decimal { units, scale }
}

const DIGITS: &str = "-1234567890123456789012345678901234567890.12345678901234567890";
const UUID: [u8; 16] = *b"\x00\x01\x7f\x80\xff56789012345";
/// The first moment that PostgreSQL knows: 24 November 4714 before Christ.
const FIRST_MICROS: i64 = -210_866_803_200_000_000;
const FIRST_DAY: i32 = -2_440_588;
/// 31 December 5,874,897.
const LAST_DAY: i32 = 2_145_042_905;

/// Values that come back as they are.
const VALUES: [(&str, &[Value<'static>]); 16] = [
    ("bool", &[Value::Bool(true), Value::Bool(false)]),
    ("int2", &[Value::Int(0), Value::Int(-1), Value::Int(i16::MIN as i64), Value::Int(i16::MAX as i64)]),
    ("int4", &[Value::Int(0), Value::Int(-1), Value::Int(i32::MIN as i64), Value::Int(i32::MAX as i64)]),
    ("int8", &[Value::Int(0), Value::Int(-1), Value::Int(i64::MIN), Value::Int(i64::MAX)]),
    ("oid", &[Value::Int(0), Value::Int(u32::MAX as i64)]),
    (
        "float4",
        &[
            Value::Float(0.5),
            Value::Float(-0.0),
            Value::Float(f32::MAX as f64),
            Value::Float(f32::MIN_POSITIVE as f64),
            Value::Float(0.1_f32 as f64),
        ],
    ),
    (
        "float8",
        &[
            Value::Float(0.1),
            Value::Float(-0.0),
            Value::Float(f64::MAX),
            Value::Float(f64::MIN_POSITIVE),
            Value::Float(5e-324),
            Value::Float(f64::NAN),
            Value::Float(f64::INFINITY),
            Value::Float(f64::NEG_INFINITY),
        ],
    ),
    (
        "numeric",
        &[
            Value::Numeric(DIGITS),
            Value::Numeric("0"),
            Value::Numeric("0.000"),
            Value::Numeric("NaN"),
            Value::Numeric("1000000000000000000000000"),
        ],
    ),
    ("text", &[Value::Text(b""), Value::Text("Grüße, 世界 🌍 o'clock \\ \"x\" E'\n\t$1 :a".as_bytes())]),
    ("varchar", &[Value::Text(b"NULL"), Value::Text(b" padded ")]),
    ("bytea", &[Value::Bytes(b""), Value::Bytes(b"\\x00"), Value::Bytes(&[0, 39, 92, 128, 255])]),
    ("uuid", &[Value::Uuid(UUID), Value::Uuid([0; 16]), Value::Uuid([255; 16])]),
    (
        "date",
        &[
            Value::Date(0),
            Value::Date(-1),
            Value::Date(11_016),
            Value::Date(-719_162),
            Value::Date(-719_163),
            Value::Date(FIRST_DAY),
            Value::Date(LAST_DAY),
            Value::Date(i32::MAX),
            Value::Date(i32::MIN),
        ],
    ),
    ("timestamp", &TIMES),
    ("timestamptz", &TIMES),
    ("json", &[Value::Json(b"{\"a\": [1, 2.50, null],  \"o'\\\\\" : \"\\u00e9\"}"), Value::Json(b"null")]),
];

const TIMES: [Value<'static>; 9] = [
    Value::Timestamp(0),
    Value::Timestamp(-1),
    Value::Timestamp(1_700_000_000_123_456),
    Value::Timestamp(-62_135_596_800_000_000),
    Value::Timestamp(-62_135_596_800_000_001),
    Value::Timestamp(FIRST_MICROS),
    Value::Timestamp(i64::MAX - 1),
    Value::Timestamp(i64::MAX),
    Value::Timestamp(i64::MIN),
];

pub(crate) fn values_come_back_as_they_were_sent(fixture: &dyn Fixture) {
    let mut client = echo(fixture);
    for (of, values) in VALUES {
        for value in values {
            comes_back(&mut client, of, *value, *value).unwrap();
        }
    }
    let long = "0123456789abcdeé".repeat(1 << 16);
    comes_back(&mut client, "text", Value::Text(long.as_bytes()), Value::Text(long.as_bytes())).unwrap();
    let every: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    comes_back(&mut client, "bytea", Value::Bytes(&every), Value::Bytes(&every)).unwrap();
    // What a database puts into a form of its own.
    for (of, value, normal) in [
        ("numeric", decimal(1250, 2), Value::Numeric("12.50")),
        ("numeric", decimal(i64::MIN, 18), Value::Numeric("-9.223372036854775808")),
        ("numeric", decimal(-1, 18), Value::Numeric("-0.000000000000000001")),
        ("numeric", decimal(i64::MAX, 0), Value::Numeric("9223372036854775807")),
        ("jsonb", Value::Json(b"{\"b\":1.50,\"a\":null}"), Value::Json(b"{\"a\": null, \"b\": 1.50}")),
    ] {
        let expected = if fixture.echoes() { value } else { normal };
        comes_back(&mut client, of, value, expected).unwrap();
    }
}

pub(crate) fn null_of_every_type_comes_back(fixture: &dyn Fixture) {
    let mut client = echo(fixture);
    for of in TYPES {
        comes_back(&mut client, of, Value::Null, Value::Null).unwrap();
    }
}

/// Values with the types that they do not fit, and what the error has to say.
pub(crate) type Misfits = &'static [(&'static str, Value<'static>, &'static str)];

pub(crate) const MISFITS: [(&str, Value<'static>, &str); 16] = [
    ("int8", Value::Unsigned(1 << 63), "9223372036854775808 does not fit the type bigint"),
    ("bool", Value::Int(1), "1 does not fit the type boolean"),
    ("int2", Value::Int(32_768), "32768 does not fit the type smallint"),
    ("int4", Value::Int(-2_147_483_649), "-2147483649 does not fit the type integer"),
    ("int4", Value::Float(7.5), "7.5 does not fit the type integer"),
    ("int4", Value::Bool(true), "true does not fit the type integer"),
    (
        "int8",
        Value::Float(9.25e18),
        "9250000000000000000 does not fit the type bigint: beyond 2^53 a number may have been rounded; write it as a text",
    ),
    ("int8", Value::Float(f64::NAN), "NaN does not fit the type bigint"),
    ("oid", Value::Int(-1), "-1 does not fit the type oid"),
    ("float8", Value::Bool(false), "false does not fit the type double precision"),
    ("numeric", Value::Uuid([0; 16]), "00000000-0000-0000-0000-000000000000 does not fit the type numeric"),
    ("uuid", Value::Int(5), "5 does not fit the type uuid"),
    ("date", Value::Bool(true), "true does not fit the type date"),
    ("timestamp", Value::Float(1e13), "10000000000000 does not fit the type timestamp"),
    ("date", Value::Bytes(&[1, 2, 3]), "3 bytes does not fit the type date"),
    ("int8", Value::Date(0), "1970-01-01 does not fit the type bigint"),
];

pub(crate) fn values_that_do_not_fit_are_refused_before_anything_is_sent(fixture: &dyn Fixture) {
    let mut client = echo(fixture);
    let expect = |error: Error, message: &str| {
        assert_eq!((error.message(), error.code()), (message, ""));
    };
    for begin in [false, true] {
        if begin {
            client.control(Command::Begin).unwrap();
        }
        let state = client.state();
        for &(of, value, message) in fixture.misfits() {
            if fixture.echoes() {
                comes_back(&mut client, of, value, value).unwrap();
            } else {
                expect(client.call(of, &[value]).unwrap_err(), &format!("{of}, parameter :value: {message}"));
            }
            assert_eq!(client.state(), state);
        }
        // Without a server behind it a driver has nothing to hold a call against; names are the script's business.
        if !fixture.echoes() {
            expect(client.call("int4", &[]).unwrap_err(), "int4 takes 1 parameters and was given 0");
            let error = client.queue_command(Command::Execute(99), &[], Want::Rows);
            expect(error.unwrap_err(), "there is no statement number 99");
        }
        assert_eq!(client.state(), state);
        comes_back(&mut client, "int4", Value::Int(7), Value::Int(7)).unwrap();
    }
    client.control(Command::Commit).unwrap();
    assert_eq!(client.state(), ConnectionState::Idle);
}

/// Runs a property with values from a strategy.
pub(crate) fn property<S: Strategy>(strategy: S, check: impl Fn(S::Value) -> Result<(), String>) {
    let config = Config { cases: 100, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&strategy, |value| check(value).map_err(TestCaseError::fail));
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

pub(crate) fn random_values_come_back(fixture: &dyn Fixture) {
    let client = std::cell::RefCell::new(echo(fixture));
    let same = |of: &str, value: Value<'_>| comes_back(&mut client.borrow_mut(), of, value, value);
    property(any::<i64>(), |number| same("int8", Value::Int(number)));
    property(any::<f64>(), |number| same("float8", Value::Float(number)));
    property(any::<f32>(), |number| same("float4", Value::Float(number.into())));
    property("[^\0]{0,60}", |text: String| same("text", Value::Text(text.as_bytes())));
    property(prop::collection::vec(any::<u8>(), 0..300), |bytes| same("bytea", Value::Bytes(&bytes)));
    property(any::<[u8; 16]>(), |uuid| same("uuid", Value::Uuid(uuid)));
    property("-?[1-9][0-9]{0,40}\\.[0-9]{1,30}", |digits: String| same("numeric", Value::Numeric(&digits)));
    property((any::<i64>(), 0_u8..=18), |(units, scale)| {
        let value = decimal(units, scale);
        let digits = decimal_text(units, scale);
        let expected = if fixture.echoes() { value } else { Value::Numeric(&digits) };
        comes_back(&mut client.borrow_mut(), "numeric", value, expected)
    });
}

/// A decimal as PostgreSQL prints it, worked out in another way than the driver's.
pub(crate) fn decimal_text(units: i64, scale: u8) -> String {
    let digits = format!("{:0>width$}", units.unsigned_abs(), width = usize::from(scale) + 1);
    let (whole, part) = digits.split_at(digits.len() - usize::from(scale));
    let sign = if units < 0 { "-" } else { "" };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

pub(crate) fn random_dates_and_times_come_back(postgres: &Postgres) {
    let client = std::cell::RefCell::new(echo(postgres));
    let same = |of: &str, value: Value<'_>| comes_back(&mut client.borrow_mut(), of, value, value);
    property(FIRST_DAY..=LAST_DAY, |days| same("date", Value::Date(days)));
    for of in ["timestamp", "timestamptz"] {
        property(FIRST_MICROS..i64::MAX, |micros| same(of, Value::Timestamp(micros)));
        property(-4_000_000_000_000_000..4_000_000_000_000_000_i64, |micros| {
            same(of, Value::Timestamp(micros))
        });
    }
    // The text form has the session's time zone, which had seconds in it before there were standard times.
    let statements = [("timestamptz", "SELECT :value::timestamptz AS value")];
    for zone in ["Asia/Kathmandu", "America/St_Johns", "Europe/Amsterdam"] {
        let driver = postgres.driver(&[&format!("SET TimeZone = '{zone}'")]);
        let mut client = Client::new(&*driver, &statements);
        for value in TIMES {
            comes_back(&mut client, "timestamptz", value, value).unwrap();
        }
    }
}

pub(crate) fn values_are_converted_where_they_fit(postgres: &Postgres) {
    let mut client = echo(postgres);
    for (of, value, expected) in [
        ("float8", Value::Int(3), Value::Float(3.0)),
        ("float8", decimal(-125, 2), Value::Float(-1.25)),
        ("float4", decimal(5, 1), Value::Float(0.5)),
        ("float8", Value::Numeric("2.5"), Value::Float(2.5)),
        ("int4", Value::Float(-3.0), Value::Int(-3)),
        ("int8", Value::Float(-9_007_199_254_740_992.0), Value::Int(-9_007_199_254_740_992)),
        ("int4", Value::Text(b"42"), Value::Int(42)),
        ("numeric", Value::Int(-7), Value::Numeric("-7")),
        ("numeric", Value::Unsigned(u64::MAX), Value::Numeric("18446744073709551615")),
        ("text", Value::Time(45_296_500_000), Value::Text(b"12:34:56.5")),
        ("numeric", Value::Float(0.1), Value::Numeric("0.1")),
        ("numeric", Value::Text(b"12.500"), Value::Numeric("12.500")),
        ("text", Value::Int(7), Value::Text(b"7")),
        ("text", decimal(1250, 2), Value::Text(b"12.50")),
        ("text", Value::Bool(true), Value::Text(b"true")),
        ("text", Value::Uuid(UUID), Value::Text(b"00017f80-ff35-3637-3839-303132333435")),
        ("text", Value::Date(0), Value::Text(b"1970-01-01")),
        ("text", Value::Bytes(b"abc"), Value::Text(b"abc")),
        ("bytea", Value::Text(b"\\x00 is text"), Value::Bytes(b"\\x00 is text")),
        ("uuid", Value::Text(b"00017f80-ff35-3637-3839-303132333435"), Value::Uuid(UUID)),
        ("date", Value::Text(b"2000-01-01"), Value::Date(10_957)),
        ("date", Value::Timestamp(86_400_000_000 - 1), Value::Date(0)),
        ("date", Value::Float(-1.0), Value::Date(-1)),
        ("timestamp", Value::Date(1), Value::Timestamp(86_400_000_000)),
        ("timestamp", Value::Date(i32::MAX), Value::Timestamp(i64::MAX)),
        ("date", Value::Timestamp(i64::MIN), Value::Date(i32::MIN)),
        ("timestamptz", Value::Float(1.5), Value::Timestamp(1_500_000)),
        ("json", Value::Int(5), Value::Json(b"5")),
        ("bool", Value::Text(b"yes"), Value::Bool(true)),
    ] {
        comes_back(&mut client, of, value, expected).unwrap();
    }
}

pub(crate) fn columns_without_a_form_of_their_own_come_as_text(postgres: &Postgres) {
    for (of, value) in [
        ("interval", "1 day 02:03:04"),
        ("inet", "192.168.0.1/24"),
        ("time", "12:34:56"),
        ("int4[]", "{1,2,NULL}"),
        ("money", "$1,234.50"),
        ("xml", "<a/>"),
    ] {
        let sql = format!("SELECT :value::{of} AS value");
        let mut client = postgres.client(&[("echo", &sql)]);
        comes_back(&mut client, "echo", Value::Text(value.as_bytes()), Value::Text(value.as_bytes()))
            .unwrap();
    }
}
