//! The statements of one connection, once it stands: what was asked, and what was answered.
//!
//! Nothing of a request counts before its reply: names mean what they mean to the server when it comes to them, and what
//! stands behind an error up to the next Sync was never executed.

use std::sync::{Arc, OnceLock};

use nephoscope_drivers::postgres::{Fields, affected, error};

use super::FUNCTIONS;
use super::frames::Message;
use super::statement::{Portal, Statement};
use super::waiting::Waiting;
use crate::logs::TOO_LONG;
use crate::wire::kept::{Foreign, Name, Named, Queue, Text, text};
use crate::wire::{Common, Ended, FETCHES, UNKNOWN};

#[derive(Debug, Default)]
pub(super) struct Session {
    /// The name of its session in the trace.
    name: String,
    database: String,
    statements: Named<Arc<Statement>>,
    portals: Named<Portal>,
    waiting: Queue<Waiting>,
    /// After an error, up to the next Sync.
    is_skipping: bool,
}

impl Session {
    pub(super) fn new(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    /// The connection begins: that is to be answered.
    pub(super) fn begin(&mut self, database: String) {
        self.database = database;
        self.waiting.push(Waiting::Sync);
    }

    /// About how much memory it takes.
    pub(super) fn size(&self) -> usize {
        self.statements.bytes + self.portals.bytes + self.waiting.bytes
    }

    // ---- requests --------------------------------------------------------------------------------------------

    pub(super) fn asked(&mut self, message: Message<'_>, at: i64, to: &mut Common) -> Result<(), Foreign> {
        if message.tag == b'S' {
            self.is_skipping = false;
            self.waiting.push(Waiting::Sync);
        }
        if self.is_skipping {
            return Ok(());
        }
        match message.tag {
            b'd' | b'c' | b'f' => self.waiting.push_copied(),
            b'F' => {
                to.intake.miss(&self.name, &self.database, FUNCTIONS);
                self.waiting.push(Waiting::Function);
            }
            _ => {
                if let Some(waiting) = waiting(message, at)? {
                    self.waiting.push(waiting);
                }
            }
        }
        Ok(())
    }

    // ---- replies ---------------------------------------------------------------------------------------------

    pub(super) fn answered(&mut self, message: Message<'_>, at: i64, to: &mut Common) -> Result<(), Foreign> {
        let Message { tag, body, .. } = message;
        match (tag, self.waiting.next()) {
            (b'E', _) => self.failed(error(body).code(), at, to),
            (b'C', Some(Waiting::Query { commands, rows, text, .. })) => {
                *commands += 1;
                *rows = rows_of(body).filter(|_| *commands == 1);
                if let Some(gone) = deallocated(body, text) {
                    self.deallocate(&gone);
                }
            }
            (b'G', Some(Waiting::Execute { copies, .. })) => *copies = true,
            (b'C' | b'I' | b's', Some(Waiting::Execute { .. })) => self.executed(message, at, to),
            (b't', Some(Waiting::DescribeStatement(name))) => {
                if let Some(statement) = self.statements.get(name) {
                    let types = types(body)?.into();
                    to.described.learn(&self.database, statement, &types);
                    // A second description says the same.
                    let _ = statement.described.set(types);
                    self.statements.measure(name);
                }
            }
            (b'Z', Some(Waiting::Query { .. } | Waiting::Function | Waiting::Sync)) => {
                self.is_ready(body, at, to);
            }
            (b'1', Some(Waiting::Parse { .. }))
            | (b'2', Some(Waiting::Bind { .. }))
            | (b'3', Some(Waiting::CloseStatement(_) | Waiting::ClosePortal(_)))
            | (b'T' | b'n', Some(Waiting::DescribeStatement(_) | Waiting::DescribePortal)) => {
                if let Some(waiting) = self.waiting.pop() {
                    self.apply(waiting);
                }
            }
            (b'G' | b'H' | b'I' | b'T', Some(Waiting::Query { .. }))
            | (b'H', Some(Waiting::Execute { .. }))
            | (b'V', Some(Waiting::Function)) => {}
            (b'1' | b'2' | b'3' | b'C' | b'G' | b'H' | b'I' | b'V' | b'n' | b's' | b't' | b'T' | b'Z', _) => {
                return Err(Foreign);
            }
            // Rows, and what may come at any time.
            _ => {}
        }
        Ok(())
    }

    /// Does what a request says.
    fn apply(&mut self, waiting: Waiting) {
        match waiting {
            Waiting::Parse { name, statement, .. } => self.statements.insert(name, statement),
            Waiting::Bind { portal, statement, values, .. } => {
                let bound = self.bound(&statement, values);
                self.portals.insert(portal, bound);
            }
            Waiting::CloseStatement(name) => self.statements.remove(&name),
            Waiting::ClosePortal(name) => self.portals.remove(&name),
            _ => {}
        }
    }

    fn bound(&self, statement: &[u8], values: Result<Box<[u8]>, &'static str>) -> Portal {
        match self.statements.get(statement) {
            Some(found) => Portal { statement: Arc::clone(found), values, is_begun: false },
            None => Portal::unknown(UNKNOWN),
        }
    }

    /// A portal was executed, to its end or to a limit of rows.
    fn executed(&mut self, message: Message<'_>, at: i64, to: &mut Common) {
        let Some(Waiting::Execute { portal, at: begun, copies }) = self.waiting.pop() else { return };
        if copies {
            self.waiting.drop_before_copied();
        }
        let rows = if message.tag == b'C' { rows_of(message.body) } else { None };
        let ended = Ended { at: Some(at), rows, error: None };
        self.give_portal(&portal, begun, &ended, to);
        let Some(found) = self.portals.get_mut(&portal) else { return };
        found.is_begun = true;
        if let Some(gone) = deallocated(message.body, &found.statement.text).filter(|_| message.tag == b'C') {
            self.deallocate(&gone);
        }
    }

    /// An error ends the request that is answered next, and all behind it up to the Sync.
    fn failed(&mut self, code: &str, at: i64, to: &mut Common) {
        // An error of the server's without a code is an error nevertheless.
        let code = if code.is_empty() { "XX000" } else { code };
        match self.waiting.next() {
            None | Some(Waiting::Sync | Waiting::Function) => return,
            Some(Waiting::Query { error, .. }) => {
                *error = Some(code.into());
                return;
            }
            Some(_) => {}
        }
        let ended = Ended { at: Some(at), rows: None, error: Some(code) };
        match self.waiting.pop() {
            Some(Waiting::Parse { name, statement, at }) => {
                // The server has forgotten the unnamed one before it reads the new text.
                if name.is_empty() {
                    self.statements.remove(&name);
                }
                self.give(&statement.text, Vec::new(), at, &ended, to);
            }
            Some(Waiting::Bind { statement, values, at, .. }) => {
                let portal = self.bound(&statement, values);
                self.give_bound(&portal, at, &ended, to);
            }
            Some(Waiting::Execute { portal, at, copies }) => {
                if copies {
                    self.waiting.drop_before_copied();
                }
                self.give_portal(&portal, at, &ended, to);
            }
            _ => {}
        }
        self.is_skipping = !self.waiting.drop_to_sync();
    }

    /// The server is ready for the next request.
    fn is_ready(&mut self, body: &[u8], at: i64, to: &mut Common) {
        if let Some(Waiting::Query { text, at: begun, error, rows, .. }) = self.waiting.pop() {
            let ended = Ended { at: Some(at), rows, error: error.as_deref() };
            self.give(&text, Vec::new(), begun, &ended, to);
            self.statements.remove(b"");
            self.portals.remove(b"");
        }
        // Outside of a transaction there are no portals.
        if body == b"I" {
            self.portals.clear();
        }
    }

    /// Forgets statements that SQL has deallocated.
    fn deallocate(&mut self, gone: &Gone) {
        match gone {
            Gone::All => self.statements.clear(),
            Gone::One(name) => self.statements.remove(name),
        }
    }

    /// The connection has ended: how what still waited for its reply ended is not known.
    pub(super) fn end(&mut self, to: &mut Common) {
        while self.waiting.next().is_some() {
            match self.waiting.pop() {
                Some(Waiting::Query { text, at, error, .. }) => {
                    let ended = Ended { at: None, rows: None, error: error.as_deref() };
                    self.give(&text, Vec::new(), at, &ended, to);
                }
                Some(Waiting::Execute { portal, at, .. }) => {
                    let ended = Ended { at: None, rows: None, error: None };
                    self.give_portal(&portal, at, &ended, to);
                }
                Some(other) => self.apply(other),
                None => {}
            }
        }
    }

    // ---- events ----------------------------------------------------------------------------------------------

    fn give_portal(&self, portal: &[u8], at: i64, ended: &Ended<'_>, to: &mut Common) {
        match self.portals.get(portal) {
            Some(found) if found.is_begun => to.intake.leave_out(FETCHES),
            Some(found) => self.give_bound(found, at, ended, to),
            None => to.intake.miss(&self.name, &self.database, UNKNOWN),
        }
    }

    fn give_bound(&self, portal: &Portal, at: i64, ended: &Ended<'_>, to: &mut Common) {
        match portal.texts(&self.database, &to.described) {
            Ok(bound) => self.give(&portal.statement.text, bound, at, ended, to),
            Err(why) => to.intake.miss(&self.name, &self.database, why),
        }
    }

    fn give(&self, text: &Text, bound: Vec<Option<String>>, at: i64, ended: &Ended<'_>, to: &mut Common) {
        to.give(&self.name, &self.database, text, bound, at, ended);
    }
}

/// What a request asks for, if there is a reply to it.
fn waiting(message: Message<'_>, at: i64) -> Result<Option<Waiting>, Foreign> {
    let mut fields = Fields(message.body);
    let mut next = || fields.bytes().map(Name::from).map_err(|_| Foreign);
    Ok(Some(match message.tag {
        b'Q' => {
            let text = if message.is_cut { Err(TOO_LONG) } else { text(&next()?) };
            Waiting::Query { text, at, error: None, commands: 0, rows: None }
        }
        b'P' => {
            let name = next()?;
            let statement = if message.is_cut {
                Statement::unknown(TOO_LONG)
            } else {
                let text = text(&next()?);
                Statement { text, given: types(fields.0)?, described: OnceLock::new() }
            };
            Waiting::Parse { name, statement: Arc::new(statement), at }
        }
        b'B' => {
            let (portal, statement) = (next()?, next()?);
            let values = if message.is_cut { Err(TOO_LONG) } else { Ok(fields.0.into()) };
            Waiting::Bind { portal, statement, values, at }
        }
        b'E' => Waiting::Execute { portal: next()?, at, copies: false },
        b'D' | b'C' => {
            let (kind, rest) = message.body.split_first().ok_or(Foreign)?;
            let name = Fields(rest).bytes().map_err(|_| Foreign)?.into();
            match (message.tag, kind) {
                (b'D', b'S') => Waiting::DescribeStatement(name),
                (b'D', b'P') => Waiting::DescribePortal,
                (b'C', b'S') => Waiting::CloseStatement(name),
                (b'C', b'P') => Waiting::ClosePortal(name),
                _ => return Err(Foreign),
            }
        }
        _ => return Ok(None),
    }))
}

/// Types, behind how many they are.
fn types(body: &[u8]) -> Result<Vec<u32>, Foreign> {
    let mut fields = Fields(body);
    let count = fields.i16().map_err(|_| Foreign)? as u16;
    (0..count).map(|_| fields.u32().map_err(|_| Foreign)).collect()
}

/// The number of rows of a `CommandComplete`, if it has one.
fn rows_of(tag: &[u8]) -> Option<u64> {
    let counts = tag.iter().rev().find(|byte| **byte != 0).is_some_and(u8::is_ascii_digit);
    counts.then(|| affected(tag))
}

/// Statements that are deallocated.
enum Gone {
    All,
    One(Name),
}

/// What a command has deallocated, by its tag and its text.
fn deallocated(tag: &[u8], text: &Text) -> Option<Gone> {
    match tag {
        b"DEALLOCATE ALL\0" | b"DISCARD ALL\0" => Some(Gone::All),
        b"DEALLOCATE\0" => {
            let name = text.as_deref().ok()?.trim_end_matches(|c: char| c == ';' || c.is_whitespace());
            let name = name.rsplit(char::is_whitespace).next()?;
            let quoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
            let name = quoted.map_or_else(|| name.to_ascii_lowercase(), |name| name.replace("\"\"", "\""));
            Some(Gone::One(name.into_bytes().into()))
        }
        _ => None,
    }
}
