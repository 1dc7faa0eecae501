//! Error classes, each provoked for real.

use std::net::TcpListener;

use nephoscope_drivers::{Command, ConnectionState, ErrorClass, Settings, StatementMode, Value, Want, open};
use nephoscope_runtime::clock::{MILLISECOND, SECOND, now};
use rustix::process::Signal;

use crate::client::Client;
use crate::fixtures::postgres::{self, Postgres, begin_and_add, lost_update, refused, wait_for_sessions};
use crate::fixtures::{Fixture, Provoked, cannot, unique};
use crate::support::postgres::send_signal;

/// Checks the class, and that the connection is lost or can be used again after a rollback.
#[track_caller]
fn expect(provoked: Provoked, class: ErrorClass) {
    let Provoked { error, client } = provoked;
    assert_eq!(error.class(), class, "{error}");
    assert!(!error.message().is_empty());
    let Some(mut client) = client else { return };
    match class {
        ErrorClass::ConnectionLost | ErrorClass::ShuttingDown if client.state() == ConnectionState::Lost => {}
        _ => {
            assert_ne!(client.state(), ConnectionState::Waiting);
            client.recover();
        }
    }
}

pub(crate) fn every_class_is_provoked_or_the_fixture_says_why(fixture: &dyn Fixture) {
    for class in ErrorClass::ALL {
        match fixture.provoke(class) {
            Ok(provoked) => expect(provoked, class),
            Err(why) => cannot(why),
        }
    }
}

/// Unique, NOT NULL, CHECK and foreign keys from either side, each by a statement of its own, which changes nothing.
pub(crate) fn a_violation_of_any_constraint_is_told_as_one(fixture: &dyn Fixture) {
    if fixture.echoes() {
        cannot("a database that stores nothing has no constraints");
        return;
    }
    let (parent, child) = (unique("parent"), unique("child"));
    let driver = fixture.open("constraints");
    let set_up = format!(
        "CREATE TABLE {parent} (id int PRIMARY KEY); INSERT INTO {parent} VALUES (1); \
         CREATE TABLE {child} (id int PRIMARY KEY, parent int, n int NOT NULL, CHECK (n > 0), \
         FOREIGN KEY (parent) REFERENCES {parent} (id)); INSERT INTO {child} VALUES (1, 1, 1)"
    );
    driver.admin().unwrap().query(&set_up).unwrap();
    let insert = |row: &str| format!("INSERT INTO {child} VALUES ({row})");
    let violations = [
        ("unique", insert("1, 1, 1")),
        ("not_null", insert("2, 1, NULL")),
        ("check", insert("2, 1, 0")),
        ("no_parent", insert("2, 7, 1")),
        ("has_children", format!("DELETE FROM {parent} WHERE id = 1")),
    ];
    let statements = violations.each_ref().map(|(name, sql)| (*name, sql.as_str()));
    let mut client = Client::new(&*driver, &statements);
    for (name, _) in statements {
        let error = client.count(name, &[]).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Constraint, "{name}: {error}");
        assert!(!error.outcome_unknown(), "{name}: {error}");
    }
    let rows = driver.admin().unwrap().query(&format!("SELECT count(*) FROM {child}")).unwrap().rows;
    assert_eq!(rows, [[Some("1".to_owned())]]);
}

pub(crate) fn serializable_transactions_that_depend_on_each_other_fail(postgres: &Postgres) {
    expect(lost_update(postgres.pair(), "serializable"), ErrorClass::Serialization);
    let (mut first, mut second) = postgres.pair();
    for (client, id) in [(&mut first, 1), (&mut second, 2)] {
        client.count("serializable", &[]).unwrap();
        client.integer("read", &[]);
        client.count("add", &[Value::Int(id)]).unwrap();
    }
    first.control(Command::Commit).unwrap();
    let error = second.control(Command::Commit).unwrap_err();
    assert_eq!(second.state(), ConnectionState::Idle);
    expect(Provoked { error, client: Some(second) }, ErrorClass::Serialization);
}

pub(crate) fn lock_nowait_is_a_lock_timeout(postgres: &Postgres) {
    let table = postgres.table();
    let lock = format!("SELECT id FROM {table} WHERE id = :id FOR UPDATE NOWAIT");
    let add = format!("UPDATE {table} SET n = n + 1 WHERE id = :id");
    let mut first = postgres.client(&[("add", &add)]);
    begin_and_add(&mut first, 1);
    let mut second = postgres.client(&[("lock", &lock)]);
    let error = second.call("lock", &[Value::Int(1)]).unwrap_err();
    assert_eq!(error.code(), "55P03");
    expect(Provoked { error, client: Some(second) }, ErrorClass::LockTimeout);
}

