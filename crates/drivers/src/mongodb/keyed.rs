//! Verbs as commands. A table is a collection, a row a document whose `_id` is the key, and a field a field.

use std::rc::Rc;

use super::bson::{
    Elements, put_array_of_one, put_bool, put_document, put_int, put_long, put_text, put_value,
};
use super::errors::Answer;
use super::startup::Manner;
use super::wire::{self, garbage};
use crate::contract::cells;
use crate::contract::error::Error;
use crate::contract::rows::{Column, Columns, Rows};
use crate::contract::statement::Statement;
use crate::contract::value::{Params, Value};
use crate::contract::verb::{Action, Verb};

/// The key of every document.
pub(super) const KEY: &str = "_id";

/// A verb as a connection knows it.
pub(super) struct Keyed {
    statement: Statement,
    pub(super) action: Action,
    pub(super) columns: Rc<Columns>,
    collection: String,
    fields: Vec<String>,
    /// The elements of the command that do not change.
    head: Vec<u8>,
    database: String,
}

/// What of a document is read: the fields, or the key where a table has nothing else.
fn put_projection(out: &mut Vec<u8>, fields: &[String]) {
    put_document(out, "projection", |out| {
        put_int(out, KEY, i64::from(fields.is_empty()));
        for field in fields {
            put_int(out, field, 1);
        }
    });
}

impl Keyed {
    pub(super) fn new(statement: &Statement, manner: &Manner) -> Result<Self, Error> {
        let Some(verb) = statement.verb() else {
            let name = statement.name();
            return Err(Error::other(format!(
                "statement {name}: MongoDB has no SQL; it takes the verbs of tables with a key"
            )));
        };
        let Verb { action, table, fields, .. } = verb;
        if [table].into_iter().chain(fields).any(|name| name.contains('\0')) {
            return Err(Error::other(format!("statement {}: a name holds a zero byte", statement.name())));
        }
        let mut head = Vec::new();
        let word = match action {
            Action::Read | Action::Scan => "find",
            Action::Insert => "insert",
            Action::Update => "update",
            Action::Delete => "delete",
        };
        put_text(&mut head, word, table.as_bytes());
        match action {
            Action::Read | Action::Scan => {
                put_projection(&mut head, fields);
                if *action == Action::Read {
                    put_int(&mut head, "limit", 1);
                    put_bool(&mut head, "singleBatch", true);
                } else {
                    put_document(&mut head, "sort", |out| put_int(out, KEY, 1));
                }
                head.extend_from_slice(&manner.reads);
            }
            Action::Insert | Action::Update | Action::Delete => head.extend_from_slice(&manner.writes),
        }
        put_text(&mut head, "$db", manner.database.as_bytes());
        let columns = fields.iter().map(|name| Column { name: name.as_str().into(), kind: 0 }).collect();
        Ok(Self {
            statement: statement.clone(),
            action: *action,
            columns: Rc::new(Columns { columns, decode: cells::decode, any_name: false }),
            collection: table.clone(),
            fields: fields.clone(),
            head,
            database: manner.database.clone(),
        })
    }

    /// Writes the command of a call as a message of this number; gives how many rows it asks for.
    #[inline]
    pub(super) fn write(&self, params: &Params, number: i32, out: &mut Vec<u8>) -> Result<u64, Error> {
        self.statement.check_count(params)?;
        let places = wire::begin(out, number);
        out.extend_from_slice(&self.head);
        let mut most = 1;
        match self.action {
            Action::Read => put_document(out, "filter", |out| self.put(out, KEY, params, 0))?,
            Action::Scan => {
                most = self.count(params)?;
                put_document(out, "filter", |out| {
                    put_document(out, KEY, |out| self.put(out, "$gte", params, 0))
                })?;
                // No limit is said by 0: of the row that comes then none is wanted.
                let limit = most.clamp(1, i32::MAX as u64) as i64;
                put_int(out, "limit", limit);
                put_int(out, "batchSize", limit);
            }
            Action::Insert => put_array_of_one(out, "documents", |out| {
                self.put(out, KEY, params, 0)?;
                self.put_fields(out, params, 1)
            })?,
            Action::Update => put_array_of_one(out, "updates", |out| {
                put_document(out, "q", |out| self.put(out, KEY, params, self.fields.len()))?;
                put_document(out, "u", |out| put_document(out, "$set", |out| self.put_fields(out, params, 0)))
            })?,
            Action::Delete => put_array_of_one(out, "deletes", |out| {
                put_int(out, "limit", 1);
                put_document(out, "q", |out| self.put(out, KEY, params, 0))
            })?,
        }
        wire::end(out, places);
        Ok(most)
    }

