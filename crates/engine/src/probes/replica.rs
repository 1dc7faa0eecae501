//! A read-only endpoint, and the looks at it for the markers that are on their way there.
//!
//! One connection asks without a pause, one poll at a time. A poll looks for all markers of a kind, and reads a bounded
//! number of rows: where there are more, the next poll goes on behind them, and this one says nothing of theirs.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use nephoscope_drivers::probe_tables::POLL_ROWS;
use nephoscope_drivers::{ConnectionState, Error, ErrorClass, Statement, Want};
use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{self, MILLISECOND, Nanos};

use crate::probes::lane::{Endpoint, Lane};
use crate::probes::marker::{Commit, Common, Found, KINDS, Marker, Notify};
use crate::probes::sample::{Kind, Outcome};

/// Connections are tried no closer together.
const RETRY: Nanos = 100 * MILLISECOND;

/// Looking for a marker.
struct Look {
    marker: Rc<Marker>,
    /// Until when it is known not to have been seen: the sending of the last poll whose answer did not show it; or the
    /// end of one that had no answer, because whoever reads there sees nothing.
    unseen: Option<Nanos>,
    /// When the last poll was sent, whatever it said.
    asked: Nanos,
    /// When the answer came that showed it.
    seen: Option<Nanos>,
    /// Why the last poll had no answer.
    failed: Option<ErrorClass>,
    polls: u64,
}

impl Look {
    /// What there is to be said of a marker acknowledged at a time, and looked for until now.
    fn found(&self, acknowledged: Nanos, now: Nanos) -> Found {
        let since = |time: Nanos| time.saturating_sub(acknowledged);
        let lower = |time: Option<Nanos>| Some(time.map_or(0, since));
        let polls = self.polls;
        if let Some(seen) = self.seen {
            let bounds = (lower(self.unseen), Some(since(seen)));
            return Found { time: acknowledged, end: seen, outcome: Outcome::Ok, bounds, polls };
        }
        let outcome = self.failed.map_or(Outcome::NotSeen, Outcome::Failed);
        // Where the last poll had no answer, nobody has seen the marker since.
        let last = if self.failed.is_some() { now } else { self.asked };
        let bounds = (lower(self.unseen.max(Some(last))), None);
        Found { time: acknowledged, end: now, outcome, bounds, polls }
    }
}

/// The rows that a poll reads: those of a kind's markers from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    kind: usize,
    first: i64,
    last: i64,
}

/// What is known of a replica, and looked for there.
#[derive(Default)]
struct Looks {
    /// By kind and row.
    of_kind: [BTreeMap<i64, Look>; 3],
    /// The kind that was polled for last, and behind which row a poll that was full goes on.
    turn: usize,
    behind: [i64; 3],
    /// Rows that have been seen and are not deleted.
    present: HashSet<i64>,
    /// When the newest marker was sent that has been seen.
    newest: Nanos,
}

impl Looks {
    fn add(&mut self, marker: &Rc<Marker>) {
        let look = Look {
            marker: Rc::clone(marker),
            unseen: None,
            asked: marker.sent,
            seen: None,
            failed: None,
            polls: 0,
        };
        self.of_kind[index(marker.kind)].insert(marker.row, look);
    }

    fn is_empty(&self) -> bool {
        self.of_kind.iter().all(BTreeMap::is_empty)
    }

    /// What to poll for next: the kinds that have markers to be seen take turns.
    fn next(&mut self) -> Option<Range> {
        let kinds = (1..=KINDS.len()).map(|step| (self.turn + step) % KINDS.len());
        let range = |kind: usize| {
            let mut rows = self.of_kind[kind].iter().filter(|(_, look)| look.seen.is_none());
            let first = *rows.next()?.0;
            let last = rows.next_back().map_or(first, |(row, _)| *row);
            let behind = self.behind[kind];
            Some(Range { kind, first: if behind < last { first.max(behind + 1) } else { first }, last })
        };
        let found = kinds.into_iter().find_map(range)?;
        self.turn = found.kind;
        Some(found)
    }

    /// Takes the rows that were there, by their ids and in their order, in the state between `sent` and `end`.
    fn take(&mut self, range: Range, rows: &[(i64, i64)], sent: Nanos, end: Nanos) {
        let full = rows.len() >= POLL_ROWS;
        let last = rows.last().filter(|_| full).map_or(range.last, |(row, _)| *row);
        self.behind[range.kind] = if full { last } else { i64::MIN };
        for (row, look) in self.of_kind[range.kind].range_mut(range.first..=last.max(range.first)) {
            let found = rows.binary_search_by_key(row, |(row, _)| *row).ok().map(|index| rows[index].1);
            if found.is_some() {
                self.present.insert(*row);
            }
            if look.seen.is_some() {
                continue;
            }
            look.polls += 1;
            look.asked = sent;
            look.failed = None;
            let shown = match look.marker.kind {
                Kind::Insert => found.is_some(),
                Kind::Update => found.is_some_and(|number| number >= look.marker.value()),
                // That a row is not there says nothing of its deletion where it may be still to come; whatever was
                // committed later and is there says that it has been.
                _ if found.is_none() && !self.present.contains(row) => match look.marker.commit.get() {
                    Commit::Acknowledged(at) if self.newest > at => true,
                    _ => continue,
                },
                _ => found.is_none(),
            };
            if shown {
                look.seen = Some(end);
                self.newest = self.newest.max(look.marker.sent);
            } else {
                look.unseen = Some(sent);
            }
        }
    }

