//! MySQL, MariaDB, and what speaks their protocol.
//!
//! * [`config`] reads URLs, the user's option file and the environment; [`auth`] is what they say, without I/O.
//! * `startup` makes a connection; `machine` is the query phase without I/O.
//! * [`Greeting`], [`Fields`], [`ok`], [`end`], [`error`] and [`literal`] read messages and values that others send.
//! * `admin` is the blocking connection for set-up and checks; `bulk` is its loading.

mod admin;
pub mod auth;
mod bulk;
pub mod config;
mod errors;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod machine;
mod replies;
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
use admin::{MysqlAdmin, set_up};
use config::Config;
use machine::prepared::{Prepared, write_close};
use machine::{Agreed, Machine};
use replies::Link;
use startup::{Endpoint, Established, Purpose};

/// What reads the protocol as others speak it.
pub use startup::Greeting;
pub use types::{literal, text_literal};
pub use wire::{End, FULL, Fields, HEADER, capability, command, end, error, ok, status};

/// MySQL's SQL, as MariaDB has it too.
pub const DIALECT: &Dialect = &Dialect {
    name: "mysql",
    lexer: Lexer::MYSQL,
    probes: ProbeStatements {
        // TRUNCATE would commit, and wait for every reader.
        create: "CREATE TABLE IF NOT EXISTS nephoscope_probe_write (
  probe integer NOT NULL, number bigint NOT NULL, PRIMARY KEY (probe, number)) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS nephoscope_probe_marker (id bigint PRIMARY KEY, number bigint NOT NULL) ENGINE=InnoDB",
        stock: "INSERT INTO nephoscope_probe_marker (id, number)
  WITH digit (d) AS (SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9),
  stock (id) AS (SELECT :first + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d
    FROM digit AS a CROSS JOIN digit AS b CROSS JOIN digit AS c CROSS JOIN digit AS e CROSS JOIN digit AS f)
  SELECT id, 0 FROM stock WHERE id <= :last",
        ..ProbeStatements::STANDARD
    },
    capabilities: Capabilities { generated_keys: true, ..Capabilities::SERVER },
};

/// What the rest of the crate knows of this driver.
pub(crate) const ENTRY: Entry = Entry {
    schemes: &["mysql", "mariadb"],
    about: "MySQL, MariaDB and what speaks their protocol: Aurora MySQL, PolarDB, TiDB …",
    open: |url, settings| Ok(Arc::new(Mysql::new(url, settings)?)),
    open_as: None,
    keys: Some(&config::KEYS),
    dialect: DIALECT,
};

/// The driver of `mysql://` and `mariadb://`.
pub struct Mysql {
    endpoint: Arc<Endpoint>,
    settings: Settings,
}

impl Mysql {
    /// Reads a URL, and with it the environment and the files that it names.
    pub fn new(url: &str, settings: &Settings) -> Result<Self, ConfigError> {
        let config = Config::parse(url)?;
        let tls = TlsConnector::new(&config.tls, &config.hosts)?;
        let timeout = settings.connect_timeout;
        let endpoint = Endpoint { config, tls, timeout, resolver: Resolver::default() };
        Ok(Self { endpoint: Arc::new(endpoint), settings: settings.clone() })
    }
}

impl Driver for Mysql {
    fn name(&self) -> &'static str {
        "mysql"
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
            let Established { mut link, cancel_key } =
                self.endpoint.establish(runtime, deadline, Purpose::Session).await?;
            link.channel.set_deadline(deadline);
            set_up(&mut link, &self.settings.on_connect).await.map_err(not_in_time)?;
            let mode = self.settings.statement_mode;
            let all = prepare(&mut link, mode, statements).await.map_err(not_in_time)?;
            let agreed =
                Agreed { deprecates_eof: link.deprecates_eof(), caches_metadata: link.caches_metadata() };
            let machine = Machine::new(mode, agreed, all, link.status);
            Ok(Box::new(Session::new(link.channel, machine, cancel_key)) as Box<dyn Connection>)
        })
    }

    fn admin(&self) -> Result<Box<dyn Admin>, Error> {
        Ok(Box::new(MysqlAdmin::connect(&self.endpoint, &self.settings)?))
    }
}

/// Has the statements prepared in one round trip, in every mode: a wrong one is found before a run begins. Only the
/// prepared mode keeps them.
async fn prepare(
    link: &mut Link,
    mode: StatementMode,
    statements: &[Statement],
) -> Result<Vec<Prepared>, Error> {
    /// `ER_UNSUPPORTED_PS`: a statement that a server runs as text only.
    const ONLY_AS_TEXT: &str = "1295";
    let mut all: Vec<Prepared> =
        statements.iter().map(|statement| Prepared::new(statement.clone(), mode)).collect();
    for one in &all {
        link.command(command::PREPARE, one.sql.as_bytes());
    }
    link.channel.flush().await?;
    let mut failed = None;
    for one in &mut all {
        link.sequence = 1;
        match prepared(link, one).await {
            Ok(()) => {}
            Err(error) if error.code() == ONLY_AS_TEXT => one.as_text = true,
            // What has no number of the server's is no answer, and nothing more can be read.
            Err(error) if error.code().is_empty() => return Err(error),
            Err(error) => {
                failed.get_or_insert(error.context(&format!("statement {}", one.statement.name())));
            }
        }
        if mode != StatementMode::Prepared
            && let Some(id) = one.id.take()
        {
            write_close(id, link.channel.out());
        }
    }
    link.channel.flush().await?;
    failed.map_or(Ok(all), Err)
}

/// Reads the answer to a preparation.
async fn prepared(link: &mut Link, one: &mut Prepared) -> Result<(), Error> {
    let (params, columns) = one.prepared(&link.next_good().await?)?;
    link.definitions(params).await?;
    for definition in link.definitions(columns).await? {
        one.columns.push(&definition);
    }
    one.columns.end(one.as_text)?;
    one.check_places(params)
}
