//! Statements as a connection knows them.

use std::rc::Rc;

use crate::contract::driver::StatementMode;
use crate::contract::error::{Error, ErrorClass};
use crate::contract::rows::Columns;
use crate::contract::statement::Statement;
use crate::contract::value::{Params, Value};
use crate::mysql::types::{self, Misfit, field};
use crate::mysql::wire::{self, command, garbage};

use super::order::only_reads;

/// Where the statement's identifier lies in an EXECUTE packet: behind the header and the command.
const IDENTIFIER: usize = wire::HEADER + 1;
/// Where its bits for values that are null lie.
const NULLS: usize = IDENTIFIER + 9;
/// The length of a whole CLOSE packet.
const CLOSE: usize = wire::HEADER + 5;

/// A statement as a connection knows it.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) statement: Statement,
    /// The SQL with a question mark for each place of a parameter.
    pub(crate) sql: String,
    /// Which parameter stands at each place.
    places: Vec<usize>,
    /// EXECUTE up to the values, with the identifier, the nulls and the types still to be set.
    head: Vec<u8>,
    /// The server's identifier, while it has the statement prepared.
    pub(crate) id: Option<u32>,
    /// It is sent as text, with the values written into it: the mode asks for that, or the server cannot prepare it.
    pub(crate) as_text: bool,
    pub(crate) only_reads: bool,
    pub(crate) columns: Described,
}

impl Prepared {
    pub(crate) fn new(statement: Statement, mode: StatementMode) -> Self {
        let (mut sql, mut places) = (Vec::new(), Vec::new());
        // Writing into a vector cannot fail.
        let _ = statement.render(&mut sql, |param, out| {
            places.push(param);
            out.push(b'?');
            Ok::<(), ()>(())
        });
        let sql = String::from_utf8(sql).unwrap_or_default();
        let only_reads = only_reads(&sql);
        let as_text = mode == StatementMode::Simple;
        let (head, columns) = (execute_head(places.len()), Described::default());
        Self { statement, sql, places, head, id: None, as_text, only_reads, columns }
    }

    /// A statement that is added to a connection in use: without parameters it is sent as the text that it is.
    pub(super) fn added(statement: Statement, mode: StatementMode) -> Self {
        if !statement.params().is_empty() {
            return Self::new(statement, mode);
        }
        let only_reads = only_reads(statement.head());
        let (sql, places, columns) = (String::new(), Vec::new(), Described::default());
        Self { statement, sql, places, head: execute_head(0), id: None, as_text: true, only_reads, columns }
    }

    /// Takes the answer to PREPARE and gives how many parameters and columns are described next.
    pub(crate) fn prepared(&mut self, payload: &[u8]) -> Result<(usize, usize), Error> {
        let mut fields = wire::Fields(payload);
        if fields.u8()? != 0 {
            return Err(garbage("the answer to a preparation"));
        }
        self.id = Some(fields.u32()?);
        let (columns, params) = (usize::from(fields.u16()?), usize::from(fields.u16()?));
        self.columns.begin(columns);
        Ok((params, columns))
    }

    /// Checks how many parameters the server sees.
    pub(crate) fn check_places(&self, seen: usize) -> Result<(), Error> {
        let written = self.places.len();
        if seen == written {
            return Ok(());
        }
        let message = format!("the server sees {seen} parameters, and there are {written}");
        Err(Error::new(ErrorClass::Other, "1210", message))
    }

    /// EXECUTE, as a whole packet. Gives the sequence number of its answer, as those below do.
    #[inline]
    pub(super) fn write_execute(&self, params: &Params, out: &mut Vec<u8>) -> Result<u8, Error> {
        let start = out.len();
        out.extend_from_slice(&self.head);
        let (nulls, types) = (start + NULLS, out.len() - 2 * self.places.len());
        let id = self.id.unwrap_or_default();
        out[start + IDENTIFIER..start + IDENTIFIER + 4].copy_from_slice(&id.to_le_bytes());
        for (at, place) in self.places.iter().enumerate() {
            let value = params.get(*place).unwrap_or(Value::Null);
            let of = types::encode(value, out).map_err(|why| self.misfit(*place, &why))?;
            out[types + 2 * at..types + 2 * at + 2].copy_from_slice(&of);
            if of[0] == field::NULL {
                out[nulls + at / 8] |= 1 << (at % 8);
            }
        }
        Ok(wire::end_packet(out, start, 0))
    }

