//! The commands of a session as a state machine without I/O.

use std::collections::VecDeque;
use std::rc::Rc;

use nephoscope_runtime::Inbox;

use super::errors::{Answer, tells_of_change};
use super::keyed::{Batch, Keyed};
use super::startup::Manner;
use super::wire::{self, Message, garbage};
use crate::contract::added::{self, Added, Found, Places};
use crate::contract::driver::{Command, ConnectionState, Reply, Want};
use crate::contract::error::Error;
use crate::contract::rows::{ResultIndex, Rows, too_many};
use crate::contract::statement::Statement;
use crate::contract::value::Params;
use crate::contract::verb::Action;
use crate::net::frame::{Part, make_room};
use crate::net::held::Held;
use crate::net::session::{self, Progress};

/// A command that was sent or waits: its number, and what its answer is for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    number: i32,
    statement: usize,
    keeps: bool,
    /// How many rows are wanted.
    most: u64,
}

/// The state of one connection.
pub(crate) struct Machine {
    /// The statements of the workload, then those that were added.
    statements: Vec<Keyed>,
    places: Places,
    manner: Manner,
    /// The number of the last command.
    number: i32,
    flying: VecDeque<Asked>,
    /// Commands that wait for a scan before them, which may have to ask more than once.
    held: Held<Asked>,
    scratch: Vec<u8>,
    error: Option<Error>,
    lost: bool,
    /// Whether the member's role has changed: what is on its way is answered, and then the connection can be dropped.
    is_left: bool,
    reply: Reply,
    /// Where the rows of the present command are kept, and how many there are.
    result: Option<ResultIndex>,
    count: u64,
}

impl Machine {
    pub(super) fn new(statements: &[Statement], manner: Manner) -> Result<Self, Error> {
        Ok(Self {
            statements: statements
                .iter()
                .map(|statement| Keyed::new(statement, &manner))
                .collect::<Result<_, _>>()?,
            places: Places::new(statements.len()),
            manner,
            number: 0,
            flying: VecDeque::with_capacity(8),
            held: Held::default(),
            scratch: Vec::new(),
            error: None,
            lost: false,
            is_left: false,
            reply: Reply::default(),
            result: None,
            count: 0,
        })
    }

    fn next_number(&mut self) -> i32 {
        self.number = self.number.wrapping_add(1);
        self.number
    }

    /// Whether a scan is on its way: what follows has to wait.
    fn scans(&self) -> bool {
        self.flying.back().is_some_and(|asked| self.statements[asked.statement].action == Action::Scan)
    }

    #[inline]
    fn execute(&mut self, place: usize, params: &Params, want: Want, out: &mut Vec<u8>) -> Result<(), Error> {
        let (number, is_held) = (self.next_number(), !self.held.is_empty() || self.scans());
        let Some(statement) = self.statements.get(place) else { return Err(Statement::missing(place)) };
        let write = |out: &mut Vec<u8>| {
            let most = statement.write(params, number, out)?;
            Ok(Asked { number, statement: place, keeps: want.has_rows(), most })
        };
        if is_held {
            return self.held.put(write);
        }
        let start = out.len();
        let asked = write(out).inspect_err(|_: &Error| out.truncate(start))?;
        self.flying.push_back(asked);
        Ok(())
    }

    /// Every answer is in: sends what has waited, up to the next scan.
    fn next_wave(&mut self, out: &mut Vec<u8>) {
        while !self.scans()
            && let Some(asked) = self.held.send(out)
        {
            self.flying.push_back(asked);
        }
    }

    /// Takes a whole answer.
    #[inline]
    fn answer(&mut self, message: Message<'_>, out: &mut Vec<u8>, rows: &mut Rows) -> Result<(), Error> {
        let asked = self.flying.pop_front().filter(|asked| asked.number == message.answers);
        let Some(asked) = asked else { return Err(garbage("an answer to another command")) };
        let answer = Answer::read(message.body)?;
        match (answer.error()?, self.statements[asked.statement].action) {
            (Some(error), _) => {
                self.is_left |= self.manner.moves && tells_of_change(&error);
                self.error.get_or_insert(error);
                self.end_call(0);
            }
            (None, Action::Read | Action::Scan) => self.rows(asked, &answer, out, rows)?,
            (None, Action::Insert | Action::Update | Action::Delete) => self.end_call(answer.count),
        }
        if self.flying.is_empty() {
            self.next_wave(out);
        }
        Ok(())
    }

    fn end_call(&mut self, affected: u64) {
        (self.reply, self.count) = (Reply { affected, result: self.result.take(), ..Reply::default() }, 0);
    }

    /// Takes a batch of rows, and asks for the next if there is more than a message holds.
    fn rows(
        &mut self,
        asked: Asked,
        answer: &Answer<'_>,
        out: &mut Vec<u8>,
        rows: &mut Rows,
    ) -> Result<(), Error> {
        let statement = &self.statements[asked.statement];
        if asked.keeps && self.result.is_none() {
            self.result = Some(rows.begin(&statement.columns));
        }
        let (mut batch, mut fits) = (Batch::of(answer)?, true);
        while let Some(document) = batch.next()? {
            if self.count == asked.most {
                break;
            }
            self.count += 1;
            if asked.keeps {
                fits = rows.has_room(document.len());
                if !fits {
                    self.error.get_or_insert_with(too_many);
                    break;
                }
                statement.push_row(document, rows, &mut self.scratch)?;
            }
        }
        if batch.cursor == 0 || !fits || self.count == asked.most {
            self.end_call(self.count);
            return Ok(());
        }
        let number = self.next_number();
        self.statements[asked.statement].write_more(batch.cursor, asked.most - self.count, number, out);
        self.flying.push_front(Asked { number, ..asked });
        Ok(())
    }

    fn learn(&mut self, statement: &Rc<Statement>) -> Result<Added, Error> {
        let idle = session::Machine::state(self) != ConnectionState::Waiting;
        let keyed = Keyed::new(statement, &self.manner)?;
        Ok(match self.places.find(statement, idle) {
            Found::Known(place) => Added::Ready(place),
            Found::New(place) => {
                added::put(&mut self.statements, place, keyed);
                Added::Ready(place)
            }
            Found::Full => Added::Full,
        })
    }
}

impl session::Machine for Machine {
    // No command says good-bye: a socket that is closed does.
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
                "MongoDB has no transactions of several statements here; w:can \"transactions\" tells whether a \
                 system has",
            )),
        }
    }

    fn add(&mut self, statement: &Rc<Statement>, _alone: bool, _out: &mut Vec<u8>) -> Result<Added, Error> {
        self.learn(statement)
    }

    fn end_batch(&mut self, _out: &mut Vec<u8>) {}

    #[inline]
    fn feed(&mut self, inbox: &mut Inbox, out: &mut Vec<u8>, rows: &mut Rows) -> Result<Progress, Error> {
        if self.lost {
            return Err(Error::connection_lost("the connection was lost before"));
        }
        let mut used = 0;
        while !self.flying.is_empty() {
            let taken = match wire::message(&inbox.bytes()[used..]) {
                Ok(Part::Whole((message, size))) => self.answer(message, out, rows).map(|()| size),
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
        self.lost = self.is_left;
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
            () if !self.flying.is_empty() || !self.held.is_empty() => ConnectionState::Waiting,
            () => ConnectionState::Idle,
        }
    }

    fn unasked() -> Error {
        garbage("an answer before its question")
    }
}
