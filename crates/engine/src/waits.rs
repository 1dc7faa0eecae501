//! Waits for a server, and waits that end.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};

use nephoscope_drivers::{Connection, ConnectionState, Error, ErrorClass, Reply, Rows};
use nephoscope_runtime::{Nanos, Runtime, Yield};

/// The reply to the last command that was queued.
pub(crate) async fn replies(connection: &mut dyn Connection, rows: &mut Rows) -> Result<Reply, Error> {
    rows.clear();
    let mut waited = false;
    let reply = poll_fn(|cx| {
        let reply = connection.poll_replies(cx, rows);
        waited |= reply.is_pending();
        reply
    })
    .await;
    if !waited {
        // A driver that waits for nothing would leave nobody else a turn.
        Yield::default().await;
    }
    reply
}

/// Asks the server to give up what a connection waits for, and waits until it has done so, up to a deadline. Where the
/// connection is waiting still, it can only be dropped.
pub(crate) async fn cancelled(connection: &mut dyn Connection, rows: &mut Rows, deadline: Nanos) {
    // A request to cancel that nobody answers must not take time of its own: a session would go on being away
    // when the network is back. One that was sent is seen to its end, or it might meet the next statement.
    let mut cancel = connection.cancel();
    let (mut cancelled, mut answered) = (false, false);
    connection.set_deadline(deadline);
    poll_fn(|cx| {
        cancelled = cancelled || cancel.as_mut().poll(cx).is_ready();
        // The answer may be the cancelled statement's error, or its success that came too late.
        answered = answered || connection.poll_replies(cx, rows).is_ready();
        let given_up = matches!(connection.state(), ConnectionState::Waiting | ConnectionState::Lost);
        if answered && (cancelled || given_up) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Lets a future take until a deadline at the most.
pub(crate) async fn within<T>(
    runtime: &Runtime,
    deadline: Nanos,
    future: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let (mut future, mut sleep) = (pin!(future), pin!(runtime.sleep_until(deadline)));
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(output);
        }
        sleep
            .as_mut()
            .poll(cx)
            .map(|()| Err(Error::new(ErrorClass::StatementTimeout, "", "no answer within the time limit")))
    })
    .await
}

/// Something that happens once, and that tasks of one thread wait for.
#[derive(Default)]
pub(crate) struct Event {
    happened: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

impl Event {
    pub(crate) fn happen(&self) {
        self.happened.set(true);
        self.waiting.take().into_iter().for_each(Waker::wake);
    }

    pub(crate) fn has_happened(&self) -> bool {
        self.happened.get()
    }

    pub(crate) async fn wait(&self) {
        poll_fn(|cx| {
            if self.happened.get() {
                return Poll::Ready(());
            }
            let mut waiting = self.waiting.borrow_mut();
            // A task that waits again and again until some time has one place here.
            if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                waiting.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// Waits, but not beyond a time.
    pub(crate) async fn wait_until(&self, runtime: &Runtime, time: Nanos) {
        let waited = async {
            self.wait().await;
            Ok(())
        };
        // That the time has come is what the caller looks at.
        let _ = within(runtime, time, waited).await;
    }
}
