//! A socket that takes TCP connections.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getsockname, ipproto, listen, socket_with, sockopt,
};

use crate::executor::Runtime;
use crate::reactor::Key;
use crate::stream::Stream;

/// How many connections may wait to be taken; the kernel's own limit (`net.core.somaxconn`) may be lower.
const BACKLOG: i32 = 4096;

/// A listening TCP socket. Dropping it closes it: callers are refused from then on, and those that wait to be taken
/// are reset.
pub struct Listener {
    runtime: Runtime,
    key: Key,
    address: SocketAddr,
}

impl Listener {
    /// Listens on an address; port 0 is any that is free. A port whose former connections have not quite ended can be
    /// had (`SO_REUSEADDR`).
    pub fn bind(runtime: &Runtime, address: SocketAddr) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        sockopt::set_socket_reuseaddr(&fd, true)?;
        bind(&fd, &address)?;
        listen(&fd, BACKLOG)?;
        let address = SocketAddr::try_from(getsockname(&fd)?)?;
        let key = runtime.reactor().register(fd)?;
        Ok(Self { runtime: runtime.clone(), key, address })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes the next connection. As on a [`Stream`] that connects, Nagle's algorithm is off. An error is one of the
    /// moment (no descriptor left); the listener stands.
    pub fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Stream>> {
        let fd = ready!(self.runtime.reactor().poll_accept(self.key, cx))?;
        sockopt::set_tcp_nodelay(&fd, true)?;
        sockopt::set_socket_keepalive(&fd, true)?;
        Poll::Ready(Stream::registered(&self.runtime, fd))
    }

    /// Waits for the next connection; see [`Listener::poll_accept`].
    pub async fn accept(&mut self) -> io::Result<Stream> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.runtime.reactor().deregister(self.key);
    }
}
