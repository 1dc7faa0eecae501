//! SQLite, as a library in this process: a file is the database, and every session has a connection of its own to it.
//!
//! * `raw` is SQLite's C interface behind safe types; `statement` runs one statement, `connection` those of a session.
//! * `line` is who waits on a thread for a lock; `values` is how values are kept; `config` reads URLs.
//! * `admin` is the connection for set-up and checks, `script` texts of several statements.
//!
//! A statement runs **on the worker's thread**, where it is polled, and has it to itself until it ends: statements that
//! take long belong on workers of their own. Sessions of a worker take turns flush by flush.
//!
//! SQLite lets one connection write at a time. A session that meets a lock leaves the thread to the others and tries
//! again, when another session of its worker ends a transaction or after a short pause, up to the statement's time
//! limit; then the error is `lock_timeout`. A transaction begins without a lock (`begin=deferred`), so that those that
//! only read never wait in WAL mode. One that has read and then writes while another writes cannot be waited for
//! (<https://www.sqlite.org/rescode.html#busy_snapshot>): the error is `serialization`, and the engine runs it again.
//! With `begin=immediate` every transaction takes the write lock first, and none fails so.
//!
//! Foreign keys are enforced unless the URL says `foreign_keys=off`: the library is built so.

mod admin;
mod config;
mod connection;
mod errors;
mod line;
mod raw;
mod script;
mod statement;
mod values;

use std::sync::Arc;

use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{self, MILLISECOND, Nanos};

use crate::contract::bulk::Admin;
use crate::contract::capabilities::Capabilities;
use crate::contract::dialect::Dialect;
use crate::contract::driver::{Connection, Driver, LocalFuture, Settings};
use crate::contract::error::{ConfigError, Error, ErrorClass};
use crate::contract::lexer::Lexer;
use crate::contract::probe_tables::ProbeStatements;
use crate::contract::statement::Statement;
use crate::contract::value::Value;
use crate::net::entry::Entry;
use admin::SqliteAdmin;
use config::Config;
pub(crate) use config::KEYS;
use connection::{Parts, SqliteConnection, control};
use line::Line;
use raw::{Database, Step};
use script::{Script, is_locked};
use statement::{Ready, Trouble, numbered, prepare_one};

/// SQLite's SQL.
pub const DIALECT: &Dialect = &Dialect {
    name: "sqlite",
    lexer: Lexer::SQLITE,
    probes: ProbeStatements::STANDARD,
    capabilities: Capabilities {
        blocking: true,
        generated_keys: true,
        isolation: &["serializable"],
        ..Capabilities::SERVER
    },
};

/// The pause before a lock is tried again that a connection meets while it is made.
const PAUSE: Nanos = MILLISECOND;

/// What the rest of the crate knows of this driver.
pub(crate) const ENTRY: Entry = Entry {
    schemes: &["sqlite"],
    about: "SQLite in this process, without a server: sqlite:///absolute/path or sqlite:relative/path",
    open: |url, settings| Ok(Arc::new(Sqlite::new(url, settings)?)),
    open_as: None,
    keys: Some(&KEYS),
    dialect: DIALECT,
};

/// The driver of `sqlite:`.
pub struct Sqlite {
    config: Arc<Config>,
    settings: Settings,
}

impl Sqlite {
    /// Reads a URL. The file is not looked at.
    pub fn new(url: &str, settings: &Settings) -> Result<Self, ConfigError> {
        Ok(Self { config: Arc::new(Config::parse(url)?), settings: settings.clone() })
    }

    async fn make(
        &self,
        runtime: &Runtime,
        statements: &Arc<[Statement]>,
    ) -> Result<SqliteConnection, Error> {
        let (config, mode) = (&self.config, self.settings.statement_mode);
        let deadline = clock::now().saturating_add(self.settings.connect_timeout);
        let database = open(config)?;
        database.set_deadline(deadline);
        let mut steps = SetUp::new(config, &self.settings.on_connect);
        let set_up = until_unlocked(runtime, deadline, || steps.go_on(&database)).await;
        set_up.map_err(|error| steps.explain(not_in_time(error)))?;
        let (mut ready, texts) = (Vec::new(), control(config.begin));
        for statement in statements.iter() {
            let prepare = || Ok(Ready::new(&database, mode, numbered(statement))?);
            let prepared = until_unlocked(runtime, deadline, prepare).await;
            ready.push(prepared.map_err(|error| error.context(&format!("statement {}", statement.name())))?);
        }
        let [begin, commit, rollback] = texts.map(|sql| Ready::new(&database, mode, sql.into()));
        let ended = |failure| errors::error(&failure);
        let control = [begin.map_err(ended)?, commit.map_err(ended)?, rollback.map_err(ended)?];
        let (line, statements) = (Line::of(&config.path), Arc::clone(statements));
        let runtime = runtime.clone();
        Ok(SqliteConnection::new(Parts { runtime, database, line, mode, statements, ready, control }))
    }
}

