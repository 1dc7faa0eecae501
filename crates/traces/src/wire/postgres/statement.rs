//! Prepared statements, and the values that are bound to them.

use std::sync::{Arc, OnceLock};

use nephoscope_drivers::postgres::{Fields, shown};

use super::described::Described;
use crate::logs::TOO_LONG;
use crate::reader::LONGEST;
use crate::wire::kept::{Text, length};
use crate::wire::{NOT_READ, NOT_UTF8, TYPES};

#[derive(Debug)]
pub(super) struct Statement {
    pub(super) text: Text,
    /// The types of its parameters as its client gave them; 0 where the server is to find one.
    pub(super) given: Vec<u32>,
    /// The types as the server found them, if it was asked.
    pub(super) described: OnceLock<Arc<[u32]>>,
}

impl Statement {
    /// A statement of which nothing else is known than why.
    pub(super) fn unknown(why: &'static str) -> Self {
        Self { text: Err(why), given: Vec::new(), described: OnceLock::new() }
    }

    pub(super) fn size(&self) -> usize {
        let described = self.described.get().map_or(0, |types| types.len());
        size_of::<Self>() + length(&self.text) + (self.given.len() + described) * size_of::<u32>()
    }

    /// The type of a parameter; 0 where nobody has said it.
    fn type_of(&self, place: usize, database: &str, others: &Described) -> u32 {
        let described = || {
            if self.described.get().is_none()
                && let Some(types) = others.types(database, self)
            {
                let _ = self.described.set(Arc::clone(types));
            }
            self.described.get().and_then(|types| types.get(place)).copied()
        };
        self.given.get(place).copied().filter(|oid| *oid != 0).or_else(described).unwrap_or(0)
    }
}

/// A statement with its values, ready to be executed.
#[derive(Debug)]
pub(super) struct Portal {
    pub(super) statement: Arc<Statement>,
    /// The formats and the values, as they came; or why they are not known.
    pub(super) values: Result<Box<[u8]>, &'static str>,
    /// It has been executed: if it is again, it goes on.
    pub(super) is_begun: bool,
}

impl Portal {
    pub(super) fn unknown(why: &'static str) -> Self {
        Self { statement: Arc::new(Statement::unknown(why)), values: Err(why), is_begun: false }
    }

    /// About how much memory it takes. Its statement counts, too: the name may be another's by now.
    pub(super) fn size(&self) -> usize {
        size_of::<Self>() + self.statement.size() + self.values.as_ref().map_or(0, |values| values.len())
    }

    /// The values as texts; or why there are none. What servers have said of the same text elsewhere counts where this
    /// one was not asked.
    pub(super) fn texts(
        &self,
        database: &str,
        others: &Described,
    ) -> Result<Vec<Option<String>>, &'static str> {
        let mut fields = Fields(self.values.as_ref().map_err(|why| *why)?);
        let mut formats = Vec::new();
        for _ in 0..count(&mut fields)? {
            formats.push(fields.i16().map_err(|_| NOT_READ)?);
        }
        let (mut texts, mut bytes) = (Vec::new(), 0);
        for place in 0..count(&mut fields)? {
            let Ok(length) = usize::try_from(fields.u32().map_err(|_| NOT_READ)? as i32) else {
                texts.push(None);
                continue;
            };
            let (value, rest) = fields.0.split_at_checked(length).ok_or(NOT_READ)?;
            fields = Fields(rest);
            // One format is that of all.
            let format = if formats.len() == 1 { formats.first() } else { formats.get(place) };
            let text = match format {
                Some(1) => shown(self.statement.type_of(place, database, others), value).ok_or(TYPES)?,
                _ => std::str::from_utf8(value).map_err(|_| NOT_UTF8)?.to_owned(),
            };
            bytes += text.len();
            // A number of a few bytes may have a hundred thousand digits.
            if bytes > LONGEST {
                return Err(TOO_LONG);
            }
            texts.push(Some(text));
        }
        Ok(texts)
    }
}

fn count(fields: &mut Fields<'_>) -> Result<usize, &'static str> {
    fields.i16().map(|count| usize::from(count as u16)).map_err(|_| NOT_READ)
}
