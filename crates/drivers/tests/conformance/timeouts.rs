//! Waits that reach their time limit.

use nephoscope_drivers::Want;
use nephoscope_drivers::{Command, ConnectionState, Error, ErrorClass};
use nephoscope_runtime::clock::{MILLISECOND, now};

use crate::client::Client;
use crate::fixtures::{Fixture, Slow, cannot};

/// Lets a slow statement reach a time limit.
fn give_up(fixture: &dyn Fixture) -> Option<(Client, Slow)> {
    let slow = fixture.slow().map_err(cannot).ok()?;
    let mut client = Client::new(&*slow.driver, &[("slow", slow.sql), ("one", "SELECT 1::int8 AS one")]);
    client.queue("slow", &[], Want::Rows).unwrap();
    let begun = now();
    let error = client.flush_within(40 * MILLISECOND).unwrap_err();
    let taken = (now() - begun) / MILLISECOND;
    assert!((40..slow.milliseconds).contains(&taken), "{taken} ms");
    is_timeout(&client, &error);
    Some((client, slow))
}

fn is_timeout(client: &Client, error: &Error) {
    assert_eq!((error.class(), error.code()), (ErrorClass::StatementTimeout, ""));
    assert_eq!(error.message(), "no answer within the time limit");
    assert_eq!(client.state(), ConnectionState::Waiting);
}

pub(crate) fn a_wait_that_was_given_up_can_be_taken_up_again(fixture: &dyn Fixture) {
    let Some((mut client, _)) = give_up(fixture) else { return };
    let error = client.flush_within(20 * MILLISECOND).unwrap_err();
    is_timeout(&client, &error);
    let reply = client.flush().unwrap();
    assert_eq!((reply.affected, client.rows.count(reply.result.unwrap())), (1, 1));
    assert_eq!(client.state(), ConnectionState::Idle);
    client.call("one", &[]).unwrap();
}

pub(crate) fn a_cancelled_statement_leaves_a_usable_connection(fixture: &dyn Fixture) {
    let Some((mut client, slow)) = give_up(fixture) else { return };
    let begun = now();
    client.cancel();
    let outcome = client.flush();
    if slow.gives_up {
        let error = outcome.unwrap_err();
        assert_eq!((error.class(), error.code()), (ErrorClass::StatementTimeout, slow.cancelled));
        assert!(now() - begun < slow.milliseconds * MILLISECOND);
    } else {
        outcome.unwrap();
    }
    assert_eq!(client.state(), ConnectionState::Idle);
    client.call("one", &[]).unwrap();
    // A request that comes too late hits nothing.
    client.cancel();
    client.control(Command::Begin).unwrap();
    client.call("one", &[]).unwrap();
    client.control(Command::Commit).unwrap();
}
