//! What every driver offers: the contract between the engine and a database.

use std::future::Future;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use nephoscope_runtime::{Nanos, Runtime};

use crate::contract::added::Added;
use crate::contract::bulk::Admin;
use crate::contract::dialect::Dialect;
use crate::contract::error::{ConfigError, Error};
use crate::contract::interrupt::Interrupt;
use crate::contract::isolation::Isolation;
use crate::contract::rows::{ResultIndex, Rows};
use crate::contract::statement::Statement;
use crate::contract::value::Params;

/// A future on one thread.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// How statements are run; the manifest says which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatementMode {
    /// The SQL text with the values written into it, as pgbench's `-M simple`.
    Simple,
    /// Parsed, bound and executed each time, as pgbench's `-M extended`.
    Extended,
    /// Prepared once per connection, then bound and executed, as pgbench's `-M prepared`.
    #[default]
    Prepared,
}

/// How connections are made and used. The same for all connections of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How statements are run.
    pub statement_mode: StatementMode,
    /// The longest that making a connection may take, set-up included.
    pub connect_timeout: Nanos,
    /// The longest that a question of a set-up connection may take, its answer included.
    pub answer_timeout: Nanos,
    /// The consistency level of every session; the system's default where there is none.
    pub consistency: Option<String>,
    /// SQL that each connection runs first, in this order; commands where the system has no SQL.
    pub on_connect: Vec<String>,
    /// Ends the waits of set-up connections.
    pub interrupt: Interrupt,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            statement_mode: StatementMode::default(),
            connect_timeout: 10 * nephoscope_runtime::clock::SECOND,
            // An index on a large table takes its time.
            answer_timeout: 24 * 3600 * nephoscope_runtime::clock::SECOND,
            consistency: None,
            on_connect: Vec::new(),
            interrupt: Interrupt::default(),
        }
    }
}

impl Settings {
    /// Refuses what each connection is to run first, for a system that has no sessions.
    pub(crate) fn refuse_on_connect(&self, system: &str) -> Result<(), ConfigError> {
        if self.on_connect.is_empty() {
            return Ok(());
        }
        Err(ConfigError(format!(
            "load.on_connect: {system} has no sessions that could keep anything; leave it out"
        )))
    }
}

/// One thing to be sent to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Begin a transaction.
    Begin,
    /// Begin a transaction in an isolation level of its own, which the dialect has.
    BeginIn(Isolation),
    /// Commit it.
    Commit,
    /// Roll it back.
    Rollback,
    /// Run a statement, by its place in the list that the connection was made with, or the one that
    /// [`Connection::add`] has given.
    Execute(usize),
}

/// What is wanted of a statement's result. What is not wanted is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Only how many rows it touched.
    Count,
    /// Its rows.
    Rows,
    /// Its rows, and the reply itself in [`Rows::kept`], whatever commands follow it in the flush.
    Kept,
}

impl Want {
    /// Whether rows are wanted.
    #[inline]
    #[must_use]
    pub fn has_rows(self) -> bool {
        self != Self::Count
    }
}

/// How the last command of a flush ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Rows touched or returned.
    pub affected: u64,
    /// Where its rows are, if rows were wanted and the statement has columns.
    pub result: Option<ResultIndex>,
    /// How many results came before that one: a procedure may have several, each with columns of its own.
    pub earlier: u32,
    /// The key of the row that it inserted, where the server tells that beside the rows. Of several rows it is the
    /// first one's that the server generated (`MySQL`), or the last one's (`SQLite`).
    pub inserted_id: Option<NonZeroU64>,
}

impl Reply {
    /// All of its results, in the order in which they came.
    #[must_use]
    pub fn results(&self) -> impl ExactSizeIterator<Item = ResultIndex> + use<> {
        let numbers = self.result.map_or(0..0, |last| last.number() - self.earlier..last.number() + 1);
        numbers.map(ResultIndex::from)
    }
}

/// Where a connection stands between two commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// Ready, outside a transaction.
    Idle,
    /// Ready, inside a transaction.
    InTransaction,
    /// Ready, inside a transaction that has failed and can only be rolled back.
    Failed,
    /// Replies are outstanding: a wait was given up.
    Waiting,
    /// Broken; it can only be dropped.
    Lost,
}

/// A database that connections can be made to: one endpoint. Shared by the threads of a run.
pub trait Driver: Send + Sync {
    /// The driver's name, as `nephoscope systems` lists it.
    fn name(&self) -> &'static str;

    /// Which SQL it speaks.
    fn dialect(&self) -> &'static Dialect;

    /// The endpoint for people to read: no password, no secret.
    fn redacted_url(&self) -> String;

    /// Makes a connection, with the session's full set-up: authentication, `on_connect`, and every statement
    /// prepared or described. Ends within `connect_timeout`.
    fn connect<'a>(
        &'a self,
        runtime: &'a Runtime,
        statements: &'a Arc<[Statement]>,
    ) -> LocalFuture<'a, Result<Box<dyn Connection>, Error>>;

    /// Makes a connection for set-up, loading and checks.
    fn admin(&self) -> Result<Box<dyn Admin>, Error>;

    /// Tells the driver when a run starts, on the monotonic clock: the zero of `sim`'s planted windows.
    fn run_starts(&self, _at: Nanos) {}
}

/// A connection that runs the statements of one session, one flush at a time.
///
/// Commands are queued with [`Connection::queue`] and leave together with [`Connection::poll_replies`]. The
/// engine alone decides about rollback, retry and reconnection; a connection only reports its state.
pub trait Connection {
    /// Queues a command. An error means that nothing was queued: a value does not fit its parameter.
    fn queue(&mut self, command: Command, params: &Params, want: Want) -> Result<(), Error>;

    /// Makes a statement known that the connection was not made with, and gives its place. The place holds until the
    /// connection is asked for another when everything that was queued is answered.
    ///
    /// One with parameters is prepared as the others are, and the connection keeps some of those that were used last.
    /// One without is sent as the text that it is. It is `alone` where its reply is waited for before anything else is
    /// queued.
    fn add(&mut self, statement: &Rc<Statement>, alone: bool) -> Result<Added, Error>;

    /// Sends what is queued and completes when every reply is in, with the reply to the last command; rows that
    /// were wanted are added to `rows`, and so are the replies to commands with [`Want::Kept`], each once it is good.
    ///
    /// After an error [`Connection::state`] says what is left. In the state [`ConnectionState::Waiting`], which
    /// follows a time-out, calling again goes on waiting for the outstanding replies.
    fn poll_replies(&mut self, cx: &mut Context<'_>, rows: &mut Rows) -> Poll<Result<Reply, Error>>;

    /// Sets the time at which a wait ends with the class [`crate::ErrorClass::StatementTimeout`];
    /// `Nanos::MAX` is never.
    fn set_deadline(&mut self, deadline: Nanos);

    /// Where the connection stands.
    fn state(&self) -> ConnectionState;

    /// Asks the server, over a way of its own, to give up what this connection waits for. Completes when the
    /// request was delivered or could not be; the outcome shows in the replies.
    fn cancel(&self) -> LocalFuture<'static, ()>;
}
