//! Verbs as commands. A row is a hash `table:key`; the keys of a table are the members of a sorted set with the table's
//! name, all of the same score, so that a scan finds them in the order of their bytes.

use std::rc::Rc;

use super::wire::{put_number, put_text, put_texts, put_words};
use crate::contract::error::Error;
use crate::contract::rows::{Column, Columns};
use crate::contract::statement::Statement;
use crate::contract::value::{Params, Value, write_plain};
use crate::contract::verb::{Action, Verb};

/// A verb as a connection knows it.
pub(super) struct Keyed {
    pub(super) statement: Statement,
    pub(super) action: Action,
    pub(super) columns: Rc<Columns>,
    /// `table:`, before a key.
    prefix: Vec<u8>,
    /// The command that reads or writes the hash, up to its key.
    head: Vec<u8>,
    /// Each field as a word of a command.
    fields: Vec<Vec<u8>>,
    /// The commands on the sorted set, up to what differs.
    index: Vec<u8>,
}

fn words(count: usize, words: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    put_words(&mut out, count);
    put_texts(&mut out, words);
    out
}

fn word(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(&mut out, text.as_bytes());
    out
}

impl Keyed {
    pub(super) fn new(statement: &Statement) -> Result<Self, Error> {
        let Some(verb) = statement.verb() else {
            let name = statement.name();
            return Err(Error::other(format!(
                "statement {name}: Redis has no SQL; it takes the verbs of tables with a key"
            )));
        };
        let Verb { action, table, fields, .. } = verb;
        let (count, set) = (fields.len(), table.as_bytes());
        let head = match action {
            Action::Read | Action::Scan => words(2 + count, &[b"HMGET"]),
            Action::Insert | Action::Update => words(2 + 2 * count, &[b"HSET"]),
            Action::Delete => words(2, &[b"DEL"]),
        };
        let index = match action {
            Action::Read | Action::Update => Vec::new(),
            Action::Scan => words(7, &[b"ZRANGEBYLEX", set]),
            Action::Insert => words(4, &[b"ZADD", set, b"0"]),
            Action::Delete => words(3, &[b"ZREM", set]),
        };
        let columns = fields.iter().map(|name| Column { name: name.as_str().into(), kind: 0 }).collect();
        Ok(Self {
            statement: statement.clone(),
            action: *action,
            columns: Rc::new(Columns { columns, decode: |_, cell| Value::Text(cell), any_name: false }),
            prefix: format!("{table}:").into_bytes(),
            head,
            fields: fields.iter().map(|field| word(field)).collect(),
            index,
        })
    }

    /// How many fields a row has that is read.
    pub(super) fn width(&self) -> usize {
        self.fields.len()
    }

    /// Writes the commands of a call; of a scan the first, which asks for keys.
    #[inline]
    pub(super) fn write(
        &self,
        params: &Params,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.statement.check_count(params)?;
        let key = if self.action == Action::Update { self.fields.len() } else { 0 };
        scratch.clear();
        self.text(params, key, scratch)?;
        let key = scratch.len();
        match self.action {
            Action::Scan => {
                let Some(Value::Int(count @ 0..)) = params.get(1) else {
                    return Err(self.statement.misfit(1, "it is no whole number of rows"));
                };
                scratch.insert(0, b'[');
                out.extend_from_slice(&self.index);
                put_texts(out, &[scratch.as_slice(), b"+", b"LIMIT", b"0"]);
                scratch.clear();
                put_number(scratch, count as usize);
                put_text(out, scratch);
                return Ok(());
            }
            Action::Read => {
                self.write_row(&scratch[..key], out);
                return Ok(());
            }
            Action::Delete => self.write_key(&scratch[..key], out),
            Action::Insert | Action::Update => {
                self.write_key(&scratch[..key], out);
                let first = usize::from(self.action == Action::Insert);
                for (place, field) in self.fields.iter().enumerate() {
                    out.extend_from_slice(field);
                    scratch.truncate(key);
                    self.text(params, first + place, scratch)?;
                    put_text(out, &scratch[key..]);
                }
            }
        }
        if !self.index.is_empty() {
            out.extend_from_slice(&self.index);
            put_text(out, &scratch[..key]);
        }
        Ok(())
    }

    /// Asks for the fields of a row.
    #[inline]
    pub(super) fn write_row(&self, key: &[u8], out: &mut Vec<u8>) {
        self.write_key(key, out);
        self.fields.iter().for_each(|field| out.extend_from_slice(field));
    }

    #[inline]
    fn write_key(&self, key: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        out.push(b'$');
        put_number(out, self.prefix.len() + key.len());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.prefix);
        out.extend_from_slice(key);
        out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn text(&self, params: &Params, place: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        let value = params.get(place).unwrap_or(Value::Null);
        if write_plain(value, out) {
            Ok(())
        } else {
            Err(self.statement.misfit(place, "Redis keeps no NULL"))
        }
    }
}
