//! The query phase of the protocol as a state machine without I/O: it says what to send and is fed what arrives
//! (manual, section 53.2 "Message Flow").

mod added;
mod bind;
mod prepared;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::rc::Rc;

use nephoscope_runtime::Inbox;

use crate::contract::added::{Added, Places};
use crate::contract::driver::{Command, ConnectionState, Reply, StatementMode, Want};
use crate::contract::error::{Error, ErrorClass};
use crate::contract::isolation::Isolation;
use crate::contract::rows::{Columns, ResultIndex, Rows, too_many};
use crate::contract::statement::Statement;
use crate::contract::value::Params;
use crate::net::frame::make_room;
pub(crate) use crate::net::session::Progress;
use crate::postgres::types::Type;
use crate::postgres::wire::{self, Frame, Message};
pub(crate) use added::described_params;
use added::push_text_row;
use bind::{write_bound, write_simple};
use prepared::with_levels;
pub(crate) use prepared::{Description, Parsed, Prepared, server_name, sql, with_control};

/// What was sent and is not yet answered.
enum Expected {
    /// A command.
    Command {
        /// Set where rows are wanted and the statement has some.
        rows: Option<Rc<Columns>>,
        /// Its reply is kept.
        keeps_reply: bool,
        /// It is COMMIT, which the server may answer by rolling back.
        commit: bool,
        /// The place of the statement that is parsed before it.
        parses: Option<usize>,
    },
    /// A text without parameters, whose columns come with its rows.
    Text { want: Want },
    /// The description of the added statement at a place.
    Description { place: usize },
    /// The end of a batch, which the server answers with `ReadyForQuery`.
    Sync,
}

/// The state of one connection in its query phase.
pub(crate) struct Machine {
    mode: StatementMode,
    /// The statements of the workload, then BEGIN, COMMIT and ROLLBACK, BEGIN in each level, and those that were added.
    statements: Vec<Prepared>,
    /// How many the workload has.
    workload: usize,
    places: Places,
    /// The texts that are queued or not answered.
    texts: Vec<Rc<Statement>>,
    /// The last of them is sent by itself.
    text_alone: bool,
    /// The types of the parameters of the statement that is being described.
    params: Vec<Type>,
    expected: VecDeque<Expected>,
    /// How many [`Expected::Sync`] there are.
    batches: usize,
    /// Queued commands wait for the Sync that ends their batch.
    open_batch: bool,
    status: u8,
    lost: bool,
    error: Option<Error>,
    /// A notice that the server is about to end the connection: it takes the place of an error where the server
    /// has no time for more.
    warning: Option<Error>,
    reply: Reply,
    result: Option<ResultIndex>,
    /// The rows that come are a text's.
    text_result: Option<(ResultIndex, Rc<Columns>)>,
    /// The rows are too many: told at once, and not when the server comes to an end.
    overflow: Option<Error>,
}

/// The SQL behind the commands that are not statements of the workload.
pub(crate) const CONTROL: [&str; 3] = ["BEGIN", "COMMIT", "ROLLBACK"];

impl Machine {
    /// `statements` are the workload's, then those of [`CONTROL`]. `status` is the transaction status of the last
    /// `ReadyForQuery` of the set-up.
    pub(crate) fn new(mode: StatementMode, statements: Vec<Prepared>, status: u8) -> Self {
        Self {
            mode,
            workload: statements.len() - CONTROL.len(),
            places: Places::new(statements.len() + Isolation::ALL.len()),
            texts: Vec::new(),
            text_alone: false,
            params: Vec::new(),
            statements: with_levels(mode, statements),
            expected: VecDeque::with_capacity(8),
            batches: 0,
            open_batch: false,
            status,
            lost: false,
            error: None,
            warning: None,
            reply: Reply::default(),
            result: None,
            text_result: None,
            overflow: None,
        }
    }

    pub(crate) fn state(&self) -> ConnectionState {
        match self.status {
            _ if self.lost => ConnectionState::Lost,
            _ if self.batches > 0 || self.open_batch => ConnectionState::Waiting,
            b'I' => ConnectionState::Idle,
            b'T' => ConnectionState::InTransaction,
            _ => ConnectionState::Failed,
        }
    }

