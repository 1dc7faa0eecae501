//! The connection for set-up, loading and checks.

use nephoscope_drivers::{Error, ErrorClass, RowEncoder, RowSource, Table, Value};
use nephoscope_runtime::clock::{SECOND, now};

use crate::fixtures::postgres::Postgres;
use crate::fixtures::{Fixture, unique};

/// Rows from a function, in batches, until it has no more.
struct Source<F>(u64, F);

const BATCH: u64 = 1000;

impl<F: FnMut(u64, &mut dyn RowEncoder) -> Result<bool, Error>> RowSource for Source<F> {
    fn fill(&mut self, encoder: &mut dyn RowEncoder) -> Result<bool, Error> {
        for _ in 0..BATCH {
            if !(self.1)(self.0, encoder)? {
                return Ok(false);
            }
            encoder.end_row()?;
            self.0 += 1;
        }
        Ok(true)
    }
}

/// A source of a list of rows.
pub(crate) fn listed<'a>(rows: &'a [&'a [Value<'a>]]) -> impl RowSource + 'a {
    Source(0, |row, encoder: &mut dyn RowEncoder| {
        let Some(values) = rows.get(row as usize) else { return Ok(false) };
        values.iter().try_for_each(|value| encoder.push(*value))?;
        Ok(true)
    })
}

pub(crate) fn names(columns: &[&str]) -> Vec<String> {
    columns.iter().map(ToString::to_string).collect()
}

pub(crate) fn cells(table: &Table) -> Vec<Vec<&str>> {
    table.rows.iter().map(|row| row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect()).collect()
}

/// The SQL with its names in the quotes of the fixture's dialect.
fn quoted(fixture: &dyn Fixture, sql: &str) -> String {
    sql.replace('"', &fixture.quote().to_string())
}

/// The table that a bulk load goes to: a new one where there is a database.
fn numbers(fixture: &dyn Fixture) -> String {
    let table = unique("Numbers of");
    let sql = quoted(fixture, &format!("CREATE TABLE \"{table}\" (\"the n\" int8 UNIQUE, t text)"));
    fixture.open("load").admin().unwrap().query(&sql).unwrap();
    table
}

pub(crate) fn a_bulk_load_counts_its_rows(fixture: &dyn Fixture) {
    let table = numbers(fixture);
    let mut admin = fixture.open("load").admin().unwrap();
    let mut source = Source(0, |row, encoder: &mut dyn RowEncoder| {
        if row == 25_500 {
            return Ok(false);
        }
        encoder.push(Value::Int(row as i64))?;
        encoder.push(Value::Text(b"text"))?;
        Ok(true)
    });
    assert_eq!(admin.bulk_load(&table, &names(&["the n", "t"]), &mut source).unwrap(), 25_500);
    assert_eq!(admin.bulk_load(&table, &names(&["the n", "t"]), &mut listed(&[])).unwrap(), 0);
    if !fixture.echoes() {
        let sql = format!("SELECT count(*), sum(\"the n\"), min(t) FROM \"{table}\"");
        let sums = admin.query(&quoted(fixture, &sql)).unwrap();
        assert_eq!(cells(&sums), [["25500", "325112250", "text"]]);
    }
}

pub(crate) fn an_error_of_the_source_ends_a_bulk_load(fixture: &dyn Fixture) {
    let table = numbers(fixture);
    let mut admin = fixture.open("load").admin().unwrap();
    let mut source = Source(0, |row, encoder: &mut dyn RowEncoder| {
        if row == 1500 {
            return Err(Error::other("the source has run dry"));
        }
        encoder.push(Value::Int(row as i64))?;
        Ok(true)
    });
    let error = admin.bulk_load(&table, &names(&["the n"]), &mut source).unwrap_err();
    assert_eq!(error.message(), "the source has run dry");
    if !fixture.echoes() {
        let count = admin.query(&quoted(fixture, &format!("SELECT count(*) FROM \"{table}\""))).unwrap();
        assert_eq!(cells(&count), [["0"]]);
    }
    assert_eq!(admin.bulk_load(&table, &names(&["the n"]), &mut listed(&[&[Value::Int(1)]])).unwrap(), 1);
}

