//! The tests of the crate, in one program: they share what is compiled, and the slow ones do not wait for one another.
#![allow(clippy::unwrap_used)]

mod common;
mod functions;
mod generators;
mod golden;
mod loading;
mod properties;
