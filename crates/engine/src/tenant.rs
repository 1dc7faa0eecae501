//! One tenant on one worker: which transactions, when, by which session.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use nephoscope_drivers::{Driver, Statement};
use nephoscope_runtime::Nanos;
use nephoscope_script::{Random, Vm};

use crate::load::{Model, TenantChange, pause};
use crate::recorder::TenantGauges;
use crate::schedule::{Arrivals, Ramp};
use crate::spec::{Balance, Role, Think};

/// What all workers know of a tenant.
pub(crate) struct TenantPlan {
    pub(crate) name: String,
    /// The endpoints of each role.
    pub(crate) endpoints: [Vec<Arc<dyn Driver>>; 2],
    pub(crate) balance: Balance,
    pub(crate) statements: Arc<[Statement]>,
    /// Where each transaction runs.
    pub(crate) roles: Vec<Role>,
    /// Each transaction only reads.
    pub(crate) read_only: Vec<bool>,
    /// Sessions of an open load, over all workers.
    pub(crate) sessions: usize,
    /// Arrivals that may wait, over all workers.
    pub(crate) backlog: usize,
    pub(crate) seed: u64,
    /// The number of the tenant's first series; the others follow in the order of its transactions.
    pub(crate) first_series: usize,
}

/// Work for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// When it should start; `None` in a closed loop, where that is when it does.
    pub(crate) intended: Option<Nanos>,
    /// A session was free when it was due, so that its lateness is the client's own.
    pub(crate) session_was_free: bool,
}

/// What a session is told when it asks for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Work(Job),
    /// Wait until this time and ask again.
    Pause(Nanos),
    /// The run is over.
    Stop,
}

#[derive(Default)]
struct Slot {
    job: Option<Job>,
    waker: Option<Waker>,
    /// It is in `State::idle`.
    idle: bool,
    /// It takes part in the closed loop and thinks until this time.
    thinks_until: Nanos,
}

struct State {
    model: Model,
    /// When the model began.
    since: Nanos,
    /// Cumulated weights of the transactions.
    mix: Vec<f64>,
    arrivals: Arrivals,
    slots: Vec<Slot>,
    /// Sessions that wait for an arrival, the longest-waiting first.
    idle: VecDeque<usize>,
    backlog: VecDeque<Nanos>,
    gauges: TenantGauges,
    stopped: bool,
    /// The arrivals have changed since the pacer looked, and how it is woken.
    new_course: bool,
    pacer: Option<Waker>,
}

pub(crate) struct Tenant {
    pub(crate) plan: Arc<TenantPlan>,
    pub(crate) vm: Vm,
    worker: usize,
    workers: usize,
    state: RefCell<State>,
}

impl Tenant {
    pub(crate) fn new(plan: Arc<TenantPlan>, vm: Vm, worker: usize, workers: usize) -> Self {
        let random = Random::new(plan.seed, u64::MAX - worker as u64);
        let state = State {
            model: Model::Closed { concurrency: Ramp::level(0.0), think: Think::None },
            since: 0,
            mix: Vec::new(),
            arrivals: Arrivals::new(worker, workers, random),
            slots: Vec::new(),
            idle: VecDeque::new(),
            backlog: VecDeque::with_capacity(plan.backlog.div_ceil(workers)),
            gauges: TenantGauges::default(),
            stopped: false,
            new_course: false,
            pacer: None,
        };
        Self { plan, vm, worker, workers, state: RefCell::new(state) }
    }

    /// The number of a session among all workers' sessions of the tenant.
    pub(crate) fn global(&self, session: usize) -> usize {
        session * self.workers + self.worker
    }

    /// How many of `total` sessions are this worker's.
    fn share(&self, total: usize) -> usize {
        (total + self.workers - 1 - self.worker) / self.workers
    }

    /// How many sessions of this worker should be there at a time.
    pub(crate) fn wanted(&self, now: Nanos) -> usize {
        let state = self.state.borrow();
        match state.model {
            Model::Closed { concurrency, .. } => self.share(level(concurrency, now, state.since)),
            Model::Open { .. } => self.share(self.plan.sessions),
        }
    }

