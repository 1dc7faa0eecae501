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
