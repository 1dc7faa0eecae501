//! The connection for set-up, loading and checks: it blocks its thread.

use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{self, Nanos};

use super::config::Config;
use super::raw::{Database, Prepared, Run};
use super::script::{Script, is_locked};
use super::statement::{Trouble, prepare_one};
use super::{SetUp, given_up, open, until_unlocked, values};
use crate::contract::bulk::{Admin, RowEncoder, RowSource, Table};
use crate::contract::driver::Settings;
use crate::contract::error::Error;
use crate::contract::interrupt::Interrupt;
use crate::contract::value::Value;

/// The settings that say most about how a file performs, each a pragma.
const FACTS: [&str; 12] = [
    "journal_mode",
    "synchronous",
    "page_size",
    "page_count",
    "cache_size",
    "mmap_size",
    "temp_store",
    "locking_mode",
    "wal_autocheckpoint",
    "auto_vacuum",
    "foreign_keys",
    "encoding",
];
/// The words for the numbers of `synchronous`.
const SYNCHRONOUS: [&str; 4] = ["off", "normal", "full", "extra"];

pub(super) struct SqliteAdmin {
    runtime: Runtime,
    database: Database,
    interrupt: Interrupt,
    answer_timeout: Nanos,
}

impl SqliteAdmin {
    /// Opens the file and runs the set-up that every connection gets.
    pub(super) fn open(config: &Config, settings: &Settings) -> Result<Self, Error> {
        let (runtime, interrupt) = (Runtime::new()?, settings.interrupt.clone());
        let database = open(config)?;
        database.set_interrupt(interrupt.clone());
        let mut admin = Self { runtime, database, interrupt, answer_timeout: settings.connect_timeout };
        let mut steps = SetUp::new(config, &settings.on_connect);
        admin.wait_for(|database| steps.go_on(database)).map_err(|error| steps.explain(error))?;
        admin.answer_timeout = settings.answer_timeout;
        Ok(admin)
    }

    /// Does something as soon as no lock is in the way, within the time limit.
    fn wait_for<T>(&mut self, mut work: impl FnMut(&Database) -> Result<T, Trouble>) -> Result<T, Error> {
        let deadline = clock::now().saturating_add(self.answer_timeout);
        self.database.set_deadline(deadline);
        let (runtime, database) = (&self.runtime, &self.database);
        let done = until_unlocked(runtime, deadline, || work(database));
        let done = runtime.block_on(self.interrupt.or(done));
        done.map_err(|error| if self.interrupt.has_struck() { Error::other("interrupted") } else { error })
    }

    /// Runs one statement of which nothing is wanted.
    fn run(&mut self, sql: &str) -> Result<(), Error> {
        let mut script = Script::new(sql);
        self.wait_for(|database| script.run_next(database)).map(|_| ())
    }

    /// The first value of a query, with a name.
    fn fact(&mut self, name: &str, sql: &str) -> Result<Option<(String, String)>, Error> {
        let value = self.query(sql)?.rows.into_iter().next().and_then(|row| row.into_iter().next().flatten());
        Ok(value.map(|value| (name.to_owned(), value)))
    }

    /// Loads the rows of a source within a transaction that others begin and end.
    fn load(&mut self, table: &str, columns: &[String], rows: &mut dyn RowSource) -> Result<u64, Error> {
        let list = columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        let places = vec!["?"; columns.len()].join(", ");
        let sql = format!("INSERT INTO {} ({list}) VALUES ({places})", quoted(table));
        let insert = self.wait_for(|database| Ok(prepare_one(database, sql.as_bytes(), true)?))?;
        let Some(mut insert) = insert else { return Err(Error::other("there is nothing to load")) };
        let mut encoder = Encoder::new(self, table, columns, &mut insert);
        while rows.fill(&mut encoder)? {}
        Ok(encoder.loaded)
    }
}

