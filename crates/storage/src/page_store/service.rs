//! The replicas' threads, as others see them.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::Poll;
use std::thread::{Builder, JoinHandle};

use nephoscope_runtime::mailbox::{Receiver, Sender, mailbox};
use nephoscope_runtime::{Listener, Runtime};

use crate::page_store::replica::Replica;
use crate::page_store::server::{consolidate, listen};
use crate::page_store::settings::{ReplicaSettings, Settings};
use crate::page_store::statistics::{Counters, Statistics};

/// A running replica. Nothing is ever sent to it; it ends when the sender is dropped.
struct Running {
    address: SocketAddr,
    counters: Arc<Counters>,
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A running page store: a thread a replica. Dropping it ends them.
pub struct PageStore {
    replicas: Vec<Running>,
}

impl PageStore {
    /// Starts all replicas. The error is a setting that cannot be (of kind [`io::ErrorKind::InvalidInput`]), a port
    /// that is taken, or a file that cannot be read.
    pub fn start(settings: &Settings) -> io::Result<Self> {
        settings.check().map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what))?;
        let start = |own: &ReplicaSettings| Running::start(settings.clone(), own.clone());
        Ok(Self { replicas: settings.replicas.iter().map(start).collect::<io::Result<_>>()? })
    }

    /// Where the replicas listen.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.replicas.iter().map(|replica| replica.address).collect()
    }

    /// The target's URL, with a quorum of more than half of the replicas.
    #[must_use]
    pub fn url(&self) -> String {
        let addresses: Vec<String> =
            self.replicas.iter().map(|replica| replica.address.to_string()).collect();
        format!("page-store://{}?quorum={}", addresses.join(","), self.replicas.len() / 2 + 1)
    }

    /// What each replica has counted.
    #[must_use]
    pub fn statistics(&self) -> Vec<Statistics> {
        self.replicas.iter().map(|replica| replica.counters.read()).collect()
    }
}

impl Running {
    fn start(settings: Settings, own: ReplicaSettings) -> io::Result<Self> {
        let (alive, receiver) = mailbox();
        let (started, start) = channel();
        let counters = Arc::new(Counters::default());
        let shared = Arc::clone(&counters);
        let thread = Builder::new().name("page-store".to_owned()).spawn(move || {
            match open(&settings, &own, shared) {
                Ok((runtime, listener, replica)) => {
                    // Who started it waits for this.
                    let _ = started.send(Ok(listener.address()));
                    serve(&runtime, listener, replica, receiver);
                }
                Err(error) => drop(started.send(Err(error))),
            }
        })?;
        let address =
            start.recv().unwrap_or_else(|_| Err(io::Error::other("the replica's thread has ended")))?;
        Ok(Self { address, counters, alive: Some(alive), thread: Some(thread) })
    }
}

fn open(
    settings: &Settings,
    own: &ReplicaSettings,
    counters: Arc<Counters>,
) -> io::Result<(Runtime, Listener, Replica)> {
    let runtime = Runtime::new()?;
    let replica = Replica::open(settings, own, counters).map_err(|error| {
        let file = own.file.as_deref().map_or_else(String::new, |file| file.display().to_string());
        io::Error::new(error.kind(), format!("{file}: {error}"))
    })?;
    let listener = Listener::bind(&runtime, own.address)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", own.address)))?;
    Ok((runtime, listener, replica))
}

/// Serves until nobody holds the service any more.
fn serve(runtime: &Runtime, listener: Listener, replica: Replica, mut alive: Receiver<()>) {
    let replica = Rc::new(RefCell::new(replica));
    runtime.spawn(listen(runtime.clone(), listener, Rc::clone(&replica)));
    runtime.spawn(consolidate(runtime.clone(), Rc::clone(&replica)));
    runtime.block_on(poll_fn(|cx| match alive.poll_receive(cx) {
        Poll::Ready(None) => Poll::Ready(()),
        Poll::Ready(Some(())) | Poll::Pending => Poll::Pending,
    }));
    runtime.shut_down();
}

impl Drop for Running {
    fn drop(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // It has nothing to say any more.
            let _ = thread.join();
        }
    }
}
