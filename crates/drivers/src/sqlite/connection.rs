//! A session's connection: its statements run where it is polled.

use std::cell::{Cell, RefCell};
use std::future::Future as _;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use libsqlite3_sys as ffi;
use nephoscope_runtime::clock::{self, MICROSECOND, MILLISECOND, Nanos};
use nephoscope_runtime::{Runtime, Sleep};

use super::config::Begin;
use super::errors;
use super::line::{Line, Place};
use super::raw::{Database, Holds};
use super::statement::{Ready, Trouble, numbered};
use super::values;
use crate::contract::added::{Added, Found, Places};
use crate::contract::driver::{
    Command, Connection, ConnectionState, LocalFuture, Reply, StatementMode, Want,
};
use crate::contract::error::{Error, ErrorClass};
use crate::contract::rows::Rows;
use crate::contract::statement::Statement;
use crate::contract::value::Params;

/// The first pause before a lock is tried again, and the longest: each is twice as long as the one before it.
const PAUSES: (Nanos, Nanos) = (50 * MICROSECOND, 5 * MILLISECOND);

/// How long a session that is alone on its thread may go on before timers are looked at.
const TURN: Nanos = MILLISECOND;

/// A command of a flush.
#[derive(Default)]
struct Queued {
    command: Option<Command>,
    params: Params,
    want: Option<Want>,
}

/// A wait for a lock.
struct Wait {
    _sleep: Sleep,
    pause: Nanos,
    _place: Place,
}

/// What a request to cancel needs to know.
#[derive(Default)]
struct Cancelling {
    is_waiting: Cell<bool>,
    is_asked: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the present flush or the session"
)]
pub(super) struct SqliteConnection {
    runtime: Runtime,
    database: Database,
    line: Rc<Line>,
    mode: StatementMode,
    statements: Arc<[Statement]>,
    /// The statements of the workload, then those that were added.
    ready: Vec<Ready>,
    places: Places,
    /// BEGIN, COMMIT and ROLLBACK.
    control: [Ready; 3],
    /// The commands of this flush are the first `count`; those behind them are kept for their memory.
    queue: Vec<Queued>,
    count: usize,
    /// The command whose turn it is.
    next: usize,
    reply: Reply,
    deadline: Nanos,
    /// The other sessions of this thread have had their turn before this flush.
    has_yielded: bool,
    /// Somebody was woken who waits for the lock that this session has released.
    has_woken: bool,
    /// Whether the command whose turn it is began within a transaction.
    was_open: bool,
    failed: bool,
    lost: bool,
    wait: Option<Wait>,
    cancelling: Rc<Cancelling>,
}

/// The parts of a connection that has been set up.
pub(super) struct Parts {
    pub(super) runtime: Runtime,
    pub(super) database: Database,
    pub(super) line: Rc<Line>,
    pub(super) mode: StatementMode,
    pub(super) statements: Arc<[Statement]>,
    pub(super) ready: Vec<Ready>,
    pub(super) control: [Ready; 3],
}

/// The SQL of the commands that are not statements of the workload.
pub(super) fn control(begin: Begin) -> [&'static str; 3] {
    let begin = match begin {
        Begin::Deferred => "BEGIN",
        Begin::Immediate => "BEGIN IMMEDIATE",
    };
    [begin, "COMMIT", "ROLLBACK"]
}

