//! The statements of one connection, once the client has answered the greeting: what was asked, and what was answered.
//!
//! Nothing of a request counts before its reply: numbers of statements mean what they mean to the server when it comes to
//! them.

use nephoscope_drivers::mysql::{Fields, command};

use super::packets::Message;
use super::parameters::{Prepared, query};
use super::reply::{Reply, Step};
use super::{Agreed, BULK};
use crate::logs::{TOO_LONG, used_database};
use crate::wire::kept::{Foreign, Name, Named, Queue, Sizeable, Text, length, text};
use crate::wire::{Common, Ended, FETCHES, FOREIGN, REPLICATION, UNKNOWN};

/// Commands that the drivers do not send ("Command Phase").
mod other {
    pub(super) const INIT_DB: u8 = 0x02;
    pub(super) const FIELD_LIST: u8 = 0x04;
    pub(super) const DROP_DB: u8 = 0x06;
    pub(super) const CREATE_DB: u8 = 0x05;
    pub(super) const REFRESH: u8 = 0x07;
    pub(super) const SHUTDOWN: u8 = 0x08;
    pub(super) const STATISTICS: u8 = 0x09;
    pub(super) const PROCESS_INFO: u8 = 0x0a;
    pub(super) const PROCESS_KILL: u8 = 0x0c;
    pub(super) const DEBUG: u8 = 0x0d;
    pub(super) const CHANGE_USER: u8 = 0x11;
    pub(super) const BINLOG_DUMP: u8 = 0x12;
    pub(super) const REGISTER_REPLICA: u8 = 0x15;
    pub(super) const LONG_DATA: u8 = 0x18;
    pub(super) const RESET: u8 = 0x1a;
    pub(super) const SET_OPTION: u8 = 0x1b;
    pub(super) const FETCH: u8 = 0x1c;
    pub(super) const BINLOG_DUMP_GTID: u8 = 0x1e;
    pub(super) const RESET_CONNECTION: u8 = 0x1f;
    pub(super) const BULK_EXECUTE: u8 = 0xfa;
}

/// The number that stands for the statement that was prepared last.
const LAST: [u8; 4] = [0xff; 4];

/// A request whose reply has not come, or that has none and stands behind one.
#[derive(Debug)]
enum Waiting {
    /// The client proves who it is; then it uses a database.
    Login(Box<str>),
    Query {
        text: Text,
        at: i64,
    },
    Execute {
        number: [u8; 4],
        values: Result<Box<[u8]>, &'static str>,
        at: i64,
    },
    Prepare {
        text: Text,
        at: i64,
    },
    Reset([u8; 4]),
    ResetConnection,
    Use(Box<str>),
    Fetch,
    /// Descriptions of columns.
    Fields,
    /// A result that is of no statement.
    Result,
    /// One message.
    Any,
    Close([u8; 4]),
    LongData {
        number: [u8; 4],
        place: u16,
        piece: Box<[u8]>,
    },
}

impl Sizeable for Waiting {
    fn size(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Login(text) | Self::Use(text) => text.len(),
                Self::Query { text, .. } | Self::Prepare { text, .. } => length(text),
                Self::Execute { values, .. } => values.as_ref().map_or(0, |values| values.len()),
                Self::LongData { piece, .. } => piece.len(),
                _ => 0,
            }
    }
}

#[derive(Debug, Default)]
pub(super) struct Session {
    /// The name of its session in the trace.
    name: String,
    database: String,
    agreed: Agreed,
    statements: Named<Prepared>,
    /// The statement that was prepared last.
    last: [u8; 4],
    waiting: Queue<Waiting>,
    /// How far the reply to the first of them has come.
    reply: Reply,
    /// The client sends a file.
    is_file: bool,
}

