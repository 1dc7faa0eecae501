//! A load on a real PostgreSQL survives what networks and servers do to its connections: it goes on afterwards with
//! all its sessions, says what happened in the right classes, and knows what it has committed.
//!
//! Each test plants a fault, and what it has proved is put on record: the table in `docs/reliability.md` is made of
//! these records. Where PostgreSQL is not installed the tests say so and pass.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod network;
mod scene;
mod server;
#[path = "../../../drivers/tests/support/mod.rs"]
mod servers;
#[path = "../support/mod.rs"]
mod support;
