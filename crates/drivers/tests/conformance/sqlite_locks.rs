//! SQLite's locks: who waits, for how long, and who runs meanwhile.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use nephoscope_drivers::{
    Command, Connection, ConnectionState, Driver, Error, ErrorClass, Params, Rows, Statement, Value, Want,
};
use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{MILLISECOND, SECOND, now};

use crate::client::{Client, runtime};
use crate::fixtures::sqlite::{ENDLESS, STATEMENTS, Sqlite};

const ADD: Command = Command::Execute(0);
const READ: Command = Command::Execute(1);

/// A session that shares its runtime with others.
struct Session {
    connection: Box<dyn Connection>,
    rows: Rows,
    /// How often the last flush was polled.
    polls: u32,
}

impl Session {
    async fn new(driver: &dyn Driver, runtime: &Runtime) -> Self {
        let statements: Arc<[Statement]> = Client::statements(&STATEMENTS);
        let connection = driver.connect(runtime, &statements).await.unwrap();
        Self { connection, rows: Rows::default(), polls: 0 }
    }

    /// Runs commands in one flush; all statements are about the row 1.
    async fn flush(&mut self, commands: &[Command]) -> Result<(), Error> {
        for command in commands {
            let params: Params = (*command == ADD).then_some(Value::Int(1)).into_iter().collect();
            self.connection.queue(*command, &params, Want::Rows)?;
        }
        self.rows.clear();
        self.connection.set_deadline(now() + 20 * SECOND);
        self.polls = 0;
        let replies = poll_fn(|cx| {
            self.polls += 1;
            self.connection.poll_replies(cx, &mut self.rows)
        });
        replies.await.map(|_| ())
    }

    fn state(&self) -> ConnectionState {
        self.connection.state()
    }
}

fn total(sqlite: &Sqlite) -> i64 {
    sqlite.client(&STATEMENTS).integer("read", &[])
}

/// Runs a task for each name beside the others, and gives what they have noted.
fn beside<F: Future<Output = ()> + 'static>(
    runtime: &Runtime,
    names: &[&'static str],
    task: impl Fn(&'static str, Rc<RefCell<Vec<&'static str>>>) -> F,
) -> Vec<&'static str> {
    let notes = Rc::new(RefCell::new(Vec::new()));
    for name in names {
        runtime.spawn(task(name, Rc::clone(&notes)));
    }
    runtime.block_on(async {
        while runtime.tasks() > 0 {
            runtime.sleep_until(now() + MILLISECOND).await;
        }
    });
    notes.take()
}

pub(crate) fn a_wait_for_the_write_lock_ends_with_the_transaction_that_holds_it(sqlite: &Sqlite) {
    sqlite.table();
    let (runtime, driver) = (runtime(), sqlite.with("", &[]));
    let (mut holder, waiter) = runtime
        .block_on(async { (Session::new(&*driver, &runtime).await, Session::new(&*driver, &runtime).await) });
    runtime.block_on(holder.flush(&[Command::Begin, ADD])).unwrap();
    let both = RefCell::new([Some(holder), Some(waiter)]);
    let notes = beside(&runtime, &["holder", "waiter"], |name, notes| {
        let mut session = both.borrow_mut()[usize::from(name == "waiter")].take().unwrap();
        let runtime = runtime.clone();
        async move {
            if name == "holder" {
                runtime.sleep_until(now() + 30 * MILLISECOND).await;
                notes.borrow_mut().push("commits");
                session.flush(&[Command::Commit]).await.unwrap();
            } else {
                notes.borrow_mut().push("waits");
                session.flush(&[ADD]).await.unwrap();
                notes.borrow_mut().push("has written");
            }
            assert_eq!(session.state(), ConnectionState::Idle);
        }
    });
    assert_eq!(notes, ["waits", "commits", "has written"]);
    assert_eq!(total(sqlite), 2);
}

