//! Servers that greet in pieces, stop in the middle, or are none: every connection is made or ends in an error.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use nephoscope_drivers::{ConnectionState, Error, ErrorClass, Settings, open};
use nephoscope_runtime::clock::SECOND;
use proptest::prelude::*;

use crate::client::Client;

pub(crate) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[tag][..], &length, body].concat()
}

/// What a server says that lets everybody in: the start-up, then the description of BEGIN, COMMIT and ROLLBACK.
pub(crate) fn greeting() -> Vec<u8> {
    let mut bytes = message(b'R', &[0; 4]);
    bytes.extend(message(b'S', b"server_version\x0015.0\0"));
    bytes.extend(message(b'N', b"SNOTICE\0C00000\0Mwelcome\0\0"));
    bytes.extend(message(b'K', b"\0\0\0\x07\0\0\0\x08"));
    bytes.extend(message(b'Z', b"I"));
    for _ in 0..3 {
        bytes.extend(message(b'1', b""));
        bytes.extend(message(b't', &[0, 0]));
        bytes.extend(message(b'n', b""));
    }
    bytes.extend(message(b'Z', b"I"));
    bytes
}

/// Connects to a server that says `bytes`, a piece at a time, and then closes; gives the state, or the error's class.
fn meet(bytes: &[u8], cuts: &[usize]) -> Result<ConnectionState, ErrorClass> {
    hear(bytes, cuts).map_err(|error| error.class())
}

/// The same, with the error itself.
pub(crate) fn hear(bytes: &[u8], cuts: &[usize]) -> Result<ConnectionState, Error> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgresql://u@{}/d?sslmode=disable", listener.local_addr().unwrap());
    let (bytes, cuts) = (bytes.to_vec(), cuts.to_vec());
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        let (mut rest, mut cuts) = (&bytes[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, left) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            rest = left;
            if stream.write_all(piece).is_err() {
                return;
            }
        }
        // What the client says is read to its end, so that closing resets nothing.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let settings = Settings { connect_timeout: 20 * SECOND, ..Settings::default() };
    let outcome = Client::try_new(&*open(&url, &settings).unwrap(), &[]);
    let outcome = outcome.map(|client| client.state());
    server.join().unwrap();
    outcome
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_greeting_is_understood_however_it_is_cut(cuts in prop::collection::vec(1_usize..30, 1..10)) {
        prop_assert_eq!(meet(&greeting(), &cuts), Ok(ConnectionState::Idle));
    }

    #[test]
    fn a_greeting_that_ends_early_is_a_lost_connection(end in any::<prop::sample::Index>(), cut in 1_usize..30) {
        let bytes = greeting();
        let outcome = meet(&bytes[..end.index(bytes.len())], &[cut]);
        prop_assert_eq!(outcome, Err(ErrorClass::ConnectionLost));
    }

    #[test]
    fn a_damaged_greeting_is_taken_or_refused(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let mut bytes = greeting();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let _ = meet(&bytes, &[64]);
    }

    #[test]
    fn what_is_no_server_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(meet(&bytes, &[64]).is_err());
    }
}
