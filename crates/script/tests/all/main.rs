//! The tests of the crate, in one program: they share what is compiled, and the slow ones do not wait for one another.
#![allow(clippy::unwrap_used)]

mod declaring;
mod integers;
mod interruption;
mod lists;
mod messages;
mod picking;
mod properties;
mod queries;
mod reading;
mod reuse;
mod sandbox;
mod sending;
mod sessions;
mod sql;
mod support;
mod sysbench;
mod transactions;
mod verbs;
