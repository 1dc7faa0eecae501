//! PostgreSQL, and what speaks its protocol.
//!
//! * [`config`] reads URLs, the environment and the password file; [`auth`] is what they say, without I/O.
//! * `startup` makes a connection; `machine` is the query phase without I/O.
//! * [`Fields`], [`error`], [`affected`] and [`shown`] read messages and values that others send.
//! * `admin` is the blocking connection for set-up and checks; `copy` is its bulk loading.

mod admin;
pub mod auth;
pub mod config;
mod copy;
mod descriptions;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod machine;
mod sqlstate;
mod startup;
mod types;
mod wire;

use std::sync::Arc;

use nephoscope_runtime::Runtime;

use crate::contract::bulk::Admin;
use crate::contract::capabilities::Capabilities;
use crate::contract::dialect::Dialect;
use crate::contract::driver::{Connection, Driver, LocalFuture, Settings, StatementMode};
use crate::contract::error::{ConfigError, Error};
use crate::contract::lexer::Lexer;
use crate::contract::probe_tables::ProbeStatements;
use crate::contract::statement::Statement;
use crate::net::entry::Entry;
use crate::net::reach::not_in_time;
use crate::net::resolve::Resolver;
use crate::net::session::Session;
use crate::net::tls::TlsConnector;
use admin::{PostgresAdmin, described_columns, set_up};
use config::Config;
use descriptions::Descriptions;
use machine::{Description, Machine, Parsed, Prepared, server_name, with_control};
use startup::{Endpoint, Established, next_message};

/// What reads the protocol as others speak it.
pub use types::shown;
pub use wire::{Fields, affected, error};

/// PostgreSQL's SQL.
pub const DIALECT: &Dialect = &Dialect {
    name: "postgres",
    lexer: Lexer::POSTGRES,
    probes: ProbeStatements {
        empty: "TRUNCATE nephoscope_probe_write, nephoscope_probe_marker",
        drop: "DROP TABLE IF EXISTS nephoscope_probe_write, nephoscope_probe_marker",
        stock: "INSERT INTO nephoscope_probe_marker (id, number)
  SELECT id, 0 FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) AS stock (id)",
        ..ProbeStatements::STANDARD
    },
    capabilities: Capabilities::SERVER,
};

/// What the rest of the crate knows of this driver.
pub(crate) const ENTRY: Entry = Entry {
    schemes: &["postgresql", "postgres"],
    about: "PostgreSQL and what speaks its protocol: Aurora, Neon, AlloyDB, CockroachDB, YugabyteDB …",
    open: |url, settings| Ok(Arc::new(Postgres::new(url, settings)?)),
    open_as: None,
    keys: Some(&config::KEYS),
    dialect: DIALECT,
};

/// The driver of `postgresql://`.
pub struct Postgres {
    endpoint: Arc<Endpoint>,
    settings: Settings,
    descriptions: Descriptions,
}

impl Postgres {
    /// Reads a URL, and with it the environment and the files that it names.
    pub fn new(url: &str, settings: &Settings) -> Result<Self, ConfigError> {
        let config = Config::parse(url)?;
        let tls = TlsConnector::new(&config.tls, &config.hosts)?;
        let timeout = settings.connect_timeout;
        let endpoint = Endpoint { config, tls, timeout, resolver: Resolver::default() };
        let descriptions = Descriptions::default();
        Ok(Self { endpoint: Arc::new(endpoint), settings: settings.clone(), descriptions })
    }
}

impl Driver for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
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
            let mut established = self.endpoint.establish(runtime, deadline).await?;
            established.channel.set_deadline(deadline);
            set_up(&mut established, &self.settings.on_connect).await.map_err(not_in_time)?;
            let (mode, all) = (self.settings.statement_mode, with_control(statements));
            // Who comes first asks for all; the others parse what they use when they first use it.
            let (described, parsed) = match self.descriptions.of(statements) {
                Some(known) => (known, Parsed::No),
                None => {
                    let described = describe(&mut established, mode, &all).await.map_err(not_in_time)?;
                    (self.descriptions.keep(statements, described), Parsed::Yes)
                }
            };
            let Established { channel, cancel_key, status, .. } = established;
            let machine = Machine::new(mode, Prepared::list(mode, all, &described, parsed), status);
            let connection = Session::new(channel, machine, cancel_key);
            Ok(Box::new(connection) as Box<dyn Connection>)
        })
    }

    fn admin(&self) -> Result<Box<dyn Admin>, Error> {
        Ok(Box::new(PostgresAdmin::connect(&self.endpoint, &self.settings)?))
    }
}

/// Has the statements parsed and described in one round trip. The types of parameters and columns are known in every
/// mode.
async fn describe(
    established: &mut Established,
    mode: StatementMode,
    statements: &[Statement],
) -> Result<Vec<Description>, Error> {
    let channel = &mut established.channel;
    for (place, statement) in statements.iter().enumerate() {
        let name = server_name(mode, place);
        wire::parse(channel.out(), &name, &machine::sql(statement));
        wire::describe(channel.out(), &name);
    }
    channel.out().extend_from_slice(&wire::SYNC);
    channel.flush().await?;
    let (mut params, mut described, mut failed) = (Vec::new(), Vec::new(), None);
    established.status = loop {
        let (tag, body) = next_message(channel).await.map_err(|lost| failed.take().unwrap_or(lost))?;
        match tag {
            b't' => params = machine::described_params(&body)?,
            // RowDescription or NoData: the description of one statement is complete.
            b'T' | b'n' => {
                let columns = if tag == b'T' { described_columns(&body)? } else { Vec::new() };
                described.push(Description { params: std::mem::take(&mut params), columns });
            }
            b'E' => {
                let name = statements.get(described.len()).map_or("?", |statement| statement.name());
                failed = Some(wire::error(&body).context(&format!("statement {name}")));
            }
            b'Z' => break wire::status(&body),
            _ => {}
        }
    };
    match failed {
        Some(error) => Err(error),
        None if described.len() == statements.len() => Ok(described),
        None => Err(wire::garbage("the description of the statements")),
    }
}
