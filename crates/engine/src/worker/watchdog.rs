//! The watchdog: a transaction whose Lua has no end is ended, and the run with it.
//!
//! A worker is suspect when it has used processor time, a tenth of the limit, within one turn of its loop: that is
//! there to be read, and nothing is done for it on a transaction's path. It is asked by a signal, then, which
//! transaction's Lua runs, and again and again as long as the turn lasts; one that has used as much as the limit since
//! it was found first has no end. A wait for a database ends the turn, so however long it takes it is not meant;
//! neither is a thread that does not run, for a stopped process or a machine with too much to do gives it no processor
//! time; neither are many transactions that take a little each.
//!
//! The Lua of such a transaction is interrupted, and the worker itself tells of the error. What cannot be interrupted
//! is a function of Lua's library that does not return, as `string.find` with a pattern that matches in too many
//! ways: then the worker is given up. Its thread cannot be ended from outside without harm to the process, so it is
//! left behind, detached: it holds nothing that others wait for, and ends with the process; if it comes to itself
//! before that, it fails its transaction and finds that the run is over. Its open interval is lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nephoscope_runtime::clock::ThreadClock;
use nephoscope_runtime::{Nanos, Turns};
use nephoscope_script::{Running, Watch};

use crate::error::EngineError;

/// How often workers are looked at within the limit.
const LOOKS: u32 = 10;
/// How often a transaction is interrupted in vain until its worker is given up; a tenth of the limit lies between.
const ATTEMPTS: u64 = 5;
/// What part of the limit is left to other transactions when one has failed.
const HURRY: Nanos = 20;

/// How a worker is watched.
pub(crate) struct Watched {
    turns: Turns,
    cpu: ThreadClock,
    /// The state of each tenant, and its first series.
    scripts: Vec<(Watch, usize)>,
}

impl Watched {
    /// To be made by the worker's thread.
    pub(crate) fn new(turns: Turns, scripts: Vec<(Watch, usize)>) -> Result<Self, EngineError> {
        let cpu = ThreadClock::of_this_thread()
            .map_err(|error| EngineError::Failed(format!("no processor time of a worker: {error}")))?;
        Ok(Self { turns, cpu, scripts })
    }
}

/// A worker, and what was seen of it.
struct Worker {
    number: usize,
    watched: Watched,
    /// The turn of its loop that was seen last, and its processor time when that was seen first.
    turn: Nanos,
    turn_since: Nanos,
    suspect: Option<Suspect>,
    given_up: bool,
}

/// A transaction that was found running in one turn.
struct Suspect {
    /// In which tenant's state.
    state: usize,
    running: Running,
    /// The worker's processor time when it was found first.
    since: Nanos,
    /// How often it was interrupted.
    attempts: u64,
}

/// Looks after the workers of a run.
pub(crate) struct Watchdog {
    limit: Nanos,
    /// What is left of the limit.
    patience: Nanos,
    next: Instant,
    workers: Vec<Worker>,
    /// The series' transactions, as messages name them.
    transactions: Arc<[String]>,
    /// The name of a function that is no transaction.
    other: &'static str,
}

impl Watchdog {
    /// `limit` is the longest that a transaction may run without a wait, in processor time.
    pub(crate) fn new(limit: Nanos, transactions: Arc<[String]>, other: &'static str) -> Self {
        Self { limit, patience: limit, next: Instant::now(), workers: Vec::new(), transactions, other }
    }

    /// Watches a worker, too.
    pub(crate) fn watch(&mut self, number: usize, watched: Watched) {
        let (turn, turn_since) = (Nanos::MAX, 0);
        self.workers.push(Worker { number, watched, turn, turn_since, suspect: None, given_up: false });
    }

    /// Whether a worker was given up.
    pub(crate) fn has_given_up(&self, number: usize) -> bool {
        self.workers.iter().any(|worker| worker.number == number && worker.given_up)
    }

    /// The run has failed: transactions that are still in flight may have no end either, one after the other.
    pub(crate) fn hurry(&mut self) {
        self.patience = self.limit / HURRY;
    }

    /// To be called often. Interrupts what has no end; gives a worker that is given up now, and why.
    pub(crate) fn look(&mut self) -> Option<(usize, String)> {
        let step = self.patience / Nanos::from(LOOKS);
        if Instant::now() < self.next {
            return None;
        }
        let found = self.workers.iter_mut().find_map(|worker| {
            let series = worker.look(self.limit, self.patience, step)?;
            Some((worker.number, series))
        });
        if let Some((number, series)) = found {
            // The others have their turn at once.
            return Some((number, self.message(series)));
        }
        self.next = Instant::now() + Duration::from_nanos(step);
        None
    }

    fn message(&self, series: usize) -> String {
        let name = self.transactions.get(series).map_or(self.other, String::as_str);
        let seconds = Duration::from_nanos(self.limit).as_secs_f64();
        format!(
            "{name}: it has run for {seconds} s without an end, and is within a function of Lua's library that cannot \
             be interrupted; is this a pattern that matches in too many ways?"
        )
    }
}

impl Worker {
    /// Looks whether it goes on; gives the series of the transaction with which it is given up.
    fn look(&mut self, limit: Nanos, patience: Nanos, step: Nanos) -> Option<usize> {
        // A thread that has ended has no clock.
        let cpu = self.watched.cpu.read().filter(|_| !self.given_up)?;
        let turn = self.watched.turns.began();
        if turn != self.turn {
            (self.turn, self.turn_since, self.suspect) = (turn, cpu, None);
            return None;
        }
        if cpu - self.turn_since < step {
            return None;
        }
        let condemned = self.suspect.as_ref().filter(|one| cpu - one.since >= patience + one.attempts * step);
        let ask = |state: usize, watch: &Watch| match condemned {
            Some(one) if one.state == state => {
                watch.interrupt(one.running.number, Duration::from_nanos(limit))
            }
            _ => watch.running(),
        };
        // Between two statements no Lua runs: who was found before stays suspect.
        let mut states = self.watched.scripts.iter().enumerate();
        let (state, running) = states.find_map(|(state, (watch, _))| Some((state, ask(state, watch)?)))?;
        let attempt = Nanos::from(condemned.is_some());
        let suspect = match self.suspect.take() {
            Some(one) if (one.state, one.running) == (state, running) => {
                Suspect { attempts: one.attempts + attempt, ..one }
            }
            _ => Suspect { state, running, since: cpu, attempts: 0 },
        };
        self.given_up = suspect.attempts > ATTEMPTS;
        self.suspect = Some(suspect);
        self.given_up.then(|| self.watched.scripts[state].1.saturating_add(running.index))
    }
}
