//! Amazon S3, and what speaks its protocol, as a key-value store: objects over HTTP/1.1, every request signed
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/>).
//!
//! * [`config`] reads URLs; `service` makes requests of a workload's verbs and rows of their responses, without I/O;
//!   `object` is a row as an object's bytes.
//! * `admin` is the blocking connection for set-up and loading.
//!
//! A row is the object `PREFIX/TABLE/KEY`. An object is written whole: an update reads it, changes it, and writes it on
//! the condition that nobody else has written it meanwhile; else it is a serialization failure. A delete asks first
//! whether there is an object, for S3 does not tell. A scan reads the object of the key, lists those behind it in the
//! order of their keys, and reads each.

mod admin;
pub mod config;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod object;
mod service;

use std::sync::Arc;

use nephoscope_runtime::Runtime;

use crate::contract::bulk::Admin;
use crate::contract::capabilities::Capabilities;
use crate::contract::dialect::Dialect;
use crate::contract::driver::{Connection, Driver, LocalFuture, Settings};
use crate::contract::error::{ConfigError, Error};
use crate::contract::lexer::Lexer;
use crate::contract::probe_tables::ProbeStatements;
use crate::contract::statement::Statement;
use crate::net::entry::Entry;
use crate::net::http::session::HttpSession;
use admin::S3Admin;
use config::Config;
use service::S3Service;

/// No SQL.
pub const DIALECT: &Dialect = &Dialect {
    name: "s3",
    lexer: Lexer::POSTGRES,
    probes: ProbeStatements::STANDARD,
    capabilities: Capabilities {
        probes: false,
        sql: false,
        transactions: false,
        isolation: &[],
        ..Capabilities::SERVER
    },
};

/// What the rest of the crate knows of this driver.
pub(crate) const ENTRY: Entry = Entry {
    schemes: &["s3"],
    about: "Amazon S3, and what speaks its protocol: rows as objects by their key",
    open: |url, settings| Ok(Arc::new(S3::new(url, settings)?)),
    open_as: None,
    keys: Some(&config::KEYS),
    dialect: DIALECT,
};

/// The driver of `s3://`.
pub struct S3 {
    config: Arc<Config>,
    settings: Settings,
}

impl S3 {
    /// Reads a URL, and with it the environment.
    pub fn new(url: &str, settings: &Settings) -> Result<Self, ConfigError> {
        settings.refuse_on_connect("S3")?;
        Ok(Self { config: Arc::new(Config::parse(url)?), settings: settings.clone() })
    }
}

impl Driver for S3 {
    fn name(&self) -> &'static str {
        "s3"
    }

    fn dialect(&self) -> &'static Dialect {
        DIALECT
    }

    fn redacted_url(&self) -> String {
        self.config.redacted()
    }

    fn connect<'a>(
        &'a self,
        runtime: &'a Runtime,
        statements: &'a Arc<[Statement]>,
    ) -> LocalFuture<'a, Result<Box<dyn Connection>, Error>> {
        Box::pin(async move {
            let (config, timeout) = (&self.config, self.settings.connect_timeout);
            let service = S3Service::new(config);
            let endpoint = &config.account.endpoint;
            let session = HttpSession::connect(runtime, service, endpoint, statements, timeout).await?;
            Ok(Box::new(session) as Box<dyn Connection>)
        })
    }

    fn admin(&self) -> Result<Box<dyn Admin>, Error> {
        Ok(Box::new(S3Admin::connect(&self.config, &self.settings)?))
    }
}
