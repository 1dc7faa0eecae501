//! The commands of a session as a state machine without I/O.

use std::collections::VecDeque;
use std::rc::Rc;

use nephoscope_runtime::Inbox;

use super::keyed::Keyed;
use super::wire::{self, Items, Value, put_command};
use crate::contract::added::{self, Added, Found, Places};
use crate::contract::driver::{Command, ConnectionState, Reply, Want};
use crate::contract::error::{Error, ErrorClass};
use crate::contract::rows::{ResultIndex, Rows, too_many};
use crate::contract::statement::Statement;
use crate::contract::value::Params;
use crate::contract::verb::Action;
use crate::net::frame::{Part, make_room};
use crate::net::held::Held;
use crate::net::session::{self, Progress};

/// How long the server waits for replicas, in ms: then the write has failed.
const WAIT_MS: &[u8] = b"10000";

/// What an answer is.
#[derive(Clone, Copy, Debug)]
enum Expect {
    /// A row's fields, or none; the last of its call's rows.
    Row { statement: usize, keeps: bool, last: bool },
    /// The keys of a scan.
    Keys { statement: usize, keeps: bool },
    /// A hash was written: one row, whatever the number says.
    Written,
    /// So many hashes were removed.
    Removed,
    /// The sorted set was changed.
    Index,
    /// So many replicas have it.
    Replicas,
}

/// The state of one connection.
pub(crate) struct Machine {
    /// The statements of the workload, then those that were added.
    statements: Vec<Keyed>,
    places: Places,
    /// The replicas that have to have a write: 0 for none.
    replicas: u8,
    wait: Vec<u8>,
    expected: VecDeque<Expect>,
    /// Calls that wait for a scan before them, which has to ask twice.
    held: Held<Vec<Expect>>,
    scratch: Vec<u8>,
    error: Option<Error>,
    lost: bool,
    reply: Reply,
    /// Where the rows of a scan are kept, and how many there are.
    result: Option<ResultIndex>,
    count: u64,
}

impl Machine {
    pub(crate) fn new(statements: &[Statement], replicas: u8) -> Result<Self, Error> {
        let mut wait = Vec::new();
        put_command(&mut wait, &[b"WAIT", replicas.to_string().as_bytes(), WAIT_MS]);
        Ok(Self {
            statements: statements.iter().map(Keyed::new).collect::<Result<_, _>>()?,
            places: Places::new(statements.len()),
            replicas,
            wait,
            expected: VecDeque::with_capacity(8),
            held: Held::default(),
            scratch: Vec::new(),
            error: None,
            lost: false,
            reply: Reply::default(),
            result: None,
            count: 0,
        })
    }

    /// Whether a scan is on its way, or waits: what follows has to wait, too.
    fn scans(&self) -> bool {
        !self.held.is_empty() || self.scans_now()
    }

    fn execute(&mut self, place: usize, params: &Params, want: Want, out: &mut Vec<u8>) -> Result<(), Error> {
        let is_held = self.scans();
        let Some(statement) = self.statements.get(place) else { return Err(Statement::missing(place)) };
        let keeps = want.has_rows();
        let expects: &[Expect] = match statement.action {
            Action::Read => &[Expect::Row { statement: place, keeps, last: true }],
            Action::Scan => &[Expect::Keys { statement: place, keeps }],
            Action::Insert => &[Expect::Written, Expect::Index, Expect::Replicas],
            Action::Update => &[Expect::Written, Expect::Replicas],
            Action::Delete => &[Expect::Removed, Expect::Index, Expect::Replicas],
        };
        let writes = matches!(expects.last(), Some(Expect::Replicas));
        let expects = &expects[..expects.len() - usize::from(writes && self.replicas == 0)];
        let wait: &[u8] = if writes && self.replicas > 0 { &self.wait } else { &[] };
        let scratch = &mut self.scratch;
        let mut write = |out: &mut Vec<u8>| {
            statement.write(params, scratch, out)?;
            out.extend_from_slice(wait);
            Ok(())
        };
        if is_held {
            return self.held.put(|out| write(out).map(|()| expects.to_vec()));
        }
        let start = out.len();
        write(out).inspect_err(|_: &Error| out.truncate(start))?;
        self.expected.extend(expects);
        Ok(())
    }

    /// Every answer is in: sends what has waited, up to the next scan.
    fn next_wave(&mut self, out: &mut Vec<u8>) {
        while !self.scans_now()
            && let Some(expects) = self.held.send(out)
        {
            self.expected.extend(expects);
        }
    }

    fn scans_now(&self) -> bool {
        matches!(self.expected.back(), Some(Expect::Keys { .. } | Expect::Row { last: false, .. }))
    }