pub(crate) fn several_statements_give_the_last_result(postgres: &Postgres) {
    let mut admin = postgres.admin();
    let table = admin.query("SELECT 1; SELECT 2 AS two, NULL AS none, 'é' AS text;").unwrap();
    assert_eq!(table.columns, ["two", "none", "text"]);
    assert_eq!(table.rows, [[Some("2".to_owned()), None, Some("é".to_owned())]]);
    assert_eq!(admin.query("SELECT 1; SET work_mem = '1MB'").unwrap(), Table::default());
    assert_eq!(admin.query("").unwrap(), Table::default());
    let none = admin.query("SELECT 1 AS one WHERE false").unwrap();
    assert_eq!((none.columns.len(), none.rows.len()), (1, 0));
    let many = admin.query("SELECT repeat('x', 10000) FROM generate_series(1, 1000)").unwrap();
    assert_eq!(many.rows.len(), 1000);
}

pub(crate) fn an_error_is_told_and_the_connection_goes_on(postgres: &Postgres) {
    let mut admin = postgres.admin();
    let table = postgres.table();
    let sql = format!("INSERT INTO {table} VALUES (7, 0); SELECT 1 / 0; INSERT INTO {table} VALUES (8, 0)");
    let error = admin.query(&sql).unwrap_err();
    assert_eq!(
        (error.class(), error.code(), error.message()),
        (ErrorClass::Other, "22012", "division by zero")
    );
    let count = admin.query(&format!("SELECT count(*) FROM {table}")).unwrap();
    assert_eq!(cells(&count), [["2"]]);
    assert_eq!(admin.query("SELEC 1").unwrap_err().code(), "42601");
    assert_eq!(admin.query("BEGIN; SELECT 1 / 0").unwrap_err().code(), "22012");
    assert_eq!(admin.query("SELECT 1").unwrap_err().code(), "25P02");
    admin.query("ROLLBACK").unwrap();
    assert_eq!(cells(&admin.query("SELECT 1").unwrap()), [["1"]]);
}

/// Makes a table with a column of each type.
fn columns_of(postgres: &Postgres, types: &[&str]) -> (String, Vec<String>) {
    let table = unique("loaded");
    let columns: Vec<String> = types.iter().enumerate().map(|(at, _)| format!("c{at}")).collect();
    let list: Vec<String> = columns.iter().zip(types).map(|(name, of)| format!("{name} {of}")).collect();
    postgres.admin().query(&format!("CREATE TABLE {table} ({})", list.join(", "))).unwrap();
    (table, columns)
}

