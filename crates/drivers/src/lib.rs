//! Drivers: how the engine speaks to a database.
//!
//! * [`Driver`] and [`Connection`] are the contract; [`open`] chooses a driver by a URL's scheme.
//! * [`postgres`] speaks PostgreSQL's wire protocol, [`mysql`] that of MySQL and MariaDB.
//! * [`redis`] speaks Redis's protocol, and has no SQL; nor have [`dynamodb`], [`s3`] and [`simpledb`], which speak AWS's
//!   over HTTP, and [`hbase`], which speaks that of `HBase`'s REST gateway.
//! * [`cassandra`] speaks Cassandra's protocol: key-value verbs, and CQL; [`mongodb`] that of `MongoDB`: verbs alone.
//! * [`sqlite`] runs SQLite on the worker's own thread.
//! * [`noop`] costs nothing and measures the engine; [`sim`] has a planted answer.
//! * [`ErrorClass`] is the one set of error classes.
//! * [`Admin`] is for set-up, loading and checks; [`probe_tables`] are those that probes speak of.
//!
//! A new driver is one file or folder here with an `ENTRY`, which is a line in the table of `open`; the conformance
//! suite in `tests/conformance` runs over all of them.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod cassandra;
mod contract;
pub mod dynamodb;
mod echo;
pub mod hbase;
pub mod mongodb;
pub mod mysql;
pub mod net;
pub mod noop;
mod open;
pub mod postgres;
pub mod redis;
pub mod s3;
pub mod sim;
pub mod simpledb;
pub mod sqlite;

pub use contract::added::Added;
pub use contract::bulk::{Admin, RowEncoder, RowSource, Table};
pub use contract::capabilities::Capabilities;
pub use contract::dialect::Dialect;
pub use contract::driver::{
    Command, Connection, ConnectionState, Driver, LocalFuture, Reply, Settings, StatementMode, Want,
};
pub use contract::error::{ConfigError, Error, ErrorClass, ErrorClasses};
pub use contract::fnv::fnv1a;
pub use contract::interrupt::Interrupt;
pub use contract::isolation::Isolation;
pub use contract::lexer::{Lexer, Piece};
pub use contract::rows::{Column, Columns, Decode, MOST_BYTES, MOST_ROWS, ResultIndex, Rows};
pub use contract::statement::{ListShape, Statement};
pub use contract::value::{Params, Value};
pub use contract::verb::{Action, Verb};
pub use contract::{calendar, probe_tables};
pub use open::{open, redact, schemes};
