//! SQL traces: the statements that a server's log has, in sessions and transactions, with their fingerprints. Opens files
//! that it is told to, and no connection: `wire` is given what passes on one. For a replay, `keys` and `order` tell which
//! commits a statement came after.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod batch;
mod credentials;
mod escapes;
mod intake;
pub mod keys;
mod lines;
pub mod logs;
mod mask;
pub mod normal;
pub mod order;
mod reader;
mod tokens;
pub mod transactions;
pub mod wire;

pub use batch::{Batch, Named, Texts};
pub use lines::{End, Lines};
pub use mask::Mask;
pub use reader::{Options, Reader, guess};

#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod tests;
