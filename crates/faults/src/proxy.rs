//! The proxy as others see it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};

use nephoscope_runtime::mailbox::{Sender, mailbox};
use nephoscope_runtime::{Address, Io, Nanos, Runtime};

use crate::faults::{Direction, Faults, Planned};
use crate::port::Port;
use crate::record::{Counters, Event, Record};
use crate::server::{Action, Command, Server};
use crate::tap::Tap;

/// A running proxy. It has a thread of its own; dropping it closes all its connections, ends the thread and gives the
/// port back.
///
/// An action returns when it has taken effect, with the time on the monotonic clock at which it did. An error of kind
/// [`io::ErrorKind::InvalidInput`] is a wrong description, and then nothing has changed; any other is the system's.
pub struct Proxy {
    address: SocketAddr,
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
    record: Arc<Record>,
}

impl Proxy {
    /// Starts a proxy without faults before a target, on an address or else on any free port of 127.0.0.1.
    pub fn start(listen: Option<SocketAddr>, target: Address) -> io::Result<Self> {
        Self::start_tapped(listen, target, None)
    }

    /// Starts a proxy as [`Proxy::start`] does, with a tap that sees what passes.
    pub fn start_tapped(
        listen: Option<SocketAddr>,
        target: Address,
        tap: Option<Box<dyn Tap>>,
    ) -> io::Result<Self> {
        let port = Port::take(listen.unwrap_or((Ipv4Addr::LOCALHOST, 0).into()))?;
        let (address, record) = (port.address, Arc::new(Record::default()));
        let (commands, receiver) = mailbox();
        let (started, start) = channel();
        let shared = Arc::clone(&record);
        let thread = Builder::new().name("fault-proxy".to_owned()).spawn(move || {
            let begin = || {
                let runtime = Runtime::with_io(Io::Epoll)?;
                let server = Server::new(&runtime, port, target, receiver, shared, tap)?;
                Ok((runtime, server))
            };
            match begin() {
                Ok((runtime, server)) => {
                    // Who started it waits for this.
                    let _ = started.send(Ok(()));
                    runtime.block_on(server.run());
                    runtime.shut_down();
                }
                Err(error) => drop(started.send(Err(error))),
            }
        })?;
        start.recv().unwrap_or_else(|_| Err(ended()))?;
        Ok(Self { address, commands: Some(commands), thread: Some(thread), record })
    }

    /// Where clients connect to. It stays the same for the proxy's life.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the faults.
    pub fn set(&self, faults: Faults) -> io::Result<Nanos> {
        self.act(Action::Set(faults))
    }

    /// Changes the faults that hold.
    pub fn change(&self, change: impl FnOnce(&mut Faults) + Send + 'static) -> io::Result<Nanos> {
        self.act(Action::Change(Box::new(change)))
    }

    /// Plans the faults of the time to come, in place of what was planned before; what has taken effect stands.
    /// [`Proxy::events`] says when each did.
    pub fn schedule(&self, plan: Vec<Planned>) -> io::Result<()> {
        self.act(Action::Schedule(plan)).map(drop)
    }

    /// Sends new connections elsewhere; with `cut` those that stand are cut.
    pub fn set_target(&self, address: Address, cut: bool) -> io::Result<Nanos> {
        self.act(Action::Target { address, cut })
    }

    /// Has new connections wait, from then on or no longer. Those that wait are connected to the target of the time at
    /// which they need not wait any more; what their clients have said meanwhile is passed on. Those that stand go on.
    pub fn hold(&self, holds: bool) -> io::Result<Nanos> {
        self.act(Action::Hold(holds))
    }

    /// Ends every connection, orderly: both sides read the end of the stream. What was still on its way is lost.
    pub fn cut_all(&self) -> io::Result<Nanos> {
        self.act(Action::Cut)
    }

    /// Resets every connection, on both sides.
    pub fn reset_all(&self) -> io::Result<Nanos> {
        self.act(Action::Reset)
    }

    /// Ends one direction of every connection: its receiver reads the end of the stream, the other direction goes on.
    /// What the sender still sends is lost.
    pub fn half_close_all(&self, direction: Direction) -> io::Result<Nanos> {
        self.act(Action::HalfClose(direction))
    }

    /// Puts bytes into every connection that has a server, behind what is on its way in that direction.
    pub fn inject(&self, direction: Direction, bytes: Vec<u8>) -> io::Result<Nanos> {
        self.act(Action::Inject(direction, bytes))
    }

    /// What was done, in the order in which it took effect.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.record.events()
    }

    /// What has happened to connections so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.record.counters()
    }

    fn act(&self, action: Action) -> io::Result<Nanos> {
        let (done, outcome) = channel();
        if let Some(commands) = &self.commands {
            commands.send(Command { action, done });
        }
        outcome.recv().unwrap_or_else(|_| Err(ended()))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.commands.take());
        if let Some(thread) = self.thread.take() {
            // If it died, standard error has said why.
            let _ = thread.join();
        }
    }
}

fn ended() -> io::Error {
    io::Error::other("the proxy's thread has died; standard error says why")
}

/// Reads a target: `host:port`, or the path of a Unix socket, which begins with a slash. A name is looked up, and its
/// first address taken.
pub fn target(text: &str) -> io::Result<Address> {
    if text.starts_with('/') {
        return Ok(Address::Unix(text.into()));
    }
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let mut found = text.to_socket_addrs().map_err(|error| {
        wrong(format!("target {text:?}: {error}; allowed are host:port and the path of a Unix socket"))
    })?;
    found.next().map(Address::Tcp).ok_or_else(|| wrong(format!("target {text:?}: the name has no address")))
}
