//! The runtime's promises: order, precision, wake-ups from other threads, sockets that end in every way.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[macro_use]
mod support;

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use nephoscope_runtime::clock::{MILLISECOND, SECOND, now};
use nephoscope_runtime::mailbox::mailbox;
use nephoscope_runtime::{Address, Runtime, Stream, Yield};

/// Starts a server for one connection; the handle ends when its answer has been given.
fn serve<T: Send + 'static>(
    answer: impl FnOnce(std::net::TcpStream) -> T + Send + 'static,
) -> (Address, thread::JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    (Address::Tcp(address), thread::spawn(move || answer(listener.accept().unwrap().0)))
}

async fn read_all(stream: &mut Stream) -> std::io::Result<Vec<u8>> {
    while poll_fn(|cx| stream.poll_fill(cx)).await? > 0 {}
    Ok(stream.inbox.bytes().to_vec())
}

fn sleepers_wake_in_the_order_of_their_deadlines(runtime: &Runtime) {
    let order = Rc::new(RefCell::new(Vec::new()));
    let start = now();
    for delay in [5, 1, 3, 2, 4] {
        let (handle, order) = (runtime.clone(), Rc::clone(&order));
        runtime.spawn(async move {
            handle.sleep_until(start + delay * MILLISECOND).await;
            assert!(now() >= start + delay * MILLISECOND);
            order.borrow_mut().push(delay);
        });
    }
    runtime.block_on(runtime.sleep_until(start + 20 * MILLISECOND));
    assert_eq!(*order.borrow(), [1, 2, 3, 4, 5]);
    assert_eq!(runtime.tasks(), 0);
}

fn a_dropped_sleep_leaves_nothing_behind_and_a_past_one_ends_at_once(runtime: &Runtime) {
    runtime.block_on(async {
        for _ in 0..10_000 {
            let mut sleep = std::pin::pin!(runtime.sleep_until(now() + 3600 * SECOND));
            poll_fn(|cx| {
                assert!(sleep.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
        }
        runtime.sleep_until(0).await;
    });
}

fn a_message_from_another_thread_wakes_an_idle_runtime(runtime: &Runtime) {
    let (sender, mut receiver) = mailbox();
    let thread = thread::spawn(move || {
        for number in 0..100 {
            thread::sleep(Duration::from_micros(200));
            sender.send(number);
        }
    });
    let received = runtime.block_on(async {
        let mut received = Vec::new();
        while let Some(number) = poll_fn(|cx| receiver.poll_receive(cx)).await {
            received.push(number);
        }
        received
    });
    thread.join().unwrap();
    assert_eq!(received, (0..100).collect::<Vec<_>>());
}

fn tasks_survive_from_one_block_on_to_the_next_and_beside_another_runtime(runtime: &Runtime) {
    let (one, other) = (runtime, Runtime::with_io(runtime.io()).unwrap());
    let done = Rc::new(RefCell::new(0));
    for _ in 0..3 {
        let done = Rc::clone(&done);
        one.spawn(async move {
            for _ in 0..5 {
                Yield::default().await;
            }
            *done.borrow_mut() += 1;
        });
    }
    one.block_on(async {});
    other.block_on(async { Yield::default().await });
    assert_eq!(*done.borrow(), 0);
    one.block_on(async {
        while one.tasks() > 0 {
            Yield::default().await;
        }
    });
    assert_eq!(*done.borrow(), 3);
}

fn bytes_and_the_end_of_the_stream_arrive_even_when_they_come_together(runtime: &Runtime) {
    let (address, server) = serve(|mut peer| {
        let mut request = [0; 5];
        peer.read_exact(&mut request).unwrap();
        peer.write_all(&request.repeat(40_000)).unwrap();
    });
    let bytes = runtime.block_on(async {
        let mut stream = Stream::connect(runtime, &address, now() + SECOND).await.unwrap();
        stream.out.extend_from_slice(b"hello");
        poll_fn(|cx| stream.poll_flush(cx)).await.unwrap();
        // The whole answer and the end of the stream are there before the first read.
        runtime.sleep_until(now() + 50 * MILLISECOND).await;
        read_all(&mut stream).await.unwrap()
    });
    assert_eq!(bytes.len(), 200_000);
    server.join().unwrap();
}

fn what_was_sent_last_arrives_even_if_the_stream_is_dropped_at_once(runtime: &Runtime) {
    let (address, server) = serve(|mut peer| {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).unwrap();
        all
    });
    runtime.block_on(async {
        let mut stream = Stream::connect(runtime, &address, now() + SECOND).await.unwrap();
        // A read that waits is called off with the rest.
        let waits = poll_fn(|cx| Poll::Ready(stream.poll_fill(cx).is_pending())).await;
        assert!(waits);
        stream.out.extend_from_slice(b"farewell");
        poll_fn(|cx| stream.poll_flush(cx)).await.unwrap();
        drop(stream);
        runtime.sleep_until(now() + MILLISECOND).await;
    });
    assert_eq!(server.join().unwrap(), b"farewell");
}

fn what_was_sent_leaves_even_if_the_runtime_is_not_turned_again(runtime: &Runtime) {
    let (address, server) = serve(|mut peer| {
        let mut request = [0; 5];
        peer.read_exact(&mut request).unwrap();
        request
    });
    let stream = runtime.block_on(async {
        let mut stream = Stream::connect(runtime, &address, now() + SECOND).await.unwrap();
        stream.out.extend_from_slice(b"hello");
        poll_fn(|cx| stream.poll_flush(cx)).await.unwrap();
        stream
    });
    assert_eq!(&server.join().unwrap(), b"hello");
    drop(stream);
}

fn a_peer_that_resets_ends_the_wait(runtime: &Runtime) {
    let (address, server) = serve(|peer| {
        thread::sleep(Duration::from_millis(20));
        // Closed with bytes unread: a reset.
        drop(peer);
    });
    runtime.block_on(async {
        let mut stream = Stream::connect(runtime, &address, now() + SECOND).await.unwrap();
        stream.set_deadline(now() + 10 * SECOND);
        stream.out.extend_from_slice(b"unread");
        poll_fn(|cx| stream.poll_flush(cx)).await.unwrap();
        let ended = poll_fn(|cx| stream.poll_fill(cx)).await;
        assert!(ended.as_ref().is_ok_and(|count| *count == 0) || ended.is_err(), "{ended:?}");
        assert!(!ended.is_err_and(|error| error.kind() == std::io::ErrorKind::TimedOut));
    });
    server.join().unwrap();
}

fn many_sockets_are_served_at_once_and_slots_are_used_again(runtime: &Runtime) {
    const SOCKETS: usize = 300;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        for peer in listener.incoming().take(3 * SOCKETS) {
            thread::spawn(move || {
                let mut peer = peer.unwrap();
                let mut request = [0; 8];
                while peer.read_exact(&mut request).is_ok() {
                    peer.write_all(&request).unwrap();
                }
            });
        }
    });
    let answered = Rc::new(RefCell::new(0));
    for number in 0..SOCKETS {
        let (runtime, address, answered) = (runtime.clone(), address.clone(), Rc::clone(&answered));
        runtime.clone().spawn(async move {
            for life in 0..3 {
                let mut stream = Stream::connect(&runtime, &address, now() + 20 * SECOND).await.unwrap();
                stream.set_deadline(now() + 20 * SECOND);
                for round in 0..5 {
                    let request = ((number as u64) << 32 | life << 16 | round).to_le_bytes();
                    stream.out.extend_from_slice(&request);
                    poll_fn(|cx| stream.poll_flush(cx)).await.unwrap();
                    while stream.inbox.bytes().len() < request.len() {
                        assert!(poll_fn(|cx| stream.poll_fill(cx)).await.unwrap() > 0);
                    }
                    assert_eq!(stream.inbox.bytes(), request);
                    stream.inbox.consume(request.len());
                    *answered.borrow_mut() += 1;
                }
            }
        });
    }
    runtime.block_on(async {
        while runtime.tasks() > 0 {
            runtime.sleep_until(now() + MILLISECOND).await;
        }
    });
    assert_eq!(*answered.borrow(), SOCKETS * 3 * 5);
    server.join().unwrap();
}

