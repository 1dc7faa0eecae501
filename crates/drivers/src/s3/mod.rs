//! Amazon S3, and what speaks its protocol, as a key-value store: objects over HTTP/1.1, every request signed
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/>).
//!
//! * `config` reads URLs; `service` makes requests of a workload's verbs and rows of their responses, without I/O;
//!   `object` is a row as an object's bytes.
//! * `admin` is the blocking connection for set-up and loading.
//!
//! A row is the object `PREFIX/TABLE/KEY`. An object is written whole: an update reads it, changes it, and writes it on
//! the condition that nobody else has written it meanwhile; else it is a serialization failure. A delete asks first
//! whether there is an object, for S3 does not tell. A scan reads the object of the key, lists those behind it in the
//! order of their keys, and reads each.

mod admin;
mod config;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod object;
mod service;

use crate::contract::capabilities::Capabilities;
use crate::contract::dialect::Dialect;
use crate::contract::lexer::Lexer;
use crate::contract::probe_tables::ProbeStatements;
use crate::net::entry::Entry;
use crate::net::http::driver;

/// No SQL.
pub const DIALECT: &Dialect = &Dialect {
    name: "s3",
    lexer: Lexer::POSTGRES,
    probes: ProbeStatements::STANDARD,
    capabilities: Capabilities::KEYED,
};

/// What the rest of the crate knows of this driver.
pub(crate) const ENTRY: Entry = Entry {
    schemes: &["s3"],
    about: "Amazon S3, and what speaks its protocol: rows as objects by their key",
    open: driver::open::<config::Config>,
    open_as: None,
    keys: Some(&config::KEYS),
    dialect: DIALECT,
};