pub(crate) fn a_session_that_waits_leaves_its_thread_to_others(sqlite: &Sqlite) {
    sqlite.table();
    let (runtime, driver) = (runtime(), sqlite.with("", &[]));
    let mut holder = runtime.block_on(Session::new(&*driver, &runtime));
    runtime.block_on(holder.flush(&[Command::Begin, ADD])).unwrap();
    let holder = RefCell::new(Some(holder));
    let notes = beside(&runtime, &["waiter", "reader"], |name, notes| {
        let (runtime, driver) = (runtime.clone(), Arc::clone(&driver));
        let mut holder = (name == "reader").then(|| holder.take().unwrap());
        async move {
            let mut session = Session::new(&*driver, &runtime).await;
            if let Some(holder) = &mut holder {
                for _ in 0..50 {
                    session.flush(&[READ]).await.unwrap();
                    assert_eq!(session.rows.value(0.into(), 0, 0), Some(Value::Int(0)));
                }
                notes.borrow_mut().push("has read 50 times");
                holder.flush(&[Command::Rollback]).await.unwrap();
            } else {
                session.flush(&[Command::Begin, ADD, Command::Commit]).await.unwrap();
                notes.borrow_mut().push("has written");
            }
        }
    });
    assert_eq!(notes, ["has read 50 times", "has written"]);
    assert_eq!(total(sqlite), 1);
}

pub(crate) fn who_waits_long_tries_seldom(sqlite: &Sqlite) {
    sqlite.table();
    let (runtime, driver) = (runtime(), sqlite.with("", &[]));
    let mut holder = runtime.block_on(Session::new(&*driver, &runtime));
    runtime.block_on(holder.flush(&[Command::Begin, ADD])).unwrap();
    let (begun, holder) = (now(), RefCell::new(Some(holder)));
    let mut waiters = beside(&runtime, &["a", "b", "c", "holder"], |name, notes| {
        let (runtime, driver) = (runtime.clone(), Arc::clone(&driver));
        let holder = (name == "holder").then(|| holder.take().unwrap());
        async move {
            if let Some(mut holder) = holder {
                runtime.sleep_until(begun + 200 * MILLISECOND).await;
                return holder.flush(&[Command::Commit]).await.unwrap();
            }
            let mut session = Session::new(&*driver, &runtime).await;
            session.flush(&[ADD]).await.unwrap();
            // Each five milliseconds at the most, however long the tests' machine stands still.
            let most = (now() - begun) / (5 * MILLISECOND) + 40;
            assert!(u64::from(session.polls) < most, "{} polls", session.polls);
            notes.borrow_mut().push(name);
        }
    });
    waiters.sort_unstable();
    assert_eq!(waiters, ["a", "b", "c"]);
    assert_eq!(total(sqlite), 4);
}

pub(crate) fn a_lock_is_waited_for_up_to_the_time_limit(sqlite: &Sqlite) {
    let (mut first, mut second) = sqlite.pair();
    first.control(Command::Begin).unwrap();
    first.count("add", &[Value::Int(1)]).unwrap();
    for (begin, after) in [(false, ConnectionState::Idle), (true, ConnectionState::Failed)] {
        if begin {
            second.control(Command::Begin).unwrap();
        }
        second.queue("add", &[Value::Int(1)], Want::Count).unwrap();
        let begun = now();
        let error = second.flush_within(40 * MILLISECOND).unwrap_err();
        assert!((40 * MILLISECOND..5 * SECOND).contains(&(now() - begun)));
        assert_eq!((error.class(), error.code()), (ErrorClass::LockTimeout, "SQLITE_BUSY"));
        assert_eq!(error.message(), "database is locked, up to the statement's time limit");
        assert!(!error.outcome_unknown());
        assert_eq!(second.state(), after);
    }
    second.recover();
    first.control(Command::Commit).unwrap();
    second.count("add", &[Value::Int(1)]).unwrap();
    assert_eq!(total(sqlite), 2);
}

