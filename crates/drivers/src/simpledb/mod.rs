//! Amazon `SimpleDB`, and what speaks its protocol: forms over HTTP/1.1, every one signed, and answers in XML
//! (<https://docs.aws.amazon.com/AmazonSimpleDB/latest/DeveloperGuide/>).
//!
//! * `config` reads URLs; `service` makes requests of a workload's verbs and rows of their responses, without I/O;
//!   `answer` reads what the service says.
//! * `admin` is the blocking connection for set-up and loading.
//!
//! A table is a domain, a row an item, its key the item's name, and a field an attribute of one value. A write replaces
//! the attributes that it names, and makes the item where there is none; so an insert and an update are the same
//! request. A read is `GetAttributes`, a scan `Select` in the order of the items' names.

mod admin;
mod answer;
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

/// Reads see every write that was answered before, or may be behind; the second is the default.
const LEVELS: &[&str] = &["strong", "eventual"];

/// No SQL.
pub const DIALECT: &Dialect = &Dialect {
    name: "simpledb",
    lexer: Lexer::POSTGRES,
    probes: ProbeStatements::STANDARD,
    capabilities: Capabilities { consistency: LEVELS, ..Capabilities::KEYED },
};

/// What the rest of the crate knows of this driver.
pub(crate) const ENTRY: Entry = Entry {
    schemes: &["simpledb"],
    about: "Amazon SimpleDB, and what speaks its protocol",
    open: driver::open::<config::Config>,
    open_as: None,
    keys: Some(&config::KEYS),
    dialect: DIALECT,
};
