//! The requests of a session as a state machine without I/O.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use nephoscope_runtime::Inbox;

use super::levels::Levels;
use super::prepared::{Effect, Prepared};
use super::segments::Speech;
use super::types::take_row;
use super::wire::{self, Fields, Frame, code, garbage, kind, opcode};
use crate::contract::added::{self, Added, Found, Places};
use crate::contract::driver::{Command, ConnectionState, Reply, Want};
use crate::contract::error::Error;
use crate::contract::rows::{MOST_BYTES, Rows, too_many};
use crate::contract::statement::Statement;
use crate::contract::value::Params;
use crate::net::frame::{Part, make_room};
use crate::net::held::Held;
use crate::net::session::{self, Progress};

/// How many requests are on their way at a time: what is beyond waits here and not at the server.
const MOST_FLYING: usize = 128;
/// Streams are numbered from 0 to this, and then anew.
const LAST_STREAM: u16 = 0x7fff;

/// What was asked.
#[derive(Clone, Copy, Debug)]
enum What {
    Execute { statement: usize, keeps: bool },
    Prepare(usize),
}

/// A request, and what it may be sent beside.
#[derive(Clone, Copy, Debug)]
struct Step {
    what: What,
    effect: Effect,
}

/// A request that was sent, and its answer if that has come before its turn.
struct Flying {
    step: Step,
    early: Option<Early>,
}

enum Early {
    /// Its kind and its body.
    Whole(u8, Vec<u8>),
    /// It was too long to be kept.
    TooLong,
}

/// The state of one connection.
pub(crate) struct Machine {
    /// The statements of the workload, then those that were added.
    statements: Vec<Prepared>,
    places: Places,
    levels: Levels,
    speech: Speech,
    /// In the order in which they were queued; their streams have consecutive numbers.
    flying: VecDeque<Flying>,
    /// The stream of the next request.
    stream: u16,
    /// Requests that wait for the answers to others.
    held: Held<Step>,
    /// The statements that the server has forgotten.
    forgotten: Vec<usize>,
    /// How many bytes of answers have come before their turn.
    early: usize,
    clock: Clock,
    error: Option<Error>,
    lost: bool,
    /// The node has said that it ends: once all is answered, another one has to be found.
    leaving: bool,
    reply: Reply,
}

/// The times of writes: the time of day, and each later than the one before. Connections of one session share it.
#[derive(Clone, Default)]
pub(super) struct Clock(Rc<Cell<i64>>);

impl Clock {
    /// In microseconds since 1970.
    #[inline]
    pub(super) fn next(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as i64);
        self.0.set(now.max(self.0.get() + 1));
        self.0.get()
    }
}

impl Machine {
    pub(super) fn new(statements: Vec<Prepared>, levels: Levels, speech: Speech, clock: Clock) -> Self {
        Self {
            places: Places::new(statements.len()),
            statements,
            levels,
            speech,
            flying: VecDeque::with_capacity(8),
            stream: 0,
            held: Held::default(),
            forgotten: Vec::new(),
            early: 0,
            clock,
            error: None,
            lost: false,
            leaving: false,
            reply: Reply::default(),
        }
    }

    /// The statements that it was made with, then those that were added.
    pub(super) fn statements(&self) -> &[Prepared] {
        &self.statements
    }

    /// Whether a request may be sent beside those that are on their way.
    fn may_fly(&self, effect: Effect) -> bool {
        self.flying.back().is_none_or(|last| {
            last.step.effect == effect && effect != Effect::Alone && self.flying.len() < MOST_FLYING
        })
    }

    /// Puts a request behind those that are sent together, or behind those that wait.
    #[inline]
    fn put(
        &mut self,
        step: Step,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Self, i16, &mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let stream = self.stream as i16;
        if self.held.is_empty() && self.may_fly(step.effect) {
            let start = out.len();
            write(self, stream, out).inspect_err(|_| out.truncate(start))?;
            self.flying.push_back(Flying { step, early: None });
        } else {
            let mut held = std::mem::take(&mut self.held);
            let held_back = held.put(|out| write(self, stream, out).map(|()| step));
            self.held = held;
            held_back?;
        }
        self.stream = (self.stream + 1) & LAST_STREAM;
        Ok(())
    }

    fn prepare(&mut self, place: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        let step = Step { what: What::Prepare(place), effect: Effect::Read };
        self.put(step, out, |machine, stream, out| {
            machine.statements[place].write_prepare(stream, out);
            Ok(())
        })
    }

