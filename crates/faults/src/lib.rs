//! A TCP proxy that stands between nephoscope and a database server and does to their connections what networks,
//! load balancers and dying servers do: planned, changed while it runs, and written down with the times at which
//! each change took effect. So an outage can be planted whose length is known, and read back.
//!
//! * [`Proxy`] is the proxy: a thread of its own, with an address that stays.
//! * [`Faults`] says what it does; [`Faults::default`] is nothing.
//! * [`Event`] and [`Counters`] say what it did.
//! * A [`Tap`] sees what passes.
//!
//! Bytes that arrive are queued with the time at which they are due, and leave when it has come; a queue is bounded
//! ([`BUFFER`]), and a sender that fills it has to wait, as on a real way.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod faults;
mod law;
mod link;
mod port;
mod proxy;
mod pump;
mod record;
mod server;
mod tap;

pub use faults::{Accept, Channel, Direction, Faults, Garbage, Planned, parse_schedule};
pub use law::Law;
pub use proxy::{Proxy, target};
pub use pump::BUFFER;
pub use record::{Counters, Event, Flow, What};
pub use tap::{Copied, Tap, copies};