impl SqliteConnection {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { runtime, database, line, mode, statements, ready, control } = parts;
        Self {
            runtime,
            database,
            line,
            mode,
            places: Places::new(statements.len()),
            statements,
            ready,
            control,
            queue: Vec::new(),
            count: 0,
            next: 0,
            reply: Reply::default(),
            deadline: Nanos::MAX,
            has_yielded: false,
            has_woken: false,
            was_open: false,
            failed: false,
            lost: false,
            wait: None,
            cancelling: Rc::default(),
        }
    }

    /// Runs the commands of the flush from the next one on. What SQLite refuses because of a lock is left to be run
    /// again.
    fn run(&mut self, rows: &mut Rows) -> Result<(), Trouble> {
        self.database.set_deadline(self.deadline);
        while self.next < self.count {
            let Some(command) = self.queue[self.next].command else { break };
            self.reply = match command {
                Command::Execute(place) => self.execute(place, rows)?,
                _ => self.end_or_begin(command)?,
            };
            if self.queue[self.next].want == Some(Want::Kept) {
                rows.keep(self.reply);
            }
            self.next += 1;
        }
        Ok(())
    }

    /// BEGIN, COMMIT or ROLLBACK. As in other databases, one that has nothing to do does no harm.
    fn end_or_begin(&mut self, command: Command) -> Result<Reply, Trouble> {
        let is_open = self.database.is_in_transaction();
        match command {
            Command::Begin | Command::BeginIn(_) if self.failed => {
                return Err(Trouble::Error(Error::in_failed_transaction()));
            }
            // Every transaction of SQLite is serializable.
            Command::Begin | Command::BeginIn(_) if !is_open => self.run_control(0)?,
            Command::Commit if self.failed => {
                self.roll_back();
                return Err(Trouble::Error(Error::not_committed()));
            }
            Command::Commit if is_open => {
                let wrote = self.database.holds() == Holds::WriteLock;
                self.run_control(1)?;
                self.released(wrote);
            }
            Command::Rollback => self.roll_back(),
            _ => {}
        }
        Ok(Reply::default())
    }

    fn run_control(&mut self, place: usize) -> Result<(), Trouble> {
        let control = &mut self.control[place];
        control.run(&self.database, self.mode, None, &Params::default(), None).map(|_| ())
    }

    /// Ends the transaction, if there is one, without its effects.
    fn roll_back(&mut self) {
        self.failed = false;
        let wrote = self.database.holds() == Holds::WriteLock;
        // Some errors have rolled back already.
        if self.database.is_in_transaction() && self.run_control(2).is_err() {
            self.lost = true;
        }
        self.released(wrote);
    }

    /// Wakes whoever waits for a lock that is free now. This session waits no more.
    fn released(&mut self, wrote: bool) {
        self.wait = None;
        if wrote && self.database.holds() == Holds::Nothing {
            self.has_woken |= self.line.released();
        }
    }

    /// Runs a statement of the workload to its end.
    fn execute(&mut self, place: usize, rows: &mut Rows) -> Result<Reply, Trouble> {
        if self.failed {
            return Err(Trouble::Error(Error::in_failed_transaction()));
        }
        self.was_open = self.database.is_in_transaction();
        let Self { ready, queue, next, statements, places, database, mode, .. } = self;
        let (ready, queued) = (&mut ready[place], &queue[*next]);
        let written = match statements.get(place) {
            Some(statement) => Some(statement),
            None => {
                ready.prepare_once(database, *mode)?;
                places.get(place).map(|statement| &**statement)
            }
        };
        let kept = queued.want.is_some_and(Want::has_rows).then_some(rows);
        let result = ready.run(database, *mode, written, &queued.params, kept);
        let wrote = !ready.is_read_only();
        if result.is_ok() {
            self.released(wrote);
        }
        result
    }

    /// What a command that has failed comes to: a wait, or the end of the flush.
    fn trouble(&mut self, trouble: Trouble, cx: &mut Context<'_>) -> Poll<Error> {
        let error = match trouble {
            Trouble::Error(error) => error,
            Trouble::Failure(failure) if failure.is_locked() => {
                // Who holds a view cannot wait: whoever writes waits for its end, or makes it old.
                if self.database.holds() == Holds::View {
                    errors::serialization(&failure)
                } else if clock::now() >= self.deadline {
                    errors::lock_timeout(&failure)
                } else {
                    self.wait(cx);
                    return Poll::Pending;
                }
            }
            Trouble::Failure(failure) if failure.primary() == ffi::SQLITE_INTERRUPT => {
                let error = errors::error(&failure);
                error.context("the statement ran into its time limit and was ended")
            }
            Trouble::Failure(failure) => errors::error(&failure),
        };
        let name = match self.queue.get(self.next).and_then(|queued| queued.command) {
            Some(Command::Execute(place)) => self.statement(place).map(Statement::name),
            _ => None,
        };
        tracing::debug!(%error, statement = name, "a statement has failed");
        self.fail(&error);
        Poll::Ready(error)
    }

    fn statement(&self, place: usize) -> Option<&Statement> {
        let added = || self.places.get(place).map(|statement| &**statement);
        self.statements.get(place).or_else(added)
    }

    /// Ends the flush: what is left of it is not run. A transaction that is open has failed; a commit that has failed
    /// is rolled back, for it ends its transaction in any case.
    fn fail(&mut self, error: &Error) {
        let command = self.queue.get(self.next).and_then(|queued| queued.command);
        self.end_flush();
        self.lost |= error.class() == ErrorClass::ConnectionLost;
        match command {
            Some(Command::Commit) => self.roll_back(),
            Some(Command::Execute(_)) => self.failed |= self.was_open,
            _ => {}
        }
    }

    fn end_flush(&mut self) {
        (self.count, self.next, self.has_yielded) = (0, 0, false);
        self.wait = None;
        self.cancelling.is_waiting.set(false);
        self.cancelling.is_asked.set(false);
    }

    /// Sleeps until the lock is tried again: a little longer each time, and not beyond the time limit.
    fn wait(&mut self, cx: &mut Context<'_>) {
        let (place, pause) = match self.wait.take() {
            Some(Wait { pause, _place: place, .. }) => (place, (2 * pause).min(PAUSES.1)),
            None => (Place::last(&self.line, cx.waker()), PAUSES.0),
        };
        let until = clock::now().saturating_add(pause).min(self.deadline);
        let mut sleep = self.runtime.sleep_until(until);
        if Pin::new(&mut sleep).poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        self.wait = Some(Wait { _sleep: sleep, pause, _place: place });
        self.cancelling.is_waiting.set(true);
        *self.cancelling.waker.borrow_mut() = Some(cx.waker().clone());
    }

    /// Whether others have to have their turn first: several sessions of a thread take turns flush by flush, and one
    /// alone lets the thread's timers be seen.
    fn has_to_yield(&mut self) -> bool {
        let is_first = !std::mem::replace(&mut self.has_yielded, true);
        let has_woken = std::mem::take(&mut self.has_woken);
        let long = || clock::now().saturating_sub(self.runtime.turn_began()) > TURN;
        is_first && (has_woken || self.line.is_shared() || long())
    }
}

