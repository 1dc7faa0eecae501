//! The query phase: however a server's bytes are cut, the same comes of them.

use std::rc::Rc;

use nephoscope_runtime::Inbox;

use crate::contract::added::Added;
use crate::contract::driver::{Command, ConnectionState, Reply, StatementMode, Want};
use crate::contract::error::{Error, ErrorClass};
use crate::contract::rows::{ResultIndex, Rows};
use crate::contract::statement::Statement;
use crate::contract::value::{Params, Value};
use crate::net::session;
use crate::postgres::machine::{CONTROL, Description, Machine, Parsed, Prepared, Progress, with_control};
use crate::postgres::types::Type;

const COLUMNS: [(&str, Type); 4] =
    [("id", Type::Int8), ("name", Type::Text), ("body", Type::Bytea), ("at", Type::Timestamp)];

/// What is asked, one flush after the other, and from the beginning again.
const FLUSHES: [&[(Command, Want)]; 4] = [
    &[(Command::Execute(0), Want::Rows)],
    &[(Command::Begin, Want::Count), (Command::Execute(1), Want::Count)],
    &[(Command::Execute(0), Want::Count), (Command::Execute(0), Want::Rows), (Command::Commit, Want::Count)],
    &[(Command::Rollback, Want::Count)],
];

/// How a flush has ended, and where the connection stood then.
type Outcome = (Result<Reply, (ErrorClass, String)>, ConnectionState);

/// What a conversation has come to.
#[derive(Debug, PartialEq)]
struct Transcript {
    sent: Vec<u8>,
    outcomes: Vec<Outcome>,
    /// The rows of each result.
    results: Vec<Vec<Vec<String>>>,
}

pub(super) fn check(mode: StatementMode, choice: u8, bytes: &[u8]) {
    let at_once = converse(mode, std::iter::once(bytes));
    assert_eq!(converse(mode, Pieces { rest: bytes, state: choice }), at_once);
}

/// Pieces whose lengths are drawn; with the state 0 they are single bytes.
struct Pieces<'a> {
    rest: &'a [u8],
    state: u8,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.state > 0 {
            self.state = self.state.wrapping_mul(5).wrapping_add(17) | 1;
        }
        let size = usize::from(self.state / 4 + 1).min(self.rest.len());
        let (piece, rest) = self.rest.split_at(size);
        self.rest = rest;
        (size > 0).then_some(piece)
    }
}

struct Side {
    machine: Machine,
    inbox: Inbox,
    rows: Rows,
    transcript: Transcript,
}

fn converse<'a>(mode: StatementMode, pieces: impl Iterator<Item = &'a [u8]>) -> Transcript {
    let transcript = Transcript { sent: Vec::new(), outcomes: Vec::new(), results: Vec::new() };
    let machine = Machine::new(mode, statements(mode, &COLUMNS, Parsed::Yes), b'I');
    let mut side = Side { machine, inbox: Inbox::default(), rows: Rows::default(), transcript };
    let mut received = 0;
    side.ask();
    for piece in pieces {
        received += piece.len();
        side.inbox.extend(piece);
        side.hear();
        let room = side.inbox.room().len();
        assert!(room <= 4 * received + (1 << 18), "{room} bytes of room for {received}");
    }
    let end = side.machine.lose(Error::connection_lost("closed"));
    side.note(Err(end));
    assert!(side.machine.feed(&mut side.inbox, &mut side.rows).is_err(), "a lost connection answers");
    side.transcript.results = side.results();
    side.transcript
}

/// The statements behind `Execute(0)`, a query with these columns, and `Execute(1)`, an update; then BEGIN, COMMIT and
/// ROLLBACK.
pub(in crate::postgres) fn statements(
    mode: StatementMode,
    columns: &[(&str, Type)],
    parsed: Parsed,
) -> Vec<Prepared> {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let query = Statement::new("query", &format!("SELECT {} FROM t WHERE id > :id", names.join(", ")));
    let update = Statement::new("update", "UPDATE t SET name = :name WHERE id = :id");
    let columns = columns.iter().map(|(name, of)| ((*name).to_owned(), *of)).collect();
    let mut described = vec![Description::default(); 2 + CONTROL.len()];
    described[0] = Description { params: vec![Type::Int8], columns };
    described[1].params = vec![Type::Text, Type::Int8];
    Prepared::list(mode, with_control(&[query, update]), &described, parsed)
}

impl Side {
    /// Queues the next flush.
    fn ask(&mut self) {
        self.add();
        for (command, want) in FLUSHES[self.transcript.outcomes.len() % FLUSHES.len()] {
            let values: &[Value<'_>] = match command {
                Command::Execute(0) => &[Value::Int(7)],
                Command::Execute(_) => &[Value::Text(b"o'clock"), Value::Int(8)],
                _ => &[],
            };
            let params: Params = values.iter().copied().collect();
            let queued = self.machine.queue(*command, &params, *want, &mut self.transcript.sent);
            assert!(queued.is_ok(), "{queued:?}");
        }
        self.machine.end_batch(&mut self.transcript.sent);
    }

    /// In some flushes the connection comes to know a statement, or runs a text.
    fn add(&mut self) {
        let flush = self.transcript.outcomes.len();
        let sql = match flush % 3 {
            0 => return,
            1 => format!("SELECT id FROM t WHERE id = :id + {flush}"),
            _ => format!("SELECT {flush} AS id"),
        };
        let statement = Rc::new(Statement::new("added", &sql));
        let sent = &mut self.transcript.sent;
        if let Ok(Added::Ready(place)) =
            session::Machine::add(&mut self.machine, &statement, flush.is_multiple_of(2), sent)
        {
            let queued = self.machine.queue(Command::Execute(place), &Params::default(), Want::Rows, sent);
            assert!(queued.is_ok(), "{queued:?}");
        }
    }

    /// Uses up what has arrived; what ends a flush is the occasion for the next.
    fn hear(&mut self) {
        while self.machine.state() != ConnectionState::Lost {
            match self.machine.feed(&mut self.inbox, &mut self.rows) {
                Ok(Progress::More) => return,
                Ok(Progress::Done(reply)) => self.note(Ok(reply)),
                Err(error) => self.note(Err(error)),
            }
            if self.machine.state() != ConnectionState::Lost {
                self.ask();
            }
        }
    }

    fn note(&mut self, outcome: Result<Reply, Error>) {
        let outcome = outcome.map_err(|error| (error.class(), error.to_string()));
        self.transcript.outcomes.push((outcome, self.machine.state()));
    }

    /// Every cell that was kept, decoded.
    fn results(&self) -> Vec<Vec<Vec<String>>> {
        let cell = |index, row, column| format!("{:?}", self.rows.value(index, row, column));
        let row = |index, row| (0..COLUMNS.len()).map(|column| cell(index, row, column)).collect();
        let mut results = Vec::new();
        while self.rows.columns(ResultIndex::from(results.len() as u32)).is_some() {
            let index = ResultIndex::from(results.len() as u32);
            results.push((0..self.rows.count(index)).map(|at| row(index, at)).collect());
        }
        results
    }
}
