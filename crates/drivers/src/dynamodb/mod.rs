//! Amazon `DynamoDB`, and what speaks its protocol: JSON over HTTP/1.1, every request signed
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/>).
//!
//! * `config` reads URLs; `service` makes requests of a workload's verbs and rows of their responses, without I/O.
//! * `admin` is the blocking connection for set-up and loading.
//!
//! A row is an item, its key the table's partition key, and all attributes are strings, as YCSB's binding has them. An
//! insert is `PutItem` and an update `UpdateItem`; both make the item where there is none. Items have no order by their
//! partition key: a scan is `GetItem` of the key, then `Scan` from where its hash stands, as in YCSB's binding.

mod admin;
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

/// Reads see every write that was answered before, or may be behind; the second is the default, at half the price.
const LEVELS: &[&str] = &["strong", "eventual"];

/// No SQL.
pub const DIALECT: &Dialect = &Dialect {
    name: "dynamodb",
    lexer: Lexer::POSTGRES,
    probes: ProbeStatements::STANDARD,
    capabilities: Capabilities { consistency: LEVELS, ..Capabilities::KEYED },
};

/// What the rest of the crate knows of this driver.
pub(crate) const ENTRY: Entry = Entry {
    schemes: &["dynamodb"],
    about: "Amazon DynamoDB, and what speaks its protocol, such as DynamoDB Local",
    open: driver::open::<config::Config>,
    open_as: None,
    keys: Some(&config::KEYS),
    dialect: DIALECT,
};
