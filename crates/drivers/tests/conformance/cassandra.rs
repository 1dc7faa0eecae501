//! What holds for Cassandra besides: types, CQL of a workload's own, consistency levels, errors, TLS.

use std::sync::Arc;

use nephoscope_drivers::{
    Command, ConnectionState, Driver, Error, ErrorClass, RowEncoder, RowSource, Settings, Statement, Value,
    Want, open,
};

use crate::client::Client;
use crate::fixtures::{Fixture, cassandra, unique};
use crate::keyed::{rows, statements, text};

fn ask(fixture: &dyn Fixture, cql: &str) -> Vec<Vec<Option<String>>> {
    open(&fixture.url(), &Settings::default()).unwrap().admin().unwrap().query(cql).unwrap().rows
}

fn with(driver: &dyn Driver, all: &[(&str, &str)]) -> Client {
    let all: Arc<[Statement]> =
        all.iter().map(|(name, cql)| Statement::read(name, cql, driver.dialect().lexer)).collect();
    Client::with(driver, &all).unwrap()
}

pub(crate) fn values_of_every_type_come_back(fixture: &dyn Fixture) {
    let table = unique("types");
    let columns = [
        ("bigint", Value::Int(i64::MIN), "-9223372036854775808"),
        ("int", Value::Int(-7), "-7"),
        ("smallint", Value::Int(300), "300"),
        ("tinyint", Value::Int(-128), "-128"),
        (
            "varint",
            Value::Numeric("170141183460469231731687303715884105727"),
            "170141183460469231731687303715884105727",
        ),
        ("decimal", Value::Decimal { units: -1250, scale: 2 }, "-12.50"),
        ("double", Value::Float(0.1), "0.1"),
        ("float", Value::Float(0.5), "0.5"),
        ("boolean", Value::Bool(true), "1"),
        ("text", text("é"), "é"),
        ("ascii", text("a"), "a"),
        ("blob", Value::Bytes(&[0, 255]), "00ff"),
        ("uuid", Value::Uuid([7; 16]), "07070707070707070707070707070707"),
        ("date", Value::Date(19_000), "2022-01-08"),
        ("time", Value::Time(1_500_000), "1500000"),
        ("timestamp", Value::Timestamp(1_000_000), "1970-01-01 00:00:01.000000+00"),
        ("inet", text("127.0.0.1"), "127.0.0.1"),
    ];
    let names: Vec<String> = columns.iter().map(|(of, ..)| format!("c_{of}")).collect();
    let defined: Vec<String> = columns.iter().map(|(of, ..)| format!("c_{of} {of}")).collect();
    ask(fixture, &format!("CREATE TABLE {table} (k int PRIMARY KEY, {}, l list<int>)", defined.join(", ")));
    let insert = format!("INSERT INTO {table} (k, {}) VALUES (:k, :{})", names.join(", "), names.join(", :"));
    let select = format!("SELECT {}, l FROM {table} WHERE k = :k", names.join(", "));
    let driver = open(&fixture.url(), &Settings::default()).unwrap();
    let mut client = with(&*driver, &[("insert", &insert), ("select", &select)]);
    let values: Vec<Value<'_>> =
        [Value::Int(1)].into_iter().chain(columns.iter().map(|(_, value, _)| *value)).collect();
    assert_eq!(client.count("insert", &values).unwrap().affected, 1);
    let nulls: Vec<Value<'_>> =
        [Value::Int(2)].into_iter().chain(columns.iter().map(|_| Value::Null)).collect();
    client.count("insert", &nulls).unwrap();
    let found = client.call("select", &[Value::Int(1)]).unwrap().result.unwrap();
    for (place, (of, value, _)) in columns.iter().enumerate() {
        assert_eq!(client.rows.value(found, 0, place), Some(*value), "{of}");
    }
    let found = client.call("select", &[Value::Int(2)]).unwrap().result.unwrap();
    assert!((0..columns.len()).all(|place| client.rows.value(found, 0, place) == Some(Value::Null)));
    let told = ask(fixture, &format!("SELECT {} FROM {table} WHERE k = 1", names.join(", ")));
    let expected = columns.map(|(_, _, shown)| Some(shown.to_owned()));
    assert_eq!(told, [expected]);
    ask(fixture, &format!("UPDATE {table} SET l = [7] WHERE k = 1"));
    let found = client.call("select", &[Value::Int(1)]).unwrap().result.unwrap();
    let bytes: &[u8] = &[0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 7];
    assert_eq!(client.rows.named(found, 0, "l"), Some(Value::Bytes(bytes)));
    let misfit = client.count("select", &[Value::Float(0.5)]).unwrap_err();
    assert_eq!(misfit.message(), "select, parameter :k: 0.5 does not fit the type int");
    let misfit = client.count("select", &[text("x")]).unwrap_err();
    assert_eq!(misfit.message(), "select, parameter :k: x does not fit the type int");
}

