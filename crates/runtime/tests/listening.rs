//! Sockets that take connections, and the ways to end one.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[macro_use]
mod support;

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use nephoscope_runtime::clock::{MILLISECOND, SECOND, now};
use nephoscope_runtime::{Listener, Runtime, Stream};

fn listen(runtime: &Runtime) -> Listener {
    Listener::bind(runtime, SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()
}

/// A peer that connects and does something on a thread of its own.
fn call<T: Send + 'static>(
    listener: &Listener,
    act: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let address = listener.address();
    thread::spawn(move || {
        let peer = TcpStream::connect(address).unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        act(peer)
    })
}

async fn accept(listener: &mut Listener) -> Stream {
    let mut stream = listener.accept().await.unwrap();
    stream.set_deadline(now() + 20 * SECOND);
    stream
}

async fn read_all(stream: &mut Stream) -> Vec<u8> {
    while poll_fn(|cx| stream.poll_fill(cx)).await.unwrap() > 0 {}
    stream.inbox.bytes().to_vec()
}

fn every_caller_is_taken_and_answered(runtime: &Runtime) {
    const CALLERS: usize = 400;
    let mut listener = listen(runtime);
    let address = listener.address();
    let callers = thread::spawn(move || {
        // All are there before the first is answered.
        let mut peers: Vec<_> = (0..CALLERS).map(|_| TcpStream::connect(address).unwrap()).collect();
        for (number, peer) in peers.iter_mut().enumerate() {
            peer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            peer.write_all(&number.to_le_bytes()).unwrap();
        }
        for (number, peer) in peers.iter_mut().enumerate() {
            let mut answer = [0; 8];
            peer.read_exact(&mut answer).unwrap();
            assert_eq!(usize::from_le_bytes(answer), number);
        }
    });
    let answered = Rc::new(Cell::new(0));
    runtime.block_on(async {
        for _ in 0..CALLERS {
            let (mut stream, answered) = (accept(&mut listener).await, Rc::clone(&answered));
            runtime.spawn(async move {
                while stream.inbox.bytes().len() < 8 {
                    assert!(poll_fn(|cx| stream.poll_fill(cx)).await.unwrap() > 0);
                }
                stream.out.extend_from_slice(stream.inbox.bytes());
                poll_fn(|cx| stream.poll_flush(cx)).await.unwrap();
                answered.set(answered.get() + 1);
            });
        }
        while runtime.tasks() > 0 {
            runtime.sleep_until(now() + MILLISECOND).await;
        }
    });
    callers.join().unwrap();
    assert_eq!(answered.get(), CALLERS);
}

fn a_caller_who_comes_late_wakes_the_listener(runtime: &Runtime) {
    let mut listener = listen(runtime);
    let address = listener.address();
    let caller = thread::spawn(move || {
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(15));
            drop(TcpStream::connect(address).unwrap());
        }
    });
    runtime.block_on(async {
        for _ in 0..3 {
            let mut stream = accept(&mut listener).await;
            assert!(read_all(&mut stream).await.is_empty());
        }
    });
    caller.join().unwrap();
}

fn one_direction_ends_after_what_was_sent_and_the_other_goes_on(runtime: &Runtime) {
    let mut listener = listen(runtime);
    let caller = call(&listener, |mut peer| {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).unwrap();
        peer.write_all(b"still here").unwrap();
        all
    });
    let answer = runtime.block_on(async {
        let mut stream = accept(&mut listener).await;
        stream.out.extend_from_slice(&b"hello".repeat(50_000));
        poll_fn(|cx| stream.poll_flush(cx)).await.unwrap();
        stream.out.extend_from_slice(b"end");
        poll_fn(|cx| stream.poll_shutdown(cx)).await.unwrap();
        read_all(&mut stream).await
    });
    let sent = caller.join().unwrap();
    assert_eq!(sent.len(), 250_003);
    assert!(sent.ends_with(b"helloend"));
    assert_eq!(answer, b"still here");
}

fn a_reset_is_an_error_for_the_peer(runtime: &Runtime) {
    let mut listener = listen(runtime);
    let caller = call(&listener, |mut peer| {
        peer.write_all(b"hello").unwrap();
        peer.read(&mut [0; 10]).unwrap_err().kind()
    });
    runtime.block_on(async {
        let mut stream = accept(&mut listener).await;
        while stream.inbox.bytes().len() < 5 {
            poll_fn(|cx| stream.poll_fill(cx)).await.unwrap();
        }
        // Nothing is unread, so that an ordinary close would be an ordinary end.
        stream.reset();
        runtime.sleep_until(now() + 20 * MILLISECOND).await;
    });
    assert_eq!(caller.join().unwrap(), ErrorKind::ConnectionReset);
}

fn a_port_can_be_had_again_at_once(runtime: &Runtime) {
    let mut listener = listen(runtime);
    let address = listener.address();
    for _ in 0..3 {
        let caller = call(&listener, |mut peer| peer.read(&mut [0]).unwrap());
        runtime.block_on(async {
            let stream = accept(&mut listener).await;
            drop(stream);
            // A ring closes what it still waits for in its next turn.
            drop(listener);
            runtime.sleep_until(now() + 20 * MILLISECOND).await;
        });
        assert_eq!(caller.join().unwrap(), 0);
        let refused = TcpStream::connect(address).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        listener = Listener::bind(runtime, address).unwrap();
        assert_eq!(listener.address(), address);
    }
    let taken = Listener::bind(runtime, address).err().unwrap();
    assert_eq!(taken.kind(), ErrorKind::AddrInUse);
}

on_each! {
    every_caller_is_taken_and_answered,
    a_caller_who_comes_late_wakes_the_listener,
    one_direction_ends_after_what_was_sent_and_the_other_goes_on,
    a_reset_is_an_error_for_the_peer,
    a_port_can_be_had_again_at_once,
}
