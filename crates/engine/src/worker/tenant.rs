//! One tenant on one worker: which transactions, when, by which session.

mod pauses;
mod places;
mod unstarted;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use nephoscope_runtime::Nanos;
use nephoscope_script::{Random, Vm};

use crate::spec::Think;
use crate::spec::load::{Model, TenantChange, cumulated, pause};
use crate::spec::routes::{Endpoint, Routes, TenantPlan};
use crate::spec::schedule::{Arrivals, Ramp};
use crate::worker::connecting::ConnectLimits;
use crate::worker::recorder::TenantGauges;
use crate::worker::rest::Rest;
use crate::worker::turn::{Job, Standing, Turn};

use pauses::OwnPause;
use unstarted::{Deal, Dropped};

#[derive(Default)]
struct Slot {
    job: Option<Job>,
    waker: Option<Waker>,
    /// It is in `State::idle`.
    idle: bool,
    /// It lacks a connection that it needs.
    disconnected: bool,
    standing: Standing,
    /// When its last pause began, if it has had one, and the number in [0, 1) that says how long it is by the law of
    /// the moment: a change of the law is also one for who is thinking.
    thinks_since: Option<Nanos>,
    thinks: f64,
    /// The last pause, if it began while the load had the workload's own, and has had them ever since.
    own: Option<OwnPause>,
    /// It runs an arrival that had to wait for it: when that was due, and its series.
    late: Option<(Nanos, usize)>,
}

struct State {
    model: Model,
    /// When the model began.
    since: Nanos,
    think: Think,
    /// How many sessions were wanted when that was last looked at.
    wanted: usize,
    /// How often the load has changed.
    changes: u64,
    /// Cumulated weights of the transactions.
    mix: Vec<f64>,
    routes: Routes,
    /// In which roles transactions of the mix run, by the role in which a session reads where reads are spread.
    roles: [[bool; 2]; 2],
    /// Endpoints that have come, and at which nothing was committed since.
    awaited: Vec<Endpoint>,
    arrivals: Arrivals,
    slots: Vec<Slot>,
    /// Sessions that wait for an arrival, the longest-waiting first.
    idle: VecDeque<usize>,
    backlog: VecDeque<Nanos>,
    /// Arrivals of the phase that were dropped.
    dropped: Dropped,
    deal: Deal,
    gauges: TenantGauges,
    rest: Rest,
    stopped: bool,
    /// The arrivals have changed since the pacer looked, and how it is woken.
    new_course: bool,
    pacer: Option<Waker>,
}

pub(crate) struct Tenant {
    pub(crate) plan: Arc<TenantPlan>,
    pub(crate) vm: Vm,
    pub(crate) limits: ConnectLimits,
    worker: usize,
    workers: usize,
    /// How many workers arrivals are dealt to: those that have sessions for them.
    dealt: usize,
    state: RefCell<State>,
}

impl Tenant {
    pub(crate) fn new(plan: Arc<TenantPlan>, vm: Vm, worker: usize, workers: usize) -> Self {
        let random = Random::new(plan.seed, u64::MAX - worker as u64);
        let dealt = workers.min(plan.sessions);
        let state = State {
            model: Model::Closed(Ramp::level(0.0)),
            since: 0,
            think: Think::None,
            wanted: 0,
            changes: 0,
            mix: Vec::new(),
            routes: plan.routes.clone(),
            roles: [[false; 2]; 2],
            awaited: Vec::new(),
            arrivals: Arrivals::new(worker, dealt, random),
            slots: Vec::new(),
            idle: VecDeque::new(),
            backlog: VecDeque::with_capacity(share(plan.backlog, worker, dealt)),
            dropped: Dropped::new(),
            deal: Deal::default(),
            gauges: TenantGauges::default(),
            rest: Rest::default(),
            stopped: false,
            new_course: false,
            pacer: None,
        };
        let limits = ConnectLimits::default();
        Self { plan, vm, limits, worker, workers, dealt, state: RefCell::new(state) }
    }

