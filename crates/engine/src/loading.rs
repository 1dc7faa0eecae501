//! The part of a workload's data that its `w:load` makes: part by part, on several threads, each with a connection of its
//! own. A part draws from a generator of its own, so the data does not depend on the number of threads.

use std::collections::BTreeMap;
use std::future::{Future as _, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use nephoscope_drivers::{Added, Command, Connection, ConnectionState, Driver, Error, Reply, Statement};
use nephoscope_runtime::clock::{self, MILLISECOND, Nanos};
use nephoscope_runtime::{Runtime, Yield};
use nephoscope_script::{KeySpace, Script, ScriptError, Source, Step, Vm, Workload};

use crate::worker::watchdog::{Watchdog, Watched};

/// How often who waits for a database looks whether the load is to end.
const LOOK: Nanos = 100 * MILLISECOND;
/// The most commands that wait to be sent.
const MOST_QUEUED: u32 = 256;

/// How the parts are loaded.
pub struct PartsOptions {
    /// How many threads load, each with a connection of its own; 0 for one per available core. There are never more
    /// than parts.
    pub threads: usize,
    /// Ends the load, with an error, when it becomes true.
    pub cancel: Arc<AtomicBool>,
    /// The longest that a part's Lua may run without a wait, in processor time.
    pub limit: Duration,
}

/// Runs the `w:load` of a workload that has one, in tables that exist. `progress` is called on the calling thread with
/// the number of parts that are done, ten times a second at most, and once at the end.
///
/// Gives how many statements were run. The first error stops all threads, and says which part it met; what other parts
/// have committed stays. Lua without an end is ended as a transaction's is; a thread that cannot be interrupted is left
/// behind.
pub fn load_parts(
    source: &Source,
    workload: &Workload,
    driver: &Arc<dyn Driver>,
    options: &PartsOptions,
    progress: &mut dyn FnMut(u32),
) -> Result<u64, Error> {
    let parts = workload.load_parts.unwrap_or(0);
    let load = Arc::new(Load {
        source: source.clone(),
        driver: Arc::clone(driver),
        statements: workload.statements.clone().into(),
        keys: workload.key_spaces(&BTreeMap::new()),
        parts,
        cancel: Arc::clone(&options.cancel),
        stop: AtomicBool::new(false),
        next: AtomicU32::new(1),
        done: AtomicU32::new(0),
        run: AtomicU64::new(0),
        failure: Mutex::default(),
    });
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if options.threads == 0 { cores() } else { options.threads };
    load.run(threads.min(parts as usize), options.limit, progress);
    let failure = load.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    match failure {
        Some(error) if !load.cancel.load(Ordering::Relaxed) => Err(error),
        None if load.done.load(Ordering::Relaxed) == parts => {
            progress(parts);
            Ok(load.run.load(Ordering::Relaxed))
        }
        _ => Err(Error::other("the load was interrupted")),
    }
}

/// What the threads share.
struct Load {
    source: Source,
    driver: Arc<dyn Driver>,
    statements: Arc<[Statement]>,
    keys: Vec<(String, Arc<KeySpace>)>,
    parts: u32,
    cancel: Arc<AtomicBool>,
    /// Set by the first error.
    stop: AtomicBool,
    /// The part that the next free thread takes.
    next: AtomicU32,
    done: AtomicU32,
    /// How many statements were run.
    run: AtomicU64,
    failure: Mutex<Option<Error>>,
}

fn of_lua(error: &ScriptError) -> Error {
    Error::other(error.to_string())
}

impl Load {
    fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.cancel.load(Ordering::Relaxed)
    }

    /// Keeps the first error: those of threads that were stopped say nothing new.
    fn fail(&self, error: Error) {
        if !self.stop.swap(true, Ordering::Relaxed) {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }

    /// Loads on some threads, and looks after them until all have ended or were given up.
    fn run(self: &Arc<Self>, threads: usize, limit: Duration, progress: &mut dyn FnMut(u32)) {
        let (telling, news) = channel();
        let mut watchdog = Watchdog::new(limit.as_nanos() as Nanos, Arc::default(), "the function of w:load");
        let spawn = |number| {
            let (load, telling) = (Arc::clone(self), telling.clone());
            std::thread::Builder::new().name("load".to_owned()).spawn(move || load.work(number, &telling))
        };
        let spawned: Result<Vec<_>, _> = (0..threads).map(spawn).collect();
        let workers = spawned.unwrap_or_else(|error| {
            self.fail(Error::other(format!("no thread for w:load: {error}")));
            Vec::new()
        });
        loop {
            for (number, watched) in news.try_iter() {
                watchdog.watch(number, watched);
            }
            if self.must_stop() {
                watchdog.hurry();
            }
            if let Some((_, message)) = watchdog.look() {
                self.fail(Error::other(message));
            }
            let mut at_work = workers.iter().enumerate();
            if at_work.all(|(number, thread)| thread.is_finished() || watchdog.has_given_up(number)) {
                break;
            }
            progress(self.done.load(Ordering::Relaxed));
            std::thread::sleep(Duration::from_nanos(LOOK));
        }
    }

    /// One thread's share.
    fn work(&self, number: usize, telling: &Sender<(usize, Watched)>) {
        let share = AssertUnwindSafe(|| self.take_parts(number, telling));
        let died = |_| Err(Error::other("a thread of w:load died; standard error says why"));
        if let Err(error) = catch_unwind(share).unwrap_or_else(died) {
            self.fail(error);
        }
    }

    fn take_parts(&self, number: usize, telling: &Sender<(usize, Watched)>) -> Result<(), Error> {
        let runtime =
            Runtime::new().map_err(|error| Error::other(format!("no runtime for w:load: {error}")))?;
        let (vm, _) = Vm::new(&self.source, &self.keys, true).map_err(|error| of_lua(&error))?;
        let watched = Watched::new(runtime.turns(), vec![(vm.watch(), 0)]);
        // Who listens ends after this thread.
        let _ = telling.send((number, watched.map_err(|error| Error::other(error.to_string()))?));
        let connection = runtime.block_on(self.driver.connect(&runtime, &self.statements));
        let connection = connection.map_err(|error| error.context("connecting for w:load"))?;
        let mut worker = Worker { load: self, runtime: &runtime, connection, queued: 0, next_look: 0 };
        while !self.must_stop() {
            let part = self.next.fetch_add(1, Ordering::Relaxed);
            if part > self.parts {
                break;
            }
            let place = format!("w:load, part {part} of {}", self.parts);
            worker.part(&vm, part).map_err(|error| error.context(&place))?;
            self.done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// One thread of the load.
struct Worker<'l> {
    load: &'l Load,
    runtime: &'l Runtime,
    connection: Box<dyn Connection>,
    /// How many commands wait to be sent.
    queued: u32,
    /// When the runtime has its next turn, whether or not there is anything to wait for.
    next_look: Nanos,
}

impl Worker<'_> {
    /// Runs a part from its beginning to its end.
    fn part(&mut self, vm: &Vm, part: u32) -> Result<(), Error> {
        let script = vm.script(self.load.source.seed(), part.into());
        let mut script = script.map_err(|error| of_lua(&error))?;
        let mut step = script.begin_part(part, self.load.parts);
        loop {
            match step {
                Step::Call { command, want, flush } => {
                    self.connection.queue(command, script.params(), want)?;
                    self.queued += 1;
                    if let Command::Execute(_) = command {
                        self.load.run.fetch_add(1, Ordering::Relaxed);
                    }
                    let send = flush || self.queued >= MOST_QUEUED;
                    let reply = if send { self.flush(&mut script)? } else { Reply::default() };
                    step = script.resume(reply);
                }
                Step::Query { want, flush } => {
                    let place = self.place(&mut script, flush)?;
                    self.connection.queue(Command::Execute(place), script.params(), want)?;
                    self.queued += 1;
                    self.load.run.fetch_add(1, Ordering::Relaxed);
                    let send = flush || self.queued >= MOST_QUEUED;
                    let reply = if send { self.flush(&mut script)? } else { Reply::default() };
                    step = script.resume(reply);
                }
                Step::Flush => {
                    let reply = self.flush(&mut script)?;
                    step = script.resume(reply);
                }
                Step::Done { .. } | Step::Skipped => break,
                Step::Failed(error) => return Err(of_lua(&error)),
            }
        }
        if self.queued > 0 {
            self.flush(&mut script)?;
        }
        if self.connection.state() != ConnectionState::Idle {
            let message =
                "the function returned within a transaction: tx:commit() or tx:rollback() is missing";
            return Err(Error::other(message));
        }
        if script.take_tallies().next().is_some() {
            return Err(Error::other("tx:tally is for transactions; w:load cannot use it"));
        }
        Ok(())
    }

    /// Makes the statement known that the script has made; gives its place.
    fn place(&mut self, script: &mut Script, alone: bool) -> Result<usize, Error> {
        loop {
            match self.connection.add(script.query()?, alone)? {
                Added::Ready(place) => return Ok(place),
                Added::Asked(place) => return self.flush(script).map(|_| place),
                Added::Full => self.flush(script)?,
            };
        }
    }

    /// Sends what is queued and waits for the replies, until the load is to end.
    fn flush(&mut self, script: &mut Script) -> Result<Reply, Error> {
        self.queued = 0;
        let Self { load, runtime, connection, next_look, .. } = self;
        if clock::now() >= *next_look {
            // The watchdog sees that it goes on, although an embedded database never lets it wait.
            runtime.block_on(Yield::default());
            *next_look = clock::now() + LOOK;
        }
        connection.set_deadline(Nanos::MAX);
        let mut look = runtime.sleep_until(clock::now());
        let replies = poll_fn(|cx| {
            while Pin::new(&mut look).poll(cx).is_ready() {
                if load.must_stop() {
                    return Poll::Ready(None);
                }
                look = runtime.sleep_until(clock::now() + LOOK);
            }
            connection.poll_replies(cx, script.rows()).map(Some)
        });
        match runtime.block_on(replies) {
            Some(replied) => replied,
            None => {
                runtime.block_on(connection.cancel());
                Err(Error::other("the load was interrupted"))
            }
        }
    }
}