pub(crate) fn a_session_that_may_only_read_is_read_only(postgres: &Postgres) {
    let add = format!("UPDATE {} SET n = n + 1", postgres.table());
    let driver = postgres.driver(&["SET default_transaction_read_only = on"]);
    let mut client = Client::new(&*driver, &[("add", &add)]);
    for begin in [false, true] {
        if begin {
            client.control(Command::Begin).unwrap();
        }
        assert_eq!(client.count("add", &[]).unwrap_err().class(), ErrorClass::ReadOnly);
    }
    client.recover();
}

pub(crate) fn a_duplicate_key_is_named_and_bad_sql_is_another_error(postgres: &Postgres) {
    let table = postgres.table();
    let insert = format!("INSERT INTO {table} VALUES (:id, 0)");
    let mut client = postgres.client(&[
        ("insert", &insert),
        ("cast", "SELECT :text::text::int8"),
        ("add", "SELECT 1::int8"),
    ]);
    let error = client.count("insert", &[Value::Int(1)]).unwrap_err();
    assert_eq!((error.class(), error.code()), (ErrorClass::Constraint, "23505"));
    assert_eq!(
        error.message(),
        format!(
            "duplicate key value violates unique constraint \"{table}_pkey\": Key (id)=(1) already exists."
        )
    );
    let error = client.call("cast", &[Value::Text(b"seven")]).unwrap_err();
    assert_eq!((error.class(), error.code()), (ErrorClass::Other, "22P02"));
    assert_eq!(client.integer("add", &[]), 1);
}

pub(crate) fn an_idle_transaction_is_ended_by_the_server(postgres: &Postgres) {
    let name = unique("idle");
    let named = format!("SET application_name = '{name}'");
    let driver = postgres.driver(&["SET idle_in_transaction_session_timeout = '30ms'", &named]);
    let mut client = Client::new(&*driver, &[("one", "SELECT 1")]);
    client.control(Command::Begin).unwrap();
    wait_for_sessions(postgres.server(), &format!("application_name = '{name}'"), 0);
    let error = client.call("one", &[]).unwrap_err();
    assert_eq!((error.class(), error.code()), (ErrorClass::StatementTimeout, "25P03"));
    assert_eq!(client.state(), ConnectionState::Lost);
}

const MODES: [StatementMode; 3] = [StatementMode::Simple, StatementMode::Extended, StatementMode::Prepared];

/// Connections in every mode, with and without TLS, that wait for a slow statement.
fn waiting(server: &crate::support::postgres::Server) -> Vec<Client> {
    let tls = format!(
        "postgresql://postgres@127.0.0.1:{}/postgres?sslmode=prefer&application_name=waiting&sslrootcert={}",
        server.port,
        server.root_certificate()
    );
    let mut clients = Vec::new();
    for url in [postgres::url(server.port, "application_name=waiting"), tls] {
        for statement_mode in MODES {
            let driver = open(&url, &Settings { statement_mode, ..Settings::default() }).unwrap();
            let mut client = Client::new(
                &*driver,
                &[("pid", "SELECT pg_backend_pid()::int8"), ("sleep", "SELECT pg_sleep(60)")],
            );
            client.queue_command(Command::Begin, &[], Want::Count).unwrap();
            client.queue("sleep", &[], Want::Count).unwrap();
            assert!(client.send().is_none());
            clients.push(client);
        }
    }
    postgres::wait_until_asleep(server, "waiting", clients.len());
    clients
}

/// What becomes of connections that wait when something happens to their server.
fn all_are_lost(clients: Vec<Client>, class: ErrorClass, code: &str) {
    for (place, mut client) in clients.into_iter().enumerate() {
        let error = client.flush().unwrap_err();
        assert_eq!((error.class(), error.code()), (class, code), "connection {place}: {error}");
        assert_eq!(client.state(), ConnectionState::Lost);
    }
}

#[test]
fn a_server_that_goes_down_fast_or_at_once_says_so() {
    for signal in [Signal::INT, Signal::QUIT] {
        let Some(server) = postgres::start(true) else { return };
        let clients = waiting(&server);
        server.signal(signal);
        all_are_lost(clients, ErrorClass::ShuttingDown, "57P01");
        let port = server.port;
        drop(server);
        assert_eq!(refused(&postgres::url(port, "")).class(), ErrorClass::ConnectionLost);
    }
}

