//! The query phase of the protocol as a state machine without I/O: it says what to send and is fed what arrives
//! ("Command Phase").

pub(crate) mod order;
pub(crate) mod prepared;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use nephoscope_runtime::Inbox;

use crate::contract::driver::{Command, ConnectionState, Reply, StatementMode, Want};
use crate::contract::error::Error;
use crate::contract::rows::{ResultIndex, Rows, too_many};
use crate::contract::value::Params;
use crate::mysql::errors::ends_session;
use crate::mysql::startup::in_transaction;
use crate::mysql::types;
use crate::mysql::wire::{self, Frame, command, status};
use crate::net::frame::make_room;
use crate::net::session::{self, Progress};
use order::{Effect, Wave};
use prepared::{Prepared, identify, write_close};

/// What was sent, or will be, and is not yet answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    what: What,
    effect: Effect,
    /// Its rows are wanted.
    keeps_rows: bool,
    /// The sequence number with which the answer begins: one more than that of the command's last packet.
    answer: u8,
}

impl Step {
    fn new(what: What, effect: Effect, keeps_rows: bool) -> Self {
        Self { what, effect, keeps_rows, answer: 1 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// BEGIN, COMMIT or ROLLBACK.
    Control,
    Execute(usize),
    /// PREPARE, in the extended mode.
    Prepare(usize),
    /// Asks for the state after an error, which an `ERR_Packet` does not tell.
    Ping,
}

/// What the next packet of an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Header,
    /// Descriptions of parameters, which say nothing that is needed; then those of so many columns.
    Params {
        left: usize,
        columns: usize,
    },
    Definitions {
        left: usize,
    },
    /// The end of the columns, before servers left it out.
    DefinitionsEnd,
    Rows,
}

/// What client and server have agreed on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Agreed {
    /// `OK_Packet` ends rows, and nothing ends columns.
    pub(crate) deprecates_eof: bool,
    /// The server may leave out the description of columns.
    pub(crate) caches_metadata: bool,
}

/// Commands that wait for the replies of others.
#[derive(Default)]
struct Held {
    steps: VecDeque<(Step, usize)>,
    bytes: Vec<u8>,
    /// How much of `bytes` has left.
    sent: usize,
}

/// The state of one connection in its query phase.
pub(crate) struct Machine {
    mode: StatementMode,
    agreed: Agreed,
    statements: Vec<Prepared>,
    expected: VecDeque<Step>,
    wave: Wave,
    held: Held,
    phase: Phase,
    /// The sequence number of the next packet; `None` where the next answer begins.
    sequence: Option<u8>,
    status: u16,
    lost: bool,
    error: Option<Error>,
    /// A BEGIN has failed: what was sent behind it may have been committed.
    begin_failed: bool,
    /// The server's status is not known since an error.
    unsettled: bool,
    reply: Reply,
    /// Where the rows that come are kept.
    result: Option<ResultIndex>,
    /// Of a procedure's results the last one that was kept.
    kept: Option<ResultIndex>,
    count: u64,
    /// The rows are too many: told at once, and not when the server comes to an end.
    overflow: Option<Error>,
}

const BEGIN: &[u8] = b"BEGIN";
const COMMIT: &[u8] = b"COMMIT";
const ROLLBACK: &[u8] = b"ROLLBACK";

impl Machine {
    /// `flags` are the server's status at the end of the set-up.
    pub(crate) fn new(mode: StatementMode, agreed: Agreed, statements: Vec<Prepared>, flags: u16) -> Self {
        Self {
            mode,
            agreed,
            statements,
            expected: VecDeque::with_capacity(8),
            wave: Wave::Empty,
            held: Held::default(),
            phase: Phase::Header,
            sequence: None,
            status: flags,
            lost: false,
            error: None,
            begin_failed: false,
            unsettled: false,
            reply: Reply::default(),
            result: None,
            kept: None,
            count: 0,
            overflow: None,
        }
    }

    /// Puts a command behind those that are sent together, or behind those that wait.
    #[inline]
    fn add(
        &mut self,
        mut step: Step,
        out: &mut Vec<u8>,
        write: impl FnOnce(&[Prepared], &mut Vec<u8>) -> Result<u8, Error>,
    ) -> Result<(), Error> {
        let wave = if self.held.steps.is_empty() { self.wave.with(step.effect) } else { None };
        let target = if wave.is_some() { out } else { &mut self.held.bytes };
        let start = target.len();
        match write(&self.statements, target) {
            Ok(answer) => step.answer = answer,
            Err(misfit) => {
                target.truncate(start);
                return Err(misfit);
            }
        }
        match wave {
            Some(wave) => {
                self.wave = wave;
                self.expected.push_back(step);
            }
            None => self.held.steps.push_back((step, self.held.bytes.len() - start)),
        }
        Ok(())
    }

