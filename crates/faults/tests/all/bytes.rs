//! What happens to bytes, seen from both ends.

use std::io::{ErrorKind, Write};
use std::num::NonZeroU64;
use std::thread;
use std::time::Duration;

use crate::support::{
    self, assert_connected, assert_reset, assert_silent, eventually, read, read_to_end, through, to_client,
    to_server, write,
};
use nephoscope_faults::{BUFFER, Channel, Direction, Faults, Flow, Garbage, Law};
use nephoscope_runtime::clock::{MICROSECOND, MILLISECOND, Nanos, SECOND, now};

fn constant(time: Nanos) -> Channel {
    Channel { delay: Some(Law::Constant { time }), ..Channel::default() }
}

#[test]
fn without_faults_bytes_and_the_ends_of_both_directions_pass() {
    let (proxy, _target, client, server) = through();
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|number| (number % 251) as u8).collect();
    let sender = {
        let (client, bytes) = (client.try_clone().unwrap(), bytes.clone());
        thread::spawn(move || {
            write(&client, &bytes);
            client.shutdown(std::net::Shutdown::Write).unwrap();
        })
    };
    assert!(read_to_end(&server) == bytes, "what arrives is what was sent");
    sender.join().unwrap();
    write(&server, b"and the other direction goes on");
    drop(server);
    assert_eq!(read_to_end(&client), b"and the other direction goes on");
    eventually("the connection is over", || proxy.counters().open == 0);
    assert_eq!(proxy.counters().to_server, Flow { received: 5_000_000, delivered: 5_000_000 });
    assert_eq!(proxy.counters().to_client, Flow { received: 31, delivered: 31 });
}

#[test]
fn a_reset_passes_on() {
    for from_client in [true, false] {
        let (proxy, _target, client, server) = through();
        assert_connected(&client, &server);
        let (gone, stays) = if from_client { (client, server) } else { (server, client) };
        // Bytes unread make a reset of a close.
        write(&stays, b"unread");
        let arrived = |gone: &std::net::TcpStream| gone.peek(&mut [0; 6]).unwrap() == 6;
        eventually("the bytes have arrived", || arrived(&gone));
        drop(gone);
        assert_reset(&stays);
        eventually("the connection is over", || proxy.counters().open == 0);
    }
}

#[test]
fn a_delay_is_never_shorter_than_planted_and_at_its_best_hardly_longer() {
    const DELAY: Nanos = 4 * MILLISECOND;
    let (proxy, _target, client, server) = through();
    for faults in [to_server(constant(DELAY)), to_client(constant(DELAY))] {
        let slow = faults.to_server.delay.is_some();
        let (from, to) = if slow { (&client, &server) } else { (&server, &client) };
        proxy.set(faults).unwrap();
        let mut shortest = Nanos::MAX;
        for _ in 0..100 {
            let start = now();
            write(from, b"x");
            read(to, 1);
            let taken = now() - start;
            assert!(taken >= DELAY, "{taken} ns");
            shortest = shortest.min(taken);
            // The other direction has no part in it.
            write(to, b"y");
            read(from, 1);
        }
        assert!(shortest < DELAY + 500 * MICROSECOND, "{shortest} ns at best");
    }
}

#[test]
fn drawn_delays_keep_within_their_bounds_and_the_order_of_bytes() {
    let (proxy, _target, client, server) = through();
    let (low, high) = (MILLISECOND, 6 * MILLISECOND);
    let delay = Some(Law::Uniform { low, high });
    proxy.set(to_server(Channel { delay, ..Channel::default() })).unwrap();
    let mut taken: Vec<Nanos> = (0..60_u8)
        .map(|number| {
            let start = now();
            write(&client, &[number]);
            assert_eq!(read(&server, 1), [number]);
            now() - start
        })
        .collect();
    taken.sort_unstable();
    assert!(taken[0] >= low, "{taken:?}");
    let spread = taken[45] - taken[15];
    assert!(taken[5] < taken[30] && spread > MILLISECOND, "they differ: {taken:?}");
    let delay = Some(Law::Exponential { mean: 2 * MILLISECOND });
    proxy.set(to_server(Channel { delay, ..Channel::default() })).unwrap();
    for number in 0..100_u8 {
        write(&client, &[number]);
        thread::sleep(Duration::from_micros(100));
    }
    assert_eq!(read(&server, 100), (0..100).collect::<Vec<u8>>());
}

#[test]
fn the_end_of_a_stream_is_delayed_as_its_bytes_are() {
    let (proxy, _target, client, server) = through();
    proxy.set(to_server(constant(50 * MILLISECOND))).unwrap();
    let start = now();
    drop(client);
    assert!(read_to_end(&server).is_empty());
    assert!(now() - start >= 50 * MILLISECOND);
}

#[test]
fn a_limited_rate_lets_so_many_bytes_through_and_no_more() {
    let (proxy, _target, client, server) = through();
    // Seconds that the bytes take: a narrow line, and one so slow that it drips.
    for (rate, count) in [(1_000_000, 300_000), (100, 20)] {
        let rate_limit = NonZeroU64::new(rate);
        proxy.set(to_client(Channel { rate: rate_limit, ..Channel::default() })).unwrap();
        let sender = server.try_clone().unwrap();
        let start = now();
        let sending = thread::spawn(move || write(&sender, &vec![7; count]));
        read(&client, count);
        let taken = now() - start;
        sending.join().unwrap();
        let planted = count as u64 * SECOND / rate;
        assert!(taken >= planted, "{taken} ns for {planted}");
        assert!(taken < 5 * planted, "{taken} ns for {planted}");
    }
}

