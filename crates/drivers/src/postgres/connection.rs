//! A session's connection: the machine over a channel.

use std::rc::Rc;
use std::task::{Context, Poll, ready};

use nephoscope_runtime::Nanos;

use crate::channel::{self, Channel};
use crate::driver::{Command, Connection, ConnectionState, LocalFuture, Reply, Want};
use crate::error::{Error, ErrorClass};
use crate::postgres::machine::{Machine, Progress};
use crate::postgres::startup::CancelKey;
use crate::postgres::wire;
use crate::rows::Rows;
use crate::value::Params;

pub(crate) struct PostgresConnection {
    channel: Channel,
    machine: Machine,
    cancel_key: Rc<CancelKey>,
}

impl PostgresConnection {
    pub(crate) fn new(channel: Channel, machine: Machine, cancel_key: CancelKey) -> Self {
        Self { channel, machine, cancel_key: Rc::new(cancel_key) }
    }

    fn lost(&mut self, error: std::io::Error) -> Error {
        if error.kind() == std::io::ErrorKind::TimedOut {
            return error.into();
        }
        self.machine.lose(error.into())
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
        if let Err(error) = ready!(self.channel.poll_flush(cx)) {
            // The server's reason for closing, if it gave one, has arrived by now.
            if error.kind() != std::io::ErrorKind::TimedOut {
                while let Poll::Ready(Ok(1..)) = self.channel.poll_fill(cx) {}
                if let Err(reason) = self.machine.feed(self.channel.inbox(), rows)
                    && reason.class() != ErrorClass::ConnectionLost
                {
                    return Poll::Ready(Err(self.machine.lose(reason)));
                }
            }
            return Poll::Ready(Err(self.lost(error)));
        }
        loop {
            match self.machine.feed(self.channel.inbox(), rows) {
                Ok(Progress::Done(reply)) => return Poll::Ready(Ok(reply)),
                Ok(Progress::More) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            match ready!(self.channel.poll_fill(cx)) {
                Ok(0) => return Poll::Ready(Err(self.lost(channel::closed()))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(self.lost(error))),
            }
        }
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
            let _ = self.channel.poll_flush(&mut Context::from_waker(std::task::Waker::noop()));
        }
    }
}
