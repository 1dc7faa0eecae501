//! A statement of a workload on one connection, and one run of it.

use std::num::NonZeroU64;
use std::rc::Rc;

use libsqlite3_sys as ffi;

use super::raw::{Database, Failure, Prepared, Run, Step};
use super::values;
use crate::contract::cells;
use crate::contract::driver::{Reply, StatementMode};
use crate::contract::error::Error;
use crate::contract::rows::{Column, Columns, ResultIndex, Rows, too_many};
use crate::contract::statement::Statement;
use crate::contract::value::Params;

/// Why a statement has not succeeded.
pub(super) enum Trouble {
    /// SQLite has refused something.
    Failure(Failure),
    /// This driver has.
    Error(Error),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// What SQL calls the key that was inserted last.
const INSERTED: &str = "last_insert_rowid";

/// A statement with what is known of it.
pub(super) struct Ready {
    /// Its text with numbered parameters.
    sql: Vec<u8>,
    /// Kept in the prepared mode only.
    prepared: Option<Prepared>,
    columns: Rc<Columns>,
    is_read_only: bool,
    /// It may insert a row, and does not ask itself which was inserted last.
    may_insert: bool,
    is_unprepared: bool,
}

impl Ready {
    /// Has a text prepared; what comes of it is kept in the prepared mode. The parameters have numbers.
    pub(super) fn new(database: &Database, mode: StatementMode, sql: Vec<u8>) -> Result<Self, Failure> {
        let keep = mode == StatementMode::Prepared;
        let prepared = prepare_one(database, &sql, keep)?;
        let columns = columns(prepared.as_ref().map(Prepared::column_names).unwrap_or_default());
        let is_read_only = prepared.as_ref().is_none_or(Prepared::is_read_only);
        let may_insert = !is_read_only && !String::from_utf8_lossy(&sql).to_lowercase().contains(INSERTED);
        Ok(Self {
            sql,
            prepared: prepared.filter(|_| keep),
            columns,
            is_read_only,
            may_insert,
            is_unprepared: false,
        })
    }

    /// A text of which nothing is known yet.
    pub(super) fn unprepared(sql: Vec<u8>) -> Self {
        let columns = columns(Vec::new());
        Self { sql, prepared: None, columns, is_read_only: false, may_insert: false, is_unprepared: true }
    }

    /// Has the text prepared, if nothing is known of it yet.
    pub(super) fn prepare_once(&mut self, database: &Database, mode: StatementMode) -> Result<(), Failure> {
        if self.is_unprepared {
            *self = Self::new(database, mode, self.sql.clone())?;
        }
        Ok(())
    }

    /// Whether it leaves the file as it is.
    pub(super) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// As [`Ready::run_plainly`], with the key of the row that was inserted.
    #[inline]
    pub(super) fn run(
        &mut self,
        database: &Database,
        mode: StatementMode,
        written: Option<&Statement>,
        params: &Params,
        rows: Option<&mut Rows>,
    ) -> Result<Reply, Trouble> {
        if !self.may_insert {
            return self.run_plainly(database, mode, written, params, rows);
        }
        // SQLite keeps the key of an earlier statement where this one inserts no row.
        let before = database.last_inserted();
        database.set_last_inserted(0);
        let mut reply = self.run_plainly(database, mode, written, params, rows);
        match (database.last_inserted(), &mut reply) {
            (0, _) => database.set_last_inserted(before),
            (key, Ok(reply)) => reply.inserted_id = u64::try_from(key).ok().and_then(NonZeroU64::new),
            (_, Err(_)) => {}
        }
        reply
    }