impl Driver for Sqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn dialect(&self) -> &'static Dialect {
        DIALECT
    }

    fn redacted_url(&self) -> String {
        self.config.url.clone()
    }

    fn connect<'a>(
        &'a self,
        runtime: &'a Runtime,
        statements: &'a Arc<[Statement]>,
    ) -> LocalFuture<'a, Result<Box<dyn Connection>, Error>> {
        Box::pin(async move {
            let connection = self.make(runtime, statements).await?;
            Ok(Box::new(connection) as Box<dyn Connection>)
        })
    }

    fn admin(&self) -> Result<Box<dyn Admin>, Error> {
        Ok(Box::new(SqliteAdmin::open(&self.config, &self.settings)?))
    }
}

fn open(config: &Config) -> Result<Database, Error> {
    Database::open(&config.file, config.flags).map_err(|failure| of_file(config, errors::error(&failure)))
}

fn of_file(config: &Config, error: Error) -> Error {
    error.context(&format!("sqlite file {}", config.path))
}

/// What a new connection begins with: the URL's options, a look at the file, the statements that are to run first. It
/// goes on where it was stopped.
struct SetUp<'a> {
    config: &'a Config,
    pragmas: usize,
    is_read: bool,
    on_connect: &'a [String],
    script: Option<Script<'a>>,
}

impl<'a> SetUp<'a> {
    fn new(config: &'a Config, on_connect: &'a [String]) -> Self {
        Self { config, pragmas: 0, is_read: false, on_connect, script: None }
    }

    fn go_on(&mut self, database: &Database) -> Result<(), Trouble> {
        while let Some((name, value)) = self.config.pragmas.get(self.pragmas) {
            set(database, name, value)?;
            self.pragmas += 1;
        }
        if !self.is_read {
            // Only a read finds out what is no database.
            Script::new("SELECT 1 FROM sqlite_schema LIMIT 1").run_next(database)?;
            self.is_read = true;
        }
        while let Some((sql, others)) = self.on_connect.split_first() {
            let script = self.script.get_or_insert_with(|| Script::new(sql));
            while script.run_next(database)? {}
            (self.script, self.on_connect) = (None, others);
        }
        Ok(())
    }

    /// Says where the set-up was when it failed.
    fn explain(&self, error: Error) -> Error {
        match self.on_connect.first().filter(|_| self.is_read) {
            Some(sql) => error.context(&format!("on_connect {sql:?}")),
            None => of_file(self.config, error),
        }
    }
}

/// Sets a pragma; that a journal mode cannot be had SQLite says only by the mode that it stays in.
fn set(database: &Database, name: &str, value: &str) -> Result<(), Trouble> {
    let sql = format!("PRAGMA {name} = {value}");
    let Some(mut pragma) = prepare_one(database, sql.as_bytes(), false)? else { return Ok(()) };
    let mut run = pragma.run();
    if run.step()? == Step::Row
        && name == "journal_mode"
        && let Value::Text(got) = run.cell(0)
        && got != value.as_bytes()
    {
        let got = String::from_utf8_lossy(got);
        return Err(Trouble::Error(Error::other(format!(
            "the file cannot have journal_mode={value}; it stays in the mode {got}"
        ))));
    }
    Ok(())
}

/// What went wrong where there is no time, or no reason, to try again.
fn given_up(trouble: Trouble) -> Error {
    match trouble {
        Trouble::Failure(failure) if failure.is_locked() => errors::lock_timeout(&failure),
        Trouble::Failure(failure) => errors::error(&failure),
        Trouble::Error(error) => error,
    }
}

/// A connection that is not made in time is as good as none.
fn not_in_time(error: Error) -> Error {
    let is_late = error.class() == ErrorClass::StatementTimeout;
    if is_late { Error::connection_lost("not done within the time limit") } else { error }
}

/// Does something as soon as no lock is in the way.
async fn until_unlocked<T>(
    runtime: &Runtime,
    deadline: Nanos,
    mut work: impl FnMut() -> Result<T, Trouble>,
) -> Result<T, Error> {
    loop {
        match work() {
            Err(trouble) if is_locked(&trouble) && clock::now() < deadline => {
                runtime.sleep_until((clock::now() + PAUSE).min(deadline)).await;
            }
            done => return done.map_err(given_up),
        }
    }
}