fn a_server_that_never_answers_ends_the_wait_at_the_deadline(runtime: &Runtime) {
    let (address, server) = serve(|peer| {
        thread::sleep(Duration::from_millis(500));
        drop(peer);
    });
    runtime.block_on(async {
        let mut stream = Stream::connect(runtime, &address, now() + SECOND).await.unwrap();
        let begin = now();
        stream.set_deadline(begin + 40 * MILLISECOND);
        let error = read_all(&mut stream).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert!(now() - begin >= 40 * MILLISECOND);
        // A new deadline makes the stream usable again: the cancelled statement's answer may yet come.
        stream.set_deadline(now() + SECOND);
        assert!(read_all(&mut stream).await.unwrap().is_empty());
    });
    server.join().unwrap();
}

fn a_refused_connection_says_so(runtime: &Runtime) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    drop(listener);
    let error =
        runtime.block_on(async { Stream::connect(runtime, &address, now() + SECOND).await.err().unwrap() });
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

fn a_large_request_is_sent_whole_to_a_slow_reader(runtime: &Runtime) {
    let (address, server) = serve(|mut peer| {
        thread::sleep(Duration::from_millis(30));
        let mut all = Vec::new();
        peer.read_to_end(&mut all).unwrap();
        all.len()
    });
    runtime.block_on(async {
        let mut stream = Stream::connect(runtime, &address, now() + SECOND).await.unwrap();
        stream.set_deadline(now() + 10 * SECOND);
        stream.out.resize(9_000_000, 7);
        poll_fn(|cx| stream.poll_flush(cx)).await.unwrap();
        assert!(stream.out.is_empty());
    });
    assert_eq!(server.join().unwrap(), 9_000_000);
}

on_each! {
    sleepers_wake_in_the_order_of_their_deadlines,
    a_dropped_sleep_leaves_nothing_behind_and_a_past_one_ends_at_once,
    a_message_from_another_thread_wakes_an_idle_runtime,
    tasks_survive_from_one_block_on_to_the_next_and_beside_another_runtime,
    what_was_sent_last_arrives_even_if_the_stream_is_dropped_at_once,
    what_was_sent_leaves_even_if_the_runtime_is_not_turned_again,
    a_peer_that_resets_ends_the_wait,
    many_sockets_are_served_at_once_and_slots_are_used_again,
    bytes_and_the_end_of_the_stream_arrive_even_when_they_come_together,
    a_server_that_never_answers_ends_the_wait_at_the_deadline,
    a_refused_connection_says_so,
    a_large_request_is_sent_whole_to_a_slow_reader,
}