    /// Asks for more of a scan, by the number of its cursor.
    pub(super) fn write_more(&self, cursor: i64, most: u64, number: i32, out: &mut Vec<u8>) {
        let places = wire::begin(out, number);
        put_long(out, "getMore", cursor);
        put_text(out, "collection", self.collection.as_bytes());
        put_int(out, "batchSize", most.min(i32::MAX as u64) as i64);
        put_text(out, "$db", self.database.as_bytes());
        wire::end(out, places);
    }

    fn count(&self, params: &Params) -> Result<u64, Error> {
        match params.get(1) {
            Some(Value::Int(count @ 0..)) => Ok(count as u64),
            _ => Err(self.statement.misfit(1, "it is no whole number of rows")),
        }
    }

    #[inline]
    fn put(&self, out: &mut Vec<u8>, name: &str, params: &Params, place: usize) -> Result<(), Error> {
        let value = params.get(place).unwrap_or(Value::Null);
        put_value(out, name, value).map_err(|why| self.statement.misfit(place, why))
    }

    #[inline]
    fn put_fields(&self, out: &mut Vec<u8>, params: &Params, first: usize) -> Result<(), Error> {
        let mut fields = self.fields.iter().enumerate();
        fields.try_for_each(|(place, field)| self.put(out, field, params, first + place))
    }

    /// Adds a document as a row, whatever the order of its fields.
    #[inline]
    pub(super) fn push_row(
        &self,
        document: &[u8],
        rows: &mut Rows,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Error> {
        rows.push_row();
        let all = Elements::of(document)?;
        let mut next = all.clone();
        for field in &self.fields {
            let mut ahead = next.clone();
            let mut found = ahead.next()?;
            if found.is_none_or(|element| element.name != field.as_bytes()) {
                ahead = all.clone();
                found = ahead.next()?;
                while found.is_some_and(|element| element.name != field.as_bytes()) {
                    found = ahead.next()?;
                }
            }
            match found {
                Some(element) => {
                    element.push(rows, scratch)?;
                    next = ahead;
                }
                None => rows.push_cell(None),
            }
        }
        Ok(())
    }
}

/// A batch of a cursor.
pub(super) struct Batch<'a> {
    /// The number by which there is more; 0 where there is not.
    pub(super) cursor: i64,
    /// The collection that it is of.
    pub(super) collection: &'a [u8],
    documents: Elements<'a>,
}

impl<'a> Batch<'a> {
    /// That of an answer.
    #[inline]
    pub(super) fn of(answer: &Answer<'a>) -> Result<Self, Error> {
        let Some(cursor) = answer.cursor else { return Err(garbage("an answer without a cursor")) };
        let (mut elements, mut id, mut of, mut documents) = (Elements::of(cursor)?, 0, &b""[..], None);
        while let Some(element) = elements.next()? {
            match element.name {
                b"id" => id = element.int().unwrap_or(0),
                b"ns" => of = element.text().unwrap_or_default(),
                b"firstBatch" | b"nextBatch" => documents = element.document(),
                _ => {}
            }
        }
        let documents = documents.ok_or_else(|| garbage("a cursor without a batch"))?;
        // `database.collection`: no database has a dot in its name.
        let dot = of.iter().position(|byte| *byte == b'.').map_or(0, |dot| dot + 1);
        Ok(Self { cursor: id, collection: &of[dot..], documents: Elements::of(documents)? })
    }

    /// The next document.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<&'a [u8]>, Error> {
        let Some(element) = self.documents.next()? else { return Ok(None) };
        element.document().map(Some).ok_or_else(|| garbage("a row that is no document"))
    }
}
