//! Probes of replication lag: markers are committed on the endpoint that takes writes, on a schedule that waits for
//! nobody, and looked for on every replica without a pause (METRICS, section 3, C).
//!
//! With c the commit's acknowledgement, n the sending of the last poll that did not see the marker and p the answer
//! of the first that did, the lag lies in [max(0, n − c), p − c]. Polls begin when the commit is sent, so that a marker
//! which is there at once is seen at once.
//!
//! Each marker has its place in the schedule, and so stands for as much time as any other: a replica that stalls delays
//! what is seen of the markers on their way, and none of those that follow. A marker that is not seen within the limit
//! lags by at least that. One whose turn to be committed does not come within the limit is missing, and told.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use nephoscope_drivers::{ConnectionState, Error, Statement, Want};
use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{self, Nanos, SECOND};
use nephoscope_script::Random;

use crate::probes::lane::{Endpoint, Lane};
use crate::probes::marker::{Commit, Common, Found, KINDS, Marker, Stock};
use crate::probes::replica::Replica;
use crate::probes::sample::{Journal, Kind, Outcome};
use crate::probes::spec::{FIRST_CONNECTION, LagSpec};
use crate::waits::Event;

/// The index of the statement that makes the stock, behind those of the kinds.
const MAKE_STOCK: usize = KINDS.len();
/// How long markers that are on their way are still looked for at the end.
const LAST_LOOK: Nanos = SECOND;
/// So many commits are on their way at a time, each on a connection of its own; further markers wait for their turn.
const WRITERS: usize = 4;
/// The golden ratio's fraction. Its multiples, cut to their fractions, lie evenly, in step with nothing.
const GOLDEN: f64 = 0.618_033_988_749_894_9;
/// The silver ratio's, for the same with the order of kinds.
const SILVER: f64 = 0.414_213_562_373_095_1;

/// When a marker or a write is intended to be sent, after the first interval's beginning: somewhere in its own interval, so
/// that they do not fall into step with what the server does periodically. Two of them are never closer together than 0.6
/// intervals, and those of each kind lie evenly, too.
pub(crate) fn intended(number: u64, interval: f64, phase: f64) -> Nanos {
    let place = (phase + number as f64 * GOLDEN).fract();
    ((number as f64 + place) * interval) as Nanos
}

/// The kind of a marker. Of three markers each is of another, in an order that changes, so that no kind is in step with
/// what comes every so often.
fn kind(number: u64) -> Kind {
    let turns = KINDS.len() as u64;
    let first = ((number / turns) as f64 * SILVER).fract() * turns as f64;
    KINDS[((number + first as u64) % turns) as usize]
}

/// The lag probe of a system.
pub(crate) struct LagProbe {
    runtime: Runtime,
    common: Rc<Common>,
    primary: Rc<Endpoint>,
    replicas: Vec<Rc<Replica>>,
    changes: Arc<[Statement]>,
    stock: RefCell<Stock>,
    /// Of the schedule, in intervals.
    phase: f64,
    /// Markers that are due and have not been sent: their numbers, and when they were due.
    due: RefCell<VecDeque<(u64, Nanos)>>,
    /// Connections that are free to commit by, and how many are busy.
    writers: RefCell<Vec<Lane>>,
    writing: Cell<usize>,
    stopping: Event,
    ended: Cell<bool>,
}

impl LagProbe {
    pub(crate) fn new(
        runtime: &Runtime,
        primary: &Rc<Endpoint>,
        replicas: &[Rc<Endpoint>],
        spec: LagSpec,
        seed: u64,
        journal: &Rc<Journal>,
    ) -> Self {
        let dialect = primary.driver.dialect();
        let (lexer, probes) = (dialect.lexer, &dialect.probes);
        let statements = [
            ("insert", probes.insert),
            ("update", probes.update),
            ("delete", probes.delete),
            ("stock", probes.stock),
        ]
        .map(|(name, sql)| Statement::read(name, sql, lexer));
        let common = Common { spec, journal: Rc::clone(journal), stops: Cell::new(Nanos::MAX) };
        Self {
            runtime: runtime.clone(),
            common: Rc::new(common),
            primary: Rc::clone(primary),
            replicas: replicas.iter().map(|endpoint| Rc::new(Replica::new(endpoint))).collect(),
            changes: Arc::new(statements),
            stock: RefCell::new(Stock::new(spec.turns())),
            phase: Random::new(seed, 0).uniform(),
            due: RefCell::default(),
            writers: RefCell::default(),
            writing: Cell::new(0),
            stopping: Event::default(),
            ended: Cell::new(false),
        }
    }

    /// Makes the connections and the stock of rows, and waits for it on the replicas. An error is for whoever starts the
    /// probes.
    pub(crate) async fn get_ready(&self) -> Result<(), Error> {
        let spec = &self.common.spec;
        let connected = || clock::now() + spec.poll_limit().max(FIRST_CONNECTION);
        let deadline = clock::now() + spec.setup_limit();
        let mut writer = self.connect(connected()).await?;
        let last = self.stock.borrow().last();
        writer.ask(MAKE_STOCK, &[1, last], Want::Count, deadline).await?;
        self.writers.borrow_mut().push(writer);
        for replica in &self.replicas {
            replica.get_ready(&self.runtime, connected(), last, deadline).await?;
        }
        Ok(())
    }