impl Session {
    pub(super) fn new(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    /// The client has answered the greeting: that is to be answered.
    pub(super) fn begin(&mut self, database: Box<str>, agreed: Agreed) {
        self.agreed = agreed;
        self.waiting.push(Waiting::Login(database));
    }

    /// About how much memory it takes.
    pub(super) fn size(&self) -> usize {
        self.statements.bytes + self.waiting.bytes
    }

    // ---- requests --------------------------------------------------------------------------------------------

    pub(super) fn asked(
        &mut self,
        message: Message<'_>,
        at: i64,
        to: &mut Common,
    ) -> Result<(), &'static str> {
        if self.is_file {
            self.is_file = message.length > 0;
            return Ok(());
        }
        // A command begins an exchange. What goes on with one here is what proves who the client is.
        if message.sequence != 0 {
            return Ok(());
        }
        let (kind, body) = message.body.split_first().ok_or(FOREIGN)?;
        if matches!(*kind, other::BINLOG_DUMP | other::BINLOG_DUMP_GTID | other::REGISTER_REPLICA) {
            return Err(REPLICATION);
        }
        if *kind == other::FETCH {
            to.intake.leave_out(FETCHES);
        }
        if *kind != command::QUIT {
            let waiting = self.request(*kind, body, message.is_cut(), at).map_err(|Foreign| FOREIGN)?;
            self.waiting.push(waiting);
            self.settle();
        }
        Ok(())
    }

    fn request(&self, kind: u8, body: &[u8], is_cut: bool, at: i64) -> Result<Waiting, Foreign> {
        let mut fields = Fields(body);
        Ok(match kind {
            command::QUERY => {
                let text = if is_cut { Err(TOO_LONG) } else { text(query(body, self.agreed)?) };
                Waiting::Query { text, at }
            }
            other::BULK_EXECUTE => Waiting::Query { text: Err(BULK), at },
            command::PREPARE => {
                Waiting::Prepare { text: if is_cut { Err(TOO_LONG) } else { text(body) }, at }
            }
            command::EXECUTE => {
                let number = fields.take()?;
                let values = if is_cut { Err(TOO_LONG) } else { Ok(fields.0.into()) };
                Waiting::Execute { number, values, at }
            }
            other::LONG_DATA => {
                Waiting::LongData { number: fields.take()?, place: fields.u16()?, piece: fields.0.into() }
            }
            command::CLOSE => Waiting::Close(fields.take()?),
            other::RESET => Waiting::Reset(fields.take()?),
            other::INIT_DB => Waiting::Use(String::from_utf8_lossy(body).into()),
            other::CHANGE_USER => {
                let _user = fields.until_zero();
                let length = fields.u8()?;
                let _proof = fields.bytes(length.into())?;
                Waiting::Login(String::from_utf8_lossy(fields.until_zero()).into())
            }
            other::RESET_CONNECTION => Waiting::ResetConnection,
            other::FETCH => Waiting::Fetch,
            other::FIELD_LIST => Waiting::Fields,
            other::PROCESS_INFO => Waiting::Result,
            command::PING
            | other::CREATE_DB
            | other::DEBUG
            | other::DROP_DB
            | other::PROCESS_KILL
            | other::REFRESH
            | other::SET_OPTION
            | other::SHUTDOWN
            | other::STATISTICS => Waiting::Any,
            _ => return Err(Foreign),
        })
    }

    /// Does what has no reply, and is not behind what has one.
    fn settle(&mut self) {
        while let Some(Waiting::Close(_) | Waiting::LongData { .. }) = self.waiting.front() {
            match self.waiting.pop() {
                Some(Waiting::Close(number)) => self.statements.remove(&number),
                Some(Waiting::LongData { number, place, piece }) => {
                    let number = self.number(number);
                    if let Some(statement) = self.statements.get_mut(&number) {
                        statement.add_long(place, &piece);
                        self.statements.measure(&number);
                    }
                }
                _ => {}
            }
        }
    }

    fn number(&self, number: [u8; 4]) -> [u8; 4] {
        if number == LAST { self.last } else { number }
    }

    // ---- replies ---------------------------------------------------------------------------------------------

