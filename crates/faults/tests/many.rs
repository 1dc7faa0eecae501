//! Thousands of connections, and nothing left of them. The only test of its program: it counts the process's threads
//! and descriptors.
#![allow(clippy::unwrap_used)]

#[path = "all/support/mod.rs"]
mod support;

use std::fs;
use std::net::TcpStream;

use nephoscope_faults::{Accept, Faults, Proxy};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::{Target, connect, eventually, read, write};

/// Four descriptors each.
const CONNECTIONS: usize = 3000;

fn count(folder: &str) -> usize {
    fs::read_dir(folder).unwrap().count()
}

fn threads() -> usize {
    count("/proc/self/task")
}

fn descriptors() -> usize {
    count("/proc/self/fd")
}

/// As many connections as the system lets one process have, up to [`CONNECTIONS`].
fn affordable() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (most.saturating_sub(100) / 4).min(CONNECTIONS as u64) as usize
}

fn thousands(connections: usize) {
    let target = Target::new();
    let proxy = Proxy::start(None, target.address()).unwrap();
    let pairs: Vec<(TcpStream, TcpStream)> =
        (0..connections).map(|_| (connect(&proxy), target.next())).collect();
    assert_eq!(proxy.counters().open, connections as u64);
    // All of them at once, twice, with an outage between.
    for round in 0..2_usize {
        pairs
            .iter()
            .enumerate()
            .for_each(|(number, (client, _))| write(client, &(number + round).to_le_bytes()));
        for (number, (_, server)) in pairs.iter().enumerate() {
            assert_eq!(read(server, 8), (number + round).to_le_bytes());
            write(server, b"ok");
        }
        for (client, _) in &pairs {
            assert_eq!(read(client, 2), b"ok");
        }
        proxy.set(Faults { accept: Accept::Refuse, ..Faults::black_hole() }).unwrap();
        proxy.set(Faults::default()).unwrap();
    }
    eventually("all are counted", || {
        let counters = proxy.counters();
        let expected = (16 * connections as u64, 4 * connections as u64);
        (counters.to_server.delivered, counters.to_client.delivered) == expected
    });
    drop(pairs);
    eventually("all are over", || proxy.counters().open == 0);
}

#[test]
fn thousands_of_connections_are_served_and_a_dropped_proxy_leaves_nothing() {
    let (before, threads_before) = (descriptors(), threads());
    thousands(affordable());
    // One that is dropped while connections stand closes them.
    let target = Target::new();
    let proxy = Proxy::start(None, target.address()).unwrap();
    let (client, server) = (connect(&proxy), target.next());
    proxy.set(Faults { accept: Accept::Silent, ..Faults::black_hole() }).unwrap();
    let unheard = connect(&proxy);
    eventually("it is taken", || proxy.counters().open == 2);
    // A thread that was joined is in /proc for a moment more.
    eventually("it has one thread", || threads() == threads_before + 1);
    let address = proxy.address();
    drop(proxy);
    eventually("its thread is over", || threads() == threads_before);
    for socket in [&client, &server, &unheard] {
        assert!(support::read_to_end(socket).is_empty());
    }
    assert!(TcpStream::connect(address).is_err());
    drop((client, server, unheard, target));
    assert_eq!(descriptors(), before);
}