    async fn connect(&self, deadline: Nanos) -> Result<Lane, Error> {
        Lane::connect(&*self.primary.driver, &self.runtime, &self.changes, deadline).await
    }

    /// No further marker is sent.
    pub(crate) fn stop(&self) {
        self.common.stops.set(clock::now() + LAST_LOOK);
        self.stopping.happen();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.ended.get() && self.writing.get() == 0 && self.replicas.iter().all(|replica| replica.is_idle())
    }

    /// Sends markers by their schedule until it is stopped.
    pub(crate) async fn run(self: Rc<Self>) {
        for replica in &self.replicas {
            let watch = Rc::clone(replica).watch(self.runtime.clone(), Rc::clone(&self.common));
            self.runtime.spawn(watch);
        }
        let (start, interval) = (clock::now(), self.common.spec.interval());
        for number in 0.. {
            let due = start + intended(number, interval, self.phase);
            self.stopping.wait_until(&self.runtime, due).await;
            if self.stopping.has_happened() {
                break;
            }
            self.due.borrow_mut().push_back((number, due));
            self.send();
        }
        for (number, due) in self.due.take() {
            self.is_missing(number, due);
        }
        self.ended.set(true);
    }

    /// Sends the markers that are due, as far as there are connections for them.
    fn send(self: &Rc<Self>) {
        while self.writing.get() < WRITERS {
            let next = self.due.borrow_mut().pop_front();
            let Some((number, due)) = next else { return };
            if clock::now() > due + self.common.spec.limit() {
                self.is_missing(number, due);
                continue;
            }
            self.writing.set(self.writing.get() + 1);
            let this = Rc::clone(self);
            self.runtime.spawn(async move {
                this.mark(number).await;
                this.writing.set(this.writing.get() - 1);
                this.send();
            });
        }
    }

    /// A marker that could not be sent within the limit has a sample, too.
    fn is_missing(&self, number: u64, due: Nanos) {
        let marker = Marker::new(number, (kind(number), 0));
        self.common.add_unsent(&marker, &self.primary, due);
    }

    /// Commits a marker, and lets every replica look for it.
    async fn mark(&self, number: u64) {
        let free = self.writers.borrow_mut().pop();
        let writer = match free {
            Some(writer) => Ok(writer),
            None => self.connect(clock::now() + self.common.spec.poll_limit()).await,
        };
        let marker = Rc::new(Marker::new(number, self.stock.borrow_mut().take(kind(number))));
        let failed = |error: Error| {
            let outcome = Outcome::Failed(error.class());
            self.common.add(&marker, &self.primary, &Found::failed(marker.sent, outcome));
        };
        let mut writer = match writer {
            Ok(writer) => writer,
            Err(error) => return failed(error),
        };
        self.replicas.iter().for_each(|replica| replica.look_for(&marker));
        match self.commit(&mut writer, &marker).await {
            Ok(acknowledged) => {
                marker.commit.set(Commit::Acknowledged(acknowledged));
                self.stock.borrow_mut().committed(&marker);
            }
            Err(error) => {
                marker.commit.set(Commit::Failed);
                failed(error);
            }
        }
        self.replicas.iter().for_each(|replica| replica.wake());
        if writer.state() == ConnectionState::Waiting {
            // A primary that stands still is not to be given one connection after the other.
            writer.linger((clock::now() + self.common.spec.limit()).min(self.common.stops.get())).await;
        }
        if writer.state() == ConnectionState::Idle {
            self.writers.borrow_mut().push(writer);
        }
    }

    /// Commits a marker; tells when that was acknowledged.
    async fn commit(&self, writer: &mut Lane, marker: &Marker) -> Result<Nanos, Error> {
        let (index, values) = match marker.kind {
            Kind::Insert => (0, &[marker.row, marker.value()][..]),
            Kind::Update => (1, &[marker.value(), marker.row][..]),
            _ => (2, &[marker.row][..]),
        };
        let deadline = marker.sent + self.common.spec.limit();
        let reply = writer.ask(index, values, Want::Count, deadline).await?;
        let acknowledged = clock::now();
        if reply.affected != 1 {
            return Err(Error::other("the marker's row is gone"));
        }
        Ok(acknowledged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_spread_over_their_intervals_and_keep_their_distance() {
        let times: Vec<Nanos> = (0..3000).map(|number| intended(number, 1000.0, 0.25)).collect();
        for (number, time) in times.iter().enumerate() {
            assert!((number as Nanos * 1000..number as Nanos * 1000 + 1000).contains(time));
        }
        assert!(times.windows(2).all(|pair| (600..1700).contains(&(pair[1] - pair[0]))));
        for of in KINDS {
            // Whatever comes every so often is met at all of its phases, by each kind.
            for period in [1000, 3000, 9000] {
                let mut of_tenth = [0; 10];
                for (_, time) in times.iter().enumerate().filter(|(number, _)| kind(*number as u64) == of) {
                    of_tenth[(time % period * 10 / period) as usize] += 1;
                }
                assert!(of_tenth.iter().all(|count| (85..=115).contains(count)), "{period}: {of_tenth:?}");
            }
        }
    }
}
