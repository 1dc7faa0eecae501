//! A connection of a probe.

use std::sync::Arc;

use nephoscope_drivers::{
    Command, Connection, ConnectionState, Driver, Error, Params, Reply, Rows, Statement, Value, Want,
};
use nephoscope_runtime::{Nanos, Runtime};

use crate::waits::{replies, within};

/// An endpoint that is probed.
pub(crate) struct Endpoint {
    /// Its index among the endpoints.
    pub(crate) index: usize,
    pub(crate) driver: Arc<dyn Driver>,
}

/// A connection that asks one statement at a time.
pub(crate) struct Lane {
    connection: Box<dyn Connection>,
    params: Params,
    rows: Rows,
}

impl Lane {
    /// Makes a connection, which ends by `deadline`.
    pub(crate) async fn connect(
        driver: &dyn Driver,
        runtime: &Runtime,
        statements: &Arc<[Statement]>,
        deadline: Nanos,
    ) -> Result<Self, Error> {
        let connection = within(runtime, deadline, driver.connect(runtime, statements)).await?;
        Ok(Self { connection, params: Params::default(), rows: Rows::default() })
    }

    /// Runs a statement outside a transaction: what it changes is committed with its reply.
    pub(crate) async fn ask(
        &mut self,
        statement: usize,
        values: &[i64],
        want: Want,
        deadline: Nanos,
    ) -> Result<Reply, Error> {
        self.params.clear();
        for value in values {
            self.params.push(Value::Int(*value));
        }
        self.connection.set_deadline(deadline);
        self.connection.queue(Command::Execute(statement), &self.params, want)?;
        replies(&mut *self.connection, &mut self.rows).await
    }

    /// The first two numbers of each row of a reply.
    pub(crate) fn pairs(&self, reply: Reply) -> Vec<(i64, i64)> {
        let Some(result) = reply.result else { return Vec::new() };
        let number = |row, column| match self.rows.value(result, row, column)? {
            Value::Int(number) => Some(number),
            _ => None,
        };
        (0..self.rows.count(result)).filter_map(|row| Some((number(row, 0)?, number(row, 1)?))).collect()
    }

    /// The first cell of a reply's first row, as a number.
    pub(crate) fn number(&self, reply: Reply) -> Option<i64> {
        match self.rows.value(reply.result.filter(|result| self.rows.count(*result) > 0)?, 0, 0)? {
            Value::Int(number) => Some(number),
            Value::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }

    pub(crate) fn state(&self) -> ConnectionState {
        self.connection.state()
    }

    /// Goes on waiting for a reply that did not come in time, so that the connection can be used again.
    pub(crate) async fn linger(&mut self, deadline: Nanos) {
        self.connection.set_deadline(deadline);
        // What it was no longer matters: the state says whether the connection is of use.
        let _ = replies(&mut *self.connection, &mut self.rows).await;
    }
}
