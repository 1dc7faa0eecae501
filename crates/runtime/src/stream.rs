//! A socket with its two buffers.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, connect, ipproto, shutdown,
    socket_with, sockopt,
};

use crate::buffer::Inbox;
use crate::clock::{self, Nanos};
use crate::executor::Runtime;
use crate::reactor::Key;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// A connected TCP or Unix socket.
///
/// `out` is filled by the caller and sent by [`Stream::poll_flush`]; `inbox` is filled by [`Stream::poll_fill`]
/// and used up by the caller. No wait is without a limit where a deadline is set.
pub struct Stream {
    runtime: Runtime,
    key: Key,
    deadline: Nanos,
    /// Bytes to be sent.
    pub out: Vec<u8>,
    /// Bytes received.
    pub inbox: Inbox,
}

impl Stream {
    /// Connects, within the deadline. Nagle's algorithm is off: a request is sent when it is complete.
    pub async fn connect(runtime: &Runtime, address: &Address, deadline: Nanos) -> io::Result<Self> {
        let family = match address {
            Address::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Address::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
            Address::Unix(_) => AddressFamily::UNIX,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = match address {
            Address::Tcp(_) => socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?,
            Address::Unix(_) => socket_with(family, SocketType::STREAM, flags, None)?,
        };
        let begun = match address {
            Address::Tcp(tcp) => {
                sockopt::set_tcp_nodelay(&fd, true)?;
                sockopt::set_socket_keepalive(&fd, true)?;
                connect(&fd, tcp)
            }
            Address::Unix(path) => connect(&fd, &SocketAddrUnix::new(path)?),
        };
        match begun {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        // From here on dropping the stream closes the socket.
        let mut stream = Self::registered(runtime, fd)?;
        stream.set_deadline(deadline);
        poll_fn(|cx| stream.runtime.reactor().poll_writable(stream.key, cx)).await?;
        stream.runtime.reactor().take_error(stream.key)?;
        Ok(stream)
    }

    /// A stream of a socket that is connected, as the runtime's way of waiting needs it, or is being connected.
    pub(crate) fn registered(runtime: &Runtime, fd: OwnedFd) -> io::Result<Self> {
        let key = runtime.reactor().register(fd)?;
        let (out, inbox) = (Vec::new(), Inbox::default());
        Ok(Self { runtime: runtime.clone(), key, deadline: Nanos::MAX, out, inbox })
    }

    /// Sets the time after which a wait of this stream ends with [`io::ErrorKind::TimedOut`], to within 10 ms;
    /// `Nanos::MAX` is never. It stands until it is set anew.
    pub fn set_deadline(&mut self, deadline: Nanos) {
        self.deadline = deadline;
        self.runtime.reactor().set_deadline(self.key, deadline);
    }

    /// Whether the deadline has passed. Waits end by it; whoever never has to wait, because the peer never stops
    /// sending, is to ask now and then.
    #[must_use]
    pub fn is_late(&self) -> bool {
        clock::now() >= self.deadline
    }

    /// The runtime that the stream belongs to.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Sends `out`; complete when all of it is with the kernel.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.runtime.reactor().poll_send(self.key, cx, &mut self.out)
    }

    /// Reads once into `inbox`; completes with the number of bytes, 0 at the end of the stream.
    pub fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.runtime.reactor().poll_recv(self.key, cx, &mut self.inbox)
    }

    /// Sends `out` and then ends this direction: the peer reads the end of the stream, and may still send.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flush(cx))?;
        let mut reactor = self.runtime.reactor();
        ready!(reactor.poll_sent(self.key, cx))?;
        Poll::Ready(Ok(shutdown(reactor.descriptor(self.key), Shutdown::Write)?))
    }

    /// Closes the socket at once and for good: the peer's reads and writes end with an error (a TCP reset), and what
    /// either side had not read is lost.
    pub fn reset(self) {
        // It fails only for a wrong descriptor; the socket is closed in any case.
        let _ = sockopt::set_socket_linger(self.runtime.reactor().descriptor(self.key), Some(Duration::ZERO));
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.runtime.reactor().deregister(self.key);
    }
}
