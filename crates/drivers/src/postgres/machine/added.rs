//! Statements that a connection comes to know while it is in use.
//!
//! One with parameters is described first, as the statements of a workload are: only its types say how values are
//! written. The description costs a round trip, once per connection. The columns of a text without parameters come as
//! text, because nobody knows them when it leaves. By itself it leaves as a query, which costs the server least; beside
//! others it is parsed, bound, described and run in one batch with them, so that an error ends them all. So does one that
//! may be several statements, for the server to refuse.

use std::rc::Rc;

use super::prepared::kept;
use super::{Description, Expected, Machine, Parsed, Prepared, server_name, sql};
use crate::contract::added::{Added, Found, MOST_ADDED};
use crate::contract::driver::{ConnectionState, Reply, StatementMode, Want};
use crate::contract::error::Error;
use crate::contract::rows::{Columns, Rows, too_many};
use crate::contract::statement::Statement;
use crate::contract::value::Params;
use crate::postgres::admin::described_columns;
use crate::postgres::types::{self, Type};
use crate::postgres::wire;

/// Where the places of texts begin: beyond those of all statements.
const TEXTS: usize = usize::MAX / 2;

impl Machine {
    /// Makes a statement known, and asks for its description where that is not known.
    pub(super) fn add(&mut self, statement: &Rc<Statement>, alone: bool, out: &mut Vec<u8>) -> Added {
        let idle = self.state() != ConnectionState::Waiting;
        if statement.params().is_empty() {
            self.text_alone = alone && idle && !statement.head().contains(';');
            return self.add_text(statement, idle);
        }
        let place = match self.places.find(statement, idle) {
            Found::Known(place) => return Added::Ready(place),
            Found::New(place) => place,
            Found::Full => return Added::Full,
        };
        let name = server_name(self.mode, place);
        if place < self.statements.len() && !name.is_empty() {
            wire::close(out, &name);
        }
        wire::parse(out, &name, &sql(statement));
        wire::describe(out, &name);
        self.keep(place, statement, &Description::default());
        self.expected.push_back(Expected::Description { place });
        self.open_batch = true;
        Added::Asked(place)
    }

    fn add_text(&mut self, text: &Rc<Statement>, idle: bool) -> Added {
        if idle {
            self.texts.clear();
        }
        if self.texts.len() == MOST_ADDED {
            return Added::Full;
        }
        self.texts.push(Rc::clone(text));
        Added::Ready(TEXTS + self.texts.len() - 1)
    }

    fn keep(&mut self, place: usize, statement: &Rc<Statement>, described: &Description) {
        let one = Prepared::new(self.mode, (**statement).clone(), place, described, Parsed::Yes);
        if place == self.statements.len() {
            self.statements.push(one);
        } else {
            self.statements[place] = one;
        }
    }

    /// Writes a text behind `out`.
    #[cold]
    pub(super) fn queue_text(
        &mut self,
        place: usize,
        params: &Params,
        want: Want,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let text = place.checked_sub(TEXTS).and_then(|text| self.texts.get(text));
        let text = text.ok_or_else(|| Statement::missing(place))?;
        text.check_count(params)?;
        self.expected.push_back(Expected::Text { want });
        if self.mode == StatementMode::Simple || self.text_alone {
            wire::query(out, text.head());
            self.expect_sync();
        } else {
            wire::parse(out, "", text.head());
            out.extend_from_slice(&wire::BIND_TEXT);
            out.extend_from_slice(&wire::EXECUTE);
            self.open_batch = true;
        }
        Ok(())
    }

    pub(super) fn described_params(&mut self, body: &[u8]) -> Result<(), Error> {
        let Some(Expected::Description { .. }) = self.expected.front() else {
            return Err(wire::garbage("parameters that nobody asked for"));
        };
        self.params = described_params(body)?;
        Ok(())
    }

