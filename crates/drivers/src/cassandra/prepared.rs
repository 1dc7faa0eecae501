//! Statements as a connection knows them: verbs in CQL, and CQL of a workload's own.

use std::rc::Rc;

use super::levels::{Level, Levels};
use super::types::{self, Type};
use super::wire::{self, Fields, Form, begin, end, flag, garbage, opcode, put_long, put_string};
use crate::contract::error::Error;
use crate::contract::rows::Columns;
use crate::contract::statement::Statement;
use crate::contract::value::{Params, Value};
use crate::contract::verb::{Action, Verb};

/// What a statement may be sent beside: a server runs what it is sent on one connection at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Read,
    /// Writes have times of this client, so that the later one holds whichever the server runs first.
    Write,
    /// What defines data, is conditional, or is not known: it is sent when all before it is answered.
    Alone,
}

/// A statement as a connection knows it.
pub(super) struct Prepared {
    pub(super) statement: Statement,
    /// With a question mark for each place of a parameter.
    pub(super) cql: String,
    /// Which parameter stands at each place.
    places: Vec<usize>,
    pub(super) effect: Effect,
    /// It is sent as text: it has no parameters, and was not known when the connection was made.
    pub(super) as_text: bool,
    level: Level,
    form: Form,
    /// What the server calls it, and in version 5 also the columns of its result.
    id: Vec<u8>,
    columns_id: Vec<u8>,
    /// The request up to its values.
    head: Vec<u8>,
    types: Vec<Type>,
    /// Which of the places make up the partition key, in its order; none where they do not.
    keys: Vec<u16>,
    /// The keyspace of its table, where it has parameters.
    keyspace: String,
    /// The columns of its last result, and their description on the wire.
    columns: Option<Rc<Columns>>,
    described: Vec<u8>,
}

/// The scan of a verb: rows have the order of their keys' tokens, for the keys of a table are not kept in another.
fn cql_of(verb: &Verb) -> String {
    let Verb { action, table, key, fields } = verb;
    match action {
        Action::Scan => {
            let names = fields.join(", ");
            format!("SELECT {names} FROM {table} WHERE token({key}) >= token(:key) LIMIT :count")
        }
        _ => verb.sql(),
    }
}

/// What a text does, by its words. A text that is not understood is sent alone.
fn effect_of(cql: &str) -> Effect {
    let mut words = cql.split(|next: char| !next.is_alphanumeric()).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default().to_ascii_uppercase();
    match first.as_str() {
        "SELECT" => Effect::Read,
        "INSERT" | "UPDATE" | "DELETE" if !words.any(|word| word.eq_ignore_ascii_case("IF")) => Effect::Write,
        _ => Effect::Alone,
    }
}

impl Prepared {
    pub(super) fn new(statement: &Statement, levels: Levels, form: Form) -> Self {
        let rendered = statement.verb().map(|verb| Statement::new(statement.name(), &cql_of(verb)));
        let (mut cql, mut places) = (Vec::new(), Vec::new());
        // Writing into a vector cannot fail.
        let _ = rendered.as_ref().unwrap_or(statement).render(&mut cql, |param, out| {
            places.push(param);
            out.push(b'?');
            Ok::<(), ()>(())
        });
        let cql = String::from_utf8(cql).unwrap_or_default();
        let effect = effect_of(&cql);
        Self {
            statement: statement.clone(),
            cql,
            places,
            effect,
            as_text: false,
            level: if effect == Effect::Read { levels.read } else { levels.write },
            form,
            id: Vec::new(),
            columns_id: Vec::new(),
            head: Vec::new(),
            types: Vec::new(),
            keys: Vec::new(),
            keyspace: String::new(),
            columns: None,
            described: Vec::new(),
        }
    }

    /// A statement that is added to a connection in use: without parameters it is sent as the text that it is.
    pub(super) fn added(statement: &Statement, levels: Levels, form: Form) -> Self {
        let mut one = Self::new(statement, levels, form);
        if statement.params().is_empty() {
            one.as_text = true;
            put_long(&mut one.head, one.cql.as_bytes());
            one.head.extend_from_slice(&one.level.0.to_be_bytes());
            form.put_flags(flag::TIMESTAMP, &mut one.head);
        }
        one
    }