    fn add_control(&mut self, effect: Effect, sql: &'static [u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let step = Step::new(What::Control, effect, false);
        self.add(step, out, |_, out| Ok(wire::command(out, command::QUERY, sql)))
    }

    #[inline]
    fn add_execute(
        &mut self,
        index: usize,
        params: &Params,
        want: Want,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let Some(statement) = self.statements.get(index) else {
            return Err(Error::other(format!("there is no statement number {index}")));
        };
        let (wanted, got) = (statement.statement.params().len(), params.len());
        if wanted != got {
            let label = statement.statement.name();
            return Err(Error::other(format!("{label} takes {wanted} parameters and was given {got}")));
        }
        let effect = if statement.only_reads { Effect::Read } else { Effect::Write };
        let step = Step::new(What::Execute(index), effect, want == Want::Rows);
        if statement.as_text {
            return self.add(step, out, |all, out| all[index].write_text(params, out));
        }
        if self.mode == StatementMode::Prepared {
            return self.add(step, out, |all, out| all[index].write_execute(params, out));
        }
        self.add_bound(index, step, params, out)
    }

    /// PREPARE, then EXECUTE and CLOSE when its answer is in.
    fn add_bound(
        &mut self,
        index: usize,
        step: Step,
        params: &Params,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let (wave, sent, held) = (self.wave, out.len(), self.held.bytes.len());
        let prepare = Step::new(What::Prepare(index), Effect::Read, false);
        self.add(prepare, out, |all, out| {
            Ok(wire::command(out, command::PREPARE, all[index].sql.as_bytes()))
        })?;
        let bound = Step { effect: Effect::Bound, ..step };
        self.add(bound, out, |all, out| all[index].write_bound(params, out)).inspect_err(|_| {
            // A value does not fit: nothing is queued.
            if out.len() > sent {
                self.expected.pop_back();
            } else {
                self.held.steps.pop_back();
            }
            out.truncate(sent);
            self.held.bytes.truncate(held);
            self.wave = wave;
        })
    }

    /// Every reply of the wave is in: sends the next one, or drops it and asks how things stand.
    fn next_wave(&mut self, out: &mut Vec<u8>) {
        self.wave = Wave::Empty;
        if self.error.is_some() {
            self.drop_held(out);
            if std::mem::take(&mut self.unsettled) {
                wire::command(out, command::PING, &[]);
                self.expected.push_back(Step::new(What::Ping, Effect::Read, false));
            }
            return;
        }
        while let Some((step, size)) = self.held.steps.front().copied() {
            let Some(wave) = self.wave.with(step.effect) else { return };
            let start = out.len();
            out.extend_from_slice(&self.held.bytes[self.held.sent..self.held.sent + size]);
            if let (Effect::Bound, What::Execute(index)) = (step.effect, step.what)
                && let Some(id) = self.statements[index].id.take()
            {
                identify(&mut out[start..], id);
            }
            self.wave = wave;
            self.held.sent += size;
            self.held.steps.pop_front();
            self.expected.push_back(step);
        }
        self.held.bytes.clear();
        self.held.sent = 0;
    }

    fn drop_held(&mut self, out: &mut Vec<u8>) {
        self.held.steps.clear();
        self.held.bytes.clear();
        self.held.sent = 0;
        if self.mode == StatementMode::Extended {
            for id in self.statements.iter_mut().filter_map(|statement| statement.id.take()) {
                write_close(id, out);
            }
        }
    }

