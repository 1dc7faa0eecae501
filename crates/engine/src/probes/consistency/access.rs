//! How registers are read and written: by the statements of the probes' tables where there is SQL, else by the verbs of
//! a table with a key.

use std::sync::Arc;

use nephoscope_drivers::probe_tables::MARKERS;
use nephoscope_drivers::{Action, Dialect, Error, Statement, Verb, Want};
use nephoscope_runtime::Nanos;

use super::fork::Sees;
use super::register::CELLS;
use crate::probes::lane::Lane;

/// The places of a writer's statements.
const INSERT: usize = 0;
const UPDATE: usize = 1;
const DELETE: usize = 2;

/// What sessions say.
pub(crate) struct Access {
    /// One statement reads all rows of a register, in one state of the data.
    at_once: bool,
    pub(crate) to_read: Arc<[Statement]>,
    pub(crate) to_write: Arc<[Statement]>,
}

/// How a session that reads rows one after the other goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The register itself last: whatever was written after it, and is there, is there with it.
    RegisterLast,
    /// Two rows of a round, one way or the other.
    FirstThenSecond,
    SecondThenFirst,
}

impl Access {
    pub(crate) fn new(dialect: &'static Dialect) -> Self {
        let (sql, probes) = (dialect.capabilities.sql, &dialect.probes);
        let said = |name: &str, text: &str, action: Action| {
            if sql {
                return Statement::read(name, text, dialect.lexer);
            }
            let fields = if action == Action::Delete { Vec::new() } else { vec!["number".to_owned()] };
            Statement::of_verb(name, Verb { action, table: MARKERS.to_owned(), key: "id".to_owned(), fields })
        };
        Self {
            at_once: sql,
            to_read: Arc::new([said("read", probes.poll, Action::Read)]),
            to_write: Arc::new([
                said("insert", probes.insert, Action::Insert),
                said("update", probes.update, Action::Update),
                said("delete", probes.delete, Action::Delete),
            ]),
        }
    }

    /// Writes a row; an error that is certain has written nothing.
    pub(crate) async fn write(
        &self,
        lane: &mut Lane,
        (row, version): (i64, i64),
        is_there: bool,
        deadline: Nanos,
    ) -> Result<(), Error> {
        let (statement, values) = if is_there { (UPDATE, [version, row]) } else { (INSERT, [row, version]) };
        let reply = lane.ask(statement, &values, Want::Count, deadline).await?;
        if self.at_once && reply.affected != 1 {
            return Err(Error::other("the register's row is gone"));
        }
        Ok(())
    }

    /// Whether no table is dropped afterwards, so that rows have to be removed.
    pub(crate) fn leaves_rows(&self) -> bool {
        !self.at_once
    }

    pub(crate) async fn delete(&self, lane: &mut Lane, row: i64, deadline: Nanos) -> Result<(), Error> {
        lane.ask(DELETE, &[row], Want::Count, deadline).await.map(drop)
    }

    /// Reads the rows of a register, 0 for one that is not there. Also tells what such a read says of the order of two
    /// writes.
    pub(crate) async fn read(
        &self,
        lane: &mut Lane,
        order: Order,
        base: i64,
        deadline: Nanos,
    ) -> Result<([i64; CELLS], Sees), Error> {
        let mut cells = [0; CELLS];
        if self.at_once {
            let last = base + CELLS as i64 - 1;
            let reply = lane.ask(0, &[base, last], Want::Rows, deadline).await?;
            for (row, version) in lane.pairs(reply) {
                cells[(row - base).clamp(0, CELLS as i64 - 1) as usize] = version;
            }
            return Ok((cells, Sees::Both));
        }
        let (places, sees) = match order {
            Order::RegisterLast => (&[1, 2, 0][..], Sees::Both),
            Order::FirstThenSecond => (&[0, 1][..], Sees::FirstBefore),
            Order::SecondThenFirst => (&[1, 0][..], Sees::SecondBefore),
        };
        for place in places {
            let reply = lane.ask(0, &[base + *place as i64], Want::Rows, deadline).await?;
            cells[*place] = lane.number(reply).unwrap_or(0);
        }
        Ok((cells, sees))
    }
}