impl Connection for SqliteConnection {
    fn queue(&mut self, command: Command, params: &Params, want: Want) -> Result<(), Error> {
        let mut wanted = None;
        if let Command::Execute(place) = command {
            let statement = self.statement(place).ok_or_else(|| Statement::missing(place))?;
            statement.check_count(params)?;
            for (param, value) in params.iter().enumerate() {
                if let Some(why) = values::misfit(value) {
                    return Err(statement.misfit(param, why));
                }
            }
            wanted = Some(want);
        }
        if self.count == self.queue.len() {
            self.queue.push(Queued::default());
        }
        let queued = &mut self.queue[self.count];
        (queued.command, queued.want) = (Some(command), wanted);
        queued.params.clone_from(params);
        self.count += 1;
        Ok(())
    }

    /// The statement is prepared when it first runs, because a lock may have to be waited for.
    fn add(&mut self, statement: &Rc<Statement>, _alone: bool) -> Result<Added, Error> {
        let place = match self.places.find(statement, self.count == 0) {
            Found::Known(place) => return Ok(Added::Ready(place)),
            Found::New(place) => place,
            Found::Full => return Ok(Added::Full),
        };
        let ready = Ready::unprepared(numbered(statement));
        if place == self.ready.len() {
            self.ready.push(ready);
        } else {
            self.ready[place] = ready;
        }
        Ok(Added::Ready(place))
    }

    fn poll_replies(&mut self, cx: &mut Context<'_>, rows: &mut Rows) -> Poll<Result<Reply, Error>> {
        if self.lost {
            return Poll::Ready(Err(Error::connection_lost("the connection was lost before")));
        }
        if self.count == 0 {
            return Poll::Ready(Ok(Reply::default()));
        }
        if self.cancelling.is_asked.get() {
            let error = errors::cancelled();
            self.fail(&error);
            return Poll::Ready(Err(error));
        }
        if self.has_to_yield() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.run(rows) {
            Ok(()) => {
                self.end_flush();
                Poll::Ready(Ok(std::mem::take(&mut self.reply)))
            }
            Err(trouble) => self.trouble(trouble, cx).map(Err),
        }
    }

    fn set_deadline(&mut self, deadline: Nanos) {
        self.deadline = deadline;
    }

    fn state(&self) -> ConnectionState {
        if self.lost {
            ConnectionState::Lost
        } else if self.count > 0 {
            ConnectionState::Waiting
        } else if self.failed {
            ConnectionState::Failed
        } else if self.database.is_in_transaction() {
            ConnectionState::InTransaction
        } else {
            ConnectionState::Idle
        }
    }

    /// Ends a wait for a lock. A statement that runs has the thread to itself, so that nobody can ask it to end: its
    /// time limit ends it.
    fn cancel(&self) -> LocalFuture<'static, ()> {
        let cancelling = Rc::clone(&self.cancelling);
        Box::pin(async move {
            if cancelling.is_waiting.get() {
                cancelling.is_asked.set(true);
                cancelling.waker.borrow().as_ref().inspect(|waker| waker.wake_by_ref());
            }
        })
    }
}

impl Drop for SqliteConnection {
    fn drop(&mut self) {
        // What the session holds is free when it is gone; a broken file may refuse, and is closed all the same.
        self.wait = None;
        self.roll_back();
    }
}