    /// Whether columns are those that the preparation told. In version 4 that is known of verbs, which name them; in
    /// version 5 a server tells others where they have changed.
    fn skips_metadata(&self) -> bool {
        let is_known = self.form.is_five() || self.statement.verb().is_some();
        self.effect == Effect::Read && is_known && self.columns.is_some()
    }

    /// Takes the answer to its preparation, behind the kind of result (section 4.2.5.4).
    pub(super) fn prepared(&mut self, mut fields: Fields<'_>) -> Result<(), Error> {
        self.id = fields.string()?.to_vec();
        if self.form.is_five() {
            self.columns_id = fields.string()?.to_vec();
        }
        let (flags, count, keys) = (fields.i32()?, fields.count()?, fields.count()?);
        self.keys = (0..keys).map(|_| fields.u16()).collect::<Result<_, _>>()?;
        let mut types = Vec::new();
        if flags & 1 != 0 && count > 0 {
            let mut names = fields;
            self.keyspace = String::from_utf8_lossy(names.string()?).into_owned();
        }
        types::read_specs(&mut fields, count, flags & 1 != 0, |_, of| types.push(of))?;
        let seen = types.len();
        self.types = types;
        self.take_columns(&mut fields)?;
        self.make_head();
        let written = self.places.len();
        if seen != written {
            let message = format!("the server sees {seen} parameters, and there are {written}");
            return Err(Error::other(message));
        }
        Ok(())
    }

    /// Makes the request up to its values (section 4.1.6).
    fn make_head(&mut self) {
        let skip = if self.skips_metadata() { flag::SKIP_METADATA } else { 0 };
        let head = &mut self.head;
        head.clear();
        put_string(head, &self.id);
        if self.form.is_five() {
            put_string(head, &self.columns_id);
        }
        head.extend_from_slice(&self.level.0.to_be_bytes());
        self.form.put_flags(flag::VALUES | flag::TIMESTAMP | skip, head);
        head.extend_from_slice(&(self.types.len() as u16).to_be_bytes());
    }

    /// Reads what a result says of its columns (section 4.2.5.2); gives how many it has.
    #[inline]
    pub(super) fn take_columns(&mut self, fields: &mut Fields<'_>) -> Result<usize, Error> {
        const ONE_TABLE: i32 = 1;
        const MORE_PAGES: i32 = 2;
        const NO_METADATA: i32 = 4;
        const CHANGED: i32 = 8;
        let (flags, count) = (fields.i32()?, fields.i32()?);
        let count = usize::try_from(count).map_err(|_| garbage("a number of columns"))?;
        if flags & MORE_PAGES != 0 {
            fields.bytes()?;
        }
        if flags & CHANGED != 0 && self.form.is_five() {
            self.columns_id = fields.string()?.to_vec();
            self.make_head();
        }
        if flags & NO_METADATA == 0 {
            let before = fields.0;
            types::read_specs(fields, count, flags & ONE_TABLE != 0, |_, _| {})?;
            let described = &before[..before.len() - fields.0.len()];
            if self.columns.is_none() || self.described != described {
                let columns = types::read_columns(&mut Fields(described), count, flags & ONE_TABLE != 0)?;
                self.columns = Some(columns);
                self.described = described.to_vec();
            }
        }
        Ok(count)
    }

    /// The columns of its result, of which the server says that there are so many.
    #[inline]
    pub(super) fn columns(&self, count: usize) -> Result<&Rc<Columns>, Error> {
        let columns = self.columns.as_ref().filter(|columns| columns.columns.len() == count && count > 0);
        columns.ok_or_else(|| garbage("a result without columns"))
    }

    /// The request of a call, whose writes have a time in microseconds.
    #[inline]
    pub(super) fn write(
        &self,
        params: &Params,
        stream: i16,
        time: i64,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.statement.check_count(params)?;
        let opcode = if self.as_text { opcode::QUERY } else { opcode::EXECUTE };
        let start = begin(out, self.form, opcode, stream);
        out.extend_from_slice(&self.head);
        for (place, of) in self.places.iter().zip(&self.types) {
            let value = params.get(*place).unwrap_or(Value::Null);
            types::encode(*of, value, out).map_err(|why| self.statement.misfit(*place, why))?;
        }
        out.extend_from_slice(&time.to_be_bytes());
        end(out, self.form, start);
        Ok(())
    }

