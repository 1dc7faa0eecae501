//! What a runtime waits with: epoll, or io_uring where the kernel allows it.

use std::io;
use std::task::{Context, Poll, Waker};

use rustix::fd::OwnedFd;

use crate::buffer::Inbox;
use crate::clock::{MILLISECOND, Nanos};
use crate::epoll::Epoll;
use crate::executor::Runtime;
use crate::uring::Uring;

/// How often the deadlines of sockets are looked at. They bound waits that should not happen, so they need not
/// be sharp, and a scan costs less than a timer for each statement would.
pub(crate) const DEADLINE_RESOLUTION: Nanos = 10 * MILLISECOND;

/// How a runtime waits for its sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// Readiness by epoll, and a system call for each send and each receive.
    Epoll,
    /// io_uring: the operations of all sockets in one system call. Needs Linux 6.1.
    Uring,
}

impl Io {
    /// The name in studies and in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Epoll => "epoll",
            Self::Uring => "uring",
        }
    }

    /// Whether this kernel knows it and lets this process use it.
    pub fn check(self) -> io::Result<()> {
        Runtime::with_io(self).map(drop)
    }
}

/// The index of a socket in its table; the generation tells a late event for a closed socket from one for
/// the socket that took its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) slot: usize,
    pub(crate) generation: u32,
}

/// Keeps the waker of who waits.
pub(crate) fn store(place: &mut Option<Waker>, cx: &Context<'_>) {
    if !place.as_ref().is_some_and(|old| old.will_wake(cx.waker())) {
        *place = Some(cx.waker().clone());
    }
}

#[allow(clippy::large_enum_variant)] // There is one per thread.
pub(crate) enum Reactor {
    Epoll(Epoll),
    Uring(Uring),
}

/// Calls the method of the same name, whichever it is.
macro_rules! each {
    ($self:ident, $inner:ident => $call:expr) => {
        match $self {
            Self::Epoll($inner) => $call,
            Self::Uring($inner) => $call,
        }
    };
}

impl Reactor {
    pub(crate) fn new(io: Io, eventfd: &OwnedFd) -> io::Result<Self> {
        Ok(match io {
            Io::Epoll => Self::Epoll(Epoll::new(eventfd)?),
            Io::Uring => Self::Uring(Uring::new(eventfd)?),
        })
    }

    /// Why nothing can be sent or received any more, if it cannot.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        match self {
            Self::Epoll(_) => None,
            Self::Uring(uring) => uring.failure(),
        }
    }

    /// Whether another thread has signalled since the last call.
    pub(crate) fn take_signal(&mut self) -> bool {
        each!(self, inner => inner.take_signal())
    }

    /// Takes a socket that listens, is connected, or whose connect has begun.
    pub(crate) fn register(&mut self, fd: OwnedFd) -> io::Result<Key> {
        match self {
            Self::Epoll(epoll) => epoll.register(fd),
            Self::Uring(uring) => Ok(uring.register(fd)),
        }
    }

    /// Closes a socket.
    pub(crate) fn deregister(&mut self, key: Key) {
        each!(self, inner => inner.deregister(key));
    }

    pub(crate) fn set_deadline(&mut self, key: Key, deadline: Nanos) {
        each!(self, inner => inner.set_deadline(key, deadline));
    }

    pub(crate) fn descriptor(&self, key: Key) -> &OwnedFd {
        each!(self, inner => inner.descriptor(key))
    }

    /// Takes a connection from a listening socket.
    pub(crate) fn poll_accept(&mut self, key: Key, cx: &Context<'_>) -> Poll<io::Result<OwnedFd>> {
        each!(self, inner => inner.poll_accept(key, cx))
    }

    /// The error of a connect that has ended, if it failed.
    pub(crate) fn take_error(&self, key: Key) -> io::Result<()> {
        each!(self, inner => inner.take_error(key))
    }

    /// Completes when the socket can be written to: how a connect ends.
    pub(crate) fn poll_writable(&mut self, key: Key, cx: &Context<'_>) -> Poll<io::Result<()>> {
        each!(self, inner => inner.poll_writable(key, cx))
    }

    /// Sends `out` and empties it.
    #[inline]
    pub(crate) fn poll_send(
        &mut self,
        key: Key,
        cx: &Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<io::Result<()>> {
        each!(self, inner => inner.poll_send(key, cx, out))
    }

    /// Completes when everything that was handed over is with the kernel, or could not be.
    pub(crate) fn poll_sent(&mut self, key: Key, cx: &Context<'_>) -> Poll<io::Result<()>> {
        match self {
            // Here `poll_send` is complete only then.
            Self::Epoll(_) => Poll::Ready(Ok(())),
            Self::Uring(uring) => uring.poll_all_sent(key, cx),
        }
    }

    /// Reads once. Completes with the number of bytes, 0 at the end of the stream.
    #[inline]
    pub(crate) fn poll_recv(
        &mut self,
        key: Key,
        cx: &Context<'_>,
        inbox: &mut Inbox,
    ) -> Poll<io::Result<usize>> {
        each!(self, inner => inner.poll_recv(key, cx, inbox))
    }

    /// Lets what was sent leave now, and not with the next turn.
    pub(crate) fn hand_over(&mut self) {
        if let Self::Uring(uring) = self {
            uring.hand_over();
        }
    }

    /// Looks for events and wakes who waits for them. Blocks only if `idle`, and then until `next` at the latest.
    pub(crate) fn turn(&mut self, now: Nanos, idle: bool, next: Option<Nanos>) {
        each!(self, inner => inner.turn(now, idle, next));
    }
}
