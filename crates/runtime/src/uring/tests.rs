//! A ring that fails for good.

use std::future::poll_fn;
use std::net::TcpListener;
use std::os::fd::AsRawFd as _;

use super::*;
use crate::clock::{self, MILLISECOND};
use crate::mailbox::mailbox;
use crate::reactor::{Io, Reactor};
use crate::{Address, Runtime, Stream};

/// Puts something else in the place of the ring's descriptor.
fn break_ring(runtime: &Runtime) {
    let other = std::fs::File::open("/dev/null").unwrap();
    if let Reactor::Uring(uring) = &*runtime.reactor() {
        // SAFETY: both descriptors are open, and the ring is told by its next call.
        assert!(unsafe { libc::dup2(other.as_raw_fd(), uring.ring.as_raw_fd()) } >= 0);
    }
}

#[test]
fn a_ring_that_fails_says_so_to_whoever_waits_and_the_rest_goes_on() {
    // Not every machine has it.
    let Ok(runtime) = Runtime::with_io(Io::Uring) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let (sender, mut receiver) = mailbox();
    runtime.block_on(async {
        let mut stream = Stream::connect(&runtime, &address, clock::now() + 5 * clock::SECOND).await.unwrap();
        break_ring(&runtime);
        let error = poll_fn(|cx| stream.poll_fill(cx)).await.unwrap_err().to_string();
        assert!(error.starts_with("io_uring failed: "), "{error}");
        let begun = clock::now();
        runtime.sleep_until(begun + 20 * MILLISECOND).await;
        assert!(clock::now() >= begun + 20 * MILLISECOND, "timers go on");
        std::thread::spawn(move || sender.send(7));
        assert_eq!(poll_fn(|cx| receiver.poll_receive(cx)).await, Some(7), "and so do messages");
        assert!(Stream::connect(&runtime, &address, clock::now() + clock::SECOND).await.is_err());
    });
    assert!(runtime.failure().is_some());
}

#[test]
fn what_finds_no_room_in_the_queue_waits() {
    let Ok(runtime) = Runtime::with_io(Io::Uring) else { return };
    let mut reactor = runtime.reactor();
    let Reactor::Uring(uring) = &mut *reactor else { return };
    let nothing = opcode::Nop::new().build().user_data(tag(CANCELLED, 0));
    for _ in 0..3 * ENTRIES {
        // SAFETY: it refers to no memory.
        unsafe { push(&mut uring.ring, &mut uring.waiting, &nothing) };
    }
    assert_eq!(uring.waiting.len(), 2 * ENTRIES as usize);
    for _ in 0..4 {
        uring.turn(clock::now(), false, None);
    }
    assert!(uring.waiting.is_empty() && uring.failed.is_none());
}

/// The byte at a place of the stream that the peer sends.
fn byte_at(place: usize) -> u8 {
    (place % 251) as u8
}

#[test]
fn of_a_peer_that_sends_faster_than_it_is_read_little_is_held_and_nothing_is_lost() {
    const SENT: usize = 64 << 20;
    let Ok(runtime) = Runtime::with_io(Io::Uring) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let peer = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let piece: Vec<u8> = (0..251 * 256).map(byte_at).collect();
        let mut left = SENT;
        while left > 0 {
            let count = left.min(piece.len());
            std::io::Write::write_all(&mut socket, &piece[..count]).unwrap();
            left -= count;
        }
    });
    runtime.block_on(async {
        let mut stream =
            Stream::connect(&runtime, &address, clock::now() + 60 * clock::SECOND).await.unwrap();
        let (mut read, mut pauses) = (0, 3);
        while poll_fn(|cx| stream.poll_fill(cx)).await.unwrap() > 0 {
            let bytes = stream.inbox.bytes();
            assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == byte_at(read + at)), "at {read}");
            read += bytes.len();
            stream.inbox.clear();
            if pauses > 0 {
                // Nobody reads for a while: the peer's socket is to fill up, and not this side's memory.
                pauses -= 1;
                runtime.sleep_until(clock::now() + 200 * MILLISECOND).await;
            }
            if let Reactor::Uring(uring) = &*runtime.reactor() {
                let held =
                    uring.sources.iter().map(|(_, source)| source.inbox.bytes().len()).max().unwrap_or(0);
                assert!(held <= HELD + (4 << 20), "{held} bytes are held");
            }
        }
        assert_eq!(read, SENT);
    });
    peer.join().unwrap();
}
