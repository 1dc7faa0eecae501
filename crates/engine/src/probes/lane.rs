//! A connection of a probe, and waits that end.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};

use nephoscope_drivers::{
    Command, Connection, ConnectionState, Driver, Error, ErrorClass, Params, Reply, Rows, Statement, Value,
    Want,
};
use nephoscope_runtime::{Nanos, Runtime, Yield};

/// An endpoint that is probed.
pub(crate) struct Endpoint {
    /// Its index among the endpoints.
    pub(crate) index: usize,
    pub(crate) driver: Arc<dyn Driver>,
}

/// A connection that asks one statement at a time.
pub(crate) struct Lane {
    connection: Box<dyn Connection>,
    params: Params,
    rows: Rows,
}

impl Lane {
    /// Makes a connection, which ends by `deadline`.
    pub(crate) async fn connect(
        driver: &dyn Driver,
        runtime: &Runtime,
        statements: &Arc<[Statement]>,
        deadline: Nanos,
    ) -> Result<Self, Error> {
        let connection = within(runtime, deadline, driver.connect(runtime, statements)).await?;
        Ok(Self { connection, params: Params::default(), rows: Rows::default() })
    }

    /// Runs a statement outside a transaction: what it changes is committed with its reply.
    pub(crate) async fn ask(
        &mut self,
        statement: usize,
        values: &[i64],
        want: Want,
        deadline: Nanos,
    ) -> Result<Reply, Error> {
        self.params.clear();
        for value in values {
            self.params.push(Value::Int(*value));
        }
        self.connection.set_deadline(deadline);
        self.connection.queue(Command::Execute(statement), &self.params, want)?;
        let mut waited = false;
        let reply = self.replies(&mut waited).await;
        if !waited {
            // A driver that waits for nothing would leave nobody else a turn.
            Yield::default().await;
        }
        reply
    }

    async fn replies(&mut self, waited: &mut bool) -> Result<Reply, Error> {
        let Self { connection, rows, .. } = self;
        rows.clear();
        poll_fn(|cx| {
            let reply = connection.poll_replies(cx, rows);
            *waited |= reply.is_pending();
            reply
        })
        .await
    }

    /// The first two numbers of each row of a reply.
    pub(crate) fn pairs(&self, reply: Reply) -> Vec<(i64, i64)> {
        let Some(result) = reply.result else { return Vec::new() };
        let number = |row, column| match self.rows.value(result, row, column)? {
            Value::Int(number) => Some(number),
            _ => None,
        };
        (0..self.rows.count(result)).filter_map(|row| Some((number(row, 0)?, number(row, 1)?))).collect()
    }

    /// The first cell of a reply's first row, as a number.
    pub(crate) fn number(&self, reply: Reply) -> Option<i64> {
        match self.rows.value(reply.result.filter(|result| self.rows.count(*result) > 0)?, 0, 0)? {
            Value::Int(number) => Some(number),
            Value::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }

    pub(crate) fn state(&self) -> ConnectionState {
        self.connection.state()
    }

    /// Goes on waiting for a reply that did not come in time, so that the connection can be used again.
    pub(crate) async fn linger(&mut self, deadline: Nanos) {
        self.connection.set_deadline(deadline);
        // What it was no longer matters: the state says whether the connection is of use.
        let _ = self.replies(&mut false).await;
    }
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
