//! Transactions: the states of a connection, errors within a transaction, several commands in one flush.

use nephoscope_drivers::{Command, ConnectionState, Error, ErrorClass, Reply, StatementMode, Value, Want};

use crate::client::Client;
use crate::fixtures::postgres::Postgres;
use crate::fixtures::{Entries, Faulty, Fixture, cannot, unique};

use ConnectionState::{Failed, Idle, InTransaction, Waiting};

pub(crate) fn the_state_follows_the_commands(fixture: &dyn Fixture) {
    let mut client = Client::new(&*fixture.open("states"), &[("one", "SELECT :a::int8 AS a")]);
    assert_eq!(client.state(), Idle);
    for (command, after) in [
        (Command::Begin, InTransaction),
        (Command::Execute(0), InTransaction),
        (Command::Commit, Idle),
        (Command::Begin, InTransaction),
        (Command::Rollback, Idle),
        (Command::Execute(0), Idle),
    ] {
        let values = if command == Command::Execute(0) { vec![Value::Int(1)] } else { Vec::new() };
        client.queue_command(command, &values, Want::Count).unwrap();
        assert_eq!(client.state(), Waiting, "{command:?} was queued");
        let touched = values.len() as u64;
        assert_eq!(client.flush().unwrap(), Reply { affected: touched, ..Reply::default() }, "{command:?}");
        assert_eq!(client.state(), after, "{command:?}");
    }
}

/// The faulty statement of a fixture, on a connection.
fn faulty(fixture: &dyn Fixture) -> Option<(Client, Faulty)> {
    let faulty = fixture.faulty().map_err(cannot).ok()?;
    let client = Client::new(&*faulty.driver, &[("faulty", faulty.sql), ("fine", "SELECT :a::int8 AS a")]);
    Some((client, faulty))
}

/// Makes the faulty statement fail.
fn fail(client: &mut Client, faulty: &Faulty) -> Error {
    (faulty.arm)(true);
    let error = client.call("faulty", &[Value::Int(0)]).unwrap_err();
    (faulty.arm)(false);
    assert_eq!((error.class(), error.code()), (ErrorClass::Other, faulty.code));
    error
}

pub(crate) fn a_failed_transaction_can_only_be_rolled_back(fixture: &dyn Fixture) {
    let Some((mut client, faulty)) = faulty(fixture) else { return };
    fail(&mut client, &faulty);
    assert_eq!(client.state(), Idle);
    client.control(Command::Begin).unwrap();
    fail(&mut client, &faulty);
    assert_eq!(client.state(), Failed);
    let error = client.call("fine", &[Value::Int(1)]).unwrap_err();
    assert_eq!((error.code(), client.state()), ("25P02", Failed));
    client.control(Command::Rollback).unwrap();
    assert_eq!(client.state(), Idle);
    client.call("fine", &[Value::Int(1)]).unwrap();
}

pub(crate) fn the_commit_of_a_failed_transaction_is_an_error(fixture: &dyn Fixture) {
    let Some((mut client, faulty)) = faulty(fixture) else { return };
    client.control(Command::Begin).unwrap();
    fail(&mut client, &faulty);
    let error = client.control(Command::Commit).unwrap_err();
    assert_eq!((error.class(), error.code()), (ErrorClass::Other, "25P02"));
    assert_eq!(error.message(), "the transaction had failed, so it was rolled back and not committed");
    assert_eq!(client.state(), Idle);
    client.call("fine", &[Value::Int(1)]).unwrap();
}

fn committed(entries: &Entries) -> Vec<(i64, i64)> {
    match entries {
        Entries::Listed(entries) => entries.clone(),
        // A simulated database holds no more than how many there were.
        Entries::Counted(count) => (0..*count as i64).map(|number| (1, number + 1)).collect(),
    }
}

fn queue_entries(client: &mut Client, numbers: &[i64]) {
    for number in numbers {
        client.queue("insert", &[Value::Int(1), Value::Int(*number)], Want::Count).unwrap();
    }
}

pub(crate) fn a_transaction_may_leave_in_one_flush(fixture: &dyn Fixture) {
    let name = unique("flush");
    let Some(ledger) = fixture.ledger(&name).map_err(cannot).ok() else { return };
    let statements = [("insert", ledger.insert.as_str()), ("read", "SELECT :a::int8 AS a")];
    let mut client = Client::new(&*ledger.driver, &statements);
    client.queue_command(Command::Begin, &[], Want::Count).unwrap();
    queue_entries(&mut client, &[1]);
    client.queue("read", &[Value::Int(7)], Want::Rows).unwrap();
    let reply = client.flush().unwrap();
    assert_eq!((client.value(reply), client.state()), (Value::Int(7), InTransaction));
    client.queue_command(Command::Commit, &[], Want::Count).unwrap();
    assert_eq!(client.flush().unwrap(), Reply::default());
    assert_eq!((client.state(), committed(&(ledger.entries)())), (Idle, vec![(1, 1)]));
    client.queue_command(Command::Begin, &[], Want::Count).unwrap();
    queue_entries(&mut client, &[2]);
    client.queue_command(Command::Commit, &[], Want::Count).unwrap();
    client.flush().unwrap();
    assert_eq!((client.state(), committed(&(ledger.entries)())), (Idle, vec![(1, 1), (1, 2)]));
}

