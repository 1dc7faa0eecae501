//! Sessions that write: versions that increase, on a schedule whose times are kept.
//!
//! A write that is due waits for the one before it; one whose turn does not come within the limit is missing, and told.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use nephoscope_drivers::{Error, ErrorClass};
use nephoscope_runtime::clock::{self, Nanos};

use super::Common;
use super::session::Way;
use crate::probes::lag::intended;
use crate::probes::lane::Endpoint;
use crate::probes::marker::Notify;

/// The row of the register itself.
const REGISTER: usize = 0;
/// The row that is written after it, or at the same time by another session.
const SECOND: usize = 1;

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Since when it was acknowledged.
    At(Nanos),
    Failed(ErrorClass),
}

/// A session that writes; where long forks are looked for, and the other one that writes at the same time.
pub(crate) struct Writer {
    place: usize,
    /// The registers that it writes in turn.
    keys: Vec<usize>,
    way: Way,
    other: Way,
    /// Of the schedule, in intervals.
    phase: f64,
    due: RefCell<VecDeque<(u64, Nanos)>>,
    notify: Notify,
    busy: Cell<bool>,
    ended: Cell<bool>,
}

impl Writer {
    pub(crate) fn new(place: usize, keys: Vec<usize>, primary: &Rc<Endpoint>, phase: f64) -> Self {
        Self {
            place,
            keys,
            way: Way::new(primary),
            other: Way::new(primary),
            phase,
            due: RefCell::default(),
            notify: Notify::default(),
            busy: Cell::new(false),
            ended: Cell::new(false),
        }
    }

    /// Makes its connections. An error is for whoever starts the probes.
    pub(crate) async fn get_ready(&self, common: &Common, limit: Nanos) -> Result<(), Error> {
        let ways = if common.spec.long_fork { &[&self.way, &self.other][..] } else { &[&self.way] };
        for way in ways {
            let lane = way.lane(common, true, limit).await?;
            way.give_back(lane, limit).await;
        }
        Ok(())
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.ended.get() && !self.busy.get()
    }

    pub(crate) fn begin(self: &Rc<Self>, common: &Rc<Common>) {
        common.runtime.spawn(Rc::clone(self).pace(Rc::clone(common)));
        common.runtime.spawn(Rc::clone(self).write(Rc::clone(common)));
    }

    /// Its number among all writes, so that each has one of its own.
    fn number(&self, number: u64, common: &Common) -> u64 {
        number * common.spec.writers as u64 + self.place as u64
    }

    async fn pace(self: Rc<Self>, common: Rc<Common>) {
        let start = clock::now();
        for number in 0.. {
            let due = start + intended(number, common.spec.write_interval(), self.phase);
            common.stopping.wait_until(&common.runtime, due).await;
            if common.stopping.has_happened() {
                break;
            }
            self.due.borrow_mut().push_back((number, due));
            self.notify.notify();
        }
        for (number, due) in self.due.take() {
            common.observations.borrow_mut().not_written(self.number(number, &common), due);
        }
        self.ended.set(true);
    }

    async fn write(self: Rc<Self>, common: Rc<Common>) {
        loop {
            let next = self.due.borrow_mut().pop_front();
            let Some((number, due)) = next else {
                self.notify.wait().await;
                continue;
            };
            let key = self.keys[number as usize % self.keys.len()];
            let number = self.number(number, &common);
            if clock::now() > due + common.spec.limit() {
                common.observations.borrow_mut().not_written(number, due);
                continue;
            }
            self.busy.set(true);
            if common.spec.long_fork {
                self.write_both(&common, key, number).await;
            } else {
                self.write_in_turn(&common, key, number).await;
            }
            self.busy.set(false);
        }
    }

    /// Writes the register, and when that is acknowledged the second row.
    async fn write_in_turn(&self, common: &Common, key: usize, number: u64) {
        let limit = common.spec.limit();
        let lane = self.way.lane(common, true, limit).await;
        let sent = common.observations.borrow_mut().write(key, number, clock::now());
        let mut lane = match lane {
            Ok(lane) => lane,
            Err(error) => return common.settle(&sent, Written::Failed(error.class())),
        };
        let written = common.put(&mut lane, &sent, REGISTER).await;
        common.settle(&sent, written);
        if matches!(written, Written::At(_)) {
            common.put(&mut lane, &sent, SECOND).await;
        }
        self.way.give_back(lane, limit).await;
    }

    /// Writes both rows at the same time, by two sessions.
    async fn write_both(&self, common: &Common, key: usize, number: u64) {
        let limit = common.spec.limit();
        let lanes = (self.way.lane(common, true, limit).await, self.other.lane(common, true, limit).await);
        let sent = common.observations.borrow_mut().write(key, number, clock::now());
        let (mut one, mut other) = match lanes {
            (Ok(one), Ok(other)) => (one, other),
            (Err(error), _) | (_, Err(error)) => {
                return common.settle(&sent, Written::Failed(error.class()));
            }
        };
        let first = async {
            let written = common.put(&mut one, &sent, REGISTER).await;
            common.settle(&sent, written);
        };
        both(first, common.put(&mut other, &sent, SECOND)).await;
        self.way.give_back(one, limit).await;
        self.other.give_back(other, limit).await;
    }
}

/// Lets two futures go on side by side until both have ended.
async fn both<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut one_ended, mut other_ended) = (false, false);
    poll_fn(|cx| {
        one_ended = one_ended || one.as_mut().poll(cx).is_ready();
        other_ended = other_ended || other.as_mut().poll(cx).is_ready();
        if one_ended && other_ended { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
