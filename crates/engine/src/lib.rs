//! The load engine: one loop for every load model.
//!
//! A [`LoadSpec`] says who runs what, when and against what. [`Run::start`] connects and begins; [`Run::next`] gives
//! [`Record`]s (intervals, phases, errors, the end) while the load goes on; [`Run::change`] changes it.
//!
//! * `schedule`: when transactions should start, whatever the system does.
//! * `tenant`: which transactions, by which session (`turn`), where (`routes`), and its idle times (`rest`); `session`:
//!   the life of a transaction.
//! * `worker`: a thread with its sessions; `recorder`: its counts and histograms, without a lock or an allocation.
//! * `collect`: the workers' shards put together; `open`: what a run begins with; `intake`: what comes in;
//!   `run`: the coordinator; `heartbeat`: whether the tool itself ran; `watchdog`: it ends transactions that have no
//!   end.
//! * [`probes`]: light measurements beside the load, on a thread of their own.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod collect;
mod connecting;
mod error;
mod heartbeat;
pub mod histogram;
mod intake;
pub mod json;
mod load;
mod open;
pub mod probes;
mod recorder;
mod report;
mod rest;
mod routes;
mod run;
pub mod schedule;
mod session;
#[cfg(feature = "simulated-time")]
mod simulation;
pub mod spec;
mod tenant;
mod turn;
mod watchdog;
mod worker;

pub use collect::{ErrorEvent, Interval, Record, Series, SeriesName, TenantInterval};
pub use error::{EngineError, GiveUp};
pub use heartbeat::Gap;
pub use intake::{Ending, Totals};
pub use open::{read_source, settings};
pub use run::Run;
#[cfg(feature = "simulated-time")]
pub use simulation::Simulation;
pub use spec::LoadSpec;