pub(crate) fn cql_is_run_beside_verbs(fixture: &dyn Fixture) {
    let table = unique("t");
    ask(fixture, &format!("CREATE TABLE {table} (k text, n int, v counter, PRIMARY KEY (k, n))"));
    let driver = open(&fixture.url(), &Settings::default()).unwrap();
    let mut client = with(
        &*driver,
        &[
            ("add", &format!("UPDATE {table} SET v = v + :by WHERE k = :k AND n = :n")),
            (
                "all",
                &format!(
                    "SELECT * FROM {table} WHERE k = :k // it's all of :them\n ORDER BY n DESC LIMIT 10"
                ),
            ),
        ],
    );
    for (n, by) in [(1, 5), (2, 7), (1, 1)] {
        client.count("add", &[Value::Int(by), text("x"), Value::Int(n)]).unwrap();
    }
    let found = client.call("all", &[text("x")]).unwrap();
    let cells: Vec<Value<'_>> =
        (0..2).map(|row| client.rows.named(found.result.unwrap(), row, "v").unwrap()).collect();
    assert_eq!((found.affected, cells), (2, vec![Value::Int(7), Value::Int(6)]));
    // A column more is told with the next result, though the statement is prepared.
    ask(fixture, &format!("CREATE TABLE {table}_s (k text PRIMARY KEY, a int)"));
    let mut client = with(&*driver, &[("all", &format!("SELECT * FROM {table}_s"))]);
    ask(fixture, &format!("INSERT INTO {table}_s (k, a) VALUES ('x', 1)"));
    assert_eq!(client.call("all", &[]).unwrap().affected, 1);
    ask(fixture, &format!("ALTER TABLE {table}_s ADD z int"));
    ask(fixture, &format!("UPDATE {table}_s SET z = 3 WHERE k = 'x'"));
    let found = client.call("all", &[]).unwrap_or_else(|_| client.call("all", &[]).unwrap());
    assert_eq!(client.rows.named(found.result.unwrap(), 0, "z"), Some(Value::Int(3)));
    let place =
        client.add_statement(&Statement::new("now", "SELECT release_version FROM system.local").into(), true);
    client.queue_command(Command::Execute(place.unwrap()), &[], Want::Rows).unwrap();
    assert_eq!(client.flush().unwrap().affected, 1);
}

pub(crate) fn errors_have_their_class_and_leave_a_usable_connection(fixture: &dyn Fixture) {
    let table = unique("t");
    fixture.make_table(&table);
    let mut client =
        Client::with(&*open(&fixture.url(), &Settings::default()).unwrap(), &statements(&table)).unwrap();
    for (name, values, message) in [
        ("read", &[][..], "read takes 1 parameters and was given 0"),
        ("scan", &[text(""), text("x")][..], "scan, parameter :count: x does not fit the type int"),
    ] {
        assert_eq!(client.queue(name, values, Want::Count).unwrap_err().message(), message);
    }
    // A request that fails is not in the way of the others.
    client.queue("insert", &[text("x"), text("1"), text("2")], Want::Count).unwrap();
    client.queue("insert", &[text(""), text("1"), text("2")], Want::Count).unwrap();
    client.queue("insert", &[text("y"), text("3"), text("4")], Want::Count).unwrap();
    let error = client.flush().unwrap_err();
    assert_eq!(
        (error.class(), error.code(), error.outcome_unknown()),
        (ErrorClass::Other, "0x2200", false),
        "{error}"
    );
    assert_eq!(client.state(), ConnectionState::Idle);
    assert_eq!(
        (rows(&mut client, "read", &[text("x")]), rows(&mut client, "read", &[text("y")])),
        (vec!["1 2".to_owned()], vec!["3 4".to_owned()])
    );
    assert_eq!(client.count("scan", &[text(""), Value::Int(0)]).unwrap_err().code(), "0x2200");
    let begin = client.queue_command(Command::Begin, &[], Want::Count).unwrap_err();
    assert!(begin.message().starts_with("Cassandra has no transactions"), "{begin}");
    let wrong = client.add("SELECT nothing FROM nowhere WHERE k = :k").unwrap_err();
    assert!(wrong.message().starts_with("statement added: "), "{wrong}");
    assert_eq!(rows(&mut client, "read", &[text("x")]), ["1 2"]);
}

