//! `MongoDB`, and what speaks its wire protocol: collections of documents.
//!
//! * [`config`] reads connection strings; `startup` makes a connection; `levels` are read and write concerns.
//! * `wire` is the protocol's message, `bson` and `decimal` its values, `extended` their text in JSON, `errors` what an
//!   answer says of its command.
//! * `keyed` makes commands of a workload's verbs, `machine` is what a session sends and is answered, without I/O.
//! * `admin` is the blocking connection for set-up and loading.
//!
//! A table is a collection, a row a document whose `_id` is the key. Commands of one flush go together and are answered
//! in their order, up to a scan: what follows it waits for its end. An insert of a key that is there is an error of the
//! class `constraint`, and an update of one that is not touches nothing, as in SQL. There are no transactions here.

mod admin;
mod bson;
pub mod config;
mod decimal;
mod errors;
mod extended;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod keyed;
mod levels;
mod machine;
mod startup;
mod wire;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

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
use crate::net::resolve::Resolver;
use crate::net::session::Session;
use crate::net::tls::TlsConnector;
use admin::MongoDbAdmin;
use config::Config;
use levels::{LEVELS, Levels, READS, WRITES};
use machine::Machine;
use startup::{Endpoint, Manner, NoCancel};

/// No SQL.
pub const DIALECT: &Dialect = &Dialect {
    name: "mongodb",
    lexer: Lexer::POSTGRES,
    probes: ProbeStatements::STANDARD,
    capabilities: Capabilities {
        consistency: LEVELS,
        consistency_apart: [READS, WRITES],
        ..Capabilities::KEYED
    },
};

/// What the rest of the crate knows of this driver.
pub(crate) const ENTRY: Entry = Entry {
    // The second is refused, with what to write in its place.
    schemes: &["mongodb", "mongodb+srv"],
    about: "MongoDB and what speaks its protocol, such as FerretDB",
    open: |url, settings| Ok(Arc::new(MongoDb::new(url, settings)?)),
    open_as: None,
    keys: Some(&config::KEYS),
    dialect: DIALECT,
};

/// The driver of `mongodb://`.
pub struct MongoDb {
    endpoint: Arc<Endpoint>,
    settings: Settings,
    levels: Option<Levels>,
}

impl MongoDb {
    /// Reads a URL, and with it the environment.
    pub fn new(url: &str, settings: &Settings) -> Result<Self, ConfigError> {
        settings.refuse_on_connect("MongoDB")?;
        let config = Config::parse(url)?;
        let tls = TlsConnector::new(&config.tls, &config.hosts)?;
        let levels = settings.consistency.as_deref().and_then(Levels::named);
        let (timeout, resolver, next) =
            (settings.connect_timeout, Resolver::default(), AtomicUsize::default());
        let endpoint = Arc::new(Endpoint { config, tls, timeout, resolver, next });
        Ok(Self { endpoint, settings: settings.clone(), levels })
    }
}

impl Driver for MongoDb {
    fn name(&self) -> &'static str {
        "mongodb"
    }

    fn dialect(&self) -> &'static Dialect {
        DIALECT
    }

    fn redacted_url(&self) -> String {
        self.endpoint.config.redacted()
    }

    fn connect<'a>(
        &'a self,
        runtime: &'a Runtime,
        statements: &'a Arc<[Statement]>,
    ) -> LocalFuture<'a, Result<Box<dyn Connection>, Error>> {
        Box::pin(async move {
            let link = self.endpoint.establish(runtime, self.endpoint.deadline()).await?;
            let manner = Manner::new(&self.endpoint.config, self.levels, link.hello.is_primary());
            let machine = Machine::new(statements, manner)?;
            Ok(Box::new(Session::new(link.channel, machine, NoCancel)) as Box<dyn Connection>)
        })
    }

    fn admin(&self) -> Result<Box<dyn Admin>, Error> {
        Ok(Box::new(MongoDbAdmin::connect(&self.endpoint, &self.settings, self.levels)?))
    }
}
