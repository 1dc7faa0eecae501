//! Apache `HBase`, by its REST gateway: JSON over HTTP/1.1, keys and values in base64
//! (<https://hbase.apache.org/book.html#_rest>).
//!
//! * `config` reads URLs; `service` makes requests of a workload's verbs and rows of their responses, without I/O;
//!   `cells` is the gateway's JSON.
//! * `admin` is the blocking connection for set-up and loading.
//!
//! A table is a table of one column family, a row a row, and a field a column of the family. A write stores the cells
//! that it names, and makes the row where there is none; so an insert and an update are the same request. A scan opens
//! a scanner at the gateway, reads from it and closes it.

mod admin;
mod cells;
mod config;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod service;

use crate::contract::capabilities::Capabilities;
use crate::contract::dialect::Dialect;
use crate::contract::lexer::Lexer;
use crate::contract::probe_tables::ProbeStatements;
use crate::net::entry::Entry;
use crate::net::http::driver;

/// No SQL.
pub const DIALECT: &Dialect = &Dialect {
    name: "hbase",
    lexer: Lexer::POSTGRES,
    probes: ProbeStatements::STANDARD,
    capabilities: Capabilities::KEYED,
};

/// What the rest of the crate knows of this driver.
pub(crate) const ENTRY: Entry = Entry {
    schemes: &["hbase"],
    about: "Apache HBase, by its REST gateway",
    open: driver::open::<config::Config>,
    open_as: None,
    keys: Some(&config::KEYS),
    dialect: DIALECT,
};