    /// EXECUTE and CLOSE of a statement whose identifier is not known yet.
    pub(super) fn write_bound(&self, params: &Params, out: &mut Vec<u8>) -> Result<u8, Error> {
        let answer = self.write_execute(params, out)?;
        write_close(0, out);
        Ok(answer)
    }

    /// QUERY with the values written into the text.
    pub(super) fn write_text(&self, params: &Params, out: &mut Vec<u8>) -> Result<u8, Error> {
        let start = wire::begin_packet(out);
        out.push(command::QUERY);
        self.statement.render(out, |param, out| {
            let value = params.get(param).unwrap_or(Value::Null);
            types::write_literal(value, out).map_err(|why| self.misfit(param, &why))
        })?;
        Ok(wire::end_packet(out, start, 0))
    }

    #[cold]
    fn misfit(&self, place: usize, why: &Misfit) -> Error {
        let name = self.statement.params().get(place).map_or("?", String::as_str);
        Error::other(format!("{}, parameter :{name}: {why}", self.statement.name()))
    }
}

fn execute_head(places: usize) -> Vec<u8> {
    let mut head = vec![0; wire::HEADER];
    head.extend_from_slice(&[command::EXECUTE, 0, 0, 0, 0]);
    // No cursor, once.
    head.extend_from_slice(&[0, 1, 0, 0, 0]);
    if places > 0 {
        head.resize(NULLS + places.div_ceil(8), 0);
        // The types follow.
        head.push(1);
        head.resize(head.len() + 2 * places, 0);
    }
    head
}

/// Writes the identifier into what [`Prepared::write_bound`] has written.
pub(super) fn identify(bound: &mut [u8], id: u32) {
    let id = id.to_le_bytes();
    if bound.len() >= CLOSE + IDENTIFIER + 4 {
        bound[IDENTIFIER..IDENTIFIER + 4].copy_from_slice(&id);
        let end = bound.len() - 4;
        bound[end..].copy_from_slice(&id);
    }
}

/// CLOSE, which has no answer.
pub(crate) fn write_close(id: u32, out: &mut Vec<u8>) {
    wire::command(out, command::CLOSE, &id.to_le_bytes());
}

/// The columns of a statement's last result, and how the server described them: the same description is not read twice.
#[derive(Debug, Default)]
pub(crate) struct Described {
    pub(crate) columns: Option<Rc<Columns>>,
    /// The descriptions, each with its length before it.
    raw: Vec<u8>,
    /// How much of `raw` was said again.
    same: usize,
    count: usize,
    has_changed: bool,
}

impl Described {
    /// So many columns are described next.
    pub(crate) fn begin(&mut self, count: usize) {
        self.has_changed = self.count != count;
        self.same = 0;
        self.count = count;
    }

    /// Takes a description.
    #[inline]
    pub(crate) fn push(&mut self, definition: &[u8]) {
        let end = self.same + 4 + definition.len();
        let length = (definition.len() as u32).to_le_bytes();
        let known = self.raw.get(self.same..end);
        if known.is_none_or(|known| known[..4] != length || known[4..] != *definition) {
            self.has_changed = true;
            self.raw.truncate(self.same);
            self.raw.extend_from_slice(&length);
            self.raw.extend_from_slice(definition);
        }
        self.same = end;
    }

    /// Every column is described.
    #[inline]
    pub(crate) fn end(&mut self, as_text: bool) -> Result<(), Error> {
        if self.has_changed || self.columns.is_none() {
            self.read(as_text)?;
        }
        Ok(())
    }

    #[cold]
    fn read(&mut self, as_text: bool) -> Result<(), Error> {
        self.raw.truncate(self.same);
        let (mut definitions, mut rest) = (Vec::with_capacity(self.count), self.raw.as_slice());
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let (definition, after) = after.split_at((u32::from_le_bytes(*length) as usize).min(after.len()));
            definitions.push(wire::definition(definition)?);
            rest = after;
        }
        self.has_changed = false;
        let columns = types::columns(definitions.into_iter(), as_text);
        self.columns = (self.count > 0).then(|| Rc::new(columns));
        Ok(())
    }
}