    pub(super) fn answered(&mut self, message: Message<'_>, at: i64, to: &mut Common) -> Result<(), Foreign> {
        let first = message.body.first();
        let step = match self.waiting.front() {
            // A server that ends the connection says why.
            None if first == Some(&0xff) => return Ok(()),
            None => return Err(Foreign),
            Some(Waiting::Login(_)) if !matches!(first, Some(0 | 0xff)) => Step::GoesOn,
            Some(Waiting::Query { .. } | Waiting::Execute { .. } | Waiting::Result) => {
                self.reply.result(message, self.agreed)?
            }
            Some(Waiting::Prepare { .. }) => self.reply.prepared(message, self.agreed)?,
            Some(Waiting::Fetch | Waiting::Fields) => Reply::rows(message, self.agreed),
            Some(_) => Reply::only(message),
        };
        match step {
            Step::GoesOn => {}
            Step::File => self.is_file = true,
            step => {
                self.reply = Reply::default();
                if let Some(waiting) = self.waiting.pop() {
                    self.done(waiting, &step, at, to);
                }
                self.settle();
            }
        }
        Ok(())
    }

    /// The reply to a request has ended.
    fn done(&mut self, waiting: Waiting, step: &Step, end: i64, to: &mut Common) {
        let (rows, error) = match step {
            Step::Done(rows) => (*rows, None),
            Step::Failed(code) => (None, Some(code.as_str())),
            _ => (None, None),
        };
        let ended = Ended { at: Some(end), rows, error };
        match (waiting, step) {
            (Waiting::Query { text, at }, _) => {
                self.give(&text, at, &ended, to);
                if let Some(name) = text.as_deref().ok().and_then(used_database).filter(|_| error.is_none()) {
                    name.clone_into(&mut self.database);
                }
            }
            (Waiting::Execute { number, values, at }, _) => {
                self.give_execution(number, values, at, &ended, to);
            }
            (Waiting::Prepare { text, .. }, Step::Prepared(number, places)) => {
                self.last = number.to_le_bytes();
                self.statements.insert(Name::from(self.last), Prepared::new(text, *places));
            }
            (Waiting::Prepare { text, at }, _) => self.give(&text, at, &ended, to),
            (Waiting::Login(database), Step::Done(_)) => {
                to.intake.end_session(&self.name);
                self.statements.clear();
                self.database = database.into();
            }
            (Waiting::Use(database), Step::Done(_)) => self.database = database.into(),
            (Waiting::ResetConnection, Step::Done(_)) => self.statements.clear(),
            (Waiting::Reset(number), Step::Done(_)) => {
                let number = self.number(number);
                if let Some(statement) = self.statements.get_mut(&number) {
                    statement.reset();
                    self.statements.measure(&number);
                }
            }
            _ => {}
        }
    }

    /// The connection has ended: how what still waited for its reply ended is not known.
    pub(super) fn end(&mut self, to: &mut Common) {
        let ended = Ended { at: None, rows: None, error: None };
        while let Some(waiting) = self.waiting.pop() {
            match waiting {
                Waiting::Query { text, at } => self.give(&text, at, &ended, to),
                Waiting::Execute { number, values, at } => {
                    self.give_execution(number, values, at, &ended, to);
                }
                _ => {}
            }
            self.settle();
        }
    }

    // ---- events ----------------------------------------------------------------------------------------------

    fn give_execution(
        &mut self,
        number: [u8; 4],
        values: Result<Box<[u8]>, &'static str>,
        at: i64,
        ended: &Ended<'_>,
        to: &mut Common,
    ) {
        let (number, agreed) = (self.number(number), self.agreed);
        let text = match self.statements.get_mut(&number) {
            Some(statement) => {
                let text = values.and_then(|values| statement.executed(&values, agreed));
                // Values that were sent by themselves are of one execution, whether it could be read or not.
                statement.reset();
                self.statements.measure(&number);
                text
            }
            None => Err(UNKNOWN),
        };
        self.give(&text, at, ended, to);
    }

    fn give(&self, text: &Text, at: i64, ended: &Ended<'_>, to: &mut Common) {
        to.give(&self.name, &self.database, text, Vec::new(), at, ended);
    }
}
