//! A session's connection, whatever its protocol: a machine over a channel.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use nephoscope_runtime::{Inbox, Nanos, Runtime};

use crate::contract::added::Added;
use crate::contract::driver::{Command, Connection, ConnectionState, LocalFuture, Reply, Want};
use crate::contract::error::{Error, ErrorClass};
use crate::contract::rows::Rows;
use crate::contract::statement::Statement;
use crate::contract::value::Params;
use crate::net::channel::{self, Channel};

/// How often is read until others have their turn.
const UNINTERRUPTED: u32 = 256;

/// What feeding has come to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More bytes are needed.
    More,
    /// Every reply is in.
    Done(Reply),
}

/// The query phase of a protocol without I/O: it says what to send and is fed what arrives.
pub(crate) trait Machine {
    /// What a client says when it leaves.
    const GOODBYE: &'static [u8];

    /// Queues a command; what may leave at once is written behind `out`. An error means that nothing was queued.
    fn queue(
        &mut self,
        command: Command,
        params: &Params,
        want: Want,
        out: &mut Vec<u8>,
    ) -> Result<(), Error>;

    /// As [`Connection::add`]; what has to be asked for is written behind `out`.
    fn add(&mut self, statement: &Rc<Statement>, alone: bool, out: &mut Vec<u8>) -> Result<Added, Error>;

    /// Ends the batch of queued commands, if there is one.
    fn end_batch(&mut self, out: &mut Vec<u8>);

    /// Uses up whole messages of the inbox; what is to be sent in turn is written behind `out`. What the error says has
    /// happened to the transaction is in the state.
    fn feed(&mut self, inbox: &mut Inbox, out: &mut Vec<u8>, rows: &mut Rows) -> Result<Progress, Error>;

    /// The connection has ended. Gives the reason, if the server gave one before it closed.
    fn lose(&mut self, reason: Error) -> Error;

    /// Where the connection stands.
    fn state(&self) -> ConnectionState;

    /// The error for an answer to what was not asked.
    fn unasked() -> Error;
}

/// What it takes to cancel a statement of a connection.
pub(crate) trait Cancel {
    /// Asks the server to give up what the connection runs.
    fn cancel(&self, runtime: &Runtime) -> impl Future<Output = ()>;
}

/// A machine over a channel.
pub(crate) struct Session<M: Machine, C> {
    channel: Channel,
    machine: M,
    cancel_key: Rc<C>,
}

impl<M: Machine, C> Session<M, C> {
    pub(crate) fn new(channel: Channel, machine: M, cancel_key: C) -> Self {
        Self { channel, machine, cancel_key: Rc::new(cancel_key) }
    }

    /// The machine, to be looked at.
    pub(crate) fn machine(&self) -> &M {
        &self.machine
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
        let (inbox, out) = self.channel.buffers();
        match self.machine.feed(inbox, out, rows) {
            Err(reason) if reason.class() != ErrorClass::ConnectionLost => self.machine.lose(reason),
            _ => self.machine.lose(error.into()),
        }
    }
}

impl<M: Machine, C: Cancel + 'static> Connection for Session<M, C> {
    #[inline]
    fn queue(&mut self, command: Command, params: &Params, want: Want) -> Result<(), Error> {
        self.machine.queue(command, params, want, self.channel.out())
    }

    fn add(&mut self, statement: &Rc<Statement>, alone: bool) -> Result<Added, Error> {
        self.machine.add(statement, alone, self.channel.out())
    }

    #[inline]
    fn poll_replies(&mut self, cx: &mut Context<'_>, rows: &mut Rows) -> Poll<Result<Reply, Error>> {
        self.machine.end_batch(self.channel.out());
        let mut sent = false;
        for _ in 0..UNINTERRUPTED {
            if !sent || !self.channel.out().is_empty() {
                sent = match self.channel.poll_flush(cx) {
                    Poll::Ready(Ok(())) => true,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(self.not_sent(error, rows))),
                    // What has been answered is read meanwhile: a server whose answers nobody takes reads no more.
                    Poll::Pending => false,
                };
            }
            let (inbox, out) = self.channel.buffers();
            // Mostly nothing has come yet when a request leaves.
            let waits = inbox.bytes().is_empty() && self.machine.state() == ConnectionState::Waiting;
            let fed = if waits { Ok(Progress::More) } else { self.machine.feed(inbox, out, rows) };
            match fed {
                Ok(Progress::Done(reply)) if sent => return Poll::Ready(Ok(reply)),
                Ok(Progress::Done(_)) => return Poll::Ready(Err(self.machine.lose(M::unasked()))),
                // The machine has more to send.
                Ok(Progress::More) if sent && !out.is_empty() => continue,
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

impl<M: Machine, C> Drop for Session<M, C> {
    fn drop(&mut self) {
        // A polite end, if it can be sent at once: else closing the socket has to say it.
        if matches!(
            self.machine.state(),
            ConnectionState::Idle | ConnectionState::InTransaction | ConnectionState::Failed
        ) {
            self.channel.out().extend_from_slice(M::GOODBYE);
            let _ = self.channel.poll_flush(&mut Context::from_waker(Waker::noop()));
        }
    }
}
