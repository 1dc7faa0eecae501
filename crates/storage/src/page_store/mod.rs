//! A page store: the storage tier of a database whose log is the database, small enough to be known. Segments take
//! records of a log (redo) and give pages as of an LSN; a replica is a server on a port of its own, and whoever writes
//! sends each record to all of them and waits for a quorum.
//!
//! Its costs are planted, so it stands in for a cloud's storage where the answer has to be known:
//! * `protocol`: the messages, without I/O.
//! * `segment`: log and pages. `costs`: service times, queue and stalls. `log`: a replica's file.
//! * `replica`: what a request does; `server`: connections and their replies; `service`: the replicas' threads.

mod costs;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod log;
mod outgoing;
pub mod protocol;
mod replica;
mod segment;
mod server;
mod service;
mod settings;
mod statistics;

pub use costs::{Costs, Stall};
pub use service::PageStore;
pub use settings::{ReplicaSettings, Settings};
pub use statistics::Statistics;

#[cfg(test)]
mod tests;