#[test]
fn a_rate_holds_after_a_pause_too() {
    let (proxy, _target, client, server) = through();
    let slow = Channel { rate: NonZeroU64::new(1000), ..Channel::default() };
    proxy.set(to_server(Channel { hold: true, ..slow.clone() })).unwrap();
    write(&client, &[1; 100]);
    thread::sleep(Duration::from_millis(200));
    // Neither the time of holding nor an idle line is made up for.
    let start = proxy.set(to_server(slow)).unwrap();
    read(&server, 100);
    assert!(now() - start >= 100 * MILLISECOND);
    thread::sleep(Duration::from_millis(100));
    let start = now();
    write(&client, &[2; 100]);
    read(&server, 100);
    assert!(now() - start >= 100 * MILLISECOND);
}

#[test]
fn in_a_black_hole_bytes_vanish_and_afterwards_others_pass() {
    let (proxy, _target, client, server) = through();
    let hole = Channel { black_hole: true, ..Channel::default() };
    proxy.set(to_server(hole)).unwrap();
    write(&client, b"lost");
    assert_silent(&server);
    write(&server, b"the other direction passes");
    assert_eq!(read(&client, 26), b"the other direction passes");
    proxy.set(Faults::default()).unwrap();
    write(&client, b"found");
    assert_eq!(read(&server, 5), b"found");
    eventually("they are counted", || proxy.counters().to_server == Flow { received: 9, delivered: 5 });
}

#[test]
fn in_a_black_hole_nobody_learns_that_the_other_is_gone_until_it_is_over() {
    let (proxy, _target, client, server) = through();
    proxy.set(Faults::black_hole()).unwrap();
    drop(client);
    assert_silent(&server);
    assert_eq!(proxy.counters().open, 1);
    proxy.set(Faults::default()).unwrap();
    assert!(read_to_end(&server).is_empty());
    drop(server);
    eventually("the connection is over", || proxy.counters().open == 0);
}

#[test]
fn held_bytes_and_ends_arrive_when_they_are_released() {
    let (proxy, _target, client, server) = through();
    proxy.change(|faults| faults.to_server.hold = true).unwrap();
    write(&client, b"first ");
    thread::sleep(Duration::from_millis(5));
    write(&client, b"second");
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_silent(&server);
    proxy.change(|faults| faults.to_server.hold = false).unwrap();
    assert_eq!(read_to_end(&server), b"first second");
}

#[test]
fn a_sender_who_fills_the_buffer_has_to_wait() {
    let (proxy, _target, mut client, server) = through();
    proxy.change(|faults| faults.to_server.hold = true).unwrap();
    client.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let (mut sent, piece) = (0, vec![5; 100_000]);
    let error = loop {
        match client.write(&piece) {
            Ok(count) => sent += count,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let taken = proxy.counters().to_server.received as usize;
    assert!((BUFFER..BUFFER + 100_000).contains(&taken), "{taken} bytes were taken");
    proxy.change(|faults| faults.to_server.hold = false).unwrap();
    assert_eq!(read(&server, sent), vec![5; sent]);
}

#[test]
fn a_connection_is_cut_after_so_many_bytes() {
    let (proxy, target, client, server) = through();
    write(&client, b"before ");
    assert_eq!(read(&server, 7), b"before ");
    proxy.set(to_server(Channel { cut_after: Some(5), ..Channel::default() })).unwrap();
    // They are counted from here on, and in new connections from the beginning.
    write(&client, b"123");
    assert_eq!(read(&server, 3), b"123");
    write(&client, b"456");
    assert_eq!(read_to_end(&server), b"45");
    assert!(read_to_end(&client).is_empty());
    let (client, server) = (support::connect(&proxy), target.next());
    write(&client, b"12345");
    assert_eq!(read_to_end(&server), b"12345");
    eventually("both connections are over", || proxy.counters().open == 0);
}

#[test]
fn a_cut_that_is_never_reached_is_none() {
    let (proxy, _target, client, server) = through();
    assert_connected(&client, &server);
    let never = Garbage { after: u64::MAX, bytes: vec![1] };
    let channel = Channel { cut_after: Some(u64::MAX), garbage_after: Some(never), ..Channel::default() };
    proxy.set(to_server(channel)).unwrap();
    assert_connected(&client, &server);
}

#[test]
fn garbage_gets_between_the_bytes_once_and_at_its_place() {
    let (proxy, target, client, server) = through();
    let garbage = |after| {
        to_client(Channel {
            garbage_after: Some(Garbage { after, bytes: b"<?>".to_vec() }),
            ..Channel::default()
        })
    };
    proxy.set(garbage(4)).unwrap();
    write(&server, b"12345678");
    assert_eq!(read(&client, 11), b"1234<?>5678");
    write(&server, b"12345678");
    assert_eq!(read(&client, 8), b"12345678");
    // After no bytes at all: now, and first of all in new connections.
    proxy.set(garbage(0)).unwrap();
    assert_eq!(read(&client, 3), b"<?>");
    let (client, server) = (support::connect(&proxy), target.next());
    assert_eq!(read(&client, 3), b"<?>");
    assert_connected(&client, &server);
}

#[test]
fn injected_bytes_come_behind_those_that_wait() {
    let (proxy, _target, client, server) = through();
    proxy.inject(Direction::ToServer, b"hello".to_vec()).unwrap();
    assert_eq!(read(&server, 5), b"hello");
    proxy.change(|faults| faults.to_client.hold = true).unwrap();
    write(&server, b"waiting ");
    eventually("they wait", || proxy.counters().to_client.received == 8);
    proxy.inject(Direction::ToClient, b"injected".to_vec()).unwrap();
    proxy.change(|faults| faults.to_client.hold = false).unwrap();
    assert_eq!(read(&client, 16), b"waiting injected");
    assert_connected(&client, &server);
}
