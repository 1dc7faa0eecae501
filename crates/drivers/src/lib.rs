//! Drivers: how the engine speaks to a database.
//!
//! * [`Driver`] and [`Connection`] are the contract; [`open`] chooses a driver by a URL's scheme.
//! * [`postgres`] speaks PostgreSQL's wire protocol.
//! * [`noop`] costs nothing and measures the engine; [`sim`] has a planted answer.
//! * [`ErrorClass`] is the one set of error classes.
//! * [`Admin`] is for set-up, loading and checks; [`probe_tables`] is what probes say to a database.
//!
//! A new driver is one file or folder here, an arm in [`open`] and a line in [`SCHEMES`]; the conformance
//! suite in `tests/conformance` runs over all of them.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bulk;
pub mod calendar;
mod channel;
mod driver;
mod echo;
mod error;
mod interrupt;
pub mod noop;
pub mod postgres;
pub mod probe_tables;
mod rows;
pub mod sim;
mod statement;
mod value;

pub use bulk::{Admin, RowEncoder, RowSource, Table};
pub use driver::{
    Command, Connection, ConnectionState, Dialect, Driver, LocalFuture, Reply, SCHEMES, Settings,
    StatementMode, Want, open,
};
pub use error::{ConfigError, Error, ErrorClass};
pub use interrupt::Interrupt;
pub use rows::{Column, Columns, Decode, MOST_BYTES, MOST_ROWS, ResultIndex, Rows};
pub use statement::Statement;
pub use value::{Params, Value};
