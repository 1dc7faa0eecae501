//! Servers that say too much: each limit is a clear error, and no wait is without an end.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use nephoscope_drivers::{ConnectionState, Error, ErrorClass, Interrupt, MOST_ROWS, Settings, Want, open};
use nephoscope_runtime::clock::MILLISECOND;
use proptest::prelude::*;

use crate::client::{Client, wait_by};
use crate::fixtures::postgres::{prepared, simple, uring};
use crate::fixtures::{Fixture, unique};
use crate::greetings::{greeting, hear, message};

const CANCEL_REQUEST: [u8; 8] = [0, 0, 0, 16, 4, 210, 22, 46];
const NOTICE: &[u8] = b"SNOTICE\0C00000\0Monce more\0\0";

/// What a server does with a connection after the greeting.
type Manner = fn(TcpStream);

/// A server that lets everybody in, waits for a question, and has a manner from then on; also what it was sent by
/// those who came only to cancel.
fn server(manner: Manner) -> (String, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgresql://u@{}/d?sslmode=disable", listener.local_addr().unwrap());
    let (cancelled, cancels) = channel();
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let cancelled = cancelled.clone();
            thread::spawn(move || receive(stream, manner, &cancelled));
        }
    });
    (url, cancels)
}

fn receive(mut stream: TcpStream, manner: Manner, cancelled: &Sender<Vec<u8>>) {
    let mut said = vec![0; 4096];
    let count = stream.read(&mut said).unwrap_or(0);
    if said[..count].starts_with(&CANCEL_REQUEST) {
        said.truncate(count);
        return drop(cancelled.send(said));
    }
    // What is in the greeting for whoever prepares statements, whoever does not takes for the answer to his question.
    let whole = greeting();
    let ready = whole.windows(6).position(|part| part == b"Z\0\0\0\x05I").unwrap() + 6;
    let _ = stream.write_all(&whole[..ready]);
    let count = stream.read(&mut said).unwrap_or(0);
    if said[..count].contains(&b'P') && !said[..count].starts_with(b"Q") {
        let _ = stream.write_all(&whole[ready..]);
        let _ = stream.read(&mut said);
    }
    manner(stream);
}

fn flood(mut stream: TcpStream) {
    let notices = message(b'N', NOTICE).repeat(1000);
    while stream.write_all(&notices).is_ok() {}
}

fn be_silent(mut stream: TcpStream) {
    while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
}

#[test]
fn endless_notices_end_with_the_questions_time_limit() {
    let (url, _) = server(flood);
    let settings = Settings { answer_timeout: 400 * MILLISECOND, ..Settings::default() };
    let mut admin = open(&url, &settings).unwrap().admin().unwrap();
    let begun = Instant::now();
    let error = admin.query("SELECT 1").unwrap_err();
    assert_eq!(
        (error.class(), error.message()),
        (ErrorClass::StatementTimeout, "no answer within the time limit")
    );
    assert!((Duration::from_millis(390)..Duration::from_secs(5)).contains(&begun.elapsed()));
}

#[test]
fn endless_notices_end_with_the_statements_time_limit() {
    for fixture in [prepared, uring] {
        let Some(postgres) = fixture() else { return };
        wait_by(Fixture::io(&*postgres));
        let (url, _) = server(flood);
        let mut client = Client::new(&*open(&url, &Settings::default()).unwrap(), &[]);
        client.queue_command(nephoscope_drivers::Command::Begin, &[], Want::Count).unwrap();
        let begun = Instant::now();
        let error = client.flush_within(300 * MILLISECOND).unwrap_err();
        assert_eq!(error.class(), ErrorClass::StatementTimeout, "{error}");
        assert_eq!(client.state(), ConnectionState::Waiting);
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}

/// Interrupts whatever a connection for set-up waits for, after a moment; the error, and how long it took to come.
fn interrupted(url: &str, work: impl FnOnce(&Settings) -> Error) -> Duration {
    let interrupt = Interrupt::default();
    let settings = Settings { interrupt: interrupt.clone(), ..Settings::default() };
    assert!(open(url, &settings).is_ok());
    let striker = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        interrupt.strike();
        Instant::now()
    });
    let error = work(&settings);
    let ended = Instant::now();
    assert_eq!(error.message(), "interrupted");
    ended.saturating_duration_since(striker.join().unwrap())
}

#[test]
fn an_interruption_ends_a_question_and_cancels_it_at_the_server() {
    for manner in [be_silent as Manner, flood] {
        let (url, cancels) = server(manner);
        let taken = interrupted(&url, |settings| {
            open(&url, settings).unwrap().admin().unwrap().query("SELECT 1").unwrap_err()
        });
        assert!(taken < Duration::from_secs(1), "{taken:?}");
        let told = cancels.recv_timeout(Duration::from_secs(5)).unwrap();
        assert_eq!(told[8..], [0, 0, 0, 7, 0, 0, 0, 8], "the key that the server gave");
    }
}