    /// The keyspace in which its calls have a partition key.
    pub(super) fn routed_in(&self) -> Option<&str> {
        (!self.keys.is_empty()).then_some(&*self.keyspace)
    }

    /// Writes the partition key of a call as its token is made of it: the bytes of the one column, or of several each
    /// with its length before it and a zero behind it. `false` where the call has none that a server would take.
    pub(super) fn write_key(&self, params: &Params, out: &mut Vec<u8>) -> bool {
        out.clear();
        for key in &self.keys {
            let key = usize::from(*key);
            let (Some(place), Some(of)) = (self.places.get(key), self.types.get(key)) else { return false };
            let (value, start) = (params.get(*place).unwrap_or(Value::Null), out.len());
            if value == Value::Null || types::encode(*of, value, out).is_err() {
                return false;
            }
            if self.keys.len() == 1 {
                out.drain(..4);
                return true;
            }
            // Of the length that stands before a value the last two bytes are kept.
            out.drain(start..start + 2);
            out.push(0);
        }
        !out.is_empty()
    }

    /// Adds a value of the row that is loaded by it.
    pub(super) fn put_cell(&self, place: usize, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), String> {
        let of = self.types.get(place).ok_or("a row has more values than columns")?;
        types::encode(*of, value, out)
    }

    /// The request of a row that [`Prepared::put_cell`] has made.
    pub(super) fn write_row(&self, cells: &[u8], stream: i16, time: i64, out: &mut Vec<u8>) {
        let start = begin(out, self.form, opcode::EXECUTE, stream);
        out.extend_from_slice(&self.head);
        out.extend_from_slice(cells);
        out.extend_from_slice(&time.to_be_bytes());
        end(out, self.form, start);
    }

    /// Its preparation.
    pub(super) fn write_prepare(&self, stream: i16, out: &mut Vec<u8>) {
        wire::put_prepare(out, self.form, stream, &self.cql);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_is_a_statement_of_cql() {
        let cql = |action| {
            let fields = ["a", "b"].map(str::to_owned).to_vec();
            let verb = Verb { action, table: "t".to_owned(), key: "k".to_owned(), fields };
            let one = Prepared::new(&Statement::of_verb("v", verb), Levels::SESSION, Form::FOUR);
            (one.cql, one.places, one.effect)
        };
        for (action, text, places, effect) in [
            (Action::Read, "SELECT a, b FROM t WHERE k = ?", vec![0], Effect::Read),
            (Action::Scan, "SELECT a, b FROM t WHERE token(k) >= token(?) LIMIT ?", vec![0, 1], Effect::Read),
            (Action::Insert, "INSERT INTO t (k, a, b) VALUES (?, ?, ?)", vec![0, 1, 2], Effect::Write),
            (Action::Update, "UPDATE t SET a = ?, b = ? WHERE k = ?", vec![0, 1, 2], Effect::Write),
            (Action::Delete, "DELETE FROM t WHERE k = ?", vec![0], Effect::Write),
        ] {
            assert_eq!(cql(action), (text.to_owned(), places, effect));
        }
    }

    #[test]
    fn what_is_conditional_or_not_known_is_sent_alone() {
        for (cql, effect) in [
            ("select a from t", Effect::Read),
            ("INSERT INTO t (a) VALUES (:a)", Effect::Write),
            ("INSERT INTO t (a) VALUES (:a) IF NOT EXISTS", Effect::Alone),
            ("UPDATE t SET a = :a WHERE k = :k if a = 1", Effect::Alone),
            ("BEGIN BATCH INSERT INTO t (a) VALUES (:a); APPLY BATCH", Effect::Alone),
            ("TRUNCATE t", Effect::Alone),
            ("", Effect::Alone),
        ] {
            assert_eq!(effect_of(cql), effect, "{cql}");
        }
    }
}
