//! What a key-value system behind HTTP is: how a verb becomes requests, and how their responses become rows.

use std::rc::Rc;

use crate::contract::error::Error;
use crate::contract::rows::{Column, Columns, ResultIndex, Rows, too_many};
use crate::contract::statement::Statement;
use crate::contract::value::{Params, Value, write_plain};
use crate::contract::verb::{Action, Verb};
use crate::net::http::request::Method;
use crate::net::http::response::Response;

/// A system of tables whose rows are known by a key. It does no I/O: a session sends what it writes, one request at a
/// time, and tells it what came back.
pub(crate) trait Service {
    /// What it keeps of a verb.
    type Own;

    /// The system's name in messages.
    const NAME: &'static str;

    /// How many bytes a key or a value may have.
    const LONGEST_TEXT: usize = usize::MAX;

    /// What it keeps of a verb.
    fn own(&self, verb: &Verb) -> Self::Own;

    /// Writes a call's first request behind `out`. An error means that nothing was queued. Calls before it may still
    /// wait for their turn.
    fn ask(&mut self, keyed: &Keyed<Self::Own>, params: &Params, out: &mut Vec<u8>) -> Result<Method, Error>;

    /// Takes the response to a request of a call; gives the method of the next request, which is written behind `out`,
    /// or `None` at the call's end. `turn` requests of the call came before. An error ends the call; one of the class
    /// `connection_lost` ends the connection, for what came is not what the system sends.
    fn answer(
        &mut self,
        call: (&Keyed<Self::Own>, &Params, u32),
        response: &Response,
        found: &mut Found<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Method>, Error>;
}

/// A verb as a connection knows it.
pub(crate) struct Keyed<O> {
    statement: Statement,
    pub(crate) verb: Verb,
    pub(super) columns: Rc<Columns>,
    pub(crate) own: O,
    name: &'static str,
    longest: usize,
}

impl<O> Keyed<O> {
    /// Reads a statement; the error is one that is no verb.
    pub(super) fn of<S: Service<Own = O>>(service: &S, statement: &Statement) -> Result<Self, Error> {
        let Some(verb) = statement.verb() else {
            let (name, label) = (S::NAME, statement.name());
            return Err(Error::other(format!(
                "statement {label}: {name} has no SQL; it takes the verbs of tables with a key"
            )));
        };
        let columns = verb.fields.iter().map(|name| Column { name: name.as_str().into(), kind: 0 }).collect();
        Ok(Self {
            statement: statement.clone(),
            columns: Rc::new(Columns { columns, decode: |_, cell| Value::Text(cell), any_name: false }),
            own: service.own(verb),
            verb: verb.clone(),
            name: S::NAME,
            longest: S::LONGEST_TEXT,
        })
    }

    /// Writes the key of a call.
    #[inline]
    pub(crate) fn key(&self, params: &Params, out: &mut Vec<u8>) -> Result<(), Error> {
        let place = if self.verb.action == Action::Update { self.verb.fields.len() } else { 0 };
        self.text(params, place, out)
    }

    /// Writes the value of a field that a call writes, by the field's place.
    #[inline]
    pub(crate) fn field(&self, params: &Params, field: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        self.text(params, field + usize::from(self.verb.action == Action::Insert), out)
    }

    /// How many rows a scan asks for.
    pub(crate) fn count(&self, params: &Params) -> Result<usize, Error> {
        match params.get(1) {
            Some(Value::Int(count @ 0..)) => Ok(count as usize),
            _ => Err(self.statement.misfit(1, "it is no whole number of rows")),
        }
    }

    /// The column of a field that a call reads.
    #[inline]
    pub(crate) fn column(&self, is: impl Fn(&[u8]) -> bool) -> Option<usize> {
        self.verb.fields.iter().position(|field| is(field.as_bytes()))
    }

    /// All texts here are UTF-8: none of these systems keeps others.
    fn text(&self, params: &Params, place: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        if !write_plain(params.get(place).unwrap_or(Value::Null), out) {
            return Err(self.statement.misfit(place, format!("{} keeps no NULL", self.name)));
        }
        if std::str::from_utf8(&out[start..]).is_err() {
            return Err(self.statement.misfit(place, format!("{} keeps UTF-8 here", self.name)));
        }
        let (length, Self { name, longest, .. }) = (out.len() - start, self);
        if length > *longest {
            let what = format!("{name} keeps texts of {longest} bytes at most, and this one has {length}");
            return Err(self.statement.misfit(place, what));
        }
        Ok(())
    }

    /// Says whether a call gives what its verb takes.
    pub(super) fn check(&self, params: &Params) -> Result<(), Error> {
        self.statement.check_count(params)?;
        if self.verb.action == Action::Scan { self.count(params).map(|_| ()) } else { Ok(()) }
    }
}

/// The cells of one row, found in any order.
#[derive(Default)]
pub(crate) struct Cells {
    text: Vec<u8>,
    places: Vec<Option<(usize, usize)>>,
}

impl Cells {
    /// Begins a row of so many columns, all of them NULL.
    pub(crate) fn begin(&mut self, width: usize) {
        self.text.clear();
        self.places.clear();
        self.places.resize(width, None);
    }

    /// Sets a cell to what is written.
    #[inline]
    pub(crate) fn set<E>(
        &mut self,
        column: usize,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.text.len();
        write(&mut self.text)?;
        self.places[column] = Some((start, self.text.len()));
        Ok(())
    }

    /// The cell of a column; `None` is NULL.
    pub(crate) fn get(&self, column: usize) -> Option<&[u8]> {
        self.places[column].map(|(start, end)| &self.text[start..end])
    }
}

/// What a call has found or touched so far.
pub(crate) struct Found<'a> {
    pub(super) rows: &'a mut Rows,
    pub(super) columns: &'a Rc<Columns>,
    /// Whether its rows are wanted.
    pub(super) keeps: bool,
    pub(super) result: &'a mut Option<ResultIndex>,
    pub(super) count: &'a mut u64,
}

impl Found<'_> {
    /// Counts rows that were touched.
    pub(crate) fn touched(&mut self, rows: u64) {
        *self.count += rows;
    }

    /// How many rows there are so far.
    pub(crate) fn count(&self) -> usize {
        *self.count as usize
    }

    /// Adds a row; the error is one for which there is no room.
    #[inline]
    pub(crate) fn push(&mut self, cells: &Cells) -> Result<(), Error> {
        *self.count += 1;
        if !self.keeps {
            return Ok(());
        }
        self.begin();
        if !self.rows.has_room(cells.text.len() + 5 * cells.places.len()) {
            return Err(too_many());
        }
        self.rows.push_row();
        (0..cells.places.len()).for_each(|column| self.rows.push_cell(cells.get(column)));
        Ok(())
    }

    /// Begins the result, which may come to have no row.
    pub(super) fn begin(&mut self) {
        if self.keeps && self.result.is_none() {
            *self.result = Some(self.rows.begin(self.columns));
        }
    }
}