/// A name as SQL takes it whatever it is.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Admin for SqliteAdmin {
    fn limit_answers(&mut self, limit: Nanos) {
        self.answer_timeout = limit;
    }

    fn query(&mut self, sql: &str) -> Result<Table, Error> {
        let mut script = Script::new(sql);
        self.wait_for(|database| {
            while script.run_next(database)? {}
            Ok(())
        })?;
        Ok(script.table)
    }

    fn bulk_load(&mut self, table: &str, columns: &[String], rows: &mut dyn RowSource) -> Result<u64, Error> {
        self.run("SAVEPOINT nephoscope_load")?;
        let loaded = self.load(table, columns, rows).and_then(|loaded| {
            self.run("RELEASE nephoscope_load")?;
            Ok(loaded)
        });
        if loaded.is_err() && self.database.is_in_transaction() {
            // Some errors have rolled back already. The first error is the one to tell.
            let limit = std::mem::replace(&mut self.answer_timeout, Nanos::MAX);
            let mut script = Script::new("ROLLBACK TO nephoscope_load; RELEASE nephoscope_load");
            self.database.set_deadline(Nanos::MAX);
            while script.run_next(&self.database).unwrap_or(false) {}
            self.answer_timeout = limit;
        }
        loaded
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        let mut facts = vec![self.fact("version", "SELECT 'SQLite ' || sqlite_version()")?];
        facts.push(self.fact("source_id", "SELECT sqlite_source_id()")?);
        for name in FACTS {
            let mut fact = self.fact(name, &format!("PRAGMA {name}"))?;
            if let Some((_, value)) = fact.as_mut().filter(|_| name == "synchronous")
                && let Some(word) = value.parse::<usize>().ok().and_then(|number| SYNCHRONOUS.get(number))
            {
                (*word).clone_into(value);
            }
            facts.push(fact);
        }
        Ok(facts.into_iter().flatten().collect())
    }
}

/// Gives each row to the INSERT as it comes.
struct Encoder<'a> {
    runtime: &'a Runtime,
    deadline: Nanos,
    table: &'a str,
    columns: &'a [String],
    run: Run<'a>,
    cells: usize,
    loaded: u64,
}

impl<'a> Encoder<'a> {
    fn new(admin: &'a SqliteAdmin, table: &'a str, columns: &'a [String], insert: &'a mut Prepared) -> Self {
        let deadline = clock::now().saturating_add(admin.answer_timeout);
        admin.database.set_deadline(deadline);
        Self { runtime: &admin.runtime, deadline, table, columns, run: insert.run(), cells: 0, loaded: 0 }
    }

    fn refused(&self, why: &str) -> Error {
        Error::other(format!("table {}: {why}", self.table))
    }
}

impl RowEncoder for Encoder<'_> {
    fn push(&mut self, value: Value<'_>) -> Result<(), Error> {
        let Some(column) = self.columns.get(self.cells) else {
            return Err(self.refused("a row has more values than columns"));
        };
        if let Some(why) = values::misfit(value) {
            return Err(Error::other(format!("table {}, column {column}: {why}", self.table)));
        }
        let bound = values::bind_copy(&mut self.run, self.cells, value);
        self.cells += 1;
        bound.map_err(|failure| super::errors::error(&failure))
    }

    fn end_row(&mut self) -> Result<(), Error> {
        let (got, wanted) = (std::mem::take(&mut self.cells), self.columns.len());
        if got != wanted {
            return Err(self.refused(&format!("a row has {got} values for {wanted} columns")));
        }
        let Self { run, runtime, deadline, .. } = self;
        let mut step = || {
            let stepped = run.step();
            run.again();
            stepped.map(|_| ()).map_err(Trouble::Failure)
        };
        match step() {
            Err(trouble) if is_locked(&trouble) => {
                runtime.block_on(until_unlocked(runtime, *deadline, step))?;
            }
            done => done.map_err(given_up)?,
        }
        self.loaded += 1;
        Ok(())
    }
}
