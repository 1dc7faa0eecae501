//! Sessions that read: each by connections of its own, on a schedule that waits for nobody, one read at a time.
//!
//! A read that is due while the one before is on its way is sent as soon as that is answered; where the next one is due
//! before, it is missed, and counted.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nephoscope_drivers::{ConnectionState, Error};
use nephoscope_runtime::clock::{self, MILLISECOND, Nanos};

use super::Common;
use super::access::Order;
use super::observations::{Memory, Sent};
use crate::probes::availability::due;
use crate::probes::lane::{Endpoint, Lane};
use crate::probes::marker::Notify;

/// Connections are tried no closer together.
const RETRY: Nanos = 100 * MILLISECOND;

/// A connection that is made again where it is lost.
pub(crate) struct Way {
    endpoint: Rc<Endpoint>,
    lane: RefCell<Option<Lane>>,
    tried: Cell<Nanos>,
}

impl Way {
    pub(crate) fn new(endpoint: &Rc<Endpoint>) -> Self {
        Self { endpoint: Rc::clone(endpoint), lane: RefCell::default(), tried: Cell::new(0) }
    }

    /// The connection, which [`Way::give_back`] takes back. `writes` says what it is for.
    pub(crate) async fn lane(&self, common: &Common, writes: bool, limit: Nanos) -> Result<Lane, Error> {
        let free = self.lane.take();
        if let Some(lane) = free {
            return Ok(lane);
        }
        common.runtime.sleep_until(self.tried.get() + RETRY).await;
        let began = clock::now();
        self.tried.set(began);
        let said = if writes { &common.access.to_write } else { &common.access.to_read };
        Lane::connect(&*self.endpoint.driver, &common.runtime, said, began + limit).await
    }

    /// Takes the connection back, if it is of use; one that waits for an answer may have it within a limit.
    pub(crate) async fn give_back(&self, mut lane: Lane, limit: Nanos) {
        if lane.state() == ConnectionState::Waiting {
            lane.linger(clock::now() + limit).await;
        }
        if lane.state() == ConnectionState::Idle {
            self.lane.replace(Some(lane));
        }
    }
}

/// What a session writes when it has read: writes that follow reads.
pub(crate) struct Follower {
    way: Way,
    /// The registers that it follows.
    keys: Vec<usize>,
    /// The newest version of each register that it has read, with the register's first row.
    newest: RefCell<Memory>,
    /// What it has read and not yet written.
    read: RefCell<Vec<Sent>>,
    notify: Notify,
    busy: Cell<bool>,
}

impl Follower {
    pub(crate) fn new(primary: &Rc<Endpoint>, keys: Vec<usize>, of: usize) -> Self {
        Self {
            way: Way::new(primary),
            keys,
            newest: RefCell::new(vec![None; of]),
            read: RefCell::default(),
            notify: Notify::default(),
            busy: Cell::new(false),
        }
    }

    /// The session has read a version of a register.
    fn saw(&self, key: usize, base: i64, version: i64) {
        let newest = &mut self.newest.borrow_mut()[key];
        if version == 0 || !self.keys.contains(&key) || newest.is_some_and(|known| known >= (base, version)) {
            return;
        }
        *newest = Some((base, version));
        let mut read = self.read.borrow_mut();
        read.retain(|sent| sent.key != key);
        read.push(Sent { key, base, version, number: 0, at: clock::now() });
        self.notify.notify();
    }

    /// Writes what was read, for ever.
    async fn follow(self: Rc<Self>, common: Rc<Common>) {
        loop {
            let next = self.read.borrow_mut().pop();
            let Some(sent) = next else {
                self.notify.wait().await;
                continue;
            };
            self.busy.set(true);
            let limit = common.spec.limit();
            if let Ok(mut lane) = self.way.lane(&common, true, limit).await {
                common.put(&mut lane, &sent, FOLLOWING).await;
                self.way.give_back(lane, limit).await;
            }
            self.busy.set(false);
        }
    }
}

/// The row that holds what a session wrote that had read the register.
const FOLLOWING: usize = 2;

