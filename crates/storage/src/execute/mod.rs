//! Executes requests on a target in an open loop: each has an intended start, and latency counts from there.
//!
//! * `layout`: which segments there are, and how large. `schedule`: when each request is to start.
//! * `target`: what a target is. A file each for those that there are (`files`, `page_store`, `s3`), which `open` finds by their URLs.
//! * `worker`: a thread's share of the requests and its sessions (`queue`); `recorder` counts.
//! * `run`: the threads together; `collector` makes records of what they tell.

mod collector;
pub mod files;
mod filling;
pub mod layout;
pub mod open;
pub mod page_store;
mod queue;
mod recorder;
pub mod run;
pub mod s3;
pub mod schedule;
#[cfg(feature = "simulated-time")]
mod simulation;
pub mod target;
mod worker;

#[cfg(test)]
mod tests;

pub use layout::{Layout, Segment};
pub use open::{AnyTarget, open};
pub use run::{Execution, Options};
pub use schedule::{Schedule, Syncs};
#[cfg(feature = "simulated-time")]
pub use simulation::simulate;
pub use target::{Failure, Session, Target};
