//! Probes of consistency: sessions that write versions to registers, and sessions that read them, each on a schedule and
//! by connections of its own (METRICS, section 4; runtime quality framework, III-B).
//!
//! * `writer`, `session`: who writes and reads; `access`: in which words.
//! * `register`: what is written; `observations`: what is checked of a read; `visibility`, `fork`: two of the checks.
//! * `counts`: what checks add up to.

mod access;
mod counts;
mod fork;
mod observations;
mod register;
mod session;
mod visibility;
mod writer;

use std::cell::RefCell;
use std::rc::Rc;

use nephoscope_drivers::{Error, ErrorClass};
use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{self, MILLISECOND, Nanos};
use nephoscope_script::Random;

use crate::probes::lane::{Endpoint, Lane};
use crate::probes::sample::Journal;
use crate::probes::spec::{ConsistencySpec, FIRST_CONNECTION, Routing};
use crate::waits::Event;
use access::{Access, Order};
use observations::{Observations, Sent};
use session::{Follower, Session, Way};
use writer::{Writer, Written};

/// How long a slice of counts is.
const SLICE: Nanos = 500 * MILLISECOND;

/// What all sessions have in common.
pub(crate) struct Common {
    runtime: Runtime,
    spec: ConsistencySpec,
    access: Access,
    observations: RefCell<Observations>,
    stopping: Event,
}

impl Common {
    /// Keeps what became of a write to the register itself.
    fn settle(&self, sent: &Sent, written: Written) {
        let mut observations = self.observations.borrow_mut();
        match written {
            Written::At(at) => observations.acknowledge(sent, at),
            Written::Failed(class) => observations.fail(sent, class, clock::now()),
        }
    }

    /// Writes a row of a register, and gives the register up where nobody knows what became of that.
    async fn put(&self, lane: &mut Lane, sent: &Sent, cell: usize) -> Written {
        let is_there = self.observations.borrow().is_there(sent, cell);
        let row = (sent.base + cell as i64, sent.version);
        let written = self.access.write(lane, row, is_there, sent.at + self.spec.limit()).await;
        let now = clock::now();
        let mut observations = self.observations.borrow_mut();
        match written {
            Ok(()) => {
                observations.stored(sent, cell);
                Written::At(now)
            }
            Err(error) => {
                // A row that is gone does not come back, either.
                if error.outcome_unknown() || is_there && error.class() == ErrorClass::Other {
                    observations.retire(sent, now);
                }
                Written::Failed(error.class())
            }
        }
    }
}

/// The consistency probe of a system.
pub(crate) struct ConsistencyProbe {
    common: Rc<Common>,
    primary: Rc<Endpoint>,
    sessions: Vec<Rc<Session>>,
    writers: Vec<Rc<Writer>>,
}

impl ConsistencyProbe {
    /// Probes of some endpoints: the one that takes writes, and those that are read.
    pub(crate) fn new(
        runtime: &Runtime,
        primary: &Rc<Endpoint>,
        read: &[Rc<Endpoint>],
        spec: ConsistencySpec,
        seed: u64,
        journal: &Rc<Journal>,
    ) -> Self {
        let nodes = (read.iter().map(|endpoint| endpoint.index).collect(), primary.index);
        let observations = Observations::new(spec.keys, nodes, spec.long_fork, spec.limit(), journal);
        let common = Rc::new(Common {
            runtime: runtime.clone(),
            access: Access::new(primary.driver.dialect()),
            observations: RefCell::new(observations),
            stopping: Event::default(),
            spec,
        });
        let keys_of = |writer: usize| (writer..spec.keys).step_by(spec.writers).collect::<Vec<_>>();
        let mut random = Random::new(seed, 0);
        let writer = |place| Rc::new(Writer::new(place, keys_of(place), primary, random.uniform()));
        let writers = (0..spec.writers).map(writer).collect();
        let readers = (0..spec.readers).map(|place| {
            let followed: Vec<usize> = (place..spec.keys).step_by(spec.readers).collect();
            let follower = !followed.is_empty() && !spec.long_fork;
            let follower = follower.then(|| Rc::new(Follower::new(primary, followed, spec.keys)));
            session(&spec, read, place, (0..spec.keys).collect(), follower)
        });
        // A session that writes reads its own registers.
        let own =
            (0..spec.writers).map(|place| session(&spec, read, spec.readers + place, keys_of(place), None));
        let sessions = readers.chain(own).map(Rc::new).collect();
        Self { common, primary: Rc::clone(primary), sessions, writers }
    }

    /// Makes the connections. An error is for whoever starts the probes.
    pub(crate) async fn get_ready(&self) -> Result<(), Error> {
        let limit = self.common.spec.read_limit().max(FIRST_CONNECTION);
        for writer in &self.writers {
            writer.get_ready(&self.common, limit).await?;
        }
        for session in &self.sessions {
            session.get_ready(&self.common, limit).await?;
        }
        Ok(())
    }

    pub(crate) fn begin(&self) {
        let (now, period) = (clock::now(), self.common.spec.read_interval());
        for (place, session) in self.sessions.iter().enumerate() {
            // Side by side, so that a node is read at even times.
            let start = now + (period * (1.0 + place as f64 / self.sessions.len() as f64)) as Nanos;
            session.begin(&self.common, start);
        }
        self.writers.iter().for_each(|writer| writer.begin(&self.common));
        let common = Rc::clone(&self.common);
        self.common.runtime.spawn(async move {
            while !common.stopping.has_happened() {
                common.stopping.wait_until(&common.runtime, clock::now() + SLICE).await;
                let mut observations = common.observations.borrow_mut();
                observations.sweep(clock::now());
                observations.hand_over();
            }
        });
    }

    /// No further read or write is sent.
    pub(crate) fn stop(&self) {
        self.common.stopping.happen();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.sessions.iter().all(|session| session.is_idle())
            && self.writers.iter().all(|writer| writer.is_idle())
    }

    /// Tells what is known at the end, and removes what is not dropped with a table.
    pub(crate) async fn end(&self, deadline: Nanos) {
        self.common.observations.borrow_mut().end_all(clock::now());
        if !self.common.access.leaves_rows() {
            return;
        }
        let rows = self.common.observations.borrow().rows();
        let way = Way::new(&self.primary);
        let left = deadline.saturating_sub(clock::now());
        let Ok(mut lane) = way.lane(&self.common, true, left).await else { return };
        for row in rows {
            if self.common.access.delete(&mut lane, row, deadline).await.is_err() {
                return;
            }
        }
    }
}

/// A session that reads some registers.
fn session(
    spec: &ConsistencySpec,
    read: &[Rc<Endpoint>],
    place: usize,
    keys: Vec<usize>,
    follower: Option<Rc<Follower>>,
) -> Session {
    let order = match (spec.long_fork, place % 2) {
        (false, _) => Order::RegisterLast,
        (true, 0) => Order::FirstThenSecond,
        (true, _) => Order::SecondThenFirst,
    };
    let ways = match spec.routing {
        Routing::Affinity => vec![place % read.len()],
        // Each begins with another one.
        Routing::RoundRobin => (0..read.len()).map(|step| (place + step) % read.len()).collect(),
    };
    let ways = ways.into_iter().map(|node| (node, Way::new(&read[node]))).collect();
    Session::new(ways, (keys, spec.keys), place >= spec.readers, follower, order)
}
