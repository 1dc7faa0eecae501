//! Transactions that begin in an isolation level of their own.

use nephoscope_drivers::{Command, ConnectionState, Isolation, Value, Want};

use crate::client::Client;
use crate::fixtures::Fixture;
use crate::fixtures::mysql::Mysql;
use crate::fixtures::postgres::Postgres;

pub(crate) fn a_transaction_begins_in_a_level(fixture: &dyn Fixture) {
    let driver = fixture.open("levels");
    let mut client = Client::new(&*driver, &[("one", "SELECT :a::int8 AS a")]);
    for level in Isolation::ALL {
        if !driver.dialect().capabilities.isolation.contains(&level.name()) {
            continue;
        }
        for end in [Command::Commit, Command::Rollback] {
            // Once by itself, once with what follows.
            client.control(Command::BeginIn(level)).unwrap();
            assert_eq!(client.state(), ConnectionState::InTransaction);
            client.control(end).unwrap();
            client.queue_command(Command::BeginIn(level), &[], Want::Count).unwrap();
            client.queue("one", &[Value::Int(4)], Want::Rows).unwrap();
            let reply = client.flush().unwrap();
            assert_eq!(
                (client.value(reply), client.state()),
                (Value::Int(4), ConnectionState::InTransaction)
            );
            client.control(end).unwrap();
            assert_eq!(client.state(), ConnectionState::Idle);
        }
    }
}

pub(crate) fn a_level_holds_for_one_transaction(postgres: &Postgres) {
    let mut client = postgres.client(&[("level", "SHOW transaction_isolation")]);
    for level in Isolation::ALL {
        for command in [Command::BeginIn(level), Command::Begin] {
            client.control(command).unwrap();
            let wanted = if command == Command::Begin { "read committed" } else { level.name() };
            assert_eq!(client.text("level", &[]), wanted);
            client.control(Command::Commit).unwrap();
        }
    }
}

/// No variable of the server's tells the level of the present transaction; what it sees does.
pub(crate) fn a_level_decides_what_is_seen(mysql: &Mysql) {
    let table = mysql.table();
    let (add, read) =
        (format!("UPDATE {table} SET n = n + 1"), format!("SELECT n FROM {table} WHERE id = 1"));
    let (mut writer, mut reader) = (mysql.client(&[("add", &add)]), mysql.client(&[("read", &read)]));
    let mut committed = 0;
    for level in Isolation::ALL {
        for command in [Command::BeginIn(level), Command::Begin] {
            reader.control(command).unwrap();
            if level == Isolation::Serializable && command != Command::Begin {
                // A read takes a lock, on which the writer would wait.
                assert_eq!(reader.integer("read", &[]), committed);
                writer.queue("add", &[], Want::Count).unwrap();
                let waits = writer.flush_within(200_000_000).is_err();
                assert!(waits, "{level:?}");
                reader.control(Command::Commit).unwrap();
                writer.flush().unwrap();
                committed += 1;
                continue;
            }
            let first = reader.integer("read", &[]);
            assert_eq!(first, committed);
            writer.control(Command::Begin).unwrap();
            writer.count("add", &[]).unwrap();
            let dirty = level == Isolation::ReadUncommitted && command != Command::Begin;
            assert_eq!(reader.integer("read", &[]), committed + i64::from(dirty), "{level:?}, {command:?}");
            writer.control(Command::Commit).unwrap();
            let anew = matches!(level, Isolation::ReadUncommitted | Isolation::ReadCommitted);
            let seen = i64::from(anew && command != Command::Begin);
            assert_eq!(reader.integer("read", &[]), committed + seen, "{level:?}, {command:?}");
            committed += 1;
            reader.control(Command::Commit).unwrap();
        }
    }
}
