//! A session's connection: the machine over a channel.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use nephoscope_runtime::Nanos;

use crate::contract::driver::{Command, Connection, ConnectionState, LocalFuture, Reply, Want};
use crate::contract::error::{Error, ErrorClass};
use crate::contract::rows::Rows;
use crate::contract::value::Params;
use crate::net::channel::{self, Channel};
use crate::postgres::machine::{Machine, Progress};
use crate::postgres::startup::CancelKey;
use crate::postgres::wire;

/// How often is read until others have their turn.
const UNINTERRUPTED: u32 = 256;

pub(crate) struct PostgresConnection {
    channel: Channel,
    machine: Machine,
    cancel_key: Rc<CancelKey>,
}

impl PostgresConnection {
    pub(crate) fn new(channel: Channel, machine: Machine, cancel_key: CancelKey) -> Self {
        Self { channel, machine, cancel_key: Rc::new(cancel_key) }
    }

    fn lost(&mut self, error: io::Error) -> Error {
        if error.kind() == io::ErrorKind::TimedOut {
            return error.into();
        }
        self.machine.lose(error.into())
    }

    /// What a failure to send comes to: the server's reason for closing, if it gave one, has arrived by now.
    fn not_sent(&mut self, error: io::Error, rows: &mut Rows) -> Error {
        if error.kind() == io::ErrorKind::TimedOut {
            return error.into();
        }
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(Ok(1..)) = self.channel.poll_fill(&mut cx) {}
        match self.machine.feed(self.channel.inbox(), rows) {
            Err(reason) if reason.class() != ErrorClass::ConnectionLost => self.machine.lose(reason),
            _ => self.machine.lose(error.into()),
        }
    }
}

impl Connection for PostgresConnection {
    #[inline]
    fn queue(&mut self, command: Command, params: &Params, want: Want) -> Result<(), Error> {
        self.machine.queue(command, params, want, self.channel.out())
    }

    #[inline]
    fn poll_replies(&mut self, cx: &mut Context<'_>, rows: &mut Rows) -> Poll<Result<Reply, Error>> {
        self.machine.end_batch(self.channel.out());
        let sent = match self.channel.poll_flush(cx) {
            Poll::Ready(Ok(())) => true,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(self.not_sent(error, rows))),
            // What has been answered is read meanwhile: a server whose answers nobody takes reads no more either.
            Poll::Pending => false,
        };
        for _ in 0..UNINTERRUPTED {
            match self.machine.feed(self.channel.inbox(), rows) {
                Ok(Progress::Done(reply)) if sent => return Poll::Ready(Ok(reply)),
                Ok(Progress::Done(_)) => {
                    return Poll::Ready(Err(self.machine.lose(wire::garbage("a reply before its question"))));
                }
                Ok(Progress::More) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            match ready!(self.channel.poll_fill(cx)) {
                Ok(0) => return Poll::Ready(Err(self.lost(channel::closed()))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(self.lost(error))),
            }
        }
        // A server that sends faster than it is read never makes this side wait, where the time limit would be seen.
        if self.channel.is_late() {
            return Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut).into()));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn set_deadline(&mut self, deadline: Nanos) {
        self.channel.set_deadline(deadline);
    }

    fn state(&self) -> ConnectionState {
        self.machine.state()
    }

    fn cancel(&self) -> LocalFuture<'static, ()> {
        let (key, runtime) = (Rc::clone(&self.cancel_key), self.channel.runtime().clone());
        Box::pin(async move { key.cancel(&runtime).await })
    }
}

impl Drop for PostgresConnection {
    fn drop(&mut self) {
        // A polite end, if it can be sent at once: else closing the socket has to say it.
        if matches!(
            self.machine.state(),
            ConnectionState::Idle | ConnectionState::InTransaction | ConnectionState::Failed
        ) {
            self.channel.out().extend_from_slice(&wire::TERMINATE);
            let _ = self.channel.poll_flush(&mut Context::from_waker(Waker::noop()));
        }
    }
}
