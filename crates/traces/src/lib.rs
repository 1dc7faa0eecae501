//! SQL traces: the statements that a server's log has, in sessions and transactions, with their fingerprints. Opens files
//! that it is told to, and no connection.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod batch;
mod credentials;
mod escapes;
mod intake;
mod lines;
pub mod logs;
mod mask;
pub mod normal;
mod reader;
mod tokens;
mod transactions;

pub use batch::{Batch, Named, Texts};
pub use lines::{End, Lines};
pub use mask::Mask;
pub use reader::{Options, Reader, guess};

#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod tests;
