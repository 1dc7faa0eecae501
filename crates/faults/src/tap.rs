//! What passes through a proxy, as somebody beside it sees it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use nephoscope_runtime::Nanos;

use crate::faults::Direction;

/// A copy of bytes has at most this length.
const PIECE: usize = 4096;
/// So many copies may wait to be taken: 16 MiB.
const WAITING: usize = 4096;

/// Sees every byte of a proxy's connections, on the proxy's thread: while it is called, nothing passes.
pub trait Tap: Send {
    /// Bytes of a connection were read, at this time of the monotonic clock, and before any fault. Connections have
    /// numbers from 1, in the order in which they were taken.
    fn passed(&mut self, connection: u64, direction: Direction, at: Nanos, bytes: &[u8]);

    /// A connection has ended; nothing more comes of it.
    fn ended(&mut self, connection: u64);
}

/// What a tap of [`copies`] has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The number of the connection.
    pub connection: u64,
    /// When it was seen, on the monotonic clock.
    pub at: Nanos,
    /// The bytes, and which way they went; nothing where the connection has ended.
    pub bytes: Option<(Direction, Box<[u8]>)>,
}

/// A tap that gives copies of the bytes to another thread. Up to 16 MiB wait to be taken; then the proxy waits, and with it
/// its clients. Where nobody is left to take them, they are not copied.
#[must_use]
pub fn copies() -> (Box<dyn Tap>, Receiver<Copied>) {
    let (sender, receiver) = sync_channel(WAITING);
    (Box::new(Copies(Some(sender))), receiver)
}

/// Nothing once the other side is gone.
struct Copies(Option<SyncSender<Copied>>);

impl Copies {
    fn give(&mut self, copied: Copied) {
        if self.0.as_ref().is_some_and(|sender| sender.send(copied).is_err()) {
            self.0 = None;
        }
    }
}

impl Tap for Copies {
    fn passed(&mut self, connection: u64, direction: Direction, at: Nanos, bytes: &[u8]) {
        for piece in bytes.chunks(PIECE) {
            if self.0.is_some() {
                self.give(Copied { connection, at, bytes: Some((direction, piece.into())) });
            }
        }
    }

    fn ended(&mut self, connection: u64) {
        self.give(Copied { connection, at: nephoscope_runtime::clock::now(), bytes: None });
    }
}

/// A connection's way to the tap.
pub(crate) struct Tapped {
    tap: Rc<RefCell<Box<dyn Tap>>>,
    connection: u64,
}

impl Tapped {
    pub(crate) fn new(tap: &Rc<RefCell<Box<dyn Tap>>>, connection: u64) -> Self {
        Self { tap: Rc::clone(tap), connection }
    }

    pub(crate) fn passed(&self, direction: Direction, at: Nanos, bytes: &[u8]) {
        self.tap.borrow_mut().passed(self.connection, direction, at, bytes);
    }
}

impl Drop for Tapped {
    fn drop(&mut self) {
        self.tap.borrow_mut().ended(self.connection);
    }
}
