//! What a workload file can say, and how a session runs it.
//!
//! A workload is a folder with `workload.lua`, `statements.sql` and `schema.sql`. [`Source`] reads it; running the
//! Lua file gives a [`Workload`] (tables, transactions, options, mixes, invariants) and its functions; a [`Vm`]
//! holds them for one thread, and a [`Script`] runs the transactions of one session step by step: each statement
//! is a [`Step::Call`], which the engine answers.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod access;
mod define;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod random;
mod statements;
mod sysbench;
mod vm;
mod workload;

pub use access::{Access, KeySpace};
pub use define::Source;
pub use error::ScriptError;
pub use random::Random;
pub use statements::parse_statements;
pub use vm::{LONGEST, Running, Script, Step, Vm, Watch};
pub use workload::{
    Invariant, Limit, Mix, OptionKind, OptionSpec, OptionValue, Pause, Rate, Schema, TableInfo, Transaction,
    When, Workload, used_keys,
};
