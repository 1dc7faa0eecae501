//! The load engine: one loop for every load model.
//!
//! A [`LoadSpec`] says who runs what, when and against what. [`Run::start`] connects and begins; [`Run::next`] gives
//! [`Record`]s (intervals, phases, errors, the end) while the load goes on; [`Run::change`] changes it.
//!
//! Its rooms, each of which knows those before it:
//!
//! * `spec`: what is to be done. The words of a load, its resolved changes (`load`), when transactions should start
//!   (`schedule`) and where they run (`routes`).
//! * `worker`: a thread with its sessions. `tenant`: which transactions, by which session (`turn`), its connections'
//!   order (`connecting`) and idle times (`rest`); `session`: the life of a transaction; `recorder`: counts and
//!   histograms, without a lock or an allocation; `watchdog`: it ends transactions that have no end; `report`: what
//!   workers and coordinator tell each other.
//!   `history`: what transactions have observed, in boxes.
//! * `run`: the coordinator. `open`: what a run begins with; `intake`: what comes in; `collect`: the workers' shards
//!   put together; `history`: the thread that checks histories; `json`: records as text.
//! * [`loading`]: the part of a workload's data that its `w:load` makes; of the others it knows the watchdog alone.
//! * [`probes`]: light measurements beside the load, on a thread of their own; of the others it knows `spec` alone.
//! * [`replay`]: statements that were recorded, sent again; it knows none of the others.
//!
//! Beside the rooms, for all: `heartbeat` (whether the tool itself ran), `waits` (waits for a server, and waits that end).
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod error;
mod heartbeat;
pub mod histogram;
pub mod loading;
mod lock;
pub mod probes;
pub mod replay;
mod run;
pub mod spec;
mod waits;
mod worker;

pub use error::{EngineError, GiveUp};
pub use heartbeat::Gap;
#[cfg(feature = "simulated-time")]
pub use run::Simulation;
pub use run::{
    Ending, ErrorEvent, History, Interval, Record, Run, Series, SeriesName, TenantInterval, Totals, json,
    read_source, settings,
};
pub use spec::{LoadSpec, schedule};