    /// `RowDescription`: of an added statement, of a text, or in the simple mode of a statement whose columns are known.
    pub(super) fn described(&mut self, body: &[u8], rows: &mut Rows) -> Result<(), Error> {
        match self.expected.front() {
            Some(Expected::Description { place }) => {
                let place = *place;
                self.describe(place, described_columns(body)?);
            }
            Some(Expected::Text { want }) if want.has_rows() => {
                let columns = kept(&described_columns(body)?, |_| false);
                self.text_result = columns.map(|columns| (rows.begin(&columns), columns));
            }
            _ => self.begin_rows(rows),
        }
        Ok(())
    }

    pub(super) fn described_without_columns(&mut self) {
        if let Some(Expected::Description { place }) = self.expected.front() {
            let place = *place;
            self.describe(place, Vec::new());
        }
    }

    /// The description of the statement at a place is complete.
    fn describe(&mut self, place: usize, columns: Vec<(String, Type)>) {
        let described = Description { params: std::mem::take(&mut self.params), columns };
        self.expected.pop_front();
        let Some(statement) = self.places.get(place).map(Rc::clone) else { return };
        if described.params.len() == statement.params().len() {
            self.keep(place, &statement, &described);
            return;
        }
        self.places.forget(place);
        let (seen, written) = (described.params.len(), statement.params().len());
        let message = format!(
            "statement {}: the server sees {seen} parameters, and there are {written}",
            statement.name()
        );
        self.error.get_or_insert_with(|| Error::other(message));
    }

    /// A row of a text, or one that nobody wants.
    #[cold]
    pub(super) fn text_row(&mut self, body: &[u8], rows: &mut Rows) -> Result<(), Error> {
        let Some((_, columns)) = &self.text_result else { return Ok(()) };
        let Some((_count, cells)) = body.split_first_chunk::<2>() else {
            return Err(wire::garbage("DataRow"));
        };
        if !rows.has_room(cells.len()) {
            // What still comes of this result is read and not kept.
            self.text_result = None;
            self.overflow = Some(too_many());
            return Ok(());
        }
        push_text_row(Some(columns), cells, rows)
    }

    #[cold]
    pub(super) fn completed_text(&mut self, tag: &[u8], rows: &mut Rows) -> Result<(), Error> {
        let Some(Expected::Text { want }) = self.expected.front() else {
            return Err(wire::garbage("the end of a command that was not sent"));
        };
        let result = self.text_result.take().map(|(result, _)| result);
        self.reply = Reply { affected: wire::affected(tag), result, ..Reply::default() };
        if *want == Want::Kept {
            rows.keep(self.reply);
        }
        if self.mode != StatementMode::Simple {
            self.expected.pop_front();
        }
        Ok(())
    }
}

/// In the simple mode bytea comes in hexadecimal digits; the store keeps it as bytes like the other modes.
pub(super) fn push_text_row(
    columns: Option<&Columns>,
    mut cells: &[u8],
    rows: &mut Rows,
) -> Result<(), Error> {
    rows.push_row();
    let bytea = Type::Bytea.kind(true);
    for column in columns.map(|columns| columns.columns.as_slice()).unwrap_or_default() {
        let Some((length, rest)) = cells.split_first_chunk::<4>() else {
            return Err(wire::garbage("DataRow"));
        };
        cells = rest;
        let Ok(size) = usize::try_from(i32::from_be_bytes(*length)) else {
            rows.push_cell(None);
            continue;
        };
        let Some((cell, rest)) = cells.split_at_checked(size) else { return Err(wire::garbage("DataRow")) };
        cells = rest;
        match types::bytea_from_text(cell).filter(|_| column.kind == bytea) {
            Some(bytes) => rows.push_cell(Some(&bytes)),
            None => rows.push_cell(Some(cell)),
        }
    }
    Ok(())
}

/// Reads a `ParameterDescription`.
pub(crate) fn described_params(body: &[u8]) -> Result<Vec<Type>, Error> {
    let mut fields = wire::Fields(body);
    let count = u16::from_be_bytes(fields.take()?);
    (0..count).map(|_| fields.u32().map(Type::of)).collect()
}