    /// The number of a session among all workers' sessions of the tenant.
    pub(crate) fn global(&self, session: usize) -> usize {
        session * self.workers + self.worker
    }

    /// How many of `total` sessions are this worker's.
    fn share(&self, total: usize) -> usize {
        share(total, self.worker, self.workers)
    }

    /// How many sessions of this worker should be there at a time.
    pub(crate) fn wanted(&self, now: Nanos) -> usize {
        let state = self.state.borrow();
        if state.stopped { 0 } else { self.share(self.level(&state, now)) }
    }

    /// How many sessions the load wants, over all workers.
    #[inline]
    fn level(&self, state: &State, now: Nanos) -> usize {
        match state.model {
            // To the nearest; `round` is a call into the C library for each transaction.
            Model::Closed(concurrency) => (concurrency.at(now.saturating_sub(state.since)) + 0.5) as usize,
            Model::Open(_) => self.plan.sessions,
        }
    }

    /// Whether other sessions are wanted than when this was last asked.
    pub(crate) fn has_moved(&self, now: Nanos) -> bool {
        let wanted = self.wanted(now);
        std::mem::replace(&mut self.state.borrow_mut().wanted, wanted) != wanted
    }

    /// Whether the level of a closed loop is on its way.
    pub(crate) fn moves(&self, now: Nanos) -> bool {
        let state = self.state.borrow();
        matches!(state.model, Model::Closed(concurrency) if concurrency.moves(now.saturating_sub(state.since)))
    }

    /// Adds a session and gives its number on this worker.
    pub(crate) fn add_session(&self) -> usize {
        let mut state = self.state.borrow_mut();
        state.slots.push(Slot::default());
        state.slots.len() - 1
    }

    pub(crate) fn sessions(&self) -> usize {
        self.state.borrow().slots.len()
    }

    /// Changes the load at a time on the monotonic clock; `origin` is the start of the load.
    pub(crate) fn change(&self, change: &TenantChange, at: Nanos, origin: Nanos) {
        let mut state = self.state.borrow_mut();
        if let Some(access) = change.access {
            self.vm.set_access(access);
        }
        if change.isolation.is_some() {
            self.vm.set_isolation(change.isolation);
        }
        if let Some(weights) = &change.weights {
            state.mix = cumulated(weights);
        }
        if let Some(routes) = &change.routes {
            state.awaited = state.routes.change(routes);
            state.slots.iter_mut().for_each(|slot| slot.standing = Standing::Unsettled);
        }
        state.find_roles(&self.plan.read_only);
        let (think, spacing) = change.manners(state.model);
        let elapsed = at - origin.min(at);
        let before = self.share(self.level(&state, at));
        if let Some(model) = change.model {
            state.model = model;
            state.since = at;
            self.vm.set_sessions(match model {
                Model::Closed(concurrency) => (concurrency.from.max(concurrency.to) + 0.5) as usize,
                Model::Open(_) => self.plan.sessions,
            });
            // A worker without sessions has no arrivals.
            let rate = match model {
                Model::Open(rate) if self.worker < self.dealt => rate,
                _ => Ramp::level(0.0),
            };
            state.arrivals.change(elapsed, rate);
            if let Model::Closed(_) = model {
                // What waits was meant for the open load.
                drop_backlog(&mut state);
                state.idle.clear();
                for slot in &mut state.slots {
                    slot.idle = false;
                }
            }
        }
        if let Some(spacing) = spacing {
            state.arrivals.respace(elapsed, spacing);
        }
        state.think = think.unwrap_or(state.think);
        if state.think != Think::Workload {
            state.slots.iter_mut().for_each(|slot| slot.own = None);
        }
        let after = self.share(self.level(&state, at));
        // Who takes part from the beginning was connected before it.
        state.rest.change(change.release, if elapsed == 0 { after } else { before }, after, at);
        state.changes += 1;
        signal_pacer(&mut state);
        wake_all(&mut state);
    }

