//! Probes of replication lag: markers are committed on the endpoint that takes writes, and looked for on every replica
//! without a pause (METRICS, section 3, C).
//!
//! With c the commit's acknowledgement, n the sending of the last poll that did not see the marker and p the answer
//! of the first that did, the lag lies in [max(0, n − c), p − c]. Polls begin when the commit is sent, so that a marker
//! which is there at once is seen at once.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use nephoscope_drivers::probe_tables::{DELETE, INSERT, POLL, UPDATE};
use nephoscope_drivers::{ConnectionState, Error, ErrorClass, Statement, Want};
use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{self, MILLISECOND, Nanos, SECOND};
use nephoscope_script::Random;

use crate::probes::lane::{Endpoint, Event, Lane};
use crate::probes::sample::{Journal, Kind, Outcome, Sample};
use crate::probes::spec::{FIRST_CONNECTION, LagSpec};

/// The kinds in their turn: each marker is inserted, updated and deleted.
const KINDS: [Kind; 3] = [Kind::Insert, Kind::Update, Kind::Delete];
/// Between two attempts at a connection that cannot be made.
const RETRY: Nanos = 100 * MILLISECOND;
/// How long markers that are on their way are still looked for at the end.
const LAST_LOOK: Nanos = SECOND;

/// A change of a marker, on its way to the replicas.
struct Change {
    kind: Kind,
    id: i64,
    /// The marker's number from now on.
    value: i64,
    /// The number of the change among all, for samples.
    number: u64,
    sent: Nanos,
    /// When the commit was acknowledged.
    acknowledged: Cell<Option<Nanos>>,
    /// It was acknowledged, or has failed.
    settled: Event,
    /// Replicas that still look for it.
    looking: Cell<usize>,
    found: Event,
}

impl Change {
    fn has_failed(&self) -> bool {
        self.settled.has_happened() && self.acknowledged.get().is_none()
    }

    fn leave(&self) {
        self.looking.set(self.looking.get() - 1);
        if self.looking.get() == 0 {
            self.found.happen();
        }
    }
}

/// How looking for a change ended on a replica.
struct Look {
    /// When the last poll was sent that did not see it.
    unseen: Option<Nanos>,
    /// When the first answer came that showed it, the error, or the end of patience.
    end: Nanos,
    outcome: Outcome,
    polls: u64,
}

/// One read-only endpoint.
struct Replica {
    endpoint: Rc<Endpoint>,
    lane: RefCell<Option<Lane>>,
    /// The marker that was seen there last.
    present: Cell<Option<i64>>,
    /// The marker that was looked for there last and did not come.
    missed: Cell<Option<i64>>,
    connecting: Cell<bool>,
}

impl Replica {
    /// Whether it can tell when a change comes. That a marker is not there says that it was deleted only if it has
    /// been seen, and that it was not yet only if it was looked for before: changes come in their order.
    fn can_tell(&self, change: &Change) -> bool {
        let id = Some(change.id);
        change.kind != Kind::Delete || self.present.get() == id || self.missed.get() == id
    }
}

