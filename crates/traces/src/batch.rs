//! Statements of a trace as columns.

use std::collections::HashMap;

/// Texts one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// All of them.
    pub bytes: Vec<u8>,
    /// Where each ends.
    pub ends: Vec<i32>,
}

impl Texts {
    pub(crate) fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(self.bytes.len() as i32);
    }

    /// The text of a number.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn get(&self, at: usize) -> &str {
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        std::str::from_utf8(&self.bytes[from..self.ends[at] as usize]).unwrap_or_default()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// Texts of which many are the same: each once, and a number for each row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The number of each row's.
    pub codes: Vec<i32>,
    /// The texts.
    pub texts: Texts,
    known: HashMap<Box<str>, i32>,
}

impl Named {
    fn push(&mut self, text: &str) {
        let code = match self.known.get(text) {
            Some(code) => *code,
            None => {
                let code = self.known.len() as i32;
                self.known.insert(text.into(), code);
                self.texts.push(text);
                code
            }
        };
        self.codes.push(code);
    }
}

/// A statement of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// When it began, in microseconds since 1970 by the log's clock.
    pub(crate) time_us: i64,
    pub(crate) duration_us: Option<i64>,
    pub(crate) rows: Option<u64>,
    pub(crate) session: u32,
    pub(crate) transaction: u64,
    pub(crate) place: u32,
    pub(crate) fingerprint: u64,
    pub(crate) statement: String,
    pub(crate) parameters: Vec<Option<String>>,
    pub(crate) kinds: String,
    pub(crate) error: Option<Box<str>>,
    pub(crate) database: Box<str>,
}

impl Entry {
    /// About how much memory it takes.
    pub(crate) fn size(&self) -> usize {
        let values = self.parameters.iter().flatten().map(String::len).sum::<usize>();
        size_of::<Self>()
            + self.statement.len()
            + values
            + self.parameters.len() * size_of::<Option<String>>()
    }
}

/// Statements of a trace as columns of one length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// When each began, in microseconds since 1970 by the log's clock.
    pub time_us: Vec<i64>,
    /// How long each took; -1 where that is not known.
    pub duration_us: Vec<i64>,
    /// How many rows each returned or changed; -1 where that is not known.
    pub rows: Vec<i64>,
    /// The session of each, from 0 in the order in which they appear.
    pub session: Vec<u32>,
    /// The transaction of each, from 0.
    pub transaction: Vec<u64>,
    /// The place of each in its session, from 0.
    pub place: Vec<u32>,
    /// The fingerprint of each.
    pub fingerprint: Vec<u64>,
    /// The normalised text of each.
    pub statement: Named,
    /// The parameters of all, one behind the other.
    pub parameters: Texts,
    /// Whether each parameter is there (1) or NULL (0).
    pub given: Vec<u8>,
    /// Where each statement's parameters end.
    pub parameter_ends: Vec<i32>,
    /// A letter for each parameter.
    pub kinds: Named,
    /// The SQLSTATE of what failed; empty for what did not.
    pub error: Named,
    /// The database of each; empty where it is not known.
    pub database: Named,
}

impl Batch {
    /// How many statements there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.time_us.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.time_us.is_empty()
    }

    pub(crate) fn push(&mut self, entry: &Entry) {
        self.time_us.push(entry.time_us);
        self.duration_us.push(entry.duration_us.unwrap_or(-1));
        self.rows.push(entry.rows.map_or(-1, |rows| i64::try_from(rows).unwrap_or(-1)));
        self.session.push(entry.session);
        self.transaction.push(entry.transaction);
        self.place.push(entry.place);
        self.fingerprint.push(entry.fingerprint);
        self.statement.push(&entry.statement);
        for value in &entry.parameters {
            self.parameters.push(value.as_deref().unwrap_or_default());
            self.given.push(u8::from(value.is_some()));
        }
        self.parameter_ends.push(self.given.len() as i32);
        self.kinds.push(&entry.kinds);
        self.error.push(entry.error.as_deref().unwrap_or_default());
        self.database.push(&entry.database);
    }

    /// The parameters of a statement.
    ///
    /// # Panics
    ///
    /// If there is no such statement.
    #[must_use]
    pub fn parameters_of(&self, at: usize) -> Vec<Option<&str>> {
        let from = at.checked_sub(1).map_or(0, |before| self.parameter_ends[before] as usize);
        let places = from..self.parameter_ends[at] as usize;
        places.map(|place| (self.given[place] == 1).then(|| self.parameters.get(place))).collect()
    }

    /// The normalised text of a statement.
    ///
    /// # Panics
    ///
    /// If there is no such statement.
    #[must_use]
    pub fn statement_of(&self, at: usize) -> &str {
        self.statement.texts.get(self.statement.codes[at] as usize)
    }

    /// The letters of a statement's parameters.
    ///
    /// # Panics
    ///
    /// If there is no such statement.
    #[must_use]
    pub fn kinds_of(&self, at: usize) -> &str {
        self.kinds.texts.get(self.kinds.codes[at] as usize)
    }
}
