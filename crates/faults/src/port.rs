//! A port that stays one's own while nobody listens on it.

use std::io;
use std::net::SocketAddr;

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, ipproto, socket_with, sockopt};

/// Holds a TCP port: those who connect are refused unless somebody listens on it beside (with `SO_REUSEADDR`), and
/// the kernel gives it to nobody who asks for any port, so that a listener which was closed can come back.
pub(crate) struct Port {
    _socket: OwnedFd,
    pub(crate) address: SocketAddr,
}

impl Port {
    /// Takes a port; 0 is any that is free.
    pub(crate) fn take(address: SocketAddr) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::TCP))?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &address)?;
        let address = SocketAddr::try_from(getsockname(&socket)?)?;
        Ok(Self { _socket: socket, address })
    }
}
