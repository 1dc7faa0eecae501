//! The query phase of the protocol as a state machine without I/O: it says what to send and is fed what arrives
//! (manual, section 53.2 "Message Flow").

mod prepared;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::rc::Rc;

use nephoscope_runtime::Inbox;

use crate::contract::driver::{Command, ConnectionState, Reply, StatementMode, Want};
use crate::contract::error::{Error, ErrorClass};
use crate::contract::rows::{Columns, ResultIndex, Rows, too_many};
use crate::contract::statement::Statement;
use crate::contract::value::{Params, Value};
use crate::net::frame::make_room;
pub(crate) use crate::net::session::Progress;
use crate::postgres::types::{self, Type};
use crate::postgres::wire::{self, Frame, Message};
pub(crate) use prepared::{Description, Parsed, Prepared, server_name, sql, with_control};

/// What was sent and is not yet answered.
enum Expected {
    /// A command.
    Command {
        /// Set where rows are wanted and the statement has some.
        rows: Option<Rc<Columns>>,
        /// It is COMMIT, which the server may answer by rolling back.
        commit: bool,
        /// The place of the statement that is parsed before it.
        parses: Option<usize>,
    },
    /// The end of a batch, which the server answers with `ReadyForQuery`.
    Sync,
}

/// The state of one connection in its query phase.
pub(crate) struct Machine {
    mode: StatementMode,
    /// The statements of the workload, then BEGIN, COMMIT and ROLLBACK.
    statements: Vec<Prepared>,
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
            statements,
            expected: VecDeque::with_capacity(8),
            batches: 0,
            open_batch: false,
            status,
            lost: false,
            error: None,
            warning: None,
            reply: Reply::default(),
            result: None,
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
        let workload = self.statements.len() - CONTROL.len();
        let index = match command {
            Command::Begin => workload,
            Command::Commit => workload + 1,
            Command::Rollback => workload + 2,
            Command::Execute(index) => index,
        };
        let Some(statement) = self.statements.get_mut(index) else {
            return Err(Statement::missing(index));
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
        let rows = if want == Want::Rows { statement.columns.clone() } else { None };
        self.expected.push_back(Expected::Command { rows, commit: command == Command::Commit, parses });
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
        let mut used = 0;
        while self.batches > 0 {
            match wire::frame(&inbox.bytes()[used..]) {
                Ok(Frame::Message(message, size)) => {
                    if let Err(error) = self.message(message, rows) {
                        return Err(self.lose(error));
                    }
                    used += size;
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
            // BindComplete, or RowDescription, which comes only in the simple mode (the columns are known since they
            // were described): the rows that follow belong to the command whose turn it is.
            b'2' | b'T' => self.begin_rows(rows),
            b'D' => self.row(message.body, rows)?,
            // CommandComplete, EmptyQueryResponse.
            b'C' | b'I' => self.completed(message.body)?,
            b'Z' => self.ready(message.body)?,
            b'E' => self.failed(wire::error(message.body)),
            b'N' => self.noted(wire::error(message.body)),
            // ParseComplete.
            b'1' => self.parsed(),
            // CloseComplete, NoData, PortalSuspended, ParameterStatus, NotificationResponse.
            b'3' | b'n' | b's' | b'S' | b'A' => {}
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

    fn completed(&mut self, tag: &[u8]) -> Result<(), Error> {
        let Some(Expected::Command { commit, .. }) = self.expected.front() else {
            return Err(wire::garbage("the end of a command that was not sent"));
        };
        let (affected, result) = (wire::affected(tag), self.result.take());
        self.reply = Reply { affected, result, ..Reply::default() };
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
        while let Some(Expected::Command { parses, .. }) = self.expected.front() {
            if let Some(skipped) = parses.map(|place| &mut self.statements[place])
                && skipped.parsed == Parsed::Asked
            {
                skipped.parsed = Parsed::No;
            }
            self.expected.pop_front();
        }
    }

    #[inline]
    fn row(&mut self, body: &[u8], rows: &mut Rows) -> Result<(), Error> {
        if self.result.is_none() {
            return Ok(());
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
        self.result = None;
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

/// In the simple mode bytea comes in hexadecimal digits; the store keeps it as bytes like the other modes.
fn push_text_row(columns: Option<&Columns>, mut cells: &[u8], rows: &mut Rows) -> Result<(), Error> {
    rows.push_row();
    let bytea = Type::Bytea.kind(true);
    for column in columns.map(|columns| columns.columns.as_slice()).unwrap_or_default() {
        let Some((length, rest)) = cells.split_first_chunk::<4>() else {
            return Err(wire::garbage("DataRow"));
        };
        cells = rest;
        let Ok(size) = usize::try_from(i32::from_be_bytes(*length)) else {
            rows.push_cell(None);
            continue;
        };
        let Some((cell, rest)) = cells.split_at_checked(size) else { return Err(wire::garbage("DataRow")) };
        cells = rest;
        match types::bytea_from_text(cell).filter(|_| column.kind == bytea) {
            Some(bytes) => rows.push_cell(Some(&bytes)),
            None => rows.push_cell(Some(cell)),
        }
    }
    Ok(())
}

/// `Bind` and `Execute`, and `Parse` before them in the extended mode.
#[inline]
fn write_bound(
    statement: &Prepared,
    mode: StatementMode,
    params: &Params,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let length_at = out.len() + statement.length_at(mode);
    out.extend_from_slice(&statement.head);
    let count = params.len();
    out.extend_from_slice(&(count as i16).to_be_bytes());
    let formats = out.len();
    out.resize(formats + 2 * count, 0);
    out.extend_from_slice(&(count as i16).to_be_bytes());
    for (place, (value, of)) in params.iter().zip(&statement.params).enumerate() {
        if value == Value::Null {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            continue;
        }
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        let binary = types::encode(*of, value, out).map_err(|why| statement.statement.misfit(place, why))?;
        let size = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&size.to_be_bytes());
        out[formats + 2 * place + 1] = u8::from(binary);
    }
    // Bind ends where Execute begins; its length counts itself.
    let bind_end = out.len() + statement.tail.len() - wire::EXECUTE.len();
    out.extend_from_slice(&statement.tail);
    let length = (bind_end - length_at) as u32;
    out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// `Query`, with the values written into the text.
fn write_simple(statement: &Prepared, params: &Params, out: &mut Vec<u8>) -> Result<(), Error> {
    out.push(b'Q');
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let values: Vec<Value<'_>> = params.iter().collect();
    statement.statement.render(out, |param, out| {
        types::write_literal(statement.params[param], values[param], out)
            .map_err(|why| statement.statement.misfit(param, why))
    })?;
    out.push(0);
    wire::end_message(out, start);
    Ok(())
}