pub(crate) fn a_wait_for_a_lock_can_be_cancelled(sqlite: &Sqlite) {
    let (mut first, mut second) = sqlite.pair();
    first.control(Command::Begin).unwrap();
    first.count("add", &[Value::Int(1)]).unwrap();
    second.queue("add", &[Value::Int(1)], Want::Count).unwrap();
    assert!(second.send().is_none() && second.send().is_none());
    second.cancel();
    let error = second.flush().unwrap_err();
    assert_eq!((error.class(), error.code()), (ErrorClass::StatementTimeout, "SQLITE_INTERRUPT"));
    assert!(!error.outcome_unknown() && error.message().contains("waited for a lock"), "{error}");
    assert_eq!(second.state(), ConnectionState::Idle);
    first.control(Command::Commit).unwrap();
    // A request that comes too late hits nothing.
    second.cancel();
    second.count("add", &[Value::Int(1)]).unwrap();
    assert_eq!(total(sqlite), 2);
}

pub(crate) fn a_commit_that_readers_hold_up_waits_for_them(sqlite: &Sqlite) {
    let (mut reader, mut writer) = sqlite.pair();
    reader.control(Command::Begin).unwrap();
    assert_eq!(reader.integer("read", &[]), 0);
    writer.control(Command::Begin).unwrap();
    writer.count("add", &[Value::Int(1)]).unwrap();
    writer.queue_command(Command::Commit, &[], Want::Count).unwrap();
    let early = (0..4).find_map(|_| writer.send());
    assert_eq!(early.is_some(), sqlite.is_wal(), "only a rollback journal makes writers wait for readers");
    assert_eq!(reader.integer("read", &[]), 0);
    reader.control(Command::Commit).unwrap();
    early.unwrap_or_else(|| writer.flush()).unwrap();
    assert_eq!((writer.state(), reader.integer("read", &[])), (ConnectionState::Idle, 1));
}

pub(crate) fn a_reader_that_cannot_become_a_writer_is_a_serialization_failure(sqlite: &Sqlite) {
    let (mut first, mut second) = sqlite.pair();
    // While another writes, and in WAL mode also after that.
    for is_over in [false, true] {
        second.control(Command::Begin).unwrap();
        second.integer("read", &[]);
        first.control(Command::Begin).unwrap();
        first.count("add", &[Value::Int(1)]).unwrap();
        if is_over && sqlite.is_wal() {
            first.control(Command::Commit).unwrap();
        }
        let begun = now();
        let error = second.count("add", &[Value::Int(2)]).unwrap_err();
        let code = if is_over && sqlite.is_wal() { "SQLITE_BUSY_SNAPSHOT" } else { "SQLITE_BUSY" };
        assert_eq!((error.class(), error.code()), (ErrorClass::Serialization, code));
        assert!(now() - begun < 10 * SECOND, "nobody waits for what cannot be");
        assert_eq!(second.state(), ConnectionState::Failed);
        second.recover();
        if first.state() == ConnectionState::InTransaction {
            first.control(Command::Commit).unwrap();
        }
    }
    second.count("add", &[Value::Int(2)]).unwrap();
    assert_eq!(total(sqlite), 3);
}

pub(crate) fn transactions_that_begin_with_the_lock_do_not_fail(sqlite: &Sqlite) {
    sqlite.table();
    let driver = sqlite.with("begin=immediate", &[]);
    let [mut first, mut second] = [0, 1].map(|_| Client::new(&*driver, &STATEMENTS));
    first.control(Command::Begin).unwrap();
    second.queue_command(Command::Begin, &[], Want::Count).unwrap();
    assert!((0..4).all(|_| second.send().is_none()));
    assert_eq!(first.integer("read", &[]), 0);
    first.count("add", &[Value::Int(1)]).unwrap();
    first.control(Command::Commit).unwrap();
    second.flush().unwrap();
    assert_eq!((second.state(), second.integer("read", &[])), (ConnectionState::InTransaction, 1));
    second.count("add", &[Value::Int(1)]).unwrap();
    second.control(Command::Commit).unwrap();
    assert_eq!(total(sqlite), 2);
}