    /// Writes a command behind `out`.
    pub(crate) fn queue(
        &mut self,
        command: Command,
        params: &Params,
        want: Want,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let index = match command {
            Command::Begin => self.workload,
            Command::BeginIn(level) => self.workload + CONTROL.len() + level as usize,
            Command::Commit => self.workload + 1,
            Command::Rollback => self.workload + 2,
            Command::Execute(index) => index,
        };
        let Some(statement) = self.statements.get_mut(index) else {
            return self.queue_text(index, params, want, out);
        };
        statement.statement.check_count(params)?;
        let start = out.len();
        let parses = (statement.parsed == Parsed::No).then_some(index);
        if parses.is_some() {
            wire::parse(out, &statement.name, &sql(&statement.statement));
        }
        let written = match self.mode {
            StatementMode::Simple => write_simple(statement, params, out),
            mode => write_bound(statement, mode, params, out),
        };
        if let Err(misfit) = written {
            out.truncate(start);
            return Err(misfit);
        }
        if parses.is_some() {
            statement.parsed = Parsed::Asked;
        }
        let rows = if want.has_rows() { statement.columns.clone() } else { None };
        let (keeps_reply, commit) = (want == Want::Kept, command == Command::Commit);
        self.expected.push_back(Expected::Command { rows, keeps_reply, commit, parses });
        if self.mode == StatementMode::Simple {
            self.expect_sync();
        } else {
            self.open_batch = true;
        }
        Ok(())
    }

