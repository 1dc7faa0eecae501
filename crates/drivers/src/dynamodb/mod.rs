//! Amazon `DynamoDB`, and what speaks its protocol: JSON over HTTP/1.1, every request signed
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/>).
//!
//! * [`config`] reads URLs; `service` makes requests of a workload's verbs and rows of their responses, without I/O.
//! * `admin` is the blocking connection for set-up and loading.
//!
//! A row is an item, its key the table's partition key, and all attributes are strings, as YCSB's binding has them. An
//! insert is `PutItem` and an update `UpdateItem`; both make the item where there is none. Items have no order by their
//! partition key: a scan is `GetItem` of the key, then `Scan` from where its hash stands, as in YCSB's binding.

mod admin;
pub mod config;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
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
use admin::DynamoDbAdmin;
use config::Config;
use service::DynamoDbService;

/// Reads see every write that was answered before, or may be behind; the second is the default, at half the price.
const LEVELS: &[&str] = &["strong", "eventual"];

/// No SQL.
pub const DIALECT: &Dialect = &Dialect {
    name: "dynamodb",
    lexer: Lexer::POSTGRES,
    probes: ProbeStatements::STANDARD,
    capabilities: Capabilities {
        probes: false,
        sql: false,
        transactions: false,
        isolation: &[],
        consistency: LEVELS,
        ..Capabilities::SERVER
    },
};

/// What the rest of the crate knows of this driver.
pub(crate) const ENTRY: Entry = Entry {
    schemes: &["dynamodb"],
    about: "Amazon DynamoDB, and what speaks its protocol, such as DynamoDB Local",
    open: |url, settings| Ok(Arc::new(DynamoDb::new(url, settings)?)),
    open_as: None,
    keys: Some(&config::KEYS),
    dialect: DIALECT,
};

/// The driver of `dynamodb://`.
pub struct DynamoDb {
    config: Config,
    settings: Settings,
}

impl DynamoDb {
    /// Reads a URL, and with it the environment.
    pub fn new(url: &str, settings: &Settings) -> Result<Self, ConfigError> {
        settings.refuse_on_connect("DynamoDB")?;
        Ok(Self { config: Config::parse(url)?, settings: settings.clone() })
    }
}

impl Driver for DynamoDb {
    fn name(&self) -> &'static str {
        "dynamodb"
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
            let (account, timeout) = (&self.config.account, self.settings.connect_timeout);
            let strong = self.settings.consistency.as_deref() == Some("strong");
            let service = DynamoDbService::new(account, strong);
            let session = HttpSession::connect(runtime, service, &account.endpoint, statements, timeout);
            Ok(Box::new(session.await?) as Box<dyn Connection>)
        })
    }

    fn admin(&self) -> Result<Box<dyn Admin>, Error> {
        Ok(Box::new(DynamoDbAdmin::connect(&self.config.account, &self.settings)?))
    }
}
