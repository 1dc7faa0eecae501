//! What holds for a driver of key-value verbs: rows come back by their key, in order, and errors have their class.

use std::sync::Arc;

use nephoscope_drivers::{
    Action, Command, ConnectionState, Error, ErrorClass, RowEncoder, RowSource, Settings, Statement, Value,
    Verb, Want, calendar, open,
};

use crate::client::Client;
use crate::fixtures::{Fixture, redis, unique};

const FIELDS: [&str; 2] = ["a", "b"];

pub(crate) fn statement(action: Action, table: &str, fields: &[&str], name: &str) -> Statement {
    let fields = if action == Action::Delete { &[] } else { fields };
    let fields = fields.iter().map(ToString::to_string).collect();
    Statement::of_verb(name, Verb { action, table: table.to_owned(), key: "k".to_owned(), fields })
}

pub(crate) fn statements(table: &str) -> Arc<[Statement]> {
    let whole = Action::ALL.map(|action| statement(action, table, &FIELDS, action.name()));
    whole.into_iter().chain([statement(Action::Update, table, &["b"], "update_b")]).collect()
}

fn client(fixture: &dyn Fixture, table: &str) -> Client {
    fixture.make_table(table);
    Client::with(&*open(&fixture.url(), &fixture.settings()).unwrap(), &statements(table)).unwrap()
}

pub(crate) fn text(text: &str) -> Value<'_> {
    Value::Text(text.as_bytes())
}

/// A cell in words: the same whether a system keeps texts alone or types.
fn shown(cell: Option<Value<'_>>) -> String {
    match cell {
        Some(Value::Text(text)) => String::from_utf8_lossy(text).into_owned(),
        Some(Value::Int(number)) => number.to_string(),
        Some(Value::Float(number)) => number.to_string(),
        Some(Value::Bool(value)) => u8::from(value).to_string(),
        Some(Value::Timestamp(micros)) => calendar::format_timestamp(micros),
        other => format!("{other:?}"),
    }
}