    /// Whether the level of a closed loop is on its way.
    pub(crate) fn moves(&self, now: Nanos) -> bool {
        let state = self.state.borrow();
        matches!(state.model, Model::Closed { concurrency, .. } if concurrency.moves(now.saturating_sub(state.since)))
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
        if let Some(weights) = &change.weights {
            let mut sum = 0.0;
            state.mix = weights
                .iter()
                .map(|weight| {
                    sum += weight;
                    sum
                })
                .collect();
        }
        if let Some(model) = change.model {
            state.model = model;
            state.since = at;
            match model {
                Model::Open { rate, spacing } => state.arrivals.change(at - origin.min(at), rate, spacing),
                Model::Closed { .. } => {
                    state.arrivals.change(
                        at - origin.min(at),
                        Ramp::level(0.0),
                        crate::schedule::Spacing::Constant,
                    );
                    // What waits was meant for the open load; it will not be started, and is not forgotten.
                    state.gauges.dropped += state.backlog.len() as u64;
                    state.backlog.clear();
                    state.idle.clear();
                    for slot in &mut state.slots {
                        slot.idle = false;
                    }
                }
            }
        }
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

    /// No more work is handed out.
    pub(crate) fn stop(&self) {
        let mut state = self.state.borrow_mut();
        state.stopped = true;
        state.gauges.dropped += state.backlog.len() as u64;
        state.backlog.clear();
        signal_pacer(&mut state);
        wake_all(&mut state);
    }

    pub(crate) fn stopped(&self) -> bool {
        self.state.borrow().stopped
    }

    /// Draws a transaction from the mix.
    #[inline]
    pub(crate) fn choose(&self, random: &mut Random) -> usize {
        let state = self.state.borrow();
        let Some(total) = state.mix.last() else { return 0 };
        let draw = random.uniform() * total;
        state.mix.iter().position(|bound| draw < *bound).unwrap_or(state.mix.len() - 1)
    }

    /// Whether transactions of the present mix run in a role.
    pub(crate) fn uses(&self, role: Role) -> bool {
        let state = self.state.borrow();
        let mut before = 0.0;
        state.mix.iter().zip(&self.plan.roles).any(|(bound, of)| {
            let weight = bound - before;
            before = *bound;
            weight > 0.0 && *of == role
        })
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
        if state.stopped {
            return Poll::Ready(Turn::Stop);
        }
        if let Some(job) = slot.job.take() {
            return Poll::Ready(Turn::Work(job));
        }
        match state.model {
            Model::Closed { concurrency, think } => {
                let needs_clock = concurrency.over > 0 || think != Think::None;
                let time = if needs_clock { now() } else { Nanos::MAX };
                if self.global(session) < level(concurrency, time, state.since) {
                    if slot.thinks_until > time {
                        return Poll::Ready(Turn::Pause(slot.thinks_until));
                    }
                    return Poll::Ready(Turn::Work(Job { intended: None, session_was_free: false }));
                }
            }
            Model::Open { .. } => {
                if self.global(session) < self.plan.sessions {
                    if let Some(intended) = state.backlog.pop_front() {
                        let job = Job { intended: Some(intended), session_was_free: false };
                        return Poll::Ready(Turn::Work(job));
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

    /// Completes when the run stops: for waits that should not outlast it.
    pub(crate) fn poll_stopped(&self, session: usize, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        if state.stopped {
            return Poll::Ready(());
        }
        state.slots[session].waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Whether a session has work to expect, so that it should hold its connections.
    pub(crate) fn takes_part(&self, session: usize, now: Nanos) -> bool {
        let state = self.state.borrow();
        let global = self.global(session);
        match state.model {
            Model::Closed { concurrency, .. } => global < level(concurrency, now, state.since),
            Model::Open { .. } => global < self.plan.sessions,
        }
    }

    /// A session cannot take work for now (it has no connection): no arrival is given to it.
    pub(crate) fn withdraw(&self, session: usize) {
        let state = &mut *self.state.borrow_mut();
        if std::mem::take(&mut state.slots[session].idle) {
            state.idle.retain(|idle| *idle != session);
        }
    }

    /// A session has ended a transaction and begins to think, if the load has it think.
    #[inline]
    pub(crate) fn begin_thinking(&self, session: usize, end: Nanos, random: &mut Random) {
        let state = &mut *self.state.borrow_mut();
        if let Model::Closed { think, .. } = state.model
            && think != Think::None
        {
            state.slots[session].thinks_until = end + pause(think, random.uniform());
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

    /// Hands out the arrivals that are due: to free sessions, else to the backlog, else they are dropped.
    pub(crate) fn dispatch(&self, now: Nanos, origin: Nanos) {
        let state = &mut *self.state.borrow_mut();
        let room = self.plan.backlog.div_ceil(self.workers);
        while let Some(due) = state.arrivals.due().map(|due| origin + due).filter(|due| *due <= now) {
            state.arrivals.advance();
            state.gauges.arrivals += 1;
            if let Some(session) = state.idle.pop_front() {
                let slot = &mut state.slots[session];
                slot.idle = false;
                slot.job = Some(Job { intended: Some(due), session_was_free: true });
                if let Some(waker) = &slot.waker {
                    waker.wake_by_ref();
                }
            } else if state.backlog.len() < room {
                state.backlog.push_back(due);
            } else {
                state.gauges.dropped += 1;
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
        let connected = state.gauges.connected;
        let fresh = TenantGauges { connected, ..TenantGauges::default() };
        let gauges = std::mem::replace(&mut state.gauges, fresh);
        TenantGauges { backlog: state.backlog.len() as u64, sessions: wanted, ..gauges }
    }
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

/// The level of a closed loop as a number of sessions.
fn level(concurrency: Ramp, now: Nanos, since: Nanos) -> usize {
    concurrency.at(now.saturating_sub(since)).round() as usize
}
