//! A session as a test drives it: step by step, each wait with a limit.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use nephoscope_drivers::{
    Added, Command, Connection, ConnectionState, Dialect, Driver, Error, Params, Reply, Rows, Statement,
    Value, Want,
};
use nephoscope_runtime::clock::{self, Nanos, SECOND};
use nephoscope_runtime::{Io, Runtime};

use crate::fixtures::in_dialect;

/// How long a reply is waited for that is sure to come.
const PATIENCE: Nanos = 20 * SECOND;

thread_local! {
    /// How the clients of a test wait: every test has a thread of its own.
    static IO: Cell<Io> = const { Cell::new(Io::Epoll) };
}

/// Has the clients that are made on this thread wait in a way.
pub(crate) fn wait_by(io: Io) {
    IO.set(io);
}

/// A runtime that waits as was said.
pub(crate) fn runtime() -> Runtime {
    Runtime::with_io(IO.get()).unwrap()
}

/// A connection on a runtime of its own.
pub(crate) struct Client {
    connection: Box<dyn Connection>,
    statements: Arc<[Statement]>,
    dialect: &'static Dialect,
    /// The rows of every reply since they were last cleared.
    pub(crate) rows: Rows,
    runtime: Runtime,
}

impl Client {
    /// Connects with statements, each a name and its SQL in the words of the suite, which are `PostgreSQL`'s.
    pub(crate) fn try_new(driver: &dyn Driver, statements: &[(&str, &str)]) -> Result<Self, Error> {
        let dialect = driver.dialect();
        let read =
            |(name, sql): &(&str, &str)| Statement::read(name, &in_dialect(dialect, sql), dialect.lexer);
        Self::with(driver, &statements.iter().map(read).collect())
    }

    /// Connects with statements as they are.
    pub(crate) fn with(driver: &dyn Driver, statements: &Arc<[Statement]>) -> Result<Self, Error> {
        let (dialect, statements) = (driver.dialect(), Arc::clone(statements));
        let runtime = runtime();
        let connection = runtime.block_on(driver.connect(&runtime, &statements))?;
        Ok(Self { connection, statements, dialect, rows: Rows::default(), runtime })
    }

    /// Connects with statements to a system that is there.
    #[track_caller]
    pub(crate) fn new(driver: &dyn Driver, statements: &[(&str, &str)]) -> Self {
        Self::try_new(driver, statements).unwrap_or_else(|error| panic!("{}: {error}", driver.redacted_url()))
    }

    /// Whether it speaks a dialect.
    pub(crate) fn speaks(&self, dialect: &Dialect) -> bool {
        self.dialect == dialect
    }

    pub(crate) fn state(&self) -> ConnectionState {
        self.connection.state()
    }

