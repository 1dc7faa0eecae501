//! The tests of the crate, in one program but for `many`, which counts what its process has: they share what is compiled, and the slow ones do not wait for one another.
#![allow(clippy::unwrap_used)]

mod bytes;
mod connections;
mod hold;
mod order;
mod schedule;
mod support;
mod tap;
