//! What happens to connections, seen from both ends.

use std::io::{ErrorKind, Read, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::Duration;

use crate::support::{
    Target, assert_connected, assert_reset, assert_silent, connect, eventually, read, read_to_end, through,
    write,
};
use nephoscope_faults::{Accept, Channel, Direction, Faults, Law, Proxy, What, target};
use nephoscope_runtime::Address;
use nephoscope_runtime::clock::SECOND;

fn accepting(accept: Accept) -> Faults {
    Faults { accept, ..Faults::default() }
}

#[test]
fn a_proxy_that_refuses_has_its_port_again_afterwards() {
    let (proxy, target, client, server) = through();
    for _ in 0..20 {
        proxy.set(accepting(Accept::Refuse)).unwrap();
        let error = TcpStream::connect(proxy.address()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        // Those that stand are not concerned.
        assert_connected(&client, &server);
        proxy.set(accepting(Accept::Pass)).unwrap();
        assert_connected(&connect(&proxy), &target.next());
    }
    assert_eq!(proxy.counters().accepted, 21);
    assert_eq!(proxy.counters().refused, 0);
}

#[test]
fn a_proxy_that_resets_does_not_trouble_its_target() {
    let (proxy, target, client, server) = through();
    proxy.set(accepting(Accept::Reset)).unwrap();
    for _ in 0..10 {
        // The reset may come before the connect has returned.
        if let Ok(mut socket) = TcpStream::connect(proxy.address()) {
            let error = socket.read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
    }
    assert!(!target.is_called());
    assert_connected(&client, &server);
    assert_eq!(proxy.counters().refused, 10);
}

#[test]
fn a_silent_proxy_takes_everything_and_says_nothing() {
    let (proxy, target, ..) = through();
    proxy.set(accepting(Accept::Silent)).unwrap();
    let unheard = connect(&proxy);
    write(&unheard, &vec![1; 10_000_000]);
    assert_silent(&unheard);
    assert!(!target.is_called());
    // It stays so for those who have met it.
    proxy.set(Faults::default()).unwrap();
    write(&unheard, b"hello?");
    assert_silent(&unheard);
    assert_connected(&connect(&proxy), &target.next());
    eventually("two are over", || proxy.counters().open == 1);
    drop(unheard);
    eventually("it is over", || proxy.counters().open == 0);
}

#[test]
fn a_target_that_does_not_listen_is_a_reset_and_is_counted() {
    let target = Target::new();
    let proxy = Proxy::start(None, target.address()).unwrap();
    drop(target);
    if let Ok(mut socket) = TcpStream::connect(proxy.address()) {
        assert_eq!(socket.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    eventually("it is counted", || proxy.counters().refused == 1 && proxy.counters().open == 0);
}

#[test]
fn every_connection_is_cut_or_reset_on_both_sides() {
    let (proxy, target, client, server) = through();
    let (other, its_server) = (connect(&proxy), target.next());
    assert_connected(&client, &server);
    proxy.cut_all().unwrap();
    for socket in [client, server, other, its_server] {
        assert!(read_to_end(&socket).is_empty());
    }
    let (client, server) = (connect(&proxy), target.next());
    proxy.set(accepting(Accept::Silent)).unwrap();
    let unheard = connect(&proxy);
    eventually("it is taken", || proxy.counters().open == 2);
    proxy.reset_all().unwrap();
    for socket in [client, server, unheard] {
        assert_reset(&socket);
    }
    eventually("all are over", || proxy.counters().open == 0);
}

#[test]
fn a_cut_says_the_end_even_to_who_is_still_sending() {
    let (proxy, _target, client, server) = through();
    proxy.change(|faults| faults.to_server.hold = true).unwrap();
    write(&client, &vec![3; 100_000]);
    eventually("it is taken", || proxy.counters().to_server.received == 100_000);
    proxy.cut_all().unwrap();
    assert!(read_to_end(&client).is_empty());
    assert!(read_to_end(&server).is_empty(), "what was held is lost");
}

#[test]
fn one_direction_is_closed_and_the_other_goes_on() {
    for direction in [Direction::ToServer, Direction::ToClient] {
        let (proxy, _target, client, server) = through();
        let (from, to) = if direction == Direction::ToServer { (client, server) } else { (server, client) };
        proxy.half_close_all(direction).unwrap();
        assert!(read_to_end(&to).is_empty());
        write(&from, b"lost");
        write(&to, b"the other direction");
        assert_eq!(read(&from, 19), b"the other direction");
        drop(to);
        assert!(read_to_end(&from).is_empty());
        eventually("the connection is over", || proxy.counters().open == 0);
    }
}

#[test]
fn new_connections_go_to_a_new_target_and_old_ones_where_they_were_unless_cut() {
    let (proxy, _old, client, server) = through();
    let new = Target::new();
    proxy.set_target(new.address(), false).unwrap();
    assert_connected(&client, &server);
    let (second, its_server) = (connect(&proxy), new.next());
    assert_connected(&second, &its_server);
    let newest = Target::new();
    proxy.set_target(newest.address(), true).unwrap();
    for socket in [client, server, second, its_server] {
        assert!(read_to_end(&socket).is_empty());
    }
    assert_connected(&connect(&proxy), &newest.next());
    let events: Vec<What> = proxy.events().into_iter().map(|event| event.what).collect();
    assert!(matches!(events[..], [What::Target { .. }, What::Target { .. }, What::Cut]), "{events:?}");
}

#[test]
fn a_target_may_be_a_unix_socket() {
    let folder = std::env::temp_dir().join(format!("nephoscope-faults-{}", std::process::id()));
    let listener = UnixListener::bind(&folder).unwrap();
    let proxy = Proxy::start(None, target(folder.to_str().unwrap()).unwrap()).unwrap();
    let client = connect(&proxy);
    let mut server = listener.accept().unwrap().0;
    std::fs::remove_file(folder).unwrap();
    write(&client, b"hello");
    let mut bytes = [0; 5];
    server.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"hello");
    drop(server);
    assert!(read_to_end(&client).is_empty());
}

#[test]
fn a_target_in_words_is_a_host_with_a_port_or_a_path() {
    assert_eq!(target("127.0.0.1:5432").unwrap(), Address::Tcp(([127, 0, 0, 1], 5432).into()));
    assert_eq!(target("/run/postgres").unwrap(), Address::Unix("/run/postgres".into()));
    let message = target("5432").unwrap_err().to_string();
    assert!(message.contains("host:port and the path of a Unix socket"), "{message}");
}

#[test]
fn a_wrong_description_changes_nothing() {
    let (proxy, _target, client, server) = through();
    let wrong = Channel { delay: Some(Law::Uniform { low: 2, high: 1 }), ..Channel::default() };
    let faults = Faults { accept: Accept::Refuse, to_client: wrong, ..Faults::default() };
    assert_eq!(proxy.set(faults.clone()).unwrap_err().kind(), ErrorKind::InvalidInput);
    let planned = nephoscope_faults::Planned { at: 0, faults };
    assert_eq!(proxy.schedule(vec![planned]).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_connected(&client, &server);
    drop(connect(&proxy));
    assert!(proxy.events().is_empty());
}

#[test]
fn a_proxy_listens_where_it_is_told_or_says_that_it_cannot() {
    let taken = Target::new();
    let Address::Tcp(address) = taken.address() else { unreachable!() };
    let error = Proxy::start(Some(address), taken.address()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    let first = Proxy::start(None, taken.address()).unwrap();
    let address = first.address();
    assert_connected(&connect(&first), &taken.next());
    drop(first);
    let second = Proxy::start(Some(address), taken.address()).unwrap();
    assert_eq!(second.address(), address);
    assert_connected(&connect(&second), &taken.next());
}

#[test]
fn one_slow_connection_does_not_hold_up_another() {
    let (proxy, target, client, server) = through();
    // The first one's server reads nothing, and its client sends all it can.
    let flood = thread::spawn(move || {
        client.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        let (mut client, piece) = (client, vec![0; 65_536]);
        while client.write(&piece).is_ok() {}
    });
    let (other, its_server) = (connect(&proxy), target.next());
    let start = nephoscope_runtime::clock::now();
    for _ in 0..1000 {
        assert_connected(&other, &its_server);
    }
    assert!(nephoscope_runtime::clock::now() - start < 20 * SECOND);
    flood.join().unwrap();
    drop(server);
}
