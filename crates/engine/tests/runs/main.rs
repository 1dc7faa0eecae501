//! Runs of the engine on the simulated database: what a load does, and what is told of it.
//!
//! One program, so that they wait side by side; what tells times has a program of its own.
#![allow(clippy::unwrap_used)]

mod changes;
mod decisions;
mod endpoints;
mod errors;
mod idle;
mod limits;
mod pauses;
mod repeats;
mod roles;
mod streams;
#[path = "../support/mod.rs"]
mod support;
mod wrong_specs;
