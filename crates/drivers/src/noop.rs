//! The driver without a database: it answers at once and costs nothing, so what is measured is the engine.

use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use nephoscope_runtime::{Nanos, Runtime};

use crate::contract::added::Added;
use crate::contract::bulk::{Admin, RowSource, Table};
use crate::contract::dialect::Dialect;
use crate::contract::driver::{Command, Connection, ConnectionState, Driver, LocalFuture, Reply, Want};
use crate::contract::error::{ConfigError, Error};
use crate::contract::rows::Rows;
use crate::contract::statement::Statement;
use crate::contract::value::Params;
use crate::echo::Echo;
use crate::net::entry::Entry;

const NONE: &Dialect = &Dialect::NONE.spoken();

/// What the rest of the crate knows of this driver.
pub(crate) const ENTRY: Entry = Entry {
    schemes: &["noop"],
    about: "no database: answers at once and costs nothing, to measure the engine itself",
    open: |url, _| Ok(Arc::new(Noop::new(url)?)),
    open_as: Some(|dialect| Arc::new(Noop(dialect))),
    keys: None,
    dialect: NONE,
};

/// The driver of `noop://`.
pub struct Noop(&'static Dialect);

impl Noop {
    /// Takes nothing but `noop://`: there is nothing to set but the dialect, by `?dialect=`.
    pub fn new(url: &str) -> Result<Self, ConfigError> {
        match url.strip_prefix("noop:").map(|rest| rest.trim_start_matches('/')) {
            Some("") => Ok(Self(NONE)),
            _ => Err(ConfigError(format!("url: {url:?} is not noop://, which has no setting but ?dialect="))),
        }
    }
}

impl Driver for Noop {
    fn name(&self) -> &'static str {
        "noop"
    }

    fn dialect(&self) -> &'static Dialect {
        self.0
    }

    fn redacted_url(&self) -> String {
        let name = self.0.name;
        if name == NONE.name { "noop://".to_owned() } else { format!("noop://?dialect={name}") }
    }

    fn connect<'a>(
        &'a self,
        _runtime: &'a Runtime,
        statements: &'a Arc<[Statement]>,
    ) -> LocalFuture<'a, Result<Box<dyn Connection>, Error>> {
        let echo = Echo::new(statements);
        // A key for whatever was inserted, where the dialect's servers tell one.
        let inserted_id = self.0.capabilities.generated_keys.then_some(NonZeroU64::MIN);
        Box::pin(async move {
            let connection = NoopConnection {
                echo,
                state: ConnectionState::Idle,
                waiting: false,
                queued: None,
                echoed: Params::default(),
                inserted_id,
            };
            Ok(Box::new(connection) as Box<dyn Connection>)
        })
    }

    fn admin(&self) -> Result<Box<dyn Admin>, Error> {
        Ok(Box::new(NoAdmin))
    }
}

struct NoopConnection {
    echo: Echo,
    state: ConnectionState,
    /// Whether commands wait to be sent.
    waiting: bool,
    /// The last statement, and whether its rows are wanted.
    queued: Option<(usize, Want)>,
    echoed: Params,
    inserted_id: Option<NonZeroU64>,
}

impl Connection for NoopConnection {
    #[inline]
    fn queue(&mut self, command: Command, params: &Params, want: Want) -> Result<(), Error> {
        self.waiting = true;
        match command {
            Command::Begin | Command::BeginIn(_) => self.state = ConnectionState::InTransaction,
            Command::Commit | Command::Rollback => self.state = ConnectionState::Idle,
            Command::Execute(statement) => {
                self.queued = Some((statement, want));
                match want {
                    Want::Count => {}
                    Want::Rows => self.echoed.clone_from(params),
                    Want::Kept => self.echo.send(statement, params),
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn poll_replies(&mut self, _cx: &mut Context<'_>, rows: &mut Rows) -> Poll<Result<Reply, Error>> {
        self.waiting = false;
        self.echo.answer(rows);
        let Some((statement, want)) = self.queued.take() else { return Poll::Ready(Ok(Reply::default())) };
        let result = if want == Want::Rows { self.echo.add(statement, &self.echoed, rows) } else { None };
        Poll::Ready(Ok(Reply { affected: 1, result, inserted_id: self.inserted_id, ..Reply::default() }))
    }

    fn add(&mut self, statement: &Rc<Statement>, _alone: bool) -> Result<Added, Error> {
        let idle = self.state() != ConnectionState::Waiting;
        Ok(self.echo.learn(statement, idle))
    }

    fn set_deadline(&mut self, _deadline: Nanos) {}

    fn state(&self) -> ConnectionState {
        if self.waiting { ConnectionState::Waiting } else { self.state }
    }

    fn cancel(&self) -> LocalFuture<'static, ()> {
        Box::pin(async {})
    }
}

/// The set-up connection of drivers that store nothing: rows are counted and dropped.
pub(crate) struct NoAdmin;

impl Admin for NoAdmin {
    fn query(&mut self, _sql: &str) -> Result<Table, Error> {
        Ok(Table::default())
    }

    fn bulk_load(
        &mut self,
        _table: &str,
        _columns: &[String],
        rows: &mut dyn RowSource,
    ) -> Result<u64, Error> {
        let mut counter = Counter(0);
        while rows.fill(&mut counter)? {}
        Ok(counter.0)
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        Ok(Vec::new())
    }
}

struct Counter(u64);

impl crate::contract::bulk::RowEncoder for Counter {
    fn push(&mut self, _value: crate::contract::value::Value<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn end_row(&mut self) -> Result<(), Error> {
        self.0 += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::contract::driver::Settings;

    fn opened(url: &str) -> Result<(&'static str, String), String> {
        let driver = crate::open(url, &Settings::default()).map_err(|error| error.0)?;
        assert!(!driver.dialect().capabilities.stores && !driver.dialect().capabilities.blocking, "{url}");
        Ok((driver.dialect().name, driver.redacted_url()))
    }

    #[test]
    fn it_speaks_any_dialect_without_its_database() {
        assert_eq!(opened("noop://").unwrap(), ("none", "noop://".to_owned()));
        let known = [
            "postgres",
            "mysql",
            "sqlite",
            "redis",
            "cassandra",
            "dynamodb",
            "s3",
            "simpledb",
            "hbase",
            "mongodb",
        ];
        for dialect in known {
            let url = format!("noop://?dialect={dialect}");
            assert_eq!(opened(&url).unwrap(), (dialect, url));
        }
        assert_eq!(
            opened("noop://?dialect=oracle").unwrap_err(),
            format!("url: there is no dialect \"oracle\"; dialects are {}", known.join(", "))
        );
        for (url, refused) in
            [("noop://?speed=1", "noop://?speed=1"), ("noop://anything?dialect=mysql", "noop://anything")]
        {
            let words = format!("url: {refused:?} is not noop://, which has no setting but ?dialect=");
            assert_eq!(opened(url).unwrap_err(), words);
        }
    }
}
