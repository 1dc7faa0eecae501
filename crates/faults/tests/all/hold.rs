//! Connections that have to wait, and then are passed on.

use std::net::Shutdown;

use crate::support::{
    Target, assert_connected, assert_reset, assert_silent, connect, eventually, read, read_to_end, through,
    write,
};
use nephoscope_faults::{Accept, Faults, Proxy, What};

#[test]
fn a_held_connection_waits_and_is_then_passed_on_with_all_that_was_said() {
    let (proxy, target, client, server) = through();
    let at = proxy.hold(true).unwrap();
    let waits = connect(&proxy);
    write(&waits, b"first words");
    eventually("it waits", || proxy.counters().waiting == 1);
    assert_silent(&waits);
    assert!(!target.is_called());
    // Those that stand are not concerned.
    assert_connected(&client, &server);
    write(&waits, b", second");
    assert!(proxy.hold(false).unwrap() > at);
    let passed = target.next();
    assert_eq!(read(&passed, 19), b"first words, second");
    assert_connected(&waits, &passed);
    assert_eq!((proxy.counters().waiting, proxy.counters().open), (0, 2));
    let events: Vec<What> = proxy.events().into_iter().map(|event| event.what).collect();
    assert_eq!(events, [What::Hold { holds: true }, What::Hold { holds: false }]);
}

#[test]
fn who_waited_goes_where_the_target_is_by_then() {
    let (before, after) = (Target::new(), Target::new());
    let proxy = Proxy::start(None, before.address()).unwrap();
    proxy.hold(true).unwrap();
    let waiting: Vec<_> = (0..20).map(|_| connect(&proxy)).collect();
    eventually("all wait", || proxy.counters().waiting == 20);
    proxy.set_target(after.address(), false).unwrap();
    proxy.hold(false).unwrap();
    for _ in &waiting {
        after.next();
    }
    assert!(!before.is_called());
    assert_eq!(proxy.counters().refused, 0);
}

#[test]
fn more_than_is_kept_of_a_held_connection_arrives_in_order() {
    let (proxy, target, ..) = through();
    proxy.hold(true).unwrap();
    let waits = connect(&proxy);
    let said: Vec<u8> = (0..5_000_000_u32).map(|place| place.to_le_bytes()[place as usize % 3]).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            write(&waits, &said);
            waits.shutdown(Shutdown::Write).unwrap();
        });
        eventually("it waits", || proxy.counters().waiting == 1);
        assert_eq!(proxy.counters().to_server.received, 0);
        proxy.hold(false).unwrap();
        assert!(read_to_end(&target.next()) == said, "not what was said");
    });
    assert_eq!(proxy.counters().to_server.received, 5_000_000);
}

#[test]
fn who_leaves_while_he_waits_is_not_counted_and_does_not_trouble_the_target() {
    let (proxy, target, ..) = through();
    proxy.hold(true).unwrap();
    let waits = connect(&proxy);
    write(&waits, b"hello?");
    eventually("he waits", || proxy.counters().waiting == 1);
    drop(waits);
    eventually("he is gone", || (proxy.counters().waiting, proxy.counters().open) == (0, 0));
    proxy.hold(false).unwrap();
    assert!(!target.is_called());
    assert_eq!(proxy.counters().refused, 0);
}

#[test]
fn who_waits_can_be_cut_and_reset_and_what_refuses_goes_on_refusing() {
    let (proxy, target, ..) = through();
    proxy.hold(true).unwrap();
    let waits = connect(&proxy);
    eventually("it waits", || proxy.counters().waiting == 1);
    proxy.cut_all().unwrap();
    assert_eq!(read_to_end(&waits), b"");
    let waits = connect(&proxy);
    eventually("it waits", || proxy.counters().waiting == 1);
    proxy.reset_all().unwrap();
    assert_reset(&waits);
    proxy.set(Faults { accept: Accept::Silent, ..Faults::default() }).unwrap();
    let unheard = connect(&proxy);
    eventually("it is open", || proxy.counters().open == 1);
    assert_eq!(proxy.counters().waiting, 0, "faults come first");
    proxy.hold(false).unwrap();
    assert_silent(&unheard);
    assert!(!target.is_called());
}
