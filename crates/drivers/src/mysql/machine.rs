//! The query phase of the protocol as a state machine without I/O: it says what to send and is fed what arrives
//! ("Command Phase").

mod answers;
pub(crate) mod order;
pub(crate) mod prepared;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::rc::Rc;

use nephoscope_runtime::Inbox;

use crate::contract::added::{Added, Found, Places};
use crate::contract::driver::{Command, ConnectionState, Reply, StatementMode, Want};
use crate::contract::error::Error;
use crate::contract::isolation::Isolation;
use crate::contract::rows::{ResultIndex, Rows};
use crate::contract::statement::Statement;
use crate::contract::value::Params;
use crate::mysql::startup::in_transaction;
use crate::mysql::wire::{self, Frame, command};
use crate::net::frame::make_room;
use crate::net::session::{self, Progress};
use order::{Effect, Wave};
use prepared::{Prepared, identify, write_close};

/// What was sent, or will be, and is not yet answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    what: What,
    effect: Effect,
    want: Want,
    /// The sequence number with which the answer begins: one more than that of the command's last packet.
    answer: u8,
}

impl Step {
    fn new(what: What, effect: Effect, want: Want) -> Self {
        Self { what, effect, want, answer: 1 }
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
    /// The statements of the workload, then those that were added.
    statements: Vec<Prepared>,
    places: Places,
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
    /// How many were kept before that one.
    earlier: u32,
    count: u64,
    /// The rows are too many: told at once, and not when the server comes to an end.
    overflow: Option<Error>,
}

/// What says how the next transaction is isolated; no server takes that with BEGIN.
fn next_in(level: Isolation) -> &'static [u8] {
    match level {
        Isolation::ReadUncommitted => b"SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        Isolation::ReadCommitted => b"SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        Isolation::RepeatableRead => b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        Isolation::Serializable => b"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    }
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
            places: Places::new(statements.len()),
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
            earlier: 0,
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
        let step = Step::new(What::Control, effect, Want::Count);
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
            return Err(Statement::missing(index));
        };
        statement.statement.check_count(params)?;
        let effect = if statement.only_reads { Effect::Read } else { Effect::Write };
        let step = Step::new(What::Execute(index), effect, want);
        if statement.as_text {
            return self.add(step, out, |all, out| all[index].write_text(params, out));
        }
        if self.mode == StatementMode::Prepared {
            return self.add(step, out, |all, out| all[index].write_execute(params, out));
        }
        self.add_bound(index, step, params, out)
    }

    /// Takes a statement to the others, and has it prepared if it has parameters.
    fn learn(&mut self, statement: &Rc<Statement>, out: &mut Vec<u8>) -> Result<Added, Error> {
        let place =
            match self.places.find(statement, session::Machine::state(self) != ConnectionState::Waiting) {
                Found::Known(place) => return Ok(Added::Ready(place)),
                Found::New(place) => place,
                Found::Full => return Ok(Added::Full),
            };
        let one = Prepared::added((**statement).clone(), self.mode);
        let is_prepared = !one.as_text && self.mode == StatementMode::Prepared;
        if place == self.statements.len() {
            self.statements.push(one);
        } else if let Some(id) = std::mem::replace(&mut self.statements[place], one).id {
            write_close(id, out);
        }
        if !is_prepared {
            return Ok(Added::Ready(place));
        }
        self.add_prepare(place, out)?;
        Ok(Added::Asked(place))
    }

    fn add_prepare(&mut self, index: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        let prepare = Step::new(What::Prepare(index), Effect::Read, Want::Count);
        self.add(prepare, out, |all, out| Ok(wire::command(out, command::PREPARE, all[index].sql.as_bytes())))
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
        self.add_prepare(index, out)?;
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
                self.expected.push_back(Step::new(What::Ping, Effect::Read, Want::Count));
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
        for (step, _) in self.held.steps.drain(..) {
            if let What::Prepare(index) = step.what {
                self.places.forget(index);
            }
        }
        self.held.bytes.clear();
        self.held.sent = 0;
        if self.mode == StatementMode::Extended {
            for id in self.statements.iter_mut().filter_map(|statement| statement.id.take()) {
                write_close(id, out);
            }
        }
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
            Command::BeginIn(level) => {
                self.add_control(Effect::Next, next_in(level), out)?;
                self.add_control(Effect::Begin, BEGIN, out)
            }
            Command::Commit => self.add_control(Effect::Commit, COMMIT, out),
            Command::Rollback => self.add_control(Effect::Rollback, ROLLBACK, out),
            Command::Execute(index) => self.add_execute(index, params, want, out),
        }
    }

    fn add(&mut self, statement: &Rc<Statement>, _alone: bool, out: &mut Vec<u8>) -> Result<Added, Error> {
        self.learn(statement, out)
    }

    fn end_batch(&mut self, _out: &mut Vec<u8>) {}

    #[inline]
    fn feed(&mut self, inbox: &mut Inbox, out: &mut Vec<u8>, rows: &mut Rows) -> Result<Progress, Error> {
        if self.lost {
            return Err(Error::connection_lost("the connection was lost before"));
        }
        let (mut used, mut rest) = (0, inbox.bytes());
        while !self.expected.is_empty() {
            let taken = match wire::frame(rest, wire::LONGEST) {
                Ok(Frame::Packet(payload, sequence, size)) => {
                    self.packet(payload, sequence, rows).map(|()| size)
                }
                Ok(Frame::Packets(last, size)) => {
                    let mut joined = Vec::new();
                    wire::join(&rest[..size], &mut joined);
                    self.packet(&joined, last, rows).map(|()| size)
                }
                Ok(Frame::Partial(size)) => {
                    inbox.consume(used);
                    make_room(inbox, size);
                    return Ok(Progress::More);
                }
                Err(error) => Err(error),
            };
            let size = match taken {
                Ok(size) => size,
                Err(error) => return Err(session::Machine::lose(self, error)),
            };
            used += size;
            rest = &rest[size..];
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