/// A session that reads.
pub(crate) struct Session {
    /// Its ways to the endpoints that it reads, and their places among those that are read.
    ways: Vec<(usize, Way)>,
    /// The registers that it reads in turn.
    keys: Vec<usize>,
    /// Whether it writes them, too.
    is_writer: bool,
    follower: Option<Rc<Follower>>,
    order: Order,
    memory: RefCell<Memory>,
    turn: Cell<usize>,
    /// When the read was due that is to be sent next.
    owed: Cell<Option<Nanos>>,
    notify: Notify,
    busy: Cell<bool>,
}

impl Session {
    pub(crate) fn new(
        ways: Vec<(usize, Way)>,
        (keys, of): (Vec<usize>, usize),
        is_writer: bool,
        follower: Option<Rc<Follower>>,
        order: Order,
    ) -> Self {
        Self {
            ways,
            keys,
            is_writer,
            follower,
            order,
            memory: RefCell::new(vec![None; of]),
            turn: Cell::new(0),
            owed: Cell::new(None),
            notify: Notify::default(),
            busy: Cell::new(false),
        }
    }

    /// Makes its connections. An error is for whoever starts the probes.
    pub(crate) async fn get_ready(&self, common: &Common, limit: Nanos) -> Result<(), Error> {
        for (_, way) in &self.ways {
            let lane = way.lane(common, false, limit).await?;
            way.give_back(lane, limit).await;
        }
        Ok(())
    }

    pub(crate) fn is_idle(&self) -> bool {
        !self.busy.get() && self.follower.iter().all(|follower| !follower.busy.get())
    }

    /// Begins to read, at a time and every so often.
    pub(crate) fn begin(self: &Rc<Self>, common: &Rc<Common>, start: Nanos) {
        common.runtime.spawn(Rc::clone(self).pace(Rc::clone(common), start));
        common.runtime.spawn(Rc::clone(self).read(Rc::clone(common)));
        if let Some(follower) = &self.follower {
            common.runtime.spawn(Rc::clone(follower).follow(Rc::clone(common)));
        }
    }

    /// The register and the way of the next read, by their places.
    fn next(&self) -> (usize, usize) {
        let turn = self.turn.get();
        // Each register in turn by each way in turn.
        (self.keys[turn % self.keys.len()], turn / self.keys.len() % self.ways.len())
    }

    async fn pace(self: Rc<Self>, common: Rc<Common>, start: Nanos) {
        for number in 0.. {
            let time = due(start, common.spec.reads_a_second(), number);
            common.runtime.sleep_until(time).await;
            if common.stopping.has_happened() {
                return;
            }
            if let Some(missed) = self.owed.replace(Some(time)) {
                let (key, way) = self.next();
                common.observations.borrow_mut().not_read(key, self.ways[way].0, missed);
            }
            self.notify.notify();
        }
    }

    async fn read(self: Rc<Self>, common: Rc<Common>) {
        loop {
            if common.stopping.has_happened() || self.owed.take().is_none() {
                self.notify.wait().await;
                continue;
            }
            let (key, place) = self.next();
            self.turn.set(self.turn.get() + 1);
            let (node, way) = &self.ways[place];
            let limit = common.spec.read_limit();
            self.busy.set(true);
            match way.lane(&common, false, limit).await {
                Ok(mut lane) => {
                    self.read_by(&mut lane, &common, key, *node).await;
                    self.busy.set(false);
                    way.give_back(lane, limit).await;
                }
                Err(_) => common.observations.borrow_mut().failed(*node),
            }
            self.busy.set(false);
        }
    }

    async fn read_by(&self, lane: &mut Lane, common: &Common, key: usize, node: usize) {
        let sent = clock::now();
        let asked = common.observations.borrow().ask(key, &self.memory.borrow(), self.is_writer, sent);
        let deadline = sent + common.spec.read_limit();
        let answer = common.access.read(lane, self.order, asked.base, deadline).await;
        let mut observations = common.observations.borrow_mut();
        match answer {
            Ok(answer) => {
                observations.answer(&asked, node, answer, clock::now(), &mut self.memory.borrow_mut());
                if let Some(follower) = &self.follower {
                    follower.saw(key, asked.base, answer.0[0]);
                }
            }
            Err(_) => observations.failed(node),
        }
    }
}
