//! A replica's connections.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use nephoscope_runtime::clock::{self, MILLISECOND};
use nephoscope_runtime::{Listener, Nanos, Runtime, Sleep, Stream};

use crate::page_store::outgoing::{AT_ONCE, Outgoing};
use crate::page_store::protocol::{Frame, Garbage, Reason, Reply, Request, frame};
use crate::page_store::replica::Replica;

/// How long nothing is taken after that has failed: the process has no descriptor left.
const PAUSE: Nanos = 10 * MILLISECOND;
/// How often long chains are looked at.
const CONSOLIDATION: Nanos = 10 * MILLISECOND;
/// A connection whose replies wait for more bytes than this is not read.
const MOST_OUTGOING: usize = 64 << 20;
/// How often is read until others have their turn.
const UNINTERRUPTED: u32 = 64;

/// Takes connections for ever.
pub(crate) async fn listen(runtime: Runtime, mut listener: Listener, replica: Rc<RefCell<Replica>>) {
    loop {
        match listener.accept().await {
            Ok(stream) => {
                replica.borrow().count_connection();
                let mut connection = Connection::new(&runtime, stream, Rc::clone(&replica));
                runtime.spawn(async move { poll_fn(|cx| connection.poll(cx)).await });
            }
            Err(_) => runtime.sleep_until(clock::now() + PAUSE).await,
        }
    }
}

/// Makes images of long chains for ever.
pub(crate) async fn consolidate(runtime: Runtime, replica: Rc<RefCell<Replica>>) {
    loop {
        runtime.sleep_until(clock::now() + CONSOLIDATION).await;
        replica.borrow_mut().consolidate();
    }
}

struct Connection {
    runtime: Runtime,
    stream: Stream,
    replica: Rc<RefCell<Replica>>,
    outgoing: Rc<RefCell<Outgoing>>,
    greeted: bool,
    /// Nothing more is read: the client has said what it had to say, or nonsense.
    over: bool,
    sleep: Option<(Nanos, Sleep)>,
}

impl Connection {
    fn new(runtime: &Runtime, stream: Stream, replica: Rc<RefCell<Replica>>) -> Self {
        let outgoing = Rc::default();
        Self { runtime: runtime.clone(), stream, replica, outgoing, greeted: false, over: false, sleep: None }
    }

    /// Complete when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..UNINTERRUPTED {
            self.handle_all();
            // What cannot be made durable is not acknowledged.
            if self.replica.borrow_mut().persist().is_err() {
                return Poll::Ready(());
            }
            let next = self.outgoing.borrow_mut().take_due(clock::now(), &mut self.stream.out);
            let flushed = self.stream.poll_flush(cx);
            if matches!(flushed, Poll::Ready(Err(_))) {
                return Poll::Ready(());
            }
            let room = self.outgoing.borrow().bytes() + self.stream.out.len() < MOST_OUTGOING;
            if !self.over && room {
                match self.stream.poll_fill(cx) {
                    Poll::Ready(Ok(1..)) => continue,
                    Poll::Ready(Ok(0)) => self.over = true,
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => {}
                }
            }
            if self.over && next.is_none() && flushed.is_ready() {
                return Poll::Ready(());
            }
            self.outgoing.borrow_mut().wakes(cx.waker());
            ready!(self.poll_due(cx, next));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Waits until a reply is due.
    fn poll_due(&mut self, cx: &mut Context<'_>, next: Option<Nanos>) -> Poll<()> {
        let Some(next) = next else {
            self.sleep = None;
            return Poll::Pending;
        };
        if self.sleep.as_ref().is_none_or(|(until, _)| *until != next) {
            self.sleep = Some((next, self.runtime.sleep_until(next)));
        }
        match &mut self.sleep {
            Some((_, sleep)) => Pin::new(sleep).poll(cx),
            None => Poll::Pending,
        }
    }

    /// Does what whole messages ask.
    fn handle_all(&mut self) {
        while !self.over {
            match self.handle_one() {
                Ok(true) => {}
                Ok(false) => return,
                Err(garbage) => {
                    let text = garbage.to_string();
                    let reply = Reply::Refused { reason: Reason::Invalid, text: text.as_bytes() };
                    self.outgoing.borrow_mut().push(AT_ONCE, 0, &reply);
                    self.over = true;
                }
            }
        }
    }

    /// Whether there was one.
    fn handle_one(&mut self) -> Result<bool, Garbage> {
        let (size, request, id) = match frame(self.stream.inbox.bytes())? {
            Frame::Partial(size) => {
                self.stream.inbox.expect(size);
                return Ok(false);
            }
            Frame::Whole { kind, id, fields, size } => (size, Request::read(kind, fields)?, id),
        };
        if !self.greeted && !matches!(request, Request::Hello { .. }) {
            return Err(Garbage("the first one is a greeting"));
        }
        self.greeted = true;
        self.replica.borrow_mut().handle(id, &request, &self.outgoing);
        self.stream.inbox.consume(size);
        Ok(true)
    }
}