    /// A poll that was ended by what the replica replays: that says nothing of the markers.
    fn ended(&mut self, range: Range, sent: Nanos, class: ErrorClass) {
        for look in self.of_kind[range.kind].values_mut().filter(|look| look.seen.is_none()) {
            look.polls += 1;
            look.asked = sent;
            look.failed = Some(class);
        }
    }

    /// Nobody could read there until a time.
    fn away(&mut self, until: Nanos, class: ErrorClass) {
        for look in self.of_kind.iter_mut().flat_map(BTreeMap::values_mut).filter(|look| look.seen.is_none())
        {
            look.unseen = Some(until);
            look.failed = Some(class);
        }
    }

    /// Takes out what has ended: seen, given up, or never committed.
    fn sweep(&mut self, common: &Common, endpoint: &Endpoint) {
        let now = clock::now();
        for (kind, looks) in self.of_kind.iter_mut().enumerate() {
            looks.retain(|row, look| {
                let ended = match look.marker.commit.get() {
                    // What is seen before it is acknowledged may still fail.
                    Commit::Sent => return now < common.stops.get(),
                    Commit::Failed => true,
                    Commit::Acknowledged(at) => {
                        let ended = look.seen.is_some() || now >= common.patience(at);
                        if ended {
                            common.add(&look.marker, endpoint, &look.found(at, now));
                        }
                        ended
                    }
                };
                if ended && KINDS[kind] == Kind::Delete {
                    self.present.remove(row);
                }
                !ended
            });
        }
    }
}

fn index(kind: Kind) -> usize {
    KINDS.iter().position(|known| *known == kind).unwrap_or_default()
}

/// One read-only endpoint.
pub(crate) struct Replica {
    endpoint: Rc<Endpoint>,
    poll: Arc<[Statement]>,
    lane: RefCell<Option<Lane>>,
    looks: RefCell<Looks>,
    /// When a connection was tried last.
    tried: Cell<Nanos>,
    /// There is something new to be looked for, or a commit has ended.
    notify: Notify,
}

impl Replica {
    pub(crate) fn new(endpoint: &Rc<Endpoint>) -> Self {
        let dialect = endpoint.driver.dialect();
        Self {
            endpoint: Rc::clone(endpoint),
            poll: Arc::new([Statement::read("poll", dialect.probes.poll, dialect.lexer)]),
            lane: RefCell::default(),
            looks: RefCell::default(),
            tried: Cell::default(),
            notify: Notify::default(),
        }
    }

    /// Connects, and waits until the rows of the stock are there; an error if they are not by a time.
    pub(crate) async fn get_ready(
        &self,
        runtime: &Runtime,
        connected: Nanos,
        stock: i64,
        deadline: Nanos,
    ) -> Result<(), Error> {
        let mut lane = Lane::connect(&*self.endpoint.driver, runtime, &self.poll, connected).await?;
        loop {
            let reply = lane.ask(0, &[stock, stock], Want::Rows, deadline).await;
            match reply {
                Ok(reply) if !lane.pairs(reply).is_empty() => break,
                // It may be replaying just that.
                Err(error) if error.class() != ErrorClass::Serialization => return Err(error),
                _ if clock::now() >= deadline => {
                    return Err(Error::other("the markers' rows were not to be seen on a replica in time"));
                }
                _ => {}
            }
        }
        self.looks.borrow_mut().present.extend(1..=stock);
        self.lane.replace(Some(lane));
        Ok(())
    }

    /// A marker's commit is sent: it is looked for from now on.
    pub(crate) fn look_for(&self, marker: &Rc<Marker>) {
        self.looks.borrow_mut().add(marker);
        self.notify.notify();
    }

    /// A commit has ended.
    pub(crate) fn wake(&self) {
        self.notify.notify();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.looks.borrow().is_empty()
    }

    /// Looks for what there is to be looked for, for ever.
    pub(crate) async fn watch(self: Rc<Self>, runtime: Runtime, common: Rc<Common>) {
        loop {
            self.looks.borrow_mut().sweep(&common, &self.endpoint);
            let next = self.looks.borrow_mut().next();
            let Some(range) = next else {
                self.notify.wait().await;
                continue;
            };
            let lane = self.lane.take();
            if let Some(lane) = lane {
                self.poll(lane, range, common.spec.poll_limit()).await;
            } else {
                self.connect(&runtime, common.spec.poll_limit()).await;
            }
        }
    }

    async fn poll(&self, mut lane: Lane, range: Range, limit: Nanos) {
        let sent = clock::now();
        let reply = lane.ask(0, &[range.first, range.last], Want::Rows, sent + limit).await;
        let end = clock::now();
        let is_idle = lane.state() == ConnectionState::Idle;
        let mut looks = self.looks.borrow_mut();
        match reply {
            Ok(reply) => looks.take(range, &lane.pairs(reply), sent, end),
            Err(error) if is_idle && error.class() == ErrorClass::Serialization => {
                looks.ended(range, sent, error.class());
            }
            Err(error) => looks.away(end, error.class()),
        }
        if is_idle {
            self.lane.replace(Some(lane));
        }
    }

    async fn connect(&self, runtime: &Runtime, limit: Nanos) {
        runtime.sleep_until(self.tried.get() + RETRY).await;
        let began = clock::now();
        self.tried.set(began);
        let lane = Lane::connect(&*self.endpoint.driver, runtime, &self.poll, began + limit).await;
        match lane {
            Ok(lane) => {
                self.lane.replace(Some(lane));
            }
            Err(error) => self.looks.borrow_mut().away(clock::now(), error.class()),
        }
    }
}