/// The rows of a call, its fields in words.
pub(crate) fn rows(client: &mut Client, name: &str, values: &[Value<'_>]) -> Vec<String> {
    client.rows.clear();
    let reply = client.call(name, values).unwrap();
    let result = reply.result.unwrap();
    assert_eq!(reply.affected, client.rows.count(result) as u64);
    let cell = |row, field: &str| shown(client.rows.named(result, row, field));
    (0..client.rows.count(result)).map(|row| FIELDS.map(|field| cell(row, field)).join(" ")).collect()
}

pub(crate) fn a_row_is_what_was_written(fixture: &dyn Fixture) {
    let mut client = client(fixture, &unique("t"));
    assert_eq!(rows(&mut client, "read", &[text("x")]), Vec::<String>::new());
    let large = "long\r\n$1\r\n".repeat(fixture.longest_text().min(1 << 20) / 10);
    for (a, b, shown) in [
        (Value::Int(-7), text("é\r\n"), "-7 é\r\n".to_owned()),
        (Value::Float(0.5), Value::Decimal { units: -5, scale: 2 }, "0.5 -0.05".to_owned()),
        (Value::Bool(true), text(""), "1 ".to_owned()),
        (Value::Timestamp(0), text(&large), format!("1970-01-01 00:00:00.000000+00 {large}")),
    ] {
        if matches!(b, Value::Decimal { .. }) && !fixture.keeps_decimals() {
            continue;
        }
        if !fixture.replaces_rows() {
            client.count("delete", &[text("x")]).unwrap();
        }
        assert_eq!(client.count("insert", &[text("x"), a, b]).unwrap().affected, 1);
        assert_eq!(rows(&mut client, "read", &[text("x")]), [shown]);
    }
    assert_eq!(client.count("update_b", &[Value::Int(9), text("x")]).unwrap().affected, 1);
    assert_eq!(rows(&mut client, "read", &[text("x")]), ["1970-01-01 00:00:00.000000+00 9"]);
    assert_eq!(
        client.count("read", &[text("x")]).unwrap().result,
        None,
        "rows that are not wanted are not kept"
    );
    assert_eq!(client.count("delete", &[text("x")]).unwrap().affected, 1);
    let again = client.count("delete", &[text("x")]).unwrap().affected;
    assert_eq!(again, u64::from(!fixture.counts_deleted()));
    assert!(
        rows(&mut client, "scan", &[text(""), Value::Int(5)]).is_empty(),
        "the key has gone with the row"
    );
}

pub(crate) fn a_scan_has_the_order_of_keys(fixture: &dyn Fixture) {
    let mut client = client(fixture, &unique("t"));
    let mut keys = [3, 1, 4, 15, 9, 2, 6].map(|key| key.to_string());
    for key in &keys {
        client.count("insert", &[text(key), text(key), text("-")]).unwrap();
    }
    let mut scan = |key: &str, count| -> Vec<String> {
        let found = rows(&mut client, "scan", &[text(key), Value::Int(count)]);
        found.iter().map(|row| row.trim_end_matches(" -").to_owned()).collect()
    };
    let all = scan("", 100);
    keys.sort();
    if fixture.orders_keys() {
        assert_eq!(all, keys);
        assert_eq!(
            (scan("14", 2).join(","), scan("x", 100).len(), scan("", 0).len()),
            ("15,2".to_owned(), 0, 0)
        );
    }
    for (place, key) in all.iter().enumerate() {
        assert_eq!(scan(key, 100), all[place..]);
        assert_eq!(scan(key, 2), all[place..(place + 2).min(all.len())]);
    }
    let mut found = all;
    found.sort();
    assert_eq!(found, keys);
}

pub(crate) fn commands_of_one_flush_are_answered_in_their_order(fixture: &dyn Fixture) {
    let (mut client, many) = (client(fixture, &unique("t")), fixture.many());
    for key in 0..many {
        client.queue("insert", &[Value::Int(1000 + key), Value::Int(key), text("z")], Want::Count).unwrap();
    }
    assert_eq!(client.flush().unwrap().affected, 1);
    client.queue("scan", &[fixture.first_number(), Value::Int(many)], Want::Rows).unwrap();
    client.queue("update", &[text("changed"), text("y"), Value::Int(1000)], Want::Count).unwrap();
    client.queue("scan", &[fixture.first_number(), Value::Int(many - 5)], Want::Rows).unwrap();
    client.queue("read", &[Value::Int(1000)], Want::Rows).unwrap();
    let last = client.flush().unwrap().result.unwrap();
    let count = |number: u32| client.rows.count(number.into()) as i64;
    assert_eq!((last.number(), count(0), count(1), count(2)), (2, many, many - 5, 1));
    let seen = (0..many as usize).map(|row| client.rows.value(0.into(), row, 0));
    assert!(
        seen.into_iter().all(|cell| cell != Some(text("changed"))),
        "what is behind a scan is not before it"
    );
    assert_eq!(client.rows.value(last, 0, 0), Some(text("changed")));
}

pub(crate) fn errors_leave_a_usable_connection(fixture: &dyn Fixture) {
    let table = unique("t");
    let mut client = client(fixture, &table);
    let driver = open(&fixture.url(), &Settings::default()).unwrap();
    driver.admin().unwrap().query(&format!("SET {table}:x text")).unwrap();
    let error = client.call("read", &[text("x")]).unwrap_err();
    assert_eq!((error.class(), error.code()), (ErrorClass::Other, "WRONGTYPE"));
    // The command that is behind the wrong one is run.
    client.queue("update_b", &[text("1"), text("x")], Want::Count).unwrap();
    client.queue("insert", &[text("y"), text("1"), text("2")], Want::Count).unwrap();
    assert_eq!(client.flush().unwrap_err().code(), "WRONGTYPE");
    assert_eq!(client.state(), ConnectionState::Idle);
    assert_eq!(rows(&mut client, "read", &[text("y")]), ["1 2"]);
    for (name, values, message) in [
        ("insert", &[text("z"), Value::Null, text("2")][..], "insert, parameter :a: Redis keeps no NULL"),
        ("read", &[][..], "read takes 1 parameters and was given 0"),
        ("scan", &[text(""), text("2")][..], "scan, parameter :count: it is no whole number of rows"),
    ] {
        assert_eq!(client.queue(name, values, Want::Count).unwrap_err().message(), message);
    }
    let begin = client.queue_command(Command::Begin, &[], Want::Count).unwrap_err();
    assert!(begin.message().starts_with("Redis has no transactions"), "{begin}");
    assert_eq!(rows(&mut client, "read", &[text("z")]).len(), 0, "nothing was queued");
}

pub(crate) fn a_killed_connection_is_lost(fixture: &dyn Fixture) {
    let mut client = client(fixture, &unique("t"));
    client.count("insert", &[text("x"), text("1"), text("2")]).unwrap();
    let driver = open(&fixture.url(), &Settings::default()).unwrap();
    // Of the suite's one server only the connections of this test's own database are killed.
    let settings = Settings { on_connect: vec!["SELECT 7".to_owned()], ..Settings::default() };
    let other = open(&fixture.url(), &settings).unwrap();
    let mut lost = Client::with(&*other, &statements("lost")).unwrap();
    let mut admin = driver.admin().unwrap();
    let list = admin.query("CLIENT LIST").unwrap().rows[0][0].clone().unwrap();
    let of_test = list.lines().filter(|line| line.contains(" db=7 "));
    let ids: Vec<&str> = of_test.filter_map(|line| line.strip_prefix("id=")?.split(' ').next()).collect();
    for id in ids {
        admin.query(&format!("CLIENT KILL ID {id}")).unwrap();
    }
    let error = lost.call("read", &[text("x")]).unwrap_err();
    assert_eq!((error.class(), lost.state()), (ErrorClass::ConnectionLost, ConnectionState::Lost));
    assert_eq!(rows(&mut client, "read", &[text("x")]), ["1 2"]);
}

pub(crate) fn added_statements_are_as_good_as_others(fixture: &dyn Fixture) {
    let table = unique("t");
    let mut client = client(fixture, &table);
    let insert = statement(Action::Insert, &table, &["a"], "insert_a");
    let place = client.add_statement(&insert.into(), true).unwrap();
    client.queue_command(Command::Execute(place), &[text("x"), text("1")], Want::Count).unwrap();
    client.flush().unwrap();
    assert_eq!(rows(&mut client, "read", &[text("x")]), ["1 Some(Null)"]);
    let driver = open(&fixture.url(), &fixture.settings()).unwrap();
    if !driver.dialect().capabilities.own_statements {
        assert!(client.add("SELECT 1").unwrap_err().message().contains("has no SQL"));
    }
}

/// Rows of a key and two fields, some at a time.
struct Source(std::ops::Range<i64>);

impl RowSource for Source {
    fn fill(&mut self, encoder: &mut dyn RowEncoder) -> Result<bool, Error> {
        for number in self.0.by_ref().take(1000) {
            for value in [Value::Int(number), Value::Int(2 * number), text("x")] {
                encoder.push(value)?;
            }
            encoder.end_row()?;
        }
        Ok(!self.0.is_empty())
    }
}

pub(crate) fn loaded_rows_are_there_for_the_verbs(fixture: &dyn Fixture) {
    let (table, rows_of) = (unique("t"), 8 * fixture.many());
    let mut client = client(fixture, &table);
    let driver = open(&fixture.url(), &Settings::default()).unwrap();
    let mut admin = driver.admin().unwrap();
    let columns = ["k", "a", "b"].map(str::to_owned);
    let loaded = admin.bulk_load(&table, &columns, &mut Source(1000..1000 + rows_of)).unwrap();
    assert_eq!(loaded as i64, rows_of);
    assert_eq!(rows(&mut client, "read", &[Value::Int(1001)]), ["2002 x"]);
    let all = [fixture.first_number(), Value::Int(2 * rows_of)];
    assert_eq!(rows(&mut client, "scan", &all).len() as i64, rows_of);
    assert!(admin.server_facts().unwrap().iter().any(|(name, _)| name.ends_with("_version")));
}

#[test]
fn a_user_is_let_in_by_the_password_alone() {
    if redis::tls().is_none() {
        return;
    }
    let told = |user, password| {
        redis::as_user(user, password).unwrap().admin().map(|_| ()).map_err(|error| error.code().to_owned())
    };
    assert_eq!(told("tester", "s3cret"), Ok(()));
    assert_eq!(told("", "other"), Ok(()), "the default user has a password, too");
    assert_eq!(told("tester", "wrong"), Err("WRONGPASS".to_owned()));
}

/// A server that has no replicas cannot give a write to one: what the level asks for has not been reached.
#[test]
fn a_write_waits_for_replicas_where_the_level_says_so() {
    let Some(fixture) = redis::plain() else { return };
    let settings = Settings { consistency: Some("wait 1".to_owned()), ..Settings::default() };
    let mut client = Client::with(&*open(&fixture.url(), &settings).unwrap(), &statements("waited")).unwrap();
    client.queue("insert", &[text("x"), text("1"), text("2")], Want::Count).unwrap();
    let error = client.flush_within(20 * nephoscope_runtime::clock::SECOND).unwrap_err();
    assert_eq!(
        (error.class(), error.code(), error.outcome_unknown()),
        (ErrorClass::StatementTimeout, "WAIT", true)
    );
    assert_eq!(client.state(), ConnectionState::Idle);
    assert_eq!(rows(&mut client, "read", &[text("x")]), ["1 2"]);
}
