//! Replay: statements that were recorded are sent again, in the order of their sessions and at their times.
//!
//! A recorded session is a task with one connection. A statement leaves at the later of its planned time, the reply to
//! the session's previous one, and the commits that it comes after. [`Replay::feed`] takes statements while others are
//! under way, [`Replay::next`] gives what became of them.
//!
//! * `session`: the life of a recorded session; `worker`: a thread with some of them; `commits`: which transactions
//!   have ended.

mod commits;
mod session;
mod worker;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nephoscope_drivers::{Driver, Settings, StatementMode};
use nephoscope_runtime::clock::{self, Nanos, SECOND};
use nephoscope_runtime::mailbox::{self, mailbox};
use serde::Deserialize;

use crate::error::{EngineError, GiveUp};
use crate::heartbeat::{Gap, Heartbeat};
use crate::lock::lock;
use commits::Commits;

/// The most statements that are fed and not answered …
const MOST: usize = 1 << 18;
/// … and the most bytes of their texts.
const MOST_BYTES: usize = 256 << 20;
/// Between [`Replay::begin`] and time 0: the first sessions connect meanwhile.
const LEAD: Nanos = SECOND;
/// How long dropping it waits for its threads.
const PATIENCE: Duration = Duration::from_secs(5);

/// How statements are replayed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaySpec {
    /// Where to.
    pub url: String,
    /// The dialect of the statements.
    pub dialect: String,
    /// How many threads.
    pub workers: usize,
    /// Whether statements have planned times; else each leaves as soon as it may.
    pub timed: bool,
    /// The longest that a connection may take to be made.
    pub connect_timeout_ns: Nanos,
    /// The longest that a statement may take.
    pub answer_timeout_ns: Nanos,
}

/// A statement to be replayed. Sessions and transactions are numbered from 0 without gaps.
#[derive(Clone, Debug, Default)]
pub struct Planned {
    /// Its number: what becomes of it has the same.
    pub row: u64,
    /// Its session, which gets its statements in their order.
    pub session: u32,
    /// Its transaction.
    pub transaction: u32,
    /// When it is to leave, since time 0.
    pub at: Nanos,
    /// Its text.
    pub sql: String,
    /// The transactions that have to end before it leaves.
    pub after: Vec<u32>,
    /// It is the last of its transaction.
    pub ends_transaction: bool,
    /// It is the last of its session.
    pub ends_session: bool,
}

/// How a statement ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was answered; so many rows were returned or changed.
    Done(u64),
    /// It failed: the server's code, or the error's class where there is none.
    Failed(Box<str>),
    /// It was not sent: its transaction was lost with its connection.
    LeftOut,
}

/// What became of a statement. Times are since time 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Its number.
    pub row: u64,
    /// When it could leave: the session's previous statement was answered, what it comes after committed.
    pub ready: Nanos,
    /// When it left.
    pub sent: Nanos,
    /// When it was answered.
    pub answered: Nanos,
    /// How it ended.
    pub fate: Fate,
    /// The wait for commits came to its limit.
    pub out_of_order: bool,
}

/// What workers are told.
pub(crate) enum Message {
    Feed(Vec<Planned>),
    Begin,
    /// Nothing more is fed.
    End,
    Stop,
}

/// What all workers share.
pub(crate) struct Shared {
    driver: Arc<dyn Driver>,
    spec: ReplaySpec,
    /// Time 0.
    origin: OnceLock<Nanos>,
    commits: Commits,
    /// Statements that are fed and not answered, and the bytes of their texts.
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
    failure: OnceLock<String>,
}

/// Statements that are being replayed.
pub struct Replay {
    shared: Arc<Shared>,
    workers: Vec<mailbox::Sender<Message>>,
    results: Mutex<Receiver<Vec<Replayed>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    heartbeat: Mutex<Option<Heartbeat>>,
}

