//! Redis, and what speaks its protocol: a key-value store without SQL.
//!
//! * [`config`] reads URLs; `startup` makes a connection; `wire` is the protocol, RESP 2 and 3.
//! * `keyed` makes commands of a workload's verbs, `machine` is what a session sends and is answered, without I/O.
//! * `admin` is the blocking connection for set-up and loading.
//!
//! An insert or update overwrites what is there, and counts as one row: Redis has no constraint that would tell. A row
//! of which no field is there is none. There are no transactions: of an insert's two commands, the row and its place in
//! the order of keys, another session may see the first alone.

mod admin;
pub mod config;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod keyed;
mod machine;
mod startup;
mod wire;

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
use crate::net::reach::not_in_time;
use crate::net::resolve::Resolver;
use crate::net::session::Session;
use crate::net::tls::TlsConnector;
use admin::{RedisAdmin, set_up};
use config::Config;
use machine::Machine;
use startup::{Endpoint, NoCancel};

/// The levels at which a write waits for replicas (<https://redis.io/docs/latest/commands/wait/>): one, two …
const LEVELS: &[&str] = &["wait 1", "wait 2", "wait 3", "wait 4", "wait 5"];

/// No SQL.
pub const DIALECT: &Dialect = &Dialect {
    name: "redis",
    lexer: Lexer::POSTGRES,
    probes: ProbeStatements::STANDARD,
    capabilities: Capabilities { consistency: LEVELS, ..Capabilities::KEYED },
};

/// What the rest of the crate knows of this driver.
pub(crate) const ENTRY: Entry = Entry {
    schemes: &["redis", "rediss"],
    about: "Redis and what speaks its protocol, such as Valkey; rediss:// with TLS",
    open: |url, settings| Ok(Arc::new(Redis::new(url, settings)?)),
    open_as: None,
    keys: Some(&config::KEYS),
    dialect: DIALECT,
};

/// The driver of `redis://` and `rediss://`.
pub struct Redis {
    endpoint: Arc<Endpoint>,
    settings: Settings,
    replicas: u8,
}

impl Redis {
    /// Reads a URL, and with it the environment.
    pub fn new(url: &str, settings: &Settings) -> Result<Self, ConfigError> {
        let config = Config::parse(url)?;
        let tls = TlsConnector::new(&config.tls, &config.hosts)?;
        let level = settings.consistency.as_deref();
        let replicas =
            LEVELS.iter().position(|known| level == Some(known)).map_or(0, |place| place as u8 + 1);
        let endpoint =
            Endpoint { config, tls, timeout: settings.connect_timeout, resolver: Resolver::default() };
        Ok(Self { endpoint: Arc::new(endpoint), settings: settings.clone(), replicas })
    }
}

impl Driver for Redis {
    fn name(&self) -> &'static str {
        "redis"
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
            let machine = Machine::new(statements, self.replicas)?;
            let deadline = self.endpoint.deadline();
            let mut link = self.endpoint.establish(runtime, deadline).await?;
            link.channel.set_deadline(deadline);
            set_up(&mut link, &self.settings.on_connect).await.map_err(not_in_time)?;
            Ok(Box::new(Session::new(link.channel, machine, NoCancel)) as Box<dyn Connection>)
        })
    }

    fn admin(&self) -> Result<Box<dyn Admin>, Error> {
        Ok(Box::new(RedisAdmin::connect(&self.endpoint, &self.settings)?))
    }
}
