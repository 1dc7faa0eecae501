//! Statements as a connection knows them.

use std::io::Write as _;
use std::rc::Rc;

use super::CONTROL;
use crate::contract::driver::StatementMode;
use crate::contract::isolation::Isolation;
use crate::contract::rows::{Column, Columns};
use crate::contract::statement::Statement;
use crate::postgres::types::{self, Type};
use crate::postgres::wire;

/// What a server says of a statement: the same on each connection of an endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Description {
    /// The types of its parameters.
    pub(crate) params: Vec<Type>,
    /// Names and types of its columns; none where it returns no rows.
    pub(crate) columns: Vec<(String, Type)>,
}

/// Whether the server has parsed a statement on this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    No,
    /// It was asked to, and has not answered.
    Asked,
    /// It has, or the mode has no need of it.
    Yes,
}

/// A statement as a connection knows it.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) statement: Statement,
    /// The server-side name: empty for the unnamed statement.
    pub(super) name: String,
    pub(super) parsed: Parsed,
    pub(crate) params: Vec<Type>,
    /// `None` where the statement returns no rows.
    pub(super) columns: Option<Rc<Columns>>,
    /// `Bind` up to the values, with the formats still to be set.
    pub(super) head: Vec<u8>,
    /// `Bind` from the result formats on, and `Execute`.
    pub(super) tail: Vec<u8>,
}

impl Prepared {
    /// The statement at a place of the connection's list, as it was described; `parsed` is what the prepared mode asks
    /// for.
    pub(super) fn new(
        mode: StatementMode,
        statement: Statement,
        place: usize,
        described: &Description,
        parsed: Parsed,
    ) -> Self {
        let (name, columns) = (server_name(mode, place), &described.columns);
        let parsed = if mode == StatementMode::Prepared { parsed } else { Parsed::Yes };
        let binary = |of: Type| mode != StatementMode::Simple && of.binary();
        let mut head = Vec::new();
        if mode == StatementMode::Extended {
            wire::parse(&mut head, "", &sql(&statement));
        }
        head.extend_from_slice(&[b'B', 0, 0, 0, 0, 0]);
        wire::put_text(&mut head, &name);
        let count = (described.params.len() as i16).to_be_bytes();
        head.extend_from_slice(&count);
        head.resize(head.len() + 2 * described.params.len(), 0);
        head.extend_from_slice(&count);
        let mut tail = (columns.len() as i16).to_be_bytes().to_vec();
        for (_, of) in columns {
            tail.extend_from_slice(&i16::from(binary(*of)).to_be_bytes());
        }
        tail.extend_from_slice(&wire::EXECUTE);
        let columns = kept(columns, binary);
        let params = described.params.clone();
        Self { statement, name, parsed, params, columns, head, tail }
    }

    /// All statements of a connection, in the order of their places, as they were described.
    pub(crate) fn list(
        mode: StatementMode,
        statements: Vec<Statement>,
        described: &[Description],
        parsed: Parsed,
    ) -> Vec<Self> {
        let places = statements.into_iter().zip(described).enumerate();
        places.map(|(place, (statement, of))| Self::new(mode, statement, place, of, parsed)).collect()
    }

    /// Where `Bind`'s length field lies in `head`.
    pub(super) fn length_at(&self, mode: StatementMode) -> usize {
        // Behind the Parse message, if there is one, whose length field says how long it is.
        if mode == StatementMode::Extended
            && let Some(length) = self.head.get(1..5).and_then(|bytes| bytes.try_into().ok())
        {
            return u32::from_be_bytes(length) as usize + 2;
        }
        1
    }
}

/// The columns of a result as the store keeps them; `None` where it has none.
pub(super) fn kept(columns: &[(String, Type)], binary: impl Fn(Type) -> bool) -> Option<Rc<Columns>> {
    let column = |(name, of): &(String, Type)| {
        // The store keeps bytea as bytes in every mode: see `push_text_row`.
        let kind = of.kind(binary(*of) || *of == Type::Bytea);
        Column { name: name.as_str().into(), kind }
    };
    let all = || columns.iter().map(column).collect();
    (!columns.is_empty()).then(|| Rc::new(Columns { columns: all(), decode: types::decode, any_name: false }))
}

/// The statements of a connection: the workload's, then those of [`CONTROL`].
pub(crate) fn with_control(statements: &[Statement]) -> Vec<Statement> {
    statements.iter().cloned().chain(CONTROL.map(|sql| Statement::new(sql, sql))).collect()
}

/// The statements of a connection, and behind them BEGIN in each isolation level, parsed when it is first used.
pub(super) fn with_levels(mode: StatementMode, mut statements: Vec<Prepared>) -> Vec<Prepared> {
    for level in Isolation::ALL {
        let sql = format!("BEGIN ISOLATION LEVEL {}", level.name().to_uppercase());
        let (statement, place) = (Statement::new(&sql, &sql), statements.len());
        statements.push(Prepared::new(mode, statement, place, &Description::default(), Parsed::No));
    }
    statements
}

/// What the statement at a place of the connection's list is called on the server.
pub(crate) fn server_name(mode: StatementMode, place: usize) -> String {
    if mode == StatementMode::Prepared { format!("s{place}") } else { String::new() }
}

/// The SQL of a statement as PostgreSQL takes it, with `$1`, `$2` … for the parameters.
pub(crate) fn sql(statement: &Statement) -> String {
    let mut sql = Vec::new();
    // Writing into a vector cannot fail.
    let _ = statement.render(&mut sql, |param, out| write!(out, "${}", param + 1));
    String::from_utf8(sql).unwrap_or_default()
}