    /// Queues a statement by its name, with its rows wanted or not.
    pub(crate) fn queue(&mut self, name: &str, values: &[Value<'_>], want: Want) -> Result<(), Error> {
        let place = self.statements.iter().position(|statement| statement.name() == name);
        let place = place.unwrap_or_else(|| panic!("the test has no statement {name}"));
        self.queue_command(Command::Execute(place), values, want)
    }

    pub(crate) fn queue_command(
        &mut self,
        command: Command,
        values: &[Value<'_>],
        want: Want,
    ) -> Result<(), Error> {
        let params: Params = values.iter().copied().collect();
        self.connection.queue(command, &params, want)
    }

    /// Makes a statement known in the words of the suite, in as many steps as it takes; gives its place.
    pub(crate) fn add(&mut self, sql: &str) -> Result<usize, Error> {
        let statement = Statement::read("added", &in_dialect(self.dialect, sql), self.dialect.lexer);
        self.add_statement(&Rc::new(statement), false)
    }

    pub(crate) fn add_statement(&mut self, statement: &Rc<Statement>, alone: bool) -> Result<usize, Error> {
        loop {
            match self.connection.add(statement, alone)? {
                Added::Ready(place) => return Ok(place),
                Added::Asked(place) => return self.flush().map(|_| place),
                Added::Full => self.flush()?,
            };
        }
    }

    /// Runs a statement that was not known, its rows wanted.
    pub(crate) fn call_text(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Reply, Error> {
        let statement = Statement::read("added", &in_dialect(self.dialect, sql), self.dialect.lexer);
        let place = self.add_statement(&Rc::new(statement), true)?;
        self.queue_command(Command::Execute(place), values, Want::Rows)?;
        self.flush()
    }

    /// Sends what is queued and waits for the replies.
    pub(crate) fn flush(&mut self) -> Result<Reply, Error> {
        self.flush_within(PATIENCE)
    }

    /// The same with a time limit.
    pub(crate) fn flush_within(&mut self, limit: Nanos) -> Result<Reply, Error> {
        let Self { connection, rows, runtime, .. } = self;
        connection.set_deadline(clock::now() + limit);
        runtime.block_on(poll_fn(|cx| connection.poll_replies(cx, rows)))
    }

    /// Sends what is queued without waiting; the replies, should they be there already.
    pub(crate) fn send(&mut self) -> Option<Result<Reply, Error>> {
        let Self { connection, rows, runtime, .. } = self;
        connection.set_deadline(clock::now() + PATIENCE);
        runtime.block_on(poll_fn(|cx| {
            Poll::Ready(match connection.poll_replies(cx, rows) {
                Poll::Ready(replies) => Some(replies),
                Poll::Pending => None,
            })
        }))
    }

    /// Runs a statement, its rows wanted.
    pub(crate) fn call(&mut self, name: &str, values: &[Value<'_>]) -> Result<Reply, Error> {
        self.queue(name, values, Want::Rows)?;
        self.flush()
    }

    /// Runs a statement of which only the count is wanted.
    pub(crate) fn count(&mut self, name: &str, values: &[Value<'_>]) -> Result<Reply, Error> {
        self.queue(name, values, Want::Count)?;
        self.flush()
    }

    /// Runs `BEGIN`, `COMMIT` or `ROLLBACK`.
    pub(crate) fn control(&mut self, command: Command) -> Result<Reply, Error> {
        self.queue_command(command, &[], Want::Count)?;
        self.flush()
    }

    /// The first value of a reply's first row.
    #[track_caller]
    pub(crate) fn value(&self, reply: Reply) -> Value<'_> {
        let result = reply.result.expect("the reply has rows");
        self.rows.value(result, 0, 0).expect("there is a row")
    }

    /// Runs a statement and gives its only value as an integer.
    #[track_caller]
    pub(crate) fn integer(&mut self, name: &str, values: &[Value<'_>]) -> i64 {
        let reply = self.call(name, values).unwrap_or_else(|error| panic!("{name}: {error}"));
        match self.value(reply) {
            Value::Int(number) => number,
            other => panic!("{name} gives {other:?}"),
        }
    }

    /// Runs a statement and gives its only value as text.
    #[track_caller]
    pub(crate) fn text(&mut self, name: &str, values: &[Value<'_>]) -> String {
        let reply = self.call(name, values).unwrap_or_else(|error| panic!("{name}: {error}"));
        match self.value(reply) {
            Value::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
            other => panic!("{name} gives {other:?}"),
        }
    }

    /// Does nothing for a time, in which what the server sends is noticed.
    pub(crate) fn rest(&self, time: Nanos) {
        self.runtime.block_on(self.runtime.sleep_until(clock::now() + time));
    }

    /// Asks the server to give up what is waited for.
    pub(crate) fn cancel(&self) {
        let cancel = self.connection.cancel();
        self.runtime.block_on(cancel);
    }

    /// Brings the connection back to where a transaction can begin, as the engine does after an error.
    #[track_caller]
    pub(crate) fn recover(&mut self) {
        if matches!(self.state(), ConnectionState::InTransaction | ConnectionState::Failed) {
            self.control(Command::Rollback).unwrap();
        }
        assert_eq!(self.state(), ConnectionState::Idle);
    }

    /// The parts that a task needs that runs beside others on one runtime.
    pub(crate) fn statements(statements: &[(&str, &str)]) -> Arc<[Statement]> {
        statements.iter().map(|(name, sql)| Statement::new(name, sql)).collect()
    }
}