pub(crate) fn sessions_of_a_thread_take_turns(sqlite: &Sqlite) {
    sqlite.table();
    let (runtime, driver) = (runtime(), sqlite.with("", &[]));
    let sessions = ["a", "b", "c"].map(|_| Some(runtime.block_on(Session::new(&*driver, &runtime))));
    let sessions = RefCell::new(sessions);
    let notes = beside(&runtime, &["a", "b", "c"], |name, notes| {
        let place = usize::from(name.as_bytes()[0] - b'a');
        let mut session = sessions.borrow_mut()[place].take().unwrap();
        async move {
            for _ in 0..20 {
                session.flush(&[READ]).await.unwrap();
                notes.borrow_mut().push(name);
            }
        }
    });
    assert_eq!(notes.concat(), "abc".repeat(20));
}

pub(crate) fn two_threads_lose_nothing(sqlite: &Sqlite) {
    const EACH: i64 = 100;
    sqlite.table();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let (runtime, driver) = (runtime(), sqlite.with("", &[]));
                beside(&runtime, &["writes", "reads first"], |name, _| {
                    let (runtime, driver) = (runtime.clone(), Arc::clone(&driver));
                    async move {
                        let mut session = Session::new(&*driver, &runtime).await;
                        for _ in 0..EACH {
                            transact(&mut session, &runtime, name == "reads first").await;
                        }
                    }
                });
            });
        }
    });
    assert_eq!(total(sqlite), 4 * EACH);
}

/// Adds 1, again and again where others were in the way.
async fn transact(session: &mut Session, runtime: &Runtime, reads_first: bool) {
    let first = if reads_first { [Command::Begin, READ].as_slice() } else { &[Command::Begin] };
    loop {
        session.flush(first).await.unwrap();
        let added = session.flush(&[ADD, Command::Commit]).await;
        let Err(error) = added else { return };
        assert_eq!(error.class(), ErrorClass::Serialization, "{error}");
        assert!(reads_first, "who only writes just waits");
        assert_eq!(session.state(), ConnectionState::Failed);
        session.flush(&[Command::Rollback]).await.unwrap();
        runtime.sleep_until(now() + MILLISECOND).await;
    }
}

pub(crate) fn a_long_statement_ends_at_its_time_limit(sqlite: &Sqlite) {
    sqlite.table();
    let insert = format!("INSERT INTO accounts {}", ENDLESS.replace("max(i)", "i + 2, 1"));
    let mut client = sqlite.client(&[("endless", ENDLESS), ("insert", &insert), STATEMENTS[1]]);
    for (name, begin) in [("endless", false), ("insert", false), ("endless", true), ("insert", true)] {
        if begin {
            client.control(Command::Begin).unwrap();
        }
        client.queue(name, &[], Want::Rows).unwrap();
        let begun = now();
        let error = client.flush_within(30 * MILLISECOND).unwrap_err();
        assert!((30 * MILLISECOND..10 * SECOND).contains(&(now() - begun)), "{name}");
        assert_eq!((error.class(), error.code()), (ErrorClass::StatementTimeout, "SQLITE_INTERRUPT"));
        assert!(!error.outcome_unknown() && error.message().contains("time limit"), "{error}");
        let after = if begin { ConnectionState::Failed } else { ConnectionState::Idle };
        assert_eq!(client.state(), after);
        client.recover();
        assert_eq!(client.integer("read", &[]), 0, "nothing of it is left");
    }
}

pub(crate) fn a_connection_that_is_dropped_leaves_no_lock(sqlite: &Sqlite) {
    let (mut first, mut second) = sqlite.pair();
    first.control(Command::Begin).unwrap();
    first.count("add", &[Value::Int(1)]).unwrap();
    second.queue("add", &[Value::Int(2)], Want::Count).unwrap();
    assert!(second.send().is_none() && second.send().is_none());
    drop(first);
    second.flush().unwrap();
    assert_eq!(total(sqlite), 1);
}
