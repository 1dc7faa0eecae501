//! Whatever delays, rates and holds change while bytes flow: all arrive, in order, and the end behind them.

use std::io::Write as _;
use std::net::{Shutdown, TcpStream};
use std::num::NonZeroU64;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::support::{eventually, read_to_end, through};
use nephoscope_faults::{Channel, Faults, Law};
use nephoscope_runtime::clock::MICROSECOND;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// More than the buffers of the proxy and of the sockets hold together.
const BYTES: usize = 12_000_000;

/// A stream in which every place has its own neighbourhood.
fn stream(seed: u64) -> Vec<u8> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..BYTES / 8).flat_map(|_| random.next_u64().to_le_bytes()).collect()
}

/// Sends in pieces of all sizes, then ends the direction.
fn send(to: &TcpStream, bytes: Vec<u8>, seed: u64) -> JoinHandle<()> {
    let mut to = to.try_clone().unwrap();
    thread::spawn(move || {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(rest.len().min(1 + random.next_u64() as usize % 100_000));
            to.write_all(piece).unwrap();
            rest = later;
        }
        to.shutdown(Shutdown::Write).unwrap();
    })
}

fn receive(from: &TcpStream) -> JoinHandle<Vec<u8>> {
    let from = from.try_clone().unwrap();
    thread::spawn(move || read_to_end(&from))
}

fn channel(random: &mut Xoshiro256PlusPlus) -> Channel {
    let mut one_in = |many: u64| random.next_u64().is_multiple_of(many);
    let (hold, law, rate) = (one_in(5), [one_in(3), one_in(2)], one_in(3));
    let delay = match law {
        [true, true] => Some(Law::Exponential { mean: 300 * MICROSECOND }),
        [true, false] => Some(Law::Uniform { low: 0, high: 2000 * MICROSECOND }),
        [false, true] => Some(Law::Constant { time: 500 * MICROSECOND }),
        [false, false] => None,
    };
    let rate = rate.then(|| NonZeroU64::new(1 + random.next_u64() % 20_000_000)).flatten();
    Channel { delay, rate, hold, ..Channel::default() }
}

#[test]
fn bytes_arrive_whole_and_in_order_whatever_changes() {
    for seed in 0..3 {
        let (proxy, _target, client, server) = through();
        let (up, down) = (stream(2 * seed), stream(2 * seed + 1));
        let arrived = [receive(&server), receive(&client)];
        let senders = [send(&client, up.clone(), seed), send(&server, down.clone(), !seed)];
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..100 {
            let (to_server, to_client) = (channel(&mut random), channel(&mut random));
            proxy.set(Faults { to_server, to_client, seed, ..Faults::default() }).unwrap();
            thread::sleep(Duration::from_micros(random.next_u64() % 5000));
        }
        proxy.set(Faults::default()).unwrap();
        let [at_server, at_client] = arrived.map(|thread| thread.join().unwrap());
        assert!(at_server == up, "seed {seed}: what the server reads is what the client has sent");
        assert!(at_client == down, "seed {seed}: what the client reads is what the server has sent");
        for thread in senders {
            thread.join().unwrap();
        }
        eventually("the connection is over", || proxy.counters().open == 0);
    }
}