    #[inline]
    fn packet(&mut self, payload: &[u8], last: u8, rows: &mut Rows) -> Result<(), Error> {
        if payload.first() == Some(&0xff) {
            return self.failed(payload);
        }
        let packets = (payload.len() / wire::FULL) as u8;
        let first = self.sequence.map_or_else(|| self.front().map(|step| step.answer), Ok)?;
        if last != first.wrapping_add(packets) {
            return Err(wire::garbage("the order of its packets"));
        }
        self.sequence = Some(last.wrapping_add(1));
        match self.phase {
            Phase::Header => self.header(payload, rows),
            Phase::Params { left, columns } => {
                self.described_params(left - 1, columns);
                Ok(())
            }
            Phase::Definitions { left } => self.definition(payload, left - 1, rows),
            Phase::DefinitionsEnd => {
                wire::eof(payload)?;
                self.described(rows);
                Ok(())
            }
            Phase::Rows if wire::is_end(payload, self.agreed.deprecates_eof) => {
                let end = wire::end(payload, self.agreed.deprecates_eof)?;
                self.completed(self.count, end.status);
                Ok(())
            }
            Phase::Rows => self.row(payload, rows),
        }
    }

    fn front(&self) -> Result<Step, Error> {
        self.expected.front().copied().ok_or_else(|| wire::garbage("an answer to nothing"))
    }

    /// The statement whose turn it is.
    fn current(&mut self) -> Result<&mut Prepared, Error> {
        match self.front()?.what {
            What::Execute(index) | What::Prepare(index) => Ok(&mut self.statements[index]),
            What::Control | What::Ping => Err(wire::garbage("rows of a command that has none")),
        }
    }

    #[inline]
    fn header(&mut self, payload: &[u8], rows: &mut Rows) -> Result<(), Error> {
        if let What::Prepare(_) = self.front()?.what {
            let eof = usize::from(!self.agreed.deprecates_eof);
            let (params, columns) = self.current()?.prepared(payload)?;
            self.described_params(if params > 0 { params + eof } else { 0 }, columns);
            return Ok(());
        }
        match payload.first() {
            Some(0) => {
                let end = wire::ok(payload)?;
                self.completed(end.affected, end.status);
                return Ok(());
            }
            Some(0xfb) => return Err(Error::other("LOAD DATA LOCAL cannot be run as a statement")),
            _ => {}
        }
        let mut fields = wire::Fields(payload);
        let count = fields.number()?;
        let count = usize::try_from(count).ok().filter(|count| (1..=usize::from(u16::MAX)).contains(count));
        let count = count.ok_or_else(|| wire::garbage("a result"))?;
        self.count = 0;
        let known = self.current()?.columns.columns.as_ref().map(|columns| columns.columns.len());
        if self.agreed.caches_metadata && fields.u8()? == 0 {
            if known != Some(count) {
                return Err(wire::garbage("a result without columns"));
            }
            self.described(rows);
            return Ok(());
        }
        self.current()?.columns.begin(count);
        self.phase = Phase::Definitions { left: count };
        Ok(())
    }

    /// So many parameters are still to be described.
    fn described_params(&mut self, left: usize, columns: usize) {
        self.phase = match (left, columns) {
            (0, 0) => {
                self.answered();
                Phase::Header
            }
            (0, _) => Phase::Definitions { left: columns },
            _ => Phase::Params { left, columns },
        };
    }

    fn definition(&mut self, payload: &[u8], left: usize, rows: &mut Rows) -> Result<(), Error> {
        let deprecates_eof = self.agreed.deprecates_eof;
        let statement = self.current()?;
        statement.columns.push(payload);
        if left > 0 {
            self.phase = Phase::Definitions { left };
            return Ok(());
        }
        let as_text = statement.as_text;
        statement.columns.end(as_text)?;
        self.phase = Phase::DefinitionsEnd;
        if deprecates_eof {
            self.described(rows);
        }
        Ok(())
    }

    /// Every column is described: rows follow, unless it was a preparation.
    fn described(&mut self, rows: &mut Rows) {
        let Some(Step { what: What::Execute(index), keeps_rows, .. }) = self.expected.front().copied() else {
            self.answered();
            return;
        };
        let columns = self.statements[index].columns.columns.as_ref().filter(|_| keeps_rows);
        self.result = columns.map(|columns| rows.begin(columns));
        self.phase = Phase::Rows;
    }

    #[inline]
    fn row(&mut self, payload: &[u8], rows: &mut Rows) -> Result<(), Error> {
        /// What a cell may need in the store beyond its bytes on the wire.
        const MOST_MORE: usize = 32;
        self.count += 1;
        if self.result.is_none() {
            return Ok(());
        }
        let statement = self.current()?;
        let as_text = statement.as_text;
        let Some(columns) = statement.columns.columns.as_ref() else { return Ok(()) };
        if !rows.has_room(payload.len() + MOST_MORE * columns.columns.len()) {
            // What still comes of this result is read and not kept.
            self.result = None;
            self.overflow = Some(too_many());
            return Ok(());
        }
        if as_text {
            types::push_text_row(columns, payload, rows)
        } else {
            types::push_binary_row(columns, payload, rows)
        }
    }