    /// Runs the statement to its end. Its rows are added to `rows` where they are wanted; none of them stays there
    /// where it fails. `written` is the statement with its parameters, for the simple mode.
    #[inline]
    fn run_plainly(
        &mut self,
        database: &Database,
        mode: StatementMode,
        written: Option<&Statement>,
        params: &Params,
        rows: Option<&mut Rows>,
    ) -> Result<Reply, Trouble> {
        let mut fresh = match (mode, written) {
            (StatementMode::Prepared, _) => None,
            (StatementMode::Simple, Some(statement)) if !params.is_empty() => {
                prepare_one(database, &with_values(statement, params), false)?
            }
            _ => prepare_one(database, &self.sql, false)?,
        };
        let Some(statement) = fresh.as_mut().or(self.prepared.as_mut()) else { return Ok(Reply::default()) };
        let before = database.total_changes();
        let mut run = statement.run();
        if mode != StatementMode::Simple {
            for (place, value) in params.iter().enumerate() {
                values::bind(&mut run, place, value)?;
            }
        }
        let mut reply = to_the_end(&mut run, &mut self.columns, rows)?;
        if run.column_count() == 0 && database.total_changes() != before {
            reply.affected = database.changes();
        }
        Ok(reply)
    }
}

/// Prepares the only statement of a text; a text without one gives none.
pub(super) fn prepare_one(database: &Database, sql: &[u8], keep: bool) -> Result<Option<Prepared>, Failure> {
    let (prepared, mut used) = database.prepare(sql, keep)?;
    while used < sql.len() {
        let (another, size) = database.prepare(&sql[used..], false)?;
        used += size;
        if another.is_some() {
            let message = "the text holds more than one statement".to_owned();
            return Err(Failure { code: ffi::SQLITE_ERROR, message });
        }
    }
    Ok(prepared)
}

/// The text of a statement with its parameters numbered from 1.
pub(super) fn numbered(statement: &Statement) -> Vec<u8> {
    rendered(statement, |param, out| out.extend_from_slice(format!("?{}", param + 1).as_bytes()))
}

/// The text of a statement with the values in the places of its parameters.
fn with_values(statement: &Statement, params: &Params) -> Vec<u8> {
    let values: Vec<_> = params.iter().collect();
    rendered(statement, |param, out| values::write_literal(values[param], out))
}

fn rendered(statement: &Statement, write: impl Fn(usize, &mut Vec<u8>)) -> Vec<u8> {
    let mut sql = Vec::new();
    let written: Result<(), std::convert::Infallible> = statement.render(&mut sql, |param, out| {
        write(param, out);
        Ok(())
    });
    match written {
        Ok(()) => sql,
    }
}

fn columns(names: Vec<String>) -> Rc<Columns> {
    let columns = names.into_iter().map(|name| Column { name: name.into(), kind: 0 }).collect();
    Rc::new(Columns { columns, decode: cells::decode, any_name: false })
}

/// Steps to the end, and counts the rows.
#[inline]
fn to_the_end(
    run: &mut Run<'_>,
    columns: &mut Rc<Columns>,
    mut rows: Option<&mut Rows>,
) -> Result<Reply, Trouble> {
    let mut reply = Reply::default();
    loop {
        let step = run.step();
        // The first step may have met another schema than the one that the statement was prepared with.
        if let (Ok(_), None, Some(rows)) = (&step, reply.result, rows.as_deref_mut()) {
            reply.result = begin(run, columns, rows);
        }
        let added = match step {
            Ok(Step::Done) => return Ok(reply),
            Ok(Step::Row) => match (reply.result, rows.as_deref_mut()) {
                (Some(_), Some(rows)) => add(run, columns.columns.len(), rows),
                _ => Ok(()),
            },
            Err(failure) => Err(failure.into()),
        };
        if let Err(trouble) = added {
            if let (Some(result), Some(rows)) = (reply.result, rows) {
                rows.take_back(result);
            }
            return Err(trouble);
        }
        reply.affected += 1;
    }
}

/// Begins the result, if the statement has columns.
fn begin(run: &Run<'_>, known: &mut Rc<Columns>, rows: &mut Rows) -> Option<ResultIndex> {
    let count = run.column_count();
    if count != known.columns.len() {
        *known = columns(run.column_names());
    }
    (count > 0).then(|| rows.begin(known))
}

/// Adds the present row.
#[inline]
fn add(run: &Run<'_>, columns: usize, rows: &mut Rows) -> Result<(), Trouble> {
    if !rows.has_room(0) {
        return Err(Trouble::Error(too_many()));
    }
    rows.push_row();
    for column in 0..columns {
        cells::push(run.cell(column), rows);
        if rows.is_over_full() {
            return Err(Trouble::Error(too_many()));
        }
    }
    Ok(())
}