    #[inline]
    fn execute(&mut self, place: usize, params: &Params, want: Want, out: &mut Vec<u8>) -> Result<(), Error> {
        let Some(statement) = self.statements.get(place) else { return Err(Statement::missing(place)) };
        let what = What::Execute { statement: place, keeps: want == Want::Rows };
        self.put(Step { what, effect: statement.effect }, out, |machine, stream, out| {
            let time = machine.clock.next();
            machine.statements[place].write(params, stream, time, out)
        })
    }

    /// Every answer is in: sends what has waited, as far as it goes together.
    fn next_wave(&mut self, out: &mut Vec<u8>) {
        while self.held.first().is_some_and(|step| self.may_fly(step.effect))
            && let Some(step) = self.held.send(out)
        {
            self.flying.push_back(Flying { step, early: None });
        }
        if self.flying.is_empty() {
            while let Some(place) = self.forgotten.pop() {
                // A preparation has no value that could not fit.
                let _ = self.prepare(place, out);
            }
        }
    }

    /// Takes a whole frame: an answer in its turn, or one that has to wait for those before it.
    fn frame(&mut self, frame: Frame<'_>, out: &mut Vec<u8>, rows: &mut Rows) -> Result<(), Error> {
        if frame.stream < 0 && frame.opcode == opcode::EVENT {
            return Ok(());
        }
        let waiting = self.flying.len() + self.held.len();
        let front = self.stream.wrapping_sub(waiting as u16) & LAST_STREAM;
        let place = usize::from((frame.stream as u16).wrapping_sub(front) & LAST_STREAM);
        let flying = self.flying.get_mut(place).filter(|flying| frame.stream >= 0 && flying.early.is_none());
        let Some(flying) = flying else { return Err(garbage("the stream of an answer")) };
        if place > 0 {
            let is_kept = self.early + frame.body.len() <= MOST_BYTES;
            self.early += if is_kept { frame.body.len() } else { 0 };
            let kept = || Early::Whole(frame.opcode, frame.body.to_vec());
            flying.early = Some(if is_kept { kept() } else { Early::TooLong });
            return Ok(());
        }
        self.answer(frame.opcode, frame.body, rows)?;
        while let Some(early) = self.flying.front_mut().and_then(|flying| flying.early.take()) {
            match early {
                Early::Whole(opcode, body) => {
                    self.early -= body.len();
                    self.answer(opcode, &body, rows)?;
                }
                Early::TooLong => {
                    self.flying.pop_front();
                    self.error.get_or_insert_with(too_many);
                }
            }
        }
        if self.flying.is_empty() {
            self.next_wave(out);
        }
        Ok(())
    }

    /// Takes the answer to the first request that is on its way.
    #[inline]
    fn answer(&mut self, opcode: u8, body: &[u8], rows: &mut Rows) -> Result<(), Error> {
        let Some(Flying { step, .. }) = self.flying.pop_front() else { return Err(garbage("an answer")) };
        match opcode {
            opcode::RESULT => {}
            opcode::ERROR => return self.failed(step, body),
            _ => return Err(garbage("an answer of another kind")),
        }
        let mut fields = Fields(body);
        match (fields.i32()?, step.what) {
            (kind::PREPARED, What::Prepare(place)) => {
                let statement = &mut self.statements[place];
                if let Err(error) = statement.prepared(fields) {
                    self.places.forget(place);
                    self.error
                        .get_or_insert(error.context(&format!("statement {}", statement.statement.name())));
                }
            }
            (kind::ROWS, What::Execute { statement, keeps }) => self.rows(statement, keeps, fields, rows)?,
            // It has changed something, or defined it: how many rows, no server tells.
            (kind::ROWS | kind::PREPARED, _) | (_, What::Prepare(_)) => {
                return Err(garbage("a result of another kind"));
            }
            _ => {
                let affected = u64::from(step.effect == Effect::Write);
                self.reply = Reply { affected, ..Reply::default() };
            }
        }
        Ok(())
    }