    /// Ends the batch of queued commands, if there is one: all of them are answered together.
    pub(crate) fn end_batch(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.open_batch) {
            out.extend_from_slice(&wire::SYNC);
            self.expect_sync();
        }
    }

    fn expect_sync(&mut self) {
        self.expected.push_back(Expected::Sync);
        self.batches += 1;
    }

    /// Uses up whole messages of the inbox. What the error says has happened to the transaction is in the state.
    #[inline]
    pub(crate) fn feed(&mut self, inbox: &mut Inbox, rows: &mut Rows) -> Result<Progress, Error> {
        if self.lost {
            return Err(Error::connection_lost("the connection was lost before"));
        }
        let (mut used, mut rest) = (0, inbox.bytes());
        while self.batches > 0 {
            match wire::frame(rest) {
                Ok(Frame::Message(message, size)) => {
                    if let Err(error) = self.message(message, rows) {
                        return Err(self.lose(error));
                    }
                    used += size;
                    rest = &rest[size..];
                    if let Some(error) = self.overflow.take() {
                        inbox.consume(used);
                        return Err(self.error.take().unwrap_or(error));
                    }
                }
                Ok(Frame::Partial(size)) => {
                    inbox.consume(used);
                    make_room(inbox, size);
                    return Ok(Progress::More);
                }
                Err(error) => return Err(self.lose(error)),
            }
        }
        inbox.consume(used);
        self.result = None;
        let reply = std::mem::take(&mut self.reply);
        match self.error.take() {
            None => Ok(Progress::Done(reply)),
            Some(error) => Err(error),
        }
    }

    /// The connection has ended. Gives the reason, if the server gave one before it closed.
    pub(crate) fn lose(&mut self, reason: Error) -> Error {
        self.lost = true;
        self.error.take().or_else(|| self.warning.take()).unwrap_or(reason)
    }

    fn message(&mut self, message: Message<'_>, rows: &mut Rows) -> Result<(), Error> {
        match message.tag {
            // BindComplete: the rows that follow belong to the command whose turn it is.
            b'2' => self.begin_rows(rows),
            // ParameterDescription, RowDescription, NoData.
            b't' => self.described_params(message.body)?,
            b'T' => self.described(message.body, rows)?,
            b'n' => self.described_without_columns(),
            b'D' => self.row(message.body, rows)?,
            // CommandComplete, EmptyQueryResponse.
            b'C' | b'I' => self.completed(message.body, rows)?,
            b'Z' => self.ready(message.body)?,
            b'E' => self.failed(wire::error(message.body)),
            b'N' => self.noted(wire::error(message.body)),
            // ParseComplete.
            b'1' => self.parsed(),
            // CloseComplete, PortalSuspended, ParameterStatus, NotificationResponse.
            b'3' | b's' | b'S' | b'A' => {}
            b'G' | b'H' | b'W' => {
                return Err(Error::other("COPY cannot be run as a statement of a transaction"));
            }
            tag => return Err(wire::garbage(&format!("the message {:?}", char::from(tag)))),
        }
        Ok(())
    }

    /// The server has parsed the statement of the command whose turn it is.
    fn parsed(&mut self) {
        if let Some(Expected::Command { parses: Some(place), .. }) = self.expected.front() {
            self.statements[*place].parsed = Parsed::Yes;
        }
    }

    fn begin_rows(&mut self, rows: &mut Rows) {
        self.result = match self.expected.front() {
            Some(Expected::Command { rows: Some(columns), .. }) => Some(rows.begin(columns)),
            _ => None,
        };
    }

    fn completed(&mut self, tag: &[u8], rows: &mut Rows) -> Result<(), Error> {
        let Some(Expected::Command { commit, keeps_reply, .. }) = self.expected.front() else {
            return self.completed_text(tag, rows);
        };
        let (affected, result) = (wire::affected(tag), self.result.take());
        self.reply = Reply { affected, result, ..Reply::default() };
        if *keeps_reply {
            rows.keep(self.reply);
        }
        if *commit && tag.starts_with(b"ROLLBACK") {
            self.error.get_or_insert_with(Error::not_committed);
        }
        // In the simple mode one message may hold several statements; all but the last are only counted.
        if self.mode != StatementMode::Simple {
            self.expected.pop_front();
        }
        Ok(())
    }

    /// The server has done with a batch.
    fn ready(&mut self, body: &[u8]) -> Result<(), Error> {
        self.status = match body {
            [status @ (b'I' | b'T' | b'E')] => *status,
            _ => return Err(wire::garbage("ReadyForQuery")),
        };
        self.skip_to_sync();
        self.expected.pop_front();
        self.batches -= 1;
        self.warning = None;
        Ok(())
    }

    fn noted(&mut self, notice: Error) {
        tracing::debug!(%notice, "the server notes");
        if notice.class() == ErrorClass::ShuttingDown {
            self.warning = Some(notice);
        }
    }

    /// What the server skips it does not parse either.
    fn skip_to_sync(&mut self) {
        loop {
            match self.expected.front() {
                Some(Expected::Command { parses, .. }) => {
                    if let Some(skipped) = parses.map(|place| &mut self.statements[place])
                        && skipped.parsed == Parsed::Asked
                    {
                        skipped.parsed = Parsed::No;
                    }
                }
                Some(Expected::Text { .. }) => self.text_result = None,
                Some(Expected::Description { place }) => {
                    self.places.forget(*place);
                    self.error
                        .get_or_insert_with(|| Error::other("the server has not described a statement"));
                }
                Some(Expected::Sync) | None => return,
            }
            self.expected.pop_front();
        }
    }

    #[inline]
    fn row(&mut self, body: &[u8], rows: &mut Rows) -> Result<(), Error> {
        if self.result.is_none() {
            return self.text_row(body, rows);
        }
        let Some((_count, cells)) = body.split_first_chunk::<2>() else {
            return Err(wire::garbage("DataRow"));
        };
        if !rows.has_room(cells.len()) {
            // What still comes of this result is read and not kept.
            self.result = None;
            self.overflow = Some(too_many());
            return Ok(());
        }
        if self.mode == StatementMode::Simple {
            let columns = match self.expected.front() {
                Some(Expected::Command { rows, .. }) => rows.as_deref(),
                _ => None,
            };
            return push_text_row(columns, cells, rows);
        }
        rows.push_cells(cells);
        Ok(())
    }

    fn failed(&mut self, mut error: Error) {
        if let Some(Expected::Command { parses: Some(place), .. }) = self.expected.front()
            && self.statements[*place].parsed == Parsed::Asked
        {
            error = error.context(&format!("statement {}", self.statements[*place].statement.name()));
        }
        if let Some(Expected::Description { place }) = self.expected.front() {
            error = error.context(&format!("statement {}", self.statements[*place].statement.name()));
        }
        (self.result, self.text_result) = (None, None);
        self.reply = Reply::default();
        // The first error is the cause; what follows in the same flush are its consequences.
        if self.error.is_none() {
            self.error = Some(error);
        }
        if self.mode != StatementMode::Simple {
            // The server skips the rest of the batch.
            self.skip_to_sync();
        }
    }
}

impl crate::net::session::Machine for Machine {
    const GOODBYE: &'static [u8] = &wire::TERMINATE;

    #[inline]
    fn queue(
        &mut self,
        command: Command,
        params: &Params,
        want: Want,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.queue(command, params, want, out)
    }

    fn add(&mut self, statement: &Rc<Statement>, alone: bool, out: &mut Vec<u8>) -> Result<Added, Error> {
        Ok(self.add(statement, alone, out))
    }

    #[inline]
    fn end_batch(&mut self, out: &mut Vec<u8>) {
        self.end_batch(out);
    }

    #[inline]
    fn feed(&mut self, inbox: &mut Inbox, _out: &mut Vec<u8>, rows: &mut Rows) -> Result<Progress, Error> {
        self.feed(inbox, rows)
    }

    fn lose(&mut self, reason: Error) -> Error {
        self.lose(reason)
    }

    fn state(&self) -> ConnectionState {
        self.state()
    }

    fn unasked() -> Error {
        wire::garbage("a reply before its question")
    }
}