#[test]
fn an_interruption_ends_the_making_of_a_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgresql://u@{}/d", listener.local_addr().unwrap());
    let taken = interrupted(&url, |settings| open(&url, settings).unwrap().admin().err().unwrap());
    assert!(taken < Duration::from_secs(1), "{taken:?}");
}

#[test]
fn what_waits_for_a_lock_is_cancelled_when_it_is_given_up() {
    let Some(postgres) = prepared() else { return };
    let (table, name) = (postgres.table(), unique("waits"));
    let mut holder = postgres.admin();
    holder.query(&format!("BEGIN; LOCK TABLE {table}")).unwrap();
    let mut waiting = postgres.open(&name).admin().unwrap();
    waiting.limit_answers(300 * MILLISECOND);
    assert_eq!(
        waiting.query(&format!("DELETE FROM {table}")).unwrap_err().class(),
        ErrorClass::StatementTimeout
    );
    drop(waiting);
    let count = format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'");
    let begun = Instant::now();
    while postgres.admin().query(&count).unwrap().rows[0][0].as_deref() != Some("0") {
        assert!(begun.elapsed() < Duration::from_secs(10), "the session is still there");
    }
    holder.query("ROLLBACK").unwrap();
    let kept = postgres.admin().query(&format!("SELECT count(*) FROM {table}")).unwrap();
    assert_eq!(kept.rows[0][0].as_deref(), Some("2"), "nothing was done behind the back of who gave it up");
}

#[test]
fn rows_without_an_end_fail_their_transaction_and_the_session_goes_on() {
    let statements = [
        ("many", "SELECT generate_series(1, 1000000000)"),
        ("large", "SELECT repeat('x', 4000000) FROM (SELECT generate_series(1, 1000000)) AS numbers"),
        ("one", "SELECT 1::int8"),
    ];
    for fixture in [prepared, simple, uring] {
        let Some(postgres) = fixture() else { return };
        wait_by(Fixture::io(&*postgres));
        let mut client = postgres.client(&statements);
        for name in ["many", "large"] {
            client.rows.clear();
            client.queue(name, &[], Want::Rows).unwrap();
            let error = client.flush().unwrap_err();
            assert_eq!(error.class(), ErrorClass::Other, "{name}: {error}");
            assert!(
                error.message().contains("more rows than are kept: 1000000 at most, and 64 MiB"),
                "{error}"
            );
            assert_eq!(client.state(), ConnectionState::Waiting);
            assert!(client.rows.count(0.into()) <= MOST_ROWS);
            // As the engine does.
            client.cancel();
            assert_eq!(client.flush().unwrap_err().code(), "57014", "{name}");
            assert_eq!(client.state(), ConnectionState::Idle, "{name}");
        }
        client.rows.clear();
        assert_eq!(client.integer("one", &[]), 1);
    }
}

#[test]
fn a_result_without_an_end_is_given_up_by_a_question() {
    let Some(postgres) = prepared() else { return };
    let mut admin = postgres.admin();
    let nothing = vec!["NULL"; 64].join(", ");
    let error = admin.query(&format!("SELECT {nothing}, generate_series(1, 1000000000)")).unwrap_err();
    assert!(error.message().ends_with("rows: it takes more than 256 MiB"), "{error}");
    let again = admin.query("SELECT 1").unwrap_err();
    assert_eq!(again.message(), "an answer on this connection was given up");
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn long_messages_before_the_login_are_refused_however_they_are_cut(
        length in 65_533_u32..2_000_000_000, tag in prop::sample::select(b"RSEN".to_vec()), cut in 1_usize..9,
    ) {
        let header = [&[tag][..], &length.to_be_bytes()].concat();
        let error = hear(&[&header[..], &[b'x'; 100]].concat(), &[cut]).err().unwrap();
        prop_assert_eq!(error.class(), ErrorClass::ConnectionLost);
        let told = error.message();
        let expected = match length {
            ..=65_536 => "the server closed the connection",
            65_537..=1_073_741_824 => "at most 65536 are read before it has let the client in",
            _ => "does not speak PostgreSQL's protocol",
        };
        prop_assert!(told.contains(expected), "{} {}", length, told);
    }
}

#[test]
fn a_greeting_without_an_end_is_refused() {
    let parameter = [b"name\0".as_slice(), &vec![b'x'; 60_000], b"\0"].concat();
    let told = hear(&message(b'S', &parameter).repeat(20), &[65_536]).err().unwrap();
    assert!(told.message().contains("more than 1048576 bytes before it was ready"), "{told}");
    assert_eq!(told.class(), ErrorClass::ConnectionLost);
}
