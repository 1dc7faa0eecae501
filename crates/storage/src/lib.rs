//! The storage tier under a database: I/O requests as they were captured or imported, as a model generates them, and
//! as they are executed on a target.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod capture;
pub mod execute;
pub mod generate;
pub mod page_store;
pub mod patterns;
mod requests;
mod reuse;
mod segments;
pub mod trace;
pub mod wal;

pub use requests::{Columns, Operation, Process, Request};
pub use reuse::{MissRatio, MissRatioCurve, ReuseDistances};
pub use segments::{LEAST_SEGMENT_BYTES, MOST_SEGMENTS, Segments};
