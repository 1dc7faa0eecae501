//! Connections that are killed.

use nephoscope_drivers::{Command, ConnectionState, Error, ErrorClass, Value, Want};

use crate::client::Client;
use crate::fixtures::postgres::{Postgres, wait_until_asleep};
use crate::fixtures::{Entries, Fixture, cannot, unique};

/// A connection that was killed says that it is lost, or that the server has ended it.
fn is_lost(client: &Client, error: &Error) {
    let class = error.class();
    assert!(matches!(class, ErrorClass::ConnectionLost | ErrorClass::ShuttingDown), "{error}");
    assert_eq!(client.state(), ConnectionState::Lost);
}

pub(crate) fn a_connection_killed_in_mid_transaction_is_lost_with_its_effects(fixture: &dyn Fixture) {
    let name = unique("victim");
    let Some(ledger) = fixture.ledger(&name).map_err(cannot).ok() else { return };
    let statements = [("insert", ledger.insert.as_str())];
    let mut client = Client::new(&*ledger.driver, &statements);
    client.control(Command::Begin).unwrap();
    client.count("insert", &[Value::Int(1), Value::Int(1)]).unwrap();
    if let Err(why) = fixture.kill(&*ledger.driver, &name) {
        return cannot(why);
    }
    let error = client.count("insert", &[Value::Int(1), Value::Int(2)]).unwrap_err();
    is_lost(&client, &error);
    let mut next = Client::new(&*ledger.driver, &statements);
    assert_eq!(next.state(), ConnectionState::Idle);
    next.control(Command::Begin).unwrap();
    next.count("insert", &[Value::Int(2), Value::Int(1)]).unwrap();
    next.control(Command::Commit).unwrap();
    match (ledger.entries)() {
        Entries::Listed(entries) => assert_eq!(entries, [(2, 1)]),
        Entries::Counted(count) => assert_eq!(count, 1),
    }
}

pub(crate) fn a_connection_killed_at_rest_is_lost_at_its_next_use(fixture: &dyn Fixture) {
    let name = unique("victim");
    let driver = fixture.open(&name);
    let mut client = Client::new(&*driver, &[("one", "SELECT 1::int8 AS one")]);
    client.call("one", &[]).unwrap();
    if let Err(why) = fixture.kill(&*driver, &name) {
        return cannot(why);
    }
    let error = client.call("one", &[]).unwrap_err();
    is_lost(&client, &error);
    Client::new(&*driver, &[("one", "SELECT 1::int8 AS one")]).call("one", &[]).unwrap();
}

pub(crate) fn a_connection_killed_while_it_waits_is_lost(postgres: &Postgres) {
    let name = unique("victim");
    let driver = postgres.open(&name);
    let mut client = Client::new(&*driver, &[("sleep", "SELECT pg_sleep(20)")]);
    client.queue("sleep", &[], Want::Rows).unwrap();
    assert!(client.send().is_none());
    wait_until_asleep(postgres.server(), &name, 1);
    postgres.kill(&*driver, &name).unwrap();
    let error = client.flush().unwrap_err();
    assert_eq!((error.class(), error.code()), (ErrorClass::ShuttingDown, "57P01"));
    is_lost(&client, &error);
}