/// Runs a whole transaction in one flush, in which a statement fails between two entries.
fn spoilt_by_an_error(fixture: &dyn Fixture, last: Command) {
    let name = unique("flush");
    let Some(ledger) = fixture.ledger(&name).map_err(cannot).ok() else { return };
    let Some(faulty) = fixture.faulty().map_err(cannot).ok() else { return };
    let statements = [("insert", ledger.insert.as_str()), ("faulty", faulty.sql)];
    // The simulated database fails as a whole, so there its faulty driver has to do for both.
    let driver = if fixture.echoes() { &faulty.driver } else { &ledger.driver };
    let mut client = Client::new(&**driver, &statements);
    (faulty.arm)(true);
    client.queue_command(Command::Begin, &[], Want::Count).unwrap();
    queue_entries(&mut client, &[1]);
    client.queue("faulty", &[Value::Int(0)], Want::Rows).unwrap();
    queue_entries(&mut client, &[2]);
    client.queue_command(last, &[], Want::Count).unwrap();
    let error = client.flush().unwrap_err();
    (faulty.arm)(false);
    assert_eq!(error.code(), faulty.code, "the first error is told, and not what followed from it");
    client.recover();
    assert_eq!(committed(&(ledger.entries)()), []);
    client.count("insert", &[Value::Int(1), Value::Int(3)]).unwrap();
    assert_eq!(client.state(), Idle);
    if !fixture.echoes() {
        assert_eq!(committed(&(ledger.entries)()), [(1, 3)]);
    }
}

pub(crate) fn an_error_in_one_flush_spoils_the_whole_transaction(fixture: &dyn Fixture) {
    spoilt_by_an_error(fixture, Command::Commit);
}

pub(crate) fn a_rollback_in_the_same_flush_does_not_hide_an_error(fixture: &dyn Fixture) {
    spoilt_by_an_error(fixture, Command::Rollback);
}

/// A table whose unique key is looked at when the transaction ends.
fn deferred(postgres: &Postgres) -> (Client, String) {
    let table = unique("deferred");
    let sql = format!("CREATE TABLE {table} (id int8 UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    postgres.admin().query(&sql).unwrap();
    let insert = format!("INSERT INTO {table} VALUES (:id) RETURNING id");
    let count = format!("SELECT count(*) FROM {table}");
    (postgres.client(&[("insert", &insert), ("count", &count)]), table)
}

pub(crate) fn a_constraint_that_fails_at_commit_is_the_commits_error(postgres: &Postgres) {
    let (mut client, _) = deferred(postgres);
    client.control(Command::Begin).unwrap();
    client.call("insert", &[Value::Int(1)]).unwrap();
    client.call("insert", &[Value::Int(1)]).unwrap();
    let error = client.control(Command::Commit).unwrap_err();
    assert_eq!((error.code(), client.state()), ("23505", Idle));
    assert_eq!(client.integer("count", &[]), 0);
}

pub(crate) fn a_statement_outside_a_transaction_that_fails_at_its_end_has_failed(postgres: &Postgres) {
    let (mut client, _) = deferred(postgres);
    client.call("insert", &[Value::Int(1)]).unwrap();
    // The server says that the statement is complete, and then that it is not.
    let error = client.call("insert", &[Value::Int(1)]).unwrap_err();
    assert_eq!((error.code(), client.state()), ("23505", Idle));
    assert_eq!(client.integer("count", &[]), 1);
}

pub(crate) fn stray_commands_do_no_harm(postgres: &Postgres) {
    let mut client = postgres.client(&[("one", "SELECT 1::int8")]);
    for stray in [Command::Commit, Command::Rollback] {
        client.control(stray).unwrap();
        assert_eq!(client.state(), Idle);
    }
    client.control(Command::Begin).unwrap();
    client.control(Command::Begin).unwrap();
    assert_eq!(client.state(), InTransaction);
    assert_eq!(client.integer("one", &[]), 1);
    client.control(Command::Commit).unwrap();
    // Without a transaction the simple mode runs each statement of a flush by itself.
    let table = postgres.table();
    let add = format!("UPDATE {table} SET n = n + :by::int4 WHERE id = 1");
    let read = format!("SELECT sum(n) FROM {table}");
    let statements = [("add", add.as_str()), ("fail", "SELECT 1 / :by::int8"), ("read", &read)];
    let mut client = postgres.client(&statements);
    client.queue("add", &[Value::Int(1)], Want::Count).unwrap();
    client.queue("fail", &[Value::Int(0)], Want::Count).unwrap();
    client.queue("add", &[Value::Int(10)], Want::Count).unwrap();
    assert_eq!(client.flush().unwrap_err().code(), "22012");
    let kept = if postgres.mode() == StatementMode::Simple { 11 } else { 0 };
    assert_eq!((client.integer("read", &[]), client.state()), (kept, Idle));
}