/// Loads a row and reads it back as text, in the order in which the rows were loaded.
fn load(postgres: &Postgres, types: &[&str], rows: &[&[Value<'_>]]) -> Table {
    let (table, columns) = columns_of(postgres, types);
    let mut admin = postgres.admin();
    assert_eq!(admin.bulk_load(&table, &columns, &mut listed(rows)).unwrap(), rows.len() as u64);
    admin.query(&format!("SET TimeZone = 'UTC'; SELECT * FROM {table} ORDER BY ctid")).unwrap()
}

/// Types, a value of each, and its text.
const LOADED: [(&str, Value<'static>, &str); 19] = [
    ("bool", Value::Bool(true), "t"),
    ("int2", Value::Int(-32_768), "-32768"),
    ("int4", Value::Int(i32::MAX as i64), "2147483647"),
    ("int8", Value::Int(i64::MIN), "-9223372036854775808"),
    ("oid", Value::Int(7), "7"),
    ("float4", Value::Float(0.5), "0.5"),
    ("float8", Value::Float(-1e300), "-1e+300"),
    ("numeric", Value::Decimal { units: -1_234_567, scale: 4 }, "-123.4567"),
    ("text", Value::Text("tab\t, line\n, \\N, é".as_bytes()), "tab\t, line\n, \\N, é"),
    ("varchar(9)", Value::Text(b""), ""),
    ("char(3)", Value::Text(b"a"), "a  "),
    ("name", Value::Text(b"named"), "named"),
    ("bytea", Value::Bytes(&[0, 255, 92, 9]), "\\x00ff5c09"),
    ("uuid", Value::Uuid([0xab; 16]), "abababab-abab-abab-abab-abababababab"),
    ("date", Value::Date(11_016), "2000-02-29"),
    ("timestamp", Value::Timestamp(1_500_000), "1970-01-01 00:00:01.5"),
    ("timestamptz", Value::Timestamp(-1), "1969-12-31 23:59:59.999999+00"),
    ("json", Value::Json(b"{\"a\":  1}"), "{\"a\":  1}"),
    ("jsonb", Value::Json(b"{\"a\":  1}"), "{\"a\": 1}"),
];

pub(crate) fn every_type_is_loaded(postgres: &Postgres) {
    let types = LOADED.map(|(of, _, _)| of);
    let values = LOADED.map(|(_, value, _)| value);
    let expected = LOADED.map(|(_, _, text)| text);
    let table = load(postgres, &types, &[&values, &[Value::Null; 19]]);
    assert_eq!(cells(&table), [expected, ["NULL"; 19]]);
}

pub(crate) fn columns_without_a_binary_form_are_loaded_as_text(postgres: &Postgres) {
    let mood = unique("mood");
    postgres.admin().query(&format!("CREATE TYPE {mood} AS ENUM ('sad', 'it''s\ta \\N')")).unwrap();
    // Eight bytes of text would do as the binary form of the first two.
    let types = [
        "time",
        "money",
        "interval",
        "inet",
        "int4[]",
        &mood,
        "bytea",
        "numeric",
        "timestamptz",
        "text",
        "bool",
    ];
    let values = [
        Value::Text(b"12:34:56"),
        Value::Text(b"12345678"),
        Value::Text(b"1 day"),
        Value::Text(b"::1"),
        Value::Text(b"{1,NULL}"),
        Value::Text(b"it's\ta \\N"),
        Value::Bytes(&[0, 92, 255]),
        Value::Decimal { units: 5, scale: 1 },
        Value::Timestamp(0),
        Value::Text("\\N \\. \t\r\n \\ é".as_bytes()),
        Value::Bool(false),
    ];
    let expected = [
        "12:34:56",
        "$12,345,678.00",
        "1 day",
        "::1",
        "{1,NULL}",
        "it's\ta \\N",
        "\\x005cff",
        "0.5",
        "1970-01-01 00:00:00+00",
        "\\N \\. \t\r\n \\ é",
        "f",
    ];
    let table = load(postgres, &types, &[&values, &[Value::Null; 11]]);
    assert_eq!(cells(&table), [expected, ["NULL"; 11]]);
}

pub(crate) fn numbers_are_loaded_exactly(postgres: &Postgres) {
    let digits = "-1234567890123456789012345678901234567890.12345678901234567890";
    let rows = [
        (Value::Numeric(digits), digits),
        (Value::Numeric("0"), "0"),
        (Value::Numeric("-0.00"), "0.00"),
        (Value::Numeric("0.00001"), "0.00001"),
        (Value::Numeric("100000000"), "100000000"),
        (Value::Numeric("12345.6"), "12345.6"),
        (Value::Numeric("NaN"), "NaN"),
        (Value::Numeric("-Infinity"), "-Infinity"),
        (Value::Numeric("Infinity"), "Infinity"),
        (Value::Int(i64::MIN), "-9223372036854775808"),
        (Value::Float(0.1), "0.1"),
        (Value::Float(1e20), "100000000000000000000"),
        (Value::Text(b"12.50"), "12.50"),
        (Value::Decimal { units: i64::MAX, scale: 18 }, "9.223372036854775807"),
    ];
    let values: Vec<[Value<'_>; 1]> = rows.iter().map(|(value, _)| [*value]).collect();
    let values: Vec<&[Value<'_>]> = values.iter().map(<[Value<'_>; 1]>::as_slice).collect();
    let table = load(postgres, &["numeric"], &values);
    let expected: Vec<Vec<&str>> = rows.iter().map(|(_, text)| vec![*text]).collect();
    assert_eq!(cells(&table), expected);
}

pub(crate) fn values_that_do_not_fit_name_their_column(postgres: &Postgres) {
    let (table, columns) = columns_of(postgres, &["int4", "numeric", "date"]);
    let mut admin = postgres.admin();
    let fine = [Value::Int(1), Value::Int(1), Value::Date(1)];
    for (row, message) in [
        (vec![Value::Float(0.5)], "column c0: 0.5 does not fit the type integer"),
        (vec![Value::Int(1), Value::Numeric("1e5")], "column c1: 1e5 does not fit the type numeric"),
        (
            vec![Value::Int(1), Value::Int(1), Value::Text(b"today")],
            "column c2: the text \"today\" has no binary form of the type date",
        ),
        (vec![Value::Int(1); 4], "a row has more values than columns"),
        (vec![Value::Int(1)], "a row has 1 values for 3 columns"),
        (vec![], "a row has 0 values for 3 columns"),
    ] {
        let rows: [&[Value<'_>]; 2] = [&fine, &row];
        let error = admin.bulk_load(&table, &columns, &mut listed(&rows)).unwrap_err();
        let separator = if message.starts_with("column") { ", " } else { ": " };
        assert_eq!(error.message(), format!("table {table}{separator}{message}"));
        assert_eq!(cells(&admin.query(&format!("SELECT count(*) FROM {table}")).unwrap()), [["0"]]);
    }
    let wrong = names(&["c0", "nothing"]);
    let error = admin.bulk_load(&table, &wrong, &mut listed(&[])).unwrap_err();
    assert_eq!((error.code(), error.message()), ("42703", "column \"nothing\" does not exist"));
    assert_eq!(admin.bulk_load("nowhere", &columns, &mut listed(&[])).unwrap_err().code(), "42P01");
    assert_eq!(admin.bulk_load(&table, &columns, &mut listed(&[&fine])).unwrap(), 1);
}

pub(crate) fn a_row_the_server_refuses_leaves_the_table_unchanged(postgres: &Postgres) {
    let table = postgres.table();
    let mut admin = postgres.admin();
    let rows: [&[Value<'_>]; 3] =
        [&[Value::Int(8), Value::Int(0)], &[Value::Int(2), Value::Int(0)], &[Value::Int(9), Value::Int(0)]];
    let error = admin.bulk_load(&table, &names(&["id", "n"]), &mut listed(&rows)).unwrap_err();
    assert_eq!(error.code(), "23505");
    let rows = admin.query(&format!("SELECT id FROM {table} ORDER BY id")).unwrap();
    assert_eq!(cells(&rows), [["1"], ["2"]]);
}

pub(crate) fn an_error_ends_a_long_load_early(postgres: &Postgres) {
    let table = postgres.table();
    let mut admin = postgres.admin();
    let (begun, mut last) = (now(), 0);
    let mut source = Source(1, |row, encoder: &mut dyn RowEncoder| {
        last = row;
        encoder.push(Value::Int(row as i64 % 1_000_000))?;
        encoder.push(Value::Int(0))?;
        Ok(now() - begun < 10 * SECOND)
    });
    let error = admin.bulk_load(&table, &names(&["id", "n"]), &mut source).unwrap_err();
    assert_eq!(error.code(), "23505");
    assert!(now() - begun < 5 * SECOND, "{last} rows were made for a load that had failed at the first");
    assert_eq!(cells(&admin.query("SELECT 1").unwrap()), [["1"]]);
}

pub(crate) fn copy_is_refused_as_a_query(postgres: &Postgres) {
    let table = postgres.table();
    let mut admin = postgres.admin();
    let error = admin.query(&format!("COPY {table} FROM STDIN")).unwrap_err();
    assert!(error.message().contains("bulk_load"), "{error}");
    assert_eq!(cells(&admin.query("SELECT 1").unwrap()), [["1"]]);
}

pub(crate) fn the_facts_tell_version_and_settings(postgres: &Postgres) {
    let facts = postgres.admin().server_facts().unwrap();
    let fact = |name: &str| {
        let found = facts.iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("{name} is missing")).1.as_str()
    };
    assert!(fact("version").starts_with("PostgreSQL "));
    assert!(fact("version").contains(fact("server_version").split(' ').next().unwrap()));
    assert_eq!((fact("shared_buffers"), fact("fsync"), fact("max_connections")), ("16MB", "off", "90"));
}
