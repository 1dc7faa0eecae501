//! Histories of transactions, and the anomalies of isolation in them, found while the history is made.
//!
//! A [`Transaction`] says what one session did and saw between two times: appends to lists and reads of whole lists, writes
//! and reads of registers, additions to counters, transfers between accounts and reads of all balances. A [`Checker`] takes
//! them as they end, and tells which [`Anomaly`] there is, each with a witness: transactions, and why each comes before the
//! next. [`forms`] reads and writes histories as text, [`json`] what was found. Nothing here opens a file.
//!
//! ```
//! use nephoscope_histories::{Anomaly, Checker, Operation, Options, Transaction};
//!
//! let mut checker = Checker::new(Options::default());
//! // Write skew: each reads the list that the other appends to.
//! for (session, read, append) in [(0, 1, 2), (1, 2, 1)] {
//!     let mut transaction = Transaction { number: session.into(), session, end: 9, ..Transaction::default() };
//!     transaction.list(read, &[]);
//!     transaction.operations.push(Operation::Append { key: append, value: 7 });
//!     checker.push(&transaction)?;
//! }
//! let summary = checker.finish()?;
//! assert_eq!(summary.counts[0].anomaly, Anomaly::G2Item);
//! assert!(summary.is_exact());
//! # Ok::<(), String>(())
//! ```
//!
//! # What is decided
//!
//! - **Lists**: the longest read gives the order of the versions, and what was never read comes after it. Reads that
//!   contradict it are named, and lead to no dependency.
//! - **Registers**: values are unique, so a read tells its writer. Which version came before which is known of the initial
//!   state alone, and of a read and a write in one transaction where [`Options::reads_before_writes`] says so. A dependency
//!   through a value that was aborted is not followed further.
//! - **Counters**: only with [`Order::RealTime`]: a read lies between what had been added when it began and what could have
//!   been added when it ended. That a counter's reads contradict each other within these bounds is not found.
//! - **Accounts**: every read of all balances has the same number of accounts and the same sum.
//!
//! A transaction whose outcome is unknown counts as far as its writes were read. Cycles are counted as a lower bound, see
//! [`Count::times`]: an anomaly that is a consequence of another, or shares a step with it, is not told again.
//!
//! # Memory and time
//!
//! What is held grows with the window ([`Options::window`]) and the keys in use, not with the history. A list is forgotten
//! once it has been left alone for the window; registers and counters are held to the end, each with its newest version.
//! Each transaction is looked at by a few passes, each linear in what is held; the search for the names of cycles has a
//! limit, beyond which each group of transactions on common cycles gives one. The example `check` measures both. Where the assumptions did not hold (a list was used after it had
//! been left alone for the window, a transaction came later), [`Summary::late`] says so; [`Summary::is_exact`] tells that
//! they did.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod check;
mod few;
mod finding;
pub mod forms;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod history;
pub mod json;
mod levels;

pub use check::{Checker, Count, Options, Summary};
pub use finding::{ANOMALIES, Anomaly, Finding, Order, Party, Why};
pub use history::{Operation, Outcome, Transaction};
pub use levels::{LEVELS, Level};
