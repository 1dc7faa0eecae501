//! The life of a recorded session: one connection, its statements one after the other.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use nephoscope_drivers::{
    Added, Command, Connection, ConnectionState, Error, ErrorClass, Params, Reply, Rows, Statement, Want,
};
use nephoscope_runtime::clock::{self, MILLISECOND, Nanos, SECOND};

use crate::replay::worker::Worker;
use crate::replay::{Fate, Planned, Replayed};
use crate::waits::{cancelled, replies, within};

/// So long before its first statement a session connects.
const AHEAD: Nanos = SECOND;
/// Between two attempts to connect to a server that is going down or coming up.
const AGAIN: Nanos = 100 * MILLISECOND;
/// The longest that a statement waits for commits. A lock that the statements do not tell of may keep those for whom it
/// waits from their commit until it has left.
const COMMITS: Nanos = 5 * SECOND;
/// How long a server is waited for that was asked to cancel a statement.
const CANCEL_GRACE: Nanos = 2 * SECOND;

/// The statements of a session that are still to be sent.
#[derive(Default)]
pub(crate) struct Queue {
    statements: RefCell<VecDeque<Planned>>,
    closed: Cell<bool>,
    reader: RefCell<Option<Waker>>,
}

impl Queue {
    pub(crate) fn push(&self, planned: Planned) {
        self.statements.borrow_mut().push_back(planned);
        self.wake();
    }

    /// Nothing comes any more.
    pub(crate) fn close(&self) {
        self.closed.set(true);
        self.wake();
    }

    fn wake(&self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Planned>> {
        let next = self.statements.borrow_mut().pop_front();
        if next.is_some() || self.closed.get() {
            return Poll::Ready(next);
        }
        *self.reader.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// A recorded session.
pub(crate) struct Session {
    worker: Rc<Worker>,
    queue: Rc<Queue>,
    connection: Option<Box<dyn Connection>>,
    rows: Rows,
    none: Params,
    /// When the connection was made, or its last statement answered.
    free: Nanos,
    /// The transaction that was lost with its connection.
    lost: Option<u32>,
}

impl Session {
    pub(crate) fn new(worker: &Rc<Worker>, queue: &Rc<Queue>) -> Self {
        Self {
            worker: Rc::clone(worker),
            queue: Rc::clone(queue),
            connection: None,
            rows: Rows::default(),
            none: Params::default(),
            free: 0,
            lost: None,
        }
    }

    pub(crate) async fn run(mut self) {
        self.worker.begun.wait().await;
        let worker = Rc::clone(&self.worker);
        let (queue, origin) =
            (Rc::clone(&self.queue), worker.shared.origin.get().copied().unwrap_or_default());
        let mut is_first = true;
        while let Some(planned) = poll_fn(|cx| queue.poll_next(cx)).await {
            let due = origin + planned.at;
            if std::mem::take(&mut is_first) && worker.shared.spec.timed {
                worker.runtime.sleep_until(due.saturating_sub(AHEAD)).await;
            }
            let result = self.replay(&planned, origin, due).await;
            if planned.ends_transaction {
                worker.shared.commits.end(planned.transaction);
            }
            worker.shared.answered(planned.sql.len());
            worker.report(result);
        }
    }

    /// Waits until a statement may leave, and for its reply.
    async fn replay(&mut self, planned: &Planned, origin: Nanos, due: Nanos) -> Replayed {
        let worker = Rc::clone(&self.worker);
        let mut result = Replayed {
            row: planned.row,
            ready: 0,
            sent: 0,
            answered: 0,
            fate: Fate::LeftOut,
            out_of_order: false,
        };
        if self.lost == Some(planned.transaction) {
            return result;
        }
        self.lost = None;
        let connected = self.connected(due).await;
        let (waited, in_order) = self.committed(&planned.after, due).await;
        result.out_of_order = !in_order;
        let ready = if waited { clock::now() } else { self.free };
        worker.runtime.sleep_until(if worker.shared.spec.timed { due } else { origin }).await;
        let sent = clock::now();
        let reply = match connected {
            Ok(()) => self.asked(planned).await,
            Err(error) => Err(error),
        };
        self.free = clock::now();
        (result.ready, result.sent, result.answered) =
            (ready.saturating_sub(origin), sent - origin, self.free - origin);
        result.fate = match reply {
            Ok(reply) => Fate::Done(reply.affected),
            Err(error) if error.code().is_empty() => Fate::Failed(error.class().name().into()),
            Err(error) => Fate::Failed(error.code().into()),
        };
        self.settle(planned.transaction).await;
        result
    }

    /// Waits for the end of transactions. Gives whether it had to wait, and whether they ended within the limit.
    async fn committed(&self, after: &[u32], due: Nanos) -> (bool, bool) {
        let shared = &self.worker.shared;
        let limit = due.max(clock::now()) + shared.spec.answer_timeout_ns.min(COMMITS);
        let mut waited = false;
        let ended = poll_fn(|cx| {
            let ended = shared.commits.poll_ended(after, cx);
            waited |= ended.is_pending();
            ended.map(Ok)
        });
        let in_order = within(&self.worker.runtime, limit, ended).await.is_ok();
        (waited, in_order)
    }

    /// Makes a connection where there is none. A server that is going down or coming up is asked again for as long as a
    /// statement may take.
    async fn connected(&mut self, due: Nanos) -> Result<(), Error> {
        if self.connection.is_some() {
            return Ok(());
        }
        let (worker, none) = (Rc::clone(&self.worker), Arc::from([]));
        let limit = due.max(clock::now()) + worker.shared.spec.answer_timeout_ns;
        loop {
            let made = worker.shared.driver.connect(&worker.runtime, &none).await;
            self.free = clock::now();
            match made {
                Ok(connection) => {
                    self.connection = Some(connection);
                    return Ok(());
                }
                Err(error) if !is_passing(error.class()) || clock::now() >= limit => return Err(error),
                Err(_) => worker.runtime.sleep_until(clock::now() + AGAIN).await,
            }
        }
    }

    async fn asked(&mut self, planned: &Planned) -> Result<Reply, Error> {
        let Some(connection) = &mut self.connection else {
            return Err(Error::connection_lost("there is no connection"));
        };
        connection.set_deadline(clock::now() + self.worker.shared.spec.answer_timeout_ns);
        let statement = Rc::new(Statement::of_text("", planned.sql.clone()));
        let Added::Ready(place) = connection.add(&statement, true)? else {
            return Err(Error::other("the connection takes no text"));
        };
        connection.queue(Command::Execute(place), &self.none, Want::Count)?;
        replies(&mut **connection, &mut self.rows).await
    }

    /// Gives up a statement that was not answered in time, and a connection that is of no use any more, with the
    /// transaction that it had.
    async fn settle(&mut self, transaction: u32) {
        if let Some(connection) = &mut self.connection {
            if connection.state() == ConnectionState::Waiting {
                cancelled(&mut **connection, &mut self.rows, clock::now() + CANCEL_GRACE).await;
            }
            if !matches!(connection.state(), ConnectionState::Waiting | ConnectionState::Lost) {
                return;
            }
        }
        self.connection = None;
        self.lost = Some(transaction);
    }
}

/// Whether an attempt to connect may be followed by one that succeeds.
fn is_passing(class: ErrorClass) -> bool {
    matches!(class, ErrorClass::ConnectionLost | ErrorClass::ShuttingDown | ErrorClass::StatementTimeout)
}
