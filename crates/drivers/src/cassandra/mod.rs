//! Apache Cassandra, and what speaks its native protocol.
//!
//! * [`config`] reads URLs; `startup` makes a connection; `wire` is the protocol, `segments` what version 5 has around it, `types` its
//!   values.
//! * `prepared` makes CQL of a workload's verbs, and takes CQL of its own; `machine` is what a session sends and is
//!   answered, without I/O; `levels` are the consistency levels.
//! * `routed` is a session with a connection to each node, which knows by `ring` and `token` who has a row.
//! * `admin` is the blocking connection for set-up and loading.
//!
//! Requests of one flush go together, each on a stream of its own, where they only read or only write; what follows
//! waits, so that a read behind a write sees it. An insert, update or delete counts as one row: no server tells how many
//! rows it has changed. There are no transactions.

mod admin;
pub mod config;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod levels;
mod machine;
mod prepared;
mod ring;
mod routed;
mod segments;
mod startup;
mod tables;
mod token;
mod types;
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
use crate::net::tls::TlsConnector;
use admin::CassandraAdmin;
use config::{Config, Routing};
use levels::{LEVELS, Levels};
use machine::Clock;
use ring::Shared;
use routed::{Making, Routed};
use startup::{Endpoint, NEWEST};

/// CQL, which is no SQL: it has neither joins nor transactions.
pub const DIALECT: &Dialect = &Dialect {
    name: "cassandra",
    lexer: Lexer::CQL,
    probes: ProbeStatements::STANDARD,
    capabilities: Capabilities {
        own_statements: true,
        consistency: LEVELS,
        consistency_apart: [LEVELS, LEVELS],
        ..Capabilities::KEYED
    },
};

/// What the rest of the crate knows of this driver.
pub(crate) const ENTRY: Entry = Entry {
    schemes: &["cassandra"],
    about: "Apache Cassandra and what speaks its native protocol, such as ScyllaDB",
    open: |url, settings| Ok(Arc::new(Cassandra::new(url, settings)?)),
    open_as: None,
    keys: Some(&config::KEYS),
    dialect: DIALECT,
};

/// The driver of `cassandra://`.
pub struct Cassandra {
    endpoint: Arc<Endpoint>,
    settings: Settings,
    levels: Option<Levels>,
}

impl Cassandra {
    /// Reads a URL, and with it the environment.
    pub fn new(url: &str, settings: &Settings) -> Result<Self, ConfigError> {
        let config = Config::parse(url)?;
        let tls = TlsConnector::new(&config.tls, &config.hosts)?;
        let levels = settings.consistency.as_deref().and_then(Levels::named);
        let (timeout, resolver, asked) =
            (settings.connect_timeout, Resolver::default(), AtomicUsize::default());
        let (shared, version) = (Shared::default(), config.protocol_version.unwrap_or(NEWEST).into());
        let endpoint = Arc::new(Endpoint { config, tls, timeout, resolver, asked, version, shared });
        Ok(Self { endpoint, settings: settings.clone(), levels })
    }
}

impl Driver for Cassandra {
    fn name(&self) -> &'static str {
        "cassandra"
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
            let deadline = self.endpoint.deadline();
            let mut link = self.endpoint.establish(runtime, deadline).await?;
            link.channel.set_deadline(deadline);
            let making = Making {
                endpoint: Arc::clone(&self.endpoint),
                on_connect: self.settings.on_connect.clone(),
                statements: Arc::clone(statements),
                levels: self.levels.unwrap_or(Levels::SESSION),
                clock: Clock::default(),
            };
            match self.endpoint.config.routing {
                Routing::Fixed => Ok(Box::new(making.session(link).await?) as Box<dyn Connection>),
                Routing::TokenAware => Ok(Box::new(Routed::connect(making, runtime, link).await?) as _),
            }
        })
    }

    fn admin(&self) -> Result<Box<dyn Admin>, Error> {
        let levels = self.levels.unwrap_or(Levels::SET_UP);
        Ok(Box::new(CassandraAdmin::connect(&self.endpoint, &self.settings, levels)?))
    }
}
