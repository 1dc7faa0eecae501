//! One thread's runtime: straight-line async tasks, timers that are precise to tens of microseconds, and
//! sockets without a system call that a round trip does not need.
//!
//! A load engine turns the same small circle hundreds of thousands of times a second: a reply arrives, a
//! session goes on, a statement leaves. A general-purpose runtime pays there for what this circle never uses
//! (tasks that move between threads, timers of 1 ms, fairness budgets), so this crate holds the few parts that
//! it does use. Everything lives on one thread; only a [`std::task::Waker`] may be used from elsewhere.
//!
//! * [`Runtime`] runs tasks until none is left.
//! * [`Runtime::sleep_until`] wakes at the microsecond asked for and not at the next millisecond.
//! * [`Stream`] is a TCP or Unix socket with its two buffers and a deadline.
//! * [`Listener`] takes TCP connections.
//! * [`File`] is a file or a block device.
//! * [`mailbox`] carries messages in from other threads.
//! * [`ThreadMeter`] tells what the thread has had of the processors.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod buffer;
pub mod clock;
mod epoll;
mod executor;
mod file;
mod listener;
pub mod mailbox;
mod meter;
mod punctual;
mod reactor;
#[cfg(feature = "simulated-time")]
mod simulation;
mod stream;
mod timer;
mod uring;

pub use buffer::Inbox;
pub use clock::Nanos;
pub use executor::{Runtime, Turns, Yield};
pub use file::{ALIGNMENT, Aligned, File, FileOperation, Transfer};
pub use listener::Listener;
pub use meter::{ThreadMeter, ThreadUse};
pub use reactor::Io;
#[cfg(feature = "simulated-time")]
pub use simulation::Simulation;
pub use stream::{Address, Stream};
pub use timer::Sleep;
