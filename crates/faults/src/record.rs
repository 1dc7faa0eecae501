//! What a proxy has done.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use nephoscope_runtime::Nanos;
use serde::Serialize;

use crate::faults::{Direction, Faults};

/// Something that was done to a proxy, or that its schedule did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// When it took effect, on the monotonic clock.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// When the schedule had it take effect; nothing for what was asked for at once.
    #[serde(rename = "planned_ns", skip_serializing_if = "Option::is_none")]
    pub planned: Option<Nanos>,
    /// What it was.
    #[serde(flatten)]
    pub what: What,
    /// Why it could not be done as it should.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What an [`Event`] was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// These faults hold from then on.
    Faults {
        /// All of them.
        faults: Faults,
    },
    /// Every connection was ended, orderly.
    Cut,
    /// Every connection was reset.
    Reset,
    /// One direction of every connection was ended.
    HalfClose {
        /// Which.
        direction: Direction,
    },
    /// Bytes were put into every connection.
    Inject {
        /// In which direction.
        direction: Direction,
        /// How many.
        bytes: usize,
    },
    /// New connections go elsewhere.
    Target {
        /// Where to.
        address: String,
    },
    /// From then on new connections have to wait, or need not.
    Hold {
        /// Whether they have to.
        holds: bool,
    },
}

/// What has happened to a proxy's connections so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Connections that were taken.
    pub accepted: u64,
    /// Of these, how many stand.
    pub open: u64,
    /// Of these, how many wait until connections are no longer held.
    pub waiting: u64,
    /// Of those that were taken, how many were reset at once: because they were to be, or because the target did not take them.
    /// Those who found nobody listening are the kernel's and not counted.
    pub refused: u64,
    /// From clients to the server.
    pub to_server: Flow,
    /// From the server to clients.
    pub to_client: Flow,
}

/// Bytes of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// How many were received.
    pub received: u64,
    /// How many were passed on, with what was put between them.
    pub delivered: u64,
}

/// The counters and events, as the proxy's thread writes and others read them.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) accepted: AtomicU64,
    pub(crate) open: AtomicU64,
    pub(crate) waiting: AtomicU64,
    pub(crate) refused: AtomicU64,
    received: [AtomicU64; 2],
    delivered: [AtomicU64; 2],
    events: Mutex<Vec<Event>>,
}

impl Record {
    pub(crate) fn add_received(&self, direction: Direction, count: usize) {
        self.received[direction as usize].fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn add_delivered(&self, direction: Direction, count: usize) {
        self.delivered[direction as usize].fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn counters(&self) -> Counters {
        let flow = |direction: Direction| Flow {
            received: self.received[direction as usize].load(Ordering::Relaxed),
            delivered: self.delivered[direction as usize].load(Ordering::Relaxed),
        };
        Counters {
            accepted: self.accepted.load(Ordering::Relaxed),
            open: self.open.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            to_server: flow(Direction::ToServer),
            to_client: flow(Direction::ToClient),
        }
    }

    pub(crate) fn note(&self, event: Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
