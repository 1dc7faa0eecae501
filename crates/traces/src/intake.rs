//! What a log or a connection says, on its way into a trace: normalised, in sessions and transactions, in the order of time.

use std::collections::{BTreeMap, HashMap};

use nephoscope_drivers::Lexer;

use crate::batch::{Batch, Entry};
use crate::credentials::has_secret;
use crate::mask::Mask;
use crate::normal::{self, Kind};
use crate::transactions::Transactions;

/// How many statements are kept to put them in the order of their beginnings, and how many come out at a time.
pub(crate) const WINDOW: usize = 1 << 15;
/// What they may take of memory, in bytes: then some come out earlier.
const MOST_BYTES: usize = 32 << 20;

const OTHER_DATABASES: &str = "statements of other databases";

/// A statement as a log or a connection has it.
#[derive(Debug, Default)]
pub(crate) struct Event<'a> {
    /// The session's name in the log.
    pub(crate) session: &'a str,
    pub(crate) database: &'a str,
    /// When it began, in microseconds since 1970 by the log's clock.
    pub(crate) time_us: i64,
    pub(crate) duration_us: Option<i64>,
    pub(crate) text: &'a str,
    /// Rows that it returned or changed.
    pub(crate) rows: Option<u64>,
    /// The values of bound parameters.
    pub(crate) bound: Vec<Option<String>>,
    /// What else the log says of it, which may hold a secret, too.
    pub(crate) beside: &'a str,
    pub(crate) error: Option<&'a str>,
}

#[derive(Debug)]
struct Session {
    number: u32,
    statements: u32,
    last_us: i64,
    transactions: Transactions,
}

/// Takes events, gives batches. Memory is bounded by the window, and by what is known of each session.
pub(crate) struct Intake {
    lexer: Lexer,
    mask: Option<Mask>,
    /// The one database whose statements are taken.
    database: Option<String>,
    sessions: HashMap<String, Session>,
    begun: u32,
    transactions: u64,
    kept: Vec<Entry>,
    kept_bytes: usize,
    ready: Batch,
    left_out: BTreeMap<&'static str, u64>,
}

impl Intake {
    pub(crate) fn new(lexer: Lexer, mask: Option<Mask>, database: Option<String>) -> Self {
        Self {
            lexer,
            mask,
            database,
            sessions: HashMap::new(),
            begun: 0,
            transactions: 0,
            kept: Vec::new(),
            kept_bytes: 0,
            ready: Batch::default(),
            left_out: BTreeMap::new(),
        }
    }

    /// The next statement of this name's session is a new session's.
    pub(crate) fn end_session(&mut self, name: &str) {
        self.sessions.remove(name);
    }

    /// Takes a statement, unless it may hold a secret.
    pub(crate) fn take(&mut self, mut event: Event<'_>) {
        if self.database.as_ref().is_some_and(|name| name != event.database) {
            return self.leave_out(OTHER_DATABASES);
        }
        let found = normal::normalised(event.text, self.lexer);
        if found.text.is_empty() {
            return self.leave_out("statements without a word");
        }
        let is_bare = found.literals.is_empty() && !event.text.contains(['"', '`']);
        let bound = || event.bound.iter().flatten();
        let place = self.session(event.session, &mut event.time_us);
        if has_secret(event.text, is_bare)
            || (!event.beside.is_empty() && has_secret(event.beside, false))
            || bound().any(|value| has_secret(value, false))
        {
            return self.leave_out("statements that may hold a password or a key");
        }
        let first = found.literals.first().and_then(|literal| literal.value.as_deref());
        let (session, transaction) = self.transaction(event.session, &found.text, first);
        let mask = self.mask.as_ref();
        let parameters = found.literals.iter().map(|literal| {
            let value = match literal.kind {
                Kind::Bound => event.bound.get(literal.bound.wrapping_sub(1)).cloned().flatten(),
                _ => literal.value.clone(),
            };
            value.map(|value| mask.map_or_else(|| value.clone(), |mask| mask.masked(literal.kind, &value)))
        });
        let entry = Entry {
            time_us: event.time_us,
            duration_us: event.duration_us,
            rows: event.rows,
            session,
            transaction,
            place,
            fingerprint: found.fingerprint,
            parameters: parameters.collect(),
            kinds: found.kinds,
            statement: found.text,
            error: event.error.map(Into::into),
            database: event.database.into(),
        };
        self.kept_bytes += entry.size();
        self.kept.push(entry);
        if self.kept.len() >= 2 * WINDOW || self.kept_bytes > MOST_BYTES {
            self.give(self.kept.len() / 2);
        }
    }

    /// Notes that a statement of a session is not in the trace, and why: the place that it would have stays empty.
    pub(crate) fn miss(&mut self, session: &str, database: &str, why: &'static str) {
        if self.database.as_ref().is_some_and(|name| name != database) {
            return self.leave_out(OTHER_DATABASES);
        }
        let mut earliest = i64::MIN;
        self.session(session, &mut earliest);
        self.leave_out(why);
    }

    /// The place of a session's next statement. Its time is no earlier than that of the one before: both are rounded.
    fn session(&mut self, name: &str, time_us: &mut i64) -> u32 {
        if !self.sessions.contains_key(name) {
            let transactions = Transactions::default();
            let session = Session { number: self.begun, statements: 0, last_us: i64::MIN, transactions };
            self.sessions.insert(name.to_owned(), session);
            self.begun += 1;
        }
        let Some(session) = self.sessions.get_mut(name) else { return 0 };
        *time_us = (*time_us).max(session.last_us);
        session.last_us = *time_us;
        session.statements += 1;
        session.statements - 1
    }

    fn transaction(&mut self, name: &str, text: &str, first: Option<&str>) -> (u32, u64) {
        let count = &mut self.transactions;
        let mut number = || {
            *count += 1;
            *count - 1
        };
        let Some(session) = self.sessions.get_mut(name) else { return (0, number()) };
        let mysql = self.lexer.backslash_escapes;
        (session.number, session.transactions.of(text, first, mysql, &mut number))
    }

    /// Nothing comes any more.
    pub(crate) fn end(&mut self) {
        self.give(self.kept.len());
    }

    fn give(&mut self, count: usize) {
        self.kept.sort_by_key(|entry| entry.time_us);
        for entry in self.kept.drain(..count) {
            self.kept_bytes -= entry.size();
            self.ready.push(&entry);
        }
    }

    pub(crate) fn ready(&mut self) -> Option<Batch> {
        (!self.ready.is_empty()).then(|| std::mem::take(&mut self.ready))
    }

    pub(crate) fn waiting(&self) -> usize {
        self.ready.len()
    }

    /// Notes that something of the log is not in the trace, and why.
    pub(crate) fn leave_out(&mut self, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
    }

    pub(crate) fn left_out(&self) -> &BTreeMap<&'static str, u64> {
        &self.left_out
    }
}
