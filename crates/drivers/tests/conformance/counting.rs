//! Ten thousand transactions over several connections that are killed again and again: what the clients have
//! counted is what the database holds.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use nephoscope_drivers::{
    Command, Connection, ConnectionState, Driver, Error, ErrorClass, Params, Rows, Statement, Value, Want,
};
use nephoscope_runtime::clock::{MILLISECOND, SECOND, now};
use nephoscope_runtime::{Runtime, Yield};

use crate::client::Client;
use crate::fixtures::{Entries, Fixture, Ledger, cannot, unique};

const SESSIONS: i64 = 8;
const TRANSACTIONS: i64 = 10_000;
const KILLS: u32 = 12;

/// What the clients know of their transactions.
#[derive(Default)]
struct Account {
    started: Cell<i64>,
    committed: RefCell<Vec<(i64, i64)>>,
    /// The commit was sent and not answered.
    unknown: RefCell<Vec<(i64, i64)>>,
    failed: Cell<u64>,
}

/// One session: its connection, made anew where it is lost.
struct Session {
    number: i64,
    runtime: Runtime,
    driver: Arc<dyn Driver>,
    statements: Arc<[Statement]>,
    connection: Option<Box<dyn Connection>>,
    rows: Rows,
}

impl Session {
    async fn connected(&mut self) -> &mut dyn Connection {
        while self.connection.is_none() {
            match self.driver.connect(&self.runtime, &self.statements).await {
                Ok(connection) => self.connection = Some(connection),
                Err(_) => self.runtime.sleep_until(now() + MILLISECOND).await,
            }
        }
        &mut **self.connection.as_mut().unwrap()
    }

    async fn flush(&mut self, commands: &[Command], params: &Params) -> Result<(), Error> {
        let connection = self.connection.as_mut().unwrap();
        for command in commands {
            let params = if matches!(command, Command::Execute(_)) { params } else { &Params::default() };
            connection.queue(*command, params, Want::Count)?;
        }
        connection.set_deadline(now() + 20 * SECOND);
        poll_fn(|cx| connection.poll_replies(cx, &mut self.rows)).await.map(|_| ())
    }

    /// Runs one transaction, in one flush, in two, or command by command; the error says whether its commit was
    /// on its way.
    async fn transact(&mut self, number: i64) -> Result<(), (Error, bool)> {
        self.connected().await;
        let params: Params = [Value::Int(self.number), Value::Int(number)].into_iter().collect();
        let all = [Command::Begin, Command::Execute(0), Command::Commit];
        let flushes: &[&[Command]] = match number % 3 {
            0 => &[&all],
            1 => &[&all[..2], &all[2..]],
            _ => &[&all[..1], &all[1..2], &all[2..]],
        };
        for flush in flushes {
            let committing = flush.last() == Some(&Command::Commit);
            self.flush(flush, &params).await.map_err(|error| (error, committing))?;
        }
        Ok(())
    }

    async fn run(mut self, account: Rc<Account>) {
        while account.started.get() < TRANSACTIONS {
            let number = account.started.get() + 1;
            account.started.set(number);
            let entry = (self.number, number);
            match self.transact(number).await {
                Ok(()) => account.committed.borrow_mut().push(entry),
                Err((error, committing)) => {
                    let class = error.class();
                    let killed = matches!(class, ErrorClass::ConnectionLost | ErrorClass::ShuttingDown);
                    assert!(killed, "{error}");
                    assert_eq!(self.connection.take().unwrap().state(), ConnectionState::Lost);
                    if committing {
                        account.unknown.borrow_mut().push(entry);
                    } else {
                        account.failed.set(account.failed.get() + 1);
                    }
                }
            }
            Yield::default().await;
        }
    }
}

/// Runs all transactions while `disturb` kills.
fn run(ledger: &Ledger, disturb: &(dyn Fn() + Sync)) -> Account {
    let account = Rc::new(Account::default());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..KILLS {
                if !done.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(20));
                    disturb();
                }
            }
        });
        let runtime = crate::client::runtime();
        for number in 1..=SESSIONS {
            let session = Session {
                number,
                runtime: runtime.clone(),
                driver: Arc::clone(&ledger.driver),
                statements: Client::statements(&[("insert", &ledger.insert)]),
                connection: None,
                rows: Rows::default(),
            };
            runtime.spawn(session.run(Rc::clone(&account)));
        }
        runtime.block_on(async {
            while runtime.tasks() > 0 {
                runtime.sleep_until(now() + MILLISECOND).await;
            }
        });
        done.store(true, Ordering::Relaxed);
    });
    Rc::into_inner(account).unwrap()
}

pub(crate) fn nothing_is_lost_or_counted_twice(fixture: &dyn Fixture) {
    let name = unique("counted");
    let Some(ledger) = fixture.ledger(&name).map_err(cannot).ok() else { return };
    let driver = Arc::clone(&ledger.driver);
    let spared = OnceLock::new();
    let account = run(&ledger, &|| {
        if let Err(why) = fixture.kill(&*driver, &name) {
            let _ = spared.set(why);
        }
    });
    let (mut committed, unknown) = (account.committed.into_inner(), account.unknown.into_inner());
    let ended = committed.len() + unknown.len() + account.failed.get() as usize;
    assert_eq!((account.started.get(), ended), (TRANSACTIONS, TRANSACTIONS as usize));
    match spared.get() {
        Some(why) => cannot(why),
        None => assert!(ended > committed.len(), "no transaction was hit by a kill"),
    }
    match (ledger.entries)() {
        Entries::Counted(count) => {
            assert!((committed.len()..=committed.len() + unknown.len()).contains(&(count as usize)));
        }
        Entries::Listed(entries) => {
            committed.extend(unknown.iter().filter(|entry| entries.binary_search(entry).is_ok()));
            committed.sort_unstable();
            assert_eq!(entries, committed);
        }
    }
}