    /// A result has ended.
    fn completed(&mut self, affected: u64, flags: u16) {
        self.status = flags;
        let kept = self.result.take().or(self.kept.take());
        self.phase = Phase::Header;
        if flags & status::MORE_RESULTS != 0 {
            self.kept = kept;
            return;
        }
        self.reply = Reply { affected, result: kept };
        if self.begin_failed && self.expected.front().is_some_and(|step| step.effect == Effect::Write) {
            self.error = self.error.take().map(Error::with_unknown_outcome);
        }
        self.answered();
    }

    /// The command whose turn it was is done.
    fn answered(&mut self) {
        self.expected.pop_front();
        self.phase = Phase::Header;
        self.sequence = None;
    }

    #[cold]
    fn failed(&mut self, payload: &[u8]) -> Result<(), Error> {
        let mut error = wire::error(payload);
        if error.code().parse().is_ok_and(ends_session) {
            return Err(error);
        }
        let step = self.front()?;
        if let What::Prepare(index) = step.what {
            error = error.context(&format!("statement {}", self.statements[index].statement.name()));
        }
        self.begin_failed |= step.effect == Effect::Begin;
        // The first error is the cause; what follows in the same flush are its consequences.
        self.error.get_or_insert(error);
        self.unsettled |= step.what != What::Ping;
        self.reply = Reply::default();
        (self.result, self.kept) = (None, None);
        self.answered();
        Ok(())
    }
}

impl session::Machine for Machine {
    const GOODBYE: &'static [u8] = &wire::GOODBYE;

    #[inline]
    fn queue(
        &mut self,
        command: Command,
        params: &Params,
        want: Want,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match command {
            Command::Begin => self.add_control(Effect::Begin, BEGIN, out),
            Command::Commit => self.add_control(Effect::Commit, COMMIT, out),
            Command::Rollback => self.add_control(Effect::Rollback, ROLLBACK, out),
            Command::Execute(index) => self.add_execute(index, params, want, out),
        }
    }

    fn end_batch(&mut self, _out: &mut Vec<u8>) {}

    #[inline]
    fn feed(&mut self, inbox: &mut Inbox, out: &mut Vec<u8>, rows: &mut Rows) -> Result<Progress, Error> {
        if self.lost {
            return Err(Error::connection_lost("the connection was lost before"));
        }
        let mut used = 0;
        while !self.expected.is_empty() {
            let taken = match wire::frame(&inbox.bytes()[used..], wire::LONGEST) {
                Ok(Frame::Packet(payload, sequence, size)) => {
                    self.packet(payload, sequence, rows).map(|()| size)
                }
                Ok(Frame::Packets(last, size)) => {
                    let mut joined = Vec::new();
                    wire::join(&inbox.bytes()[used..used + size], &mut joined);
                    self.packet(&joined, last, rows).map(|()| size)
                }
                Ok(Frame::Partial(size)) => {
                    inbox.consume(used);
                    make_room(inbox, size);
                    return Ok(Progress::More);
                }
                Err(error) => Err(error),
            };
            used += match taken {
                Ok(size) => size,
                Err(error) => return Err(session::Machine::lose(self, error)),
            };
            if self.expected.is_empty() {
                self.next_wave(out);
            }
            if let Some(error) = self.overflow.take() {
                inbox.consume(used);
                return Err(self.error.take().unwrap_or(error));
            }
        }
        inbox.consume(used);
        self.begin_failed = false;
        let reply = std::mem::take(&mut self.reply);
        match self.error.take() {
            None => Ok(Progress::Done(reply)),
            Some(error) => Err(error),
        }
    }

    fn lose(&mut self, reason: Error) -> Error {
        self.lost = true;
        self.error.take().unwrap_or(reason)
    }

    fn state(&self) -> ConnectionState {
        match () {
            () if self.lost => ConnectionState::Lost,
            () if !self.expected.is_empty() || !self.held.steps.is_empty() => ConnectionState::Waiting,
            () if in_transaction(self.status) => ConnectionState::InTransaction,
            () => ConnectionState::Idle,
        }
    }

    fn unasked() -> Error {
        wire::garbage("a reply before its question")
    }
}
