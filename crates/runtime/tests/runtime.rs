//! The runtime's promises: order, precision, wake-ups from other threads, sockets that end in every way.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use nephoscope_runtime::clock::{MILLISECOND, SECOND, now};
use nephoscope_runtime::mailbox::mailbox;
use nephoscope_runtime::{Address, Runtime, Stream, Yield};

fn serve(answer: impl FnOnce(std::net::TcpStream) + Send + 'static) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    thread::spawn(move || answer(listener.accept().unwrap().0));
    Address::Tcp(address)
}

async fn read_all(stream: &mut Stream) -> std::io::Result<Vec<u8>> {
    while poll_fn(|cx| stream.poll_fill(cx)).await? > 0 {}
    Ok(stream.inbox.bytes().to_vec())
}

#[test]
fn sleepers_wake_in_the_order_of_their_deadlines() {
    let runtime = Runtime::new().unwrap();
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

#[test]
fn a_dropped_sleep_leaves_nothing_behind_and_a_past_one_ends_at_once() {
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        for _ in 0..10_000 {
            let mut sleep = std::pin::pin!(runtime.sleep_until(now() + 3600 * SECOND));
            poll_fn(|cx| {
                assert!(sleep.as_mut().poll(cx).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
        }
        runtime.sleep_until(0).await;
    });
}

#[test]
fn a_message_from_another_thread_wakes_an_idle_runtime() {
    let runtime = Runtime::new().unwrap();
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

#[test]
fn tasks_survive_from_one_block_on_to_the_next_and_beside_another_runtime() {
    let (one, other) = (Runtime::new().unwrap(), Runtime::new().unwrap());
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

#[test]
fn bytes_and_the_end_of_the_stream_arrive_even_when_they_come_together() {
    let address = serve(|mut peer| {
        let mut request = [0; 5];
        peer.read_exact(&mut request).unwrap();
        peer.write_all(&request.repeat(40_000)).unwrap();
    });
    let runtime = Runtime::new().unwrap();
    let bytes = runtime.block_on(async {
        let mut stream = Stream::connect(&runtime, &address, now() + SECOND).await.unwrap();
        stream.out.extend_from_slice(b"hello");
        poll_fn(|cx| stream.poll_flush(cx)).await.unwrap();
        // The whole answer and the end of the stream are there before the first read.
        runtime.sleep_until(now() + 50 * MILLISECOND).await;
        read_all(&mut stream).await.unwrap()
    });
    assert_eq!(bytes.len(), 200_000);
}

#[test]
fn a_server_that_never_answers_ends_the_wait_at_the_deadline() {
    let address = serve(|peer| {
        thread::sleep(Duration::from_millis(500));
        drop(peer);
    });
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let mut stream = Stream::connect(&runtime, &address, now() + SECOND).await.unwrap();
        let begin = now();
        stream.set_deadline(begin + 40 * MILLISECOND);
        let error = read_all(&mut stream).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert!(now() - begin >= 40 * MILLISECOND);
        // A new deadline makes the stream usable again: the cancelled statement's answer may yet come.
        stream.set_deadline(now() + SECOND);
        assert!(read_all(&mut stream).await.unwrap().is_empty());
    });
}

#[test]
fn a_refused_connection_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    drop(listener);
    let runtime = Runtime::new().unwrap();
    let error =
        runtime.block_on(async { Stream::connect(&runtime, &address, now() + SECOND).await.err().unwrap() });
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn a_large_request_is_sent_whole_to_a_slow_reader() {
    let address = serve(|mut peer| {
        thread::sleep(Duration::from_millis(30));
        let mut all = Vec::new();
        peer.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), 9_000_000);
    });
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let mut stream = Stream::connect(&runtime, &address, now() + SECOND).await.unwrap();
        stream.set_deadline(now() + 10 * SECOND);
        stream.out.resize(9_000_000, 7);
        poll_fn(|cx| stream.poll_flush(cx)).await.unwrap();
        assert!(stream.out.is_empty());
    });
}