    /// Completes when the arrivals have taken a new course: the pacer must look anew when the next is due.
    pub(crate) fn poll_new_course(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        if std::mem::take(&mut state.new_course) {
            return Poll::Ready(());
        }
        if !state.pacer.as_ref().is_some_and(|old| old.will_wake(cx.waker())) {
            state.pacer = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Wakes the sessions, so that they see what a moving level means for them.
    pub(crate) fn look_again(&self) {
        wake_all(&mut self.state.borrow_mut());
    }

    /// No more work is handed out; what was handed out before is still done.
    pub(crate) fn stop(&self) {
        let mut state = self.state.borrow_mut();
        state.stopped = true;
        drop_backlog(&mut state);
        signal_pacer(&mut state);
        wake_all(&mut state);
    }

    pub(crate) fn stopped(&self) -> bool {
        self.state.borrow().stopped
    }

    /// Whether work was handed out to a session that has not begun with it.
    pub(crate) fn has_work(&self) -> bool {
        self.state.borrow().slots.iter().any(|slot| slot.job.is_some())
    }

    /// Time is up for work that was handed out and not begun.
    pub(crate) fn drop_work(&self) {
        let state = &mut *self.state.borrow_mut();
        for job in state.slots.iter_mut().filter_map(|slot| slot.job.take()) {
            state.gauges.dropped += 1;
            state.dropped.add(job.intended.unwrap_or_default());
        }
    }

    /// Asks for work for a session; pending while there is none.
    #[inline]
    pub(crate) fn poll_turn(
        &self,
        session: usize,
        now: impl Fn() -> Nanos,
        cx: &mut Context<'_>,
    ) -> Poll<Turn> {
        let state = &mut *self.state.borrow_mut();
        let slot = &mut state.slots[session];
        if let Some(job) = slot.job.take() {
            return Poll::Ready(Turn::Work(job));
        }
        if state.stopped {
            return Poll::Ready(Turn::Stop);
        }
        let time = if state.has_ramp() || state.think != Think::None { now() } else { Nanos::MAX };
        let wanted = self.global(session) < self.level(state, time);
        let slot = &mut state.slots[session];
        if let Some(turn) = state.rest.turn(&mut slot.standing, wanted) {
            return Poll::Ready(turn);
        }
        match state.model {
            Model::Closed(_) => {
                if wanted {
                    let mut transaction = None;
                    if let Some(since) = slot.thinks_since {
                        let mut pauses = pause(state.think, slot.thinks);
                        if let Some(own) = &slot.own {
                            let next = drawn(&state.mix, own.next);
                            pauses = own.pauses(slot.thinks, &self.plan.pauses, next);
                            transaction = Some(next);
                        }
                        let until = since.saturating_add(pauses);
                        if until > time {
                            return Poll::Ready(Turn::Pause(until));
                        }
                    }
                    return Poll::Ready(Turn::Work(Job { transaction, ..Job::default() }));
                }
            }
            Model::Open(_) => {
                if wanted {
                    if let intended @ Some(_) = state.backlog.pop_front() {
                        return Poll::Ready(Turn::Work(Job { intended, ..Job::default() }));
                    }
                    if !slot.idle {
                        slot.idle = true;
                        state.idle.push_back(session);
                    }
                }
            }
        }
        if !slot.waker.as_ref().is_some_and(|old| old.will_wake(cx.waker())) {
            slot.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// How often the load has changed.
    pub(crate) fn changes(&self) -> u64 {
        self.state.borrow().changes
    }

    /// Completes when the load has changed since it had changed `seen` times, or the run stops: for pauses that a
    /// change may end.
    pub(crate) fn poll_changed(&self, session: usize, seen: u64, cx: &mut Context<'_>) -> Poll<()> {
        if self.changes() != seen {
            return Poll::Ready(());
        }
        self.poll_stopped(session, cx)
    }

    /// Completes when the run stops: for waits that should not outlast it.
    pub(crate) fn poll_stopped(&self, session: usize, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        if state.stopped {
            return Poll::Ready(());
        }
        state.slots[session].waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// A session cannot take work for now (it has no connection): no arrival is given to it.
    pub(crate) fn withdraw(&self, session: usize) {
        let state = &mut *self.state.borrow_mut();
        state.slots[session].disconnected = true;
        if std::mem::take(&mut state.slots[session].idle) {
            state.idle.retain(|idle| *idle != session);
        }
    }

    /// When the next arrival is due, on the monotonic clock.
    pub(crate) fn next_arrival(&self, origin: Nanos) -> Option<Nanos> {
        let state = self.state.borrow();
        if state.stopped {
            return None;
        }
        state.arrivals.due().map(|due| origin.saturating_add(due))
    }

    /// Hands out the arrivals that are due: to free sessions, else to the backlog, else they are dropped. None
    /// is due once the run was stopped.
    pub(crate) fn dispatch(&self, now: Nanos, origin: Nanos) {
        let state = &mut *self.state.borrow_mut();
        if state.stopped {
            return;
        }
        let room = share(self.plan.backlog, self.worker, self.dealt);
        while let Some(due) = state.arrivals.due().map(|due| origin + due).filter(|due| *due <= now) {
            state.arrivals.advance();
            state.gauges.arrivals += 1;
            if let Some(session) = state.idle.pop_front() {
                let slot = &mut state.slots[session];
                debug_assert!(slot.idle && slot.job.is_none(), "arrivals go to sessions that wait for them");
                slot.idle = false;
                slot.job = Some(Job { intended: Some(due), session_was_free: true, transaction: None });
                if let Some(waker) = &slot.waker {
                    waker.wake_by_ref();
                }
            } else if state.backlog.len() < room {
                state.backlog.push_back(due);
            } else {
                state.gauges.dropped += 1;
                state.dropped.add(due);
            }
        }
    }

    pub(crate) fn gauge(&self, change: impl FnOnce(&mut TenantGauges)) {
        change(&mut self.state.borrow_mut().gauges);
    }

    /// The gauges of the interval that ends now.
    pub(crate) fn take_gauges(&self, now: Nanos) -> TenantGauges {
        let wanted = self.wanted(now) as u64;
        let mut state = self.state.borrow_mut();
        let disconnected = state.disconnected(wanted as usize) as u64;
        let moving = state.slots.iter().filter(|slot| slot.standing == Standing::Unsettled).count() as u64;
        let fresh = TenantGauges { connected: state.gauges.connected, ..TenantGauges::default() };
        let gauges = std::mem::replace(&mut state.gauges, fresh);
        let backlog = gauges.backlog + state.backlog.len() as u64;
        TenantGauges { backlog, sessions: wanted, disconnected, moving, ..gauges }
    }
}

/// The transaction of a mix, by its cumulated weights, that a number in [0, 1) draws.
#[inline]
fn drawn(mix: &[f64], uniform: f64) -> usize {
    let draw = uniform * mix.last().copied().unwrap_or(0.0);
    mix.iter().position(|bound| draw < *bound).unwrap_or(mix.len().saturating_sub(1))
}

/// How much of something is worker number `worker`'s of `workers`.
fn share(total: usize, worker: usize, workers: usize) -> usize {
    (total + workers).saturating_sub(1 + worker) / workers
}

/// Arrivals that wait will not be started; they are not forgotten.
fn drop_backlog(state: &mut State) {
    state.gauges.dropped += state.backlog.len() as u64;
    state.backlog.drain(..).for_each(|due| state.dropped.add(due));
}

fn signal_pacer(state: &mut State) {
    state.new_course = true;
    if let Some(pacer) = &state.pacer {
        pacer.wake_by_ref();
    }
}

fn wake_all(state: &mut State) {
    for slot in &mut state.slots {
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
    }
}