/// The lag probe of a system.
pub(crate) struct LagProbe {
    runtime: Runtime,
    spec: LagSpec,
    journal: Rc<Journal>,
    primary: Rc<Endpoint>,
    writer: RefCell<Option<Lane>>,
    replicas: Vec<Rc<Replica>>,
    changes: Arc<[Statement]>,
    poll: Arc<[Statement]>,
    random: RefCell<Random>,
    numbers: Cell<u64>,
    /// No further change is made; those on their way are looked for until then.
    stops: Cell<Nanos>,
    stopping: Event,
    ended: Event,
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
        let replica = |endpoint: &Rc<Endpoint>| {
            Rc::new(Replica {
                endpoint: Rc::clone(endpoint),
                lane: RefCell::default(),
                present: Cell::default(),
                missed: Cell::default(),
                connecting: Cell::default(),
            })
        };
        let statements = [("insert", INSERT), ("update", UPDATE), ("delete", DELETE)]
            .map(|(name, sql)| Statement::new(name, sql));
        Self {
            runtime: runtime.clone(),
            spec,
            journal: Rc::clone(journal),
            primary: Rc::clone(primary),
            writer: RefCell::default(),
            replicas: replicas.iter().map(replica).collect(),
            changes: Arc::new(statements),
            poll: Arc::new([Statement::new("poll", POLL)]),
            random: RefCell::new(Random::new(seed, 0)),
            numbers: Cell::new(0),
            stops: Cell::new(Nanos::MAX),
            stopping: Event::default(),
            ended: Event::default(),
        }
    }

    /// Makes the connections. An error is for whoever starts the probes.
    pub(crate) async fn get_ready(&self) -> Result<(), Error> {
        let limit = self.spec.poll_limit().max(FIRST_CONNECTION);
        self.writer.replace(Some(self.connect(&self.primary, &self.changes, limit).await?));
        for replica in &self.replicas {
            let lane = self.connect(&replica.endpoint, &self.poll, limit).await?;
            replica.lane.replace(Some(lane));
        }
        Ok(())
    }

    async fn connect(
        &self,
        endpoint: &Endpoint,
        statements: &Arc<[Statement]>,
        limit: Nanos,
    ) -> Result<Lane, Error> {
        Lane::connect(&*endpoint.driver, &self.runtime, statements, clock::now() + limit).await
    }

    /// No further change is made.
    pub(crate) fn stop(&self) {
        self.stops.set(clock::now() + LAST_LOOK);
        self.stopping.happen();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.ended.has_happened()
    }

    /// Changes one marker after the other until it is stopped.
    pub(crate) async fn run(self: Rc<Self>) {
        let mut id = 0;
        while !self.stopping.has_happened() {
            id += 1;
            for kind in KINDS {
                let done = !self.stopping.has_happened() && self.change(kind, id).await;
                self.pause().await;
                if !done {
                    // What became of the marker is not known: the next one is another.
                    break;
                }
            }
        }
        self.ended.happen();
    }

    /// A pause of chance length: a constant one could fall into step with what the server does periodically.
    async fn pause(&self) {
        let mean = self.spec.pause_ms * MILLISECOND as f64;
        let pause = (mean * (0.5 + self.random.borrow_mut().uniform())) as Nanos;
        self.stopping.wait_until(&self.runtime, clock::now() + pause).await;
    }

    /// Commits a change and lets every replica look for it; tells whether it was committed.
    async fn change(self: &Rc<Self>, kind: Kind, id: i64) -> bool {
        let number = self.numbers.replace(self.numbers.get() + 1);
        let writer = self.writer.take();
        let writer = match writer {
            Some(writer) => Ok(writer),
            None => self.connect(&self.primary, &self.changes, self.spec.poll_limit()).await,
        };
        let change = Rc::new(Change {
            kind,
            id,
            value: number as i64,
            number,
            sent: clock::now(),
            acknowledged: Cell::default(),
            settled: Event::default(),
            looking: Cell::new(1),
            found: Event::default(),
        });
        let committed = match writer {
            Ok(writer) => {
                self.send_looks(&change);
                self.commit(writer, &change).await
            }
            Err(error) => Err(error),
        };
        if committed.is_err() {
            let outcome = Outcome::from(&committed);
            self.add(&change, &self.primary, change.sent, (None, None), clock::now(), outcome, 0);
        }
        change.settled.happen();
        change.leave();
        change.found.wait().await;
        committed.is_ok()
    }

    fn send_looks(self: &Rc<Self>, change: &Rc<Change>) {
        for replica in self.replicas.iter().filter(|replica| replica.can_tell(change)) {
            let lane = replica.lane.take();
            let (this, replica, change) = (Rc::clone(self), Rc::clone(replica), Rc::clone(change));
            if let Some(lane) = lane {
                change.looking.set(change.looking.get() + 1);
                self.runtime.spawn(async move { this.look(&replica, lane, &change).await });
            } else if !replica.connecting.replace(true) {
                self.runtime.spawn(async move { this.reconnect(&replica, &change).await });
            }
        }
    }

    async fn commit(&self, mut writer: Lane, change: &Change) -> Result<(), Error> {
        let (place, values) = match change.kind {
            Kind::Insert => (0, &[change.id, change.value][..]),
            Kind::Update => (1, &[change.value, change.id][..]),
            _ => (2, &[change.id][..]),
        };
        let reply = writer.ask(place, values, Want::Count, change.sent + self.spec.limit()).await?;
        let acknowledged = clock::now();
        self.writer.replace(Some(writer));
        if reply.affected != 1 {
            return Err(Error::other("the marker is gone"));
        }
        change.acknowledged.set(Some(acknowledged));
        Ok(())
    }

    /// Polls a replica until it shows a change.
    async fn look(&self, replica: &Rc<Replica>, mut lane: Lane, change: &Rc<Change>) {
        let look = self.poll(replica, &mut lane, change).await;
        if look.outcome == Outcome::NotSeen {
            replica.missed.set(Some(change.id));
        }
        if lane.state() == ConnectionState::Idle {
            replica.lane.replace(Some(lane));
        }
        // What is seen before it is acknowledged may still fail.
        change.settled.wait().await;
        if let Some(acknowledged) = change.acknowledged.get() {
            let since = |time: Nanos| time.saturating_sub(acknowledged);
            let lower = look.unseen.map_or(0, since);
            let bounds = match look.outcome {
                Outcome::Ok => (Some(lower), Some(since(look.end))),
                _ => (Some(lower), None),
            };
            self.add(change, &replica.endpoint, acknowledged, bounds, look.end, look.outcome, look.polls);
        }
        change.leave();
    }

    async fn poll(&self, replica: &Replica, lane: &mut Lane, change: &Change) -> Look {
        let mut look = Look { unseen: None, end: 0, outcome: Outcome::NotSeen, polls: 0 };
        loop {
            let sent = clock::now();
            let reply = lane.ask(0, &[change.id], Want::Rows, sent + self.spec.poll_limit()).await;
            look.end = clock::now();
            look.polls += 1;
            let found = match reply {
                Ok(reply) => lane.number(reply),
                // A replica ends a look that is in the way of what it replays: that says nothing of the marker.
                Err(error)
                    if error.class() == ErrorClass::Serialization
                        && lane.state() == ConnectionState::Idle
                        && !self.is_given_up(change, look.end) =>
                {
                    continue;
                }
                Err(error) => {
                    look.outcome = Outcome::Failed(error.class());
                    return look;
                }
            };
            if found.is_some() {
                replica.present.set(Some(change.id));
            }
            let shown = match change.kind {
                Kind::Delete => found.is_none() && replica.present.get() == Some(change.id),
                _ => found.is_some_and(|number| number >= change.value),
            };
            if shown {
                look.outcome = Outcome::Ok;
                return look;
            }
            look.unseen = Some(sent);
            if self.is_given_up(change, look.end) {
                return look;
            }
        }
    }

    /// Whether a change is not looked for any more.
    fn is_given_up(&self, change: &Change, now: Nanos) -> bool {
        change.has_failed() || now >= self.patience(change)
    }

    /// Until when a change is looked for.
    fn patience(&self, change: &Change) -> Nanos {
        let acknowledged = change.acknowledged.get().map_or(Nanos::MAX, |at| at + self.spec.limit());
        acknowledged.min(self.stops.get())
    }

    /// Makes a replica's connection anew, however often that takes; each attempt that fails is a sample.
    async fn reconnect(self: &Rc<Self>, replica: &Rc<Replica>, change: &Rc<Change>) {
        while !self.stopping.has_happened() {
            let began = clock::now();
            match self.connect(&replica.endpoint, &self.poll, self.spec.poll_limit()).await {
                Ok(lane) => {
                    replica.lane.replace(Some(lane));
                    break;
                }
                Err(error) => {
                    let outcome = Outcome::Failed(error.class());
                    self.add(change, &replica.endpoint, began, (None, None), clock::now(), outcome, 0);
                }
            }
            self.stopping.wait_until(&self.runtime, clock::now() + RETRY).await;
        }
        replica.connecting.set(false);
    }

    #[allow(clippy::too_many_arguments)] // A sample has so many parts.
    fn add(
        &self,
        change: &Change,
        endpoint: &Endpoint,
        time: Nanos,
        (lower, upper): (Option<Nanos>, Option<Nanos>),
        end: Nanos,
        outcome: Outcome,
        polls: u64,
    ) {
        self.journal.add(Sample {
            kind: change.kind,
            endpoint: endpoint.place,
            number: change.number,
            time,
            sent: Some(change.sent),
            end: Some(end),
            outcome,
            lower,
            upper,
            polls,
        });
    }
}