    #[inline]
    fn rows(
        &mut self,
        statement: usize,
        keeps: bool,
        mut fields: Fields<'_>,
        rows: &mut Rows,
    ) -> Result<(), Error> {
        let statement = &mut self.statements[statement];
        let width = statement.take_columns(&mut fields)?;
        let columns = Rc::clone(statement.columns(width)?);
        let count = fields.count()?;
        let result = keeps.then(|| rows.begin(&columns));
        for _ in 0..count {
            if keeps && !rows.has_room(0) {
                self.error.get_or_insert_with(too_many);
                return Ok(());
            }
            take_row(&columns, &mut fields, keeps.then_some(&mut *rows))?;
        }
        self.reply = Reply { affected: count as u64, result, ..Reply::default() };
        Ok(())
    }

    #[cold]
    fn failed(&mut self, step: Step, body: &[u8]) -> Result<(), Error> {
        let mut error = wire::error(body);
        if error.code().is_empty() {
            return Err(error);
        }
        match step.what {
            What::Prepare(place) => {
                self.places.forget(place);
                error = error.context(&format!("statement {}", self.statements[place].statement.name()));
            }
            // The server was started anew, or the table made anew: whoever tries again finds it prepared.
            What::Execute { statement, .. } if error.code() == code::UNPREPARED => {
                self.forgotten.push(statement);
            }
            What::Execute { .. } => {}
        }
        self.leaving |= wire::is_leaving(&error);
        self.reply = Reply::default();
        self.error.get_or_insert(error);
        Ok(())
    }

    /// Takes whole frames, as far as answers are due.
    #[inline]
    fn frames(&mut self, inbox: &mut Inbox, out: &mut Vec<u8>, rows: &mut Rows) -> Result<Progress, Error> {
        let (mut used, version) = (0, self.speech.form.version);
        while !self.flying.is_empty() {
            let taken = match wire::frame(version, &inbox.bytes()[used..]) {
                Ok(Part::Whole((frame, size))) => self.frame(frame, out, rows).map(|()| size),
                Ok(Part::Partial(size)) => {
                    inbox.consume(used);
                    make_room(inbox, size);
                    return Ok(Progress::More);
                }
                Err(error) => Err(error),
            };
            match taken {
                Ok(size) => used += size,
                Err(error) => return Err(session::Machine::lose(self, error)),
            }
        }
        inbox.consume(used);
        let reply = std::mem::take(&mut self.reply);
        match self.error.take() {
            None => Ok(Progress::Done(reply)),
            Some(error) => Err(error),
        }
    }

    fn learn(&mut self, statement: &Rc<Statement>, out: &mut Vec<u8>) -> Result<Added, Error> {
        let idle = session::Machine::state(self) != ConnectionState::Waiting;
        let place = match self.places.find(statement, idle) {
            Found::Known(place) => return Ok(Added::Ready(place)),
            Found::New(place) => place,
            Found::Full => return Ok(Added::Full),
        };
        let one = Prepared::added(statement, self.levels, self.speech.form);
        let as_text = one.as_text;
        added::put(&mut self.statements, place, one);
        if as_text {
            return Ok(Added::Ready(place));
        }
        self.prepare(place, out)?;
        Ok(Added::Asked(place))
    }
}

impl session::Machine for Machine {
    // No frame says good-bye: a socket that is closed does.
    const GOODBYE: &'static [u8] = b"";

    #[inline]
    fn queue(
        &mut self,
        command: Command,
        params: &Params,
        want: Want,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match command {
            Command::Execute(place) => self.execute(place, params, want, out),
            _ => Err(Error::other(
                "Cassandra has no transactions of several statements; w:can \"transactions\" tells whether a system \
                 has",
            )),
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
        let Some(mut segments) = self.speech.segments.take() else { return self.frames(inbox, out, rows) };
        segments.take(inbox);
        let fed = match (self.frames(&mut segments.contents, out, rows), segments.check()) {
            (Ok(Progress::More), Err(error)) => Err(session::Machine::lose(self, error)),
            (fed, _) => fed,
        };
        self.speech.segments = Some(segments);
        fed
    }

    fn lose(&mut self, reason: Error) -> Error {
        self.lost = true;
        self.error.take().unwrap_or(reason)
    }

    fn state(&self) -> ConnectionState {
        match () {
            () if self.lost => ConnectionState::Lost,
            () if !self.flying.is_empty() || !self.held.is_empty() => ConnectionState::Waiting,
            () if self.leaving => ConnectionState::Lost,
            () => ConnectionState::Idle,
        }
    }

    fn unasked() -> Error {
        garbage("an answer before its question")
    }
}