#[test]
fn a_server_that_goes_down_when_the_last_session_ends_takes_no_new_one() {
    let Some(server) = postgres::start(false) else { return };
    let driver = open(&postgres::url(server.port, ""), &Settings::default()).unwrap();
    let mut last = Client::new(&*driver, &[("one", "SELECT 1::int8")]);
    server.signal(Signal::TERM);
    let end = now() + 20 * SECOND;
    // The signal takes its time.
    while Client::try_new(&*driver, &[]).is_ok() {
        assert!(now() < end, "the server goes on");
    }
    let error = refused(&postgres::url(server.port, ""));
    assert_eq!((error.class(), error.code()), (ErrorClass::ShuttingDown, "57P03"));
    assert_eq!(last.integer("one", &[]), 1);
}

#[test]
fn too_many_connections_are_as_good_as_none() {
    let Some(member) = postgres::prepared() else { return };
    let role = unique("lonely");
    member.admin().query(&format!("CREATE ROLE {role} LOGIN CONNECTION LIMIT 1")).unwrap();
    let url = format!("postgresql://{role}@127.0.0.1:{}/postgres?sslmode=disable", member.server().port);
    let first = Client::new(&*open(&url, &Settings::default()).unwrap(), &[]);
    let error = refused(&url);
    assert_eq!((error.class(), error.code()), (ErrorClass::ConnectionLost, "53300"), "{error}");
    drop(first);
}

#[test]
fn a_backend_that_is_killed_takes_the_others_with_it_and_the_server_comes_back() {
    let Some(server) = postgres::start(true) else { return };
    let url = postgres::url(server.port, "");
    let driver = open(&url, &Settings::default()).unwrap();
    let mut victim =
        Client::new(&*driver, &[("pid", "SELECT pg_backend_pid()::int8"), ("sleep", "SELECT pg_sleep(60)")]);
    let pid = victim.integer("pid", &[]);
    victim.queue("sleep", &[], Want::Count).unwrap();
    assert!(victim.send().is_none());
    let bystanders = waiting(&server);
    send_signal(&pid.to_string(), Signal::KILL);
    let error = victim.flush().unwrap_err();
    assert_eq!((error.class(), victim.state()), (ErrorClass::ConnectionLost, ConnectionState::Lost));
    // The server ends every session for fear of what the dead one has left in the shared memory.
    all_are_lost(bystanders, ErrorClass::ShuttingDown, "57P02");
    postgres::wait_until_ready(&server);
    assert!(Client::new(&*driver, &[("pid", "SELECT pg_backend_pid()::int8")]).integer("pid", &[]) != pid);
}

#[test]
fn a_port_where_nobody_listens_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = refused(&postgres::url(port, ""));
    assert_eq!(error.class(), ErrorClass::ConnectionLost);
    assert_eq!(error.message(), format!("127.0.0.1:{port}: Connection refused (os error 111)"));
}

#[test]
fn a_server_that_never_answers_is_given_up_within_the_time_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for parameters in ["sslmode=disable", "sslmode=prefer", "sslmode=require"] {
        let url = format!("postgresql://postgres@127.0.0.1:{port}/postgres?{parameters}");
        let error = given_up(&url);
        assert_eq!(error.class(), ErrorClass::ConnectionLost);
        let expected =
            format!("127.0.0.1:{port} accepted the connection and did not answer within the time limit");
        assert_eq!(error.message(), expected);
    }
    // Several hosts share the time limit, and each is tried.
    let second = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = second.local_addr().unwrap().port();
    let hosts = format!("127.0.0.1:{port},127.0.0.1:{other}");
    let error = given_up(&format!("postgresql://postgres@{hosts}/postgres?sslmode=disable"));
    assert_eq!(error.class(), ErrorClass::ConnectionLost);
    assert!(error.message().starts_with(&format!("127.0.0.1:{other}")), "{error}");
}

/// Connects where nobody answers, with a time limit that has to be kept.
fn given_up(url: &str) -> nephoscope_drivers::Error {
    const LIMIT: u64 = 600 * MILLISECOND;
    let settings = Settings { connect_timeout: LIMIT, ..Settings::default() };
    let begun = now();
    let error = Client::try_new(&*open(url, &settings).unwrap(), &[]).err().unwrap();
    let taken = now() - begun;
    // Twice as long would be a limit for each host, or for each way to try it.
    assert!((LIMIT - 10 * MILLISECOND..2 * LIMIT - 10 * MILLISECOND).contains(&taken), "{taken} ns");
    error
}