impl Replay {
    /// Checks what is asked for, and starts the threads, which do nothing yet.
    ///
    /// # Errors
    ///
    /// [`EngineError::Input`] for a URL that cannot be used, or whose server speaks another dialect.
    pub fn new(spec: ReplaySpec) -> Result<Self, EngineError> {
        let settings = Settings {
            // A text that holds several statements is sent as such.
            statement_mode: StatementMode::Simple,
            connect_timeout: spec.connect_timeout_ns,
            ..Settings::default()
        };
        let driver = nephoscope_drivers::open(&spec.url, &settings)?;
        let dialect = driver.dialect().name;
        if dialect != spec.dialect && dialect != nephoscope_drivers::Dialect::NONE.name {
            let (url, of) = (driver.redacted_url(), &spec.dialect);
            return Err(EngineError::Input(format!(
                "{url} understands the dialect {dialect}, and the trace has {of} (allowed: a server of that dialect)"
            )));
        }
        let (sender, results) = channel();
        let count = spec.workers.max(1);
        let shared = Arc::new(Shared {
            driver,
            spec,
            origin: OnceLock::new(),
            commits: Commits::default(),
            waiting: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            failure: OnceLock::new(),
        });
        let (mut workers, mut threads) = (Vec::new(), Vec::new());
        for number in 0..count {
            let (orders, inbox) = mailbox();
            let (shared, sender) = (Arc::clone(&shared), sender.clone());
            let thread = std::thread::Builder::new()
                .name(format!("replay {number}"))
                .spawn(move || worker::run(&shared, inbox, &sender))
                .map_err(|error| EngineError::Failed(format!("no thread for the replay: {error}")))?;
            workers.push(orders);
            threads.push(thread);
        }
        let (results, threads) = (Mutex::new(results), Mutex::new(threads));
        Ok(Self { shared, workers, results, threads, heartbeat: Mutex::new(None) })
    }

    /// Whether more statements may be fed: what is held in memory is bounded.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.shared.waiting.load(Ordering::Relaxed) < MOST
            && self.shared.waiting_bytes.load(Ordering::Relaxed) < MOST_BYTES
    }

    /// Takes statements, those of each session in their order.
    pub fn feed(&self, statements: Vec<Planned>) {
        self.shared.waiting.fetch_add(statements.len(), Ordering::Relaxed);
        let bytes = statements.iter().map(|planned| planned.sql.len()).sum();
        self.shared.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut shares: Vec<Vec<Planned>> = self.workers.iter().map(|_| Vec::new()).collect();
        for planned in statements {
            let worker = planned.session as usize % shares.len();
            shares[worker].push(planned);
        }
        for (worker, share) in self.workers.iter().zip(shares) {
            worker.send(Message::Feed(share));
        }
    }

    /// Sets time 0, a little ahead of now.
    ///
    /// # Errors
    ///
    /// If there is no thread for the heartbeat.
    pub fn begin(&self) -> Result<(), EngineError> {
        let origin = *self.shared.origin.get_or_init(|| clock::now() + LEAD);
        self.shared.driver.run_starts(origin);
        *lock(&self.heartbeat) = Some(Heartbeat::start(origin)?);
        self.tell(|| Message::Begin);
        Ok(())
    }

    /// Says that nothing more is fed.
    pub fn end(&self) {
        self.tell(|| Message::End);
    }

    fn tell(&self, message: impl Fn() -> Message) {
        self.workers.iter().for_each(|worker| worker.send(message()));
    }

    /// What became of some statements, nothing where that takes longer than the time given; `None` behind the last.
    ///
    /// # Errors
    ///
    /// If the threads cannot go on.
    pub fn next(&self, timeout: Duration) -> Result<Option<Vec<Replayed>>, EngineError> {
        match lock(&self.results).recv_timeout(timeout) {
            Ok(results) => Ok(Some(results)),
            Err(RecvTimeoutError::Timeout) => Ok(Some(Vec::new())),
            Err(RecvTimeoutError::Disconnected) => match self.shared.failure.get() {
                Some(why) => Err(EngineError::Failed(format!("replay: {why}"))),
                None => Ok(None),
            },
        }
    }

    /// The next standstill of the tool itself.
    #[must_use]
    pub fn gap(&self) -> Option<Gap> {
        lock(&self.heartbeat).as_ref().and_then(Heartbeat::gap)
    }

    /// Ends it: what is under way is given up, and what is not sent stays so. [`Replay::next`] goes on to give what there is.
    /// Waits for the threads, unless `give_up` says so.
    pub fn stop_unless(&self, give_up: GiveUp<'_>) {
        self.tell(|| Message::Stop);
        let threads = std::mem::take(&mut *lock(&self.threads));
        while !threads.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(5));
            if give_up() {
                return;
            }
        }
    }
}

impl Drop for Replay {
    /// Waits for the threads, but not for ever.
    fn drop(&mut self) {
        let until = Instant::now() + PATIENCE;
        self.stop_unless(&mut || Instant::now() >= until);
    }
}

impl Shared {
    /// Statements have been dealt with.
    fn answered(&self, bytes: usize) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn fail(&self, why: &str) {
        // The first reason is the one that counts.
        let _ = self.failure.set(why.to_owned());
    }
}