    /// Takes a whole answer.
    fn answer(&mut self, bytes: &[u8], out: &mut Vec<u8>, rows: &mut Rows) -> Result<(), Error> {
        let mut items = Items::new(bytes);
        let first = items.next()?;
        if let Value::Push(_) = first {
            return Ok(());
        }
        let Some(expected) = self.expected.pop_front() else {
            return Err(<Self as session::Machine>::unasked());
        };
        if let Value::Error(text) = first {
            self.error.get_or_insert_with(|| wire::refusal(text));
            return Ok(());
        }
        match (expected, first) {
            (Expect::Row { statement, keeps, last }, Value::Items(count)) => {
                self.row(statement, keeps, count, &mut items, rows)?;
                if last {
                    self.end_rows();
                }
            }
            (Expect::Keys { statement, keeps }, Value::Items(count)) => {
                self.keys(statement, keeps, count, &mut items, out, rows)?;
            }
            (Expect::Written, Value::Int(_)) => self.reply = Reply { affected: 1, ..Reply::default() },
            (Expect::Removed, Value::Int(count)) => {
                self.reply = Reply { affected: count.max(0) as u64, ..Reply::default() };
            }
            (Expect::Index, Value::Int(_)) => {}
            (Expect::Replicas, Value::Int(count)) => self.replicas(count),
            _ => return Err(wire::garbage("an answer of another type")),
        }
        Ok(())
    }

    fn end_rows(&mut self) {
        let (affected, result) = (std::mem::take(&mut self.count), self.result.take());
        self.reply = Reply { affected, result, ..Reply::default() };
    }

    fn replicas(&mut self, count: i64) {
        if count < i64::from(self.replicas) {
            let wanted = self.replicas;
            let message =
                format!("{count} of {wanted} replicas have told within 10 s that they have the write");
            // The primary has it, and replicas may have it later.
            let error = Error::new(ErrorClass::StatementTimeout, "WAIT", message).with_unknown_outcome();
            self.error.get_or_insert(error);
        }
    }

    /// A row whose fields are all missing is none.
    fn row(
        &mut self,
        statement: usize,
        keeps: bool,
        count: usize,
        items: &mut Items<'_>,
        rows: &mut Rows,
    ) -> Result<(), Error> {
        let statement = &self.statements[statement];
        if count != statement.width() {
            return Err(wire::garbage("a row of another number of fields"));
        }
        let result = if keeps {
            Some(*self.result.get_or_insert_with(|| rows.begin(&statement.columns)))
        } else {
            None
        };
        let mut begun = false;
        for place in 0..count {
            let body = match items.next()? {
                Value::Text(body) => Some(body),
                Value::Null => None,
                _ => return Err(wire::garbage("a field of another type")),
            };
            if body.is_some() && !begun {
                begun = true;
                self.count += 1;
                if result.is_some() {
                    if !rows.has_room(0) {
                        self.error.get_or_insert_with(too_many);
                        return Ok(());
                    }
                    rows.push_row();
                    (0..place).for_each(|_| rows.push_cell(None));
                }
            }
            if begun && result.is_some() {
                rows.push_cell(body);
            }
        }
        Ok(())
    }

    /// Asks for the rows of the keys that a scan has found.
    fn keys(
        &mut self,
        statement: usize,
        keeps: bool,
        count: usize,
        items: &mut Items<'_>,
        out: &mut Vec<u8>,
        rows: &mut Rows,
    ) -> Result<(), Error> {
        if keeps {
            self.result = Some(rows.begin(&self.statements[statement].columns));
        }
        for place in 1..=count {
            let Value::Text(key) = items.next()? else { return Err(wire::garbage("a key of another type")) };
            self.statements[statement].write_row(key, out);
            self.expected.push_back(Expect::Row { statement, keeps, last: place == count });
        }
        if count == 0 {
            self.end_rows();
        }
        Ok(())
    }

    fn learn(&mut self, statement: &Rc<Statement>) -> Result<Added, Error> {
        let idle = session::Machine::state(self) != ConnectionState::Waiting;
        let keyed = Keyed::new(statement)?;
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
    // A server answers QUIT, and a socket that is closed says the same.
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
                "Redis has no transactions of several statements; w:can \"transactions\" tells whether a system has",
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
        while !self.expected.is_empty() {
            let bytes = &inbox.bytes()[used..];
            let taken = match wire::end(bytes, 0) {
                Ok(Part::Whole(size)) => self.answer(&bytes[..size], out, rows).map(|()| size),
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
            if self.expected.is_empty() {
                self.next_wave(out);
            }
        }
        inbox.consume(used);
        let reply = std::mem::take(&mut self.reply);
        match self.error.take() {
            None => Ok(Progress::Done(reply)),
            Some(error) => {
                (self.count, self.result) = (0, None);
                Err(error)
            }
        }
    }

    fn lose(&mut self, reason: Error) -> Error {
        self.lost = true;
        self.error.take().unwrap_or(reason)
    }

    fn state(&self) -> ConnectionState {
        match () {
            () if self.lost => ConnectionState::Lost,
            () if !self.expected.is_empty() || !self.held.is_empty() => ConnectionState::Waiting,
            () => ConnectionState::Idle,
        }
    }

    fn unasked() -> Error {
        wire::garbage("an answer before its question")
    }
}