/// A table that is made anew has statements that nobody has prepared.
pub(crate) fn a_statement_that_the_node_has_forgotten_is_prepared_anew(fixture: &dyn Fixture) {
    let table = unique("t");
    fixture.make_table(&table);
    let mut client =
        Client::with(&*open(&fixture.url(), &Settings::default()).unwrap(), &statements(&table)).unwrap();
    client.count("insert", &[text("x"), text("1"), text("2")]).unwrap();
    ask(fixture, &format!("DROP TABLE {table}"));
    fixture.make_table(&table);
    let error = client.call("read", &[text("x")]).unwrap_err();
    assert_eq!(
        (error.class(), error.code(), error.outcome_unknown()),
        (ErrorClass::ShuttingDown, "0x2500", false)
    );
    assert_eq!(rows(&mut client, "read", &[text("x")]), Vec::<String>::new());
}

/// One node cannot be two: nothing is done where the level asks for more replicas than there are.
pub(crate) fn a_level_says_how_many_replicas_have_to_answer(fixture: &dyn Fixture) {
    let table = unique("t");
    fixture.make_table(&table);
    let at = |level: &str| {
        let settings = Settings { consistency: Some(level.to_owned()), ..Settings::default() };
        Client::with(&*open(&fixture.url(), &settings).unwrap(), &statements(&table)).unwrap()
    };
    let insert = |client: &mut Client| client.count("insert", &[text("x"), text("1"), text("2")]);
    let failed = |done: Result<_, Error>| {
        let error = done.map(|_| ()).unwrap_err();
        (error.class(), error.code().to_owned(), error.outcome_unknown())
    };
    let unavailable = (ErrorClass::ShuttingDown, "0x1000".to_owned(), false);
    assert_eq!(failed(insert(&mut at("TWO"))), unavailable);
    let mut mixed = at("read TWO write QUORUM");
    insert(&mut mixed).unwrap();
    assert_eq!(failed(mixed.call("read", &[text("x")])), unavailable);
    let mut mixed = at("read ALL write THREE");
    assert_eq!(failed(insert(&mut mixed)), unavailable);
    assert_eq!(rows(&mut mixed, "read", &[text("x")]), ["1 2"]);
}

/// Rows of a key and a number, some at a time.
struct Numbers(std::ops::Range<i64>);

impl RowSource for Numbers {
    fn fill(&mut self, encoder: &mut dyn RowEncoder) -> Result<bool, Error> {
        for number in self.0.by_ref().take(1000) {
            let key = number.to_string();
            encoder.push(text(&key))?;
            encoder.push(Value::Int(number))?;
            encoder.end_row()?;
        }
        Ok(!self.0.is_empty())
    }
}

pub(crate) fn a_load_names_what_does_not_fit(fixture: &dyn Fixture) {
    let table = unique("t");
    ask(fixture, &format!("CREATE TABLE {table} (k text PRIMARY KEY, n tinyint)"));
    let mut admin = open(&fixture.url(), &Settings::default()).unwrap().admin().unwrap();
    let columns = ["k", "n"].map(str::to_owned);
    let error = admin.bulk_load(&table, &columns, &mut Numbers(0..200)).unwrap_err();
    assert_eq!(error.message(), format!("table {table}, column n: 128 does not fit the type tinyint"));
    assert_eq!(admin.bulk_load(&table, &columns, &mut Numbers(0..100)).unwrap(), 100);
    assert!(
        admin.bulk_load("nowhere", &columns, &mut Numbers(0..1)).unwrap_err().message().contains("nowhere")
    );
    let facts = admin.server_facts().unwrap();
    for name in ["release_version", "partitioner", "other_nodes", "num_tokens"] {
        assert!(facts.iter().any(|(known, _)| known == name), "{name}: {facts:?}");
    }
}

