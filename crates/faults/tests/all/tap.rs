//! A tap sees every byte, before any fault, and the end of each connection; where it is full, the clients wait.

use std::io::Write as _;
use std::num::NonZeroU64;
use std::sync::mpsc::Receiver;
use std::thread;

use crate::support::{LONG, Target, connect, eventually, read, read_to_end, to_server};
use nephoscope_faults::{Channel, Copied, Direction, Proxy, copies};

fn tapped() -> (Proxy, Target, Receiver<Copied>) {
    let target = Target::new();
    let (tap, seen) = copies();
    (Proxy::start_tapped(None, target.address(), Some(tap)).unwrap(), target, seen)
}

/// What was seen of a connection, up to its end: the bytes of both directions.
fn all_of(seen: &Receiver<Copied>, connection: u64) -> (Vec<u8>, Vec<u8>) {
    let (mut up, mut down, mut last) = (Vec::new(), Vec::new(), 0);
    loop {
        let copied = seen.recv_timeout(LONG).unwrap();
        assert!(copied.at >= last);
        last = copied.at;
        if copied.connection == connection {
            match copied.bytes {
                Some((Direction::ToServer, bytes)) => up.extend_from_slice(&bytes),
                Some((Direction::ToClient, bytes)) => down.extend_from_slice(&bytes),
                None => return (up, down),
            }
        }
    }
}

#[test]
fn a_tap_sees_both_directions_and_the_end() {
    let (proxy, target, seen) = tapped();
    for connection in 1..=2 {
        let mut client = connect(&proxy);
        let mut server = target.next();
        client.write_all(b"question").unwrap();
        assert_eq!(read(&server, 8), b"question");
        server.write_all(b"answer").unwrap();
        assert_eq!(read(&client, 6), b"answer");
        drop((client, server));
        assert_eq!(all_of(&seen, connection), (b"question".to_vec(), b"answer".to_vec()));
    }
}

#[test]
fn a_tap_sees_what_was_sent_before_any_fault() {
    let (proxy, target, seen) = tapped();
    proxy.hold(true).unwrap();
    let mut client = connect(&proxy);
    client.write_all(b"said while it waits").unwrap();
    eventually("the connection is held", || proxy.counters().waiting == 1);
    proxy.hold(false).unwrap();
    let mut server = target.next();
    assert_eq!(read(&server, 19), b"said while it waits");
    proxy.set(to_server(Channel { black_hole: true, ..Channel::default() })).unwrap();
    client.write_all(b", and vanishes").unwrap();
    server.write_all(b"x").unwrap();
    assert_eq!(read(&client, 1), b"x");
    eventually("all was received", || proxy.counters().to_server.received == 33);
    proxy.reset_all().unwrap();
    assert_eq!(all_of(&seen, 1), (b"said while it waits, and vanishes".to_vec(), b"x".to_vec()));
}

#[test]
fn a_tap_that_is_full_makes_its_clients_wait_and_loses_nothing() {
    let (proxy, target, seen) = tapped();
    let sent: Vec<u8> = (0..40_000_000_u32).map(|at| (at / 4099) as u8).collect();
    let mut client = connect(&proxy);
    let server = target.next();
    let sending = thread::spawn({
        let sent = sent.clone();
        move || client.write_all(&sent).unwrap()
    });
    let reading = thread::spawn(move || read_to_end(&server));
    assert_eq!(all_of(&seen, 1).0, sent);
    sending.join().unwrap();
    assert_eq!(reading.join().unwrap(), sent);
}

#[test]
fn nobody_has_to_take_what_a_tap_gives() {
    let (proxy, target, seen) = tapped();
    drop(seen);
    proxy.set(to_server(Channel { rate: NonZeroU64::new(1 << 30), ..Channel::default() })).unwrap();
    let mut client = connect(&proxy);
    let server = target.next();
    for _ in 0..100 {
        client.write_all(&[7; 10_000]).unwrap();
        assert_eq!(read(&server, 10_000), [7; 10_000]);
    }
}