#[test]
fn the_newest_version_of_the_protocol_is_spoken_that_the_server_has() {
    let (Some(newest), Some(older)) = (cassandra::plain(), cassandra::older()) else { return };
    let spoken = |url: String| {
        let mut admin = open(&url, &Settings::default()).unwrap().admin()?;
        let facts = admin.server_facts()?.into_iter();
        Ok::<_, Error>(
            facts.filter(|(name, _)| name == "protocol_version").map(|(_, version)| version).collect(),
        )
    };
    let versions = |url: String| -> Vec<String> { spoken(url).unwrap() };
    assert_eq!((versions(newest.url()), versions(older.url())), (vec!["5".to_owned()], vec!["4".to_owned()]));
    assert_eq!(versions(newest.url() + "?protocol-version=4"), ["4"]);
    let refused: Error = spoken(older.url() + "?protocol-version=5").map(|_: Vec<String>| ()).unwrap_err();
    assert_eq!(refused.code(), "0x000A");
    assert!(refused.message().contains("unsupported protocol version (5)"), "{refused}");
}

#[test]
fn a_connection_that_is_cut_is_lost() {
    let (Some(fixture), Some((proxy, url))) = (cassandra::plain(), cassandra::proxied()) else { return };
    let table = unique("cut");
    fixture.make_table(&table);
    let mut client = Client::with(&*open(&url, &Settings::default()).unwrap(), &statements(&table)).unwrap();
    client.count("insert", &[text("x"), text("1"), text("2")]).unwrap();
    proxy.cut();
    let error = client.count("update", &[text("3"), text("4"), text("x")]).unwrap_err();
    assert_eq!((error.class(), error.outcome_unknown()), (ErrorClass::ConnectionLost, true));
    assert_eq!(client.state(), ConnectionState::Lost);
}

#[test]
fn a_user_is_let_in_by_the_password_alone() {
    let told = |user| {
        let url = cassandra::as_user(user)?;
        let driver = open(&url, &Settings::default()).unwrap();
        Some(driver.admin().map(|_| ()).map_err(|error| (error.code().to_owned(), error.to_string())))
    };
    let Some(right) = told("cassandra:cassandra") else { return };
    assert!(right.is_ok(), "{right:?}");
    for wrong in ["cassandra:wr0ng", "nobody:cassandra", ""] {
        let (code, message) = told(wrong).unwrap().unwrap_err();
        assert_eq!(code, "0x0100", "{message}");
        assert!(!message.contains("wr0ng"));
    }
}

#[test]
fn a_missing_keyspace_is_named_and_the_next_host_is_tried() {
    let Some(fixture) = cassandra::plain() else { return };
    let url = fixture.url().replace("/tests", "/nowhere");
    let told = open(&url, &Settings::default()).unwrap().admin().map(|_| ()).unwrap_err().to_string();
    assert!(told.contains("nowhere"), "{told}");
    let (before, after) = fixture.url().split_once('@').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let driver = open(&format!("{before}@127.0.0.1:1,{after}"), &Settings::default()).unwrap();
    for _ in 0..2 {
        driver.admin().map(|_| ()).unwrap();
    }
}

#[test]
fn a_node_is_reached_by_tls() {
    let Some((_server, url)) = cassandra::secure() else { return };
    let mut admin = open(&url, &Settings::default()).unwrap().admin().unwrap();
    assert_eq!(admin.query("SELECT key FROM system.local").unwrap().rows, [[Some("local".to_owned())]]);
    let unknown = url.split_once("&certfile").unwrap().0.to_owned();
    let told = open(&unknown, &Settings::default()).unwrap().admin().map(|_| ()).unwrap_err().to_string();
    assert!(told.contains("certfile"), "the message says what to set: {told}");
}
