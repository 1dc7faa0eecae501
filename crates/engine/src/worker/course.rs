//! The course of the load on one worker: its changes and intervals as their times come, and what sessions tell.
//!
//! A session knows the course; who makes sessions is handed in, so the course does not know them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::task::Poll;

use nephoscope_drivers::Error;
use nephoscope_histories::Transaction;
use nephoscope_runtime::clock::{self, MILLISECOND, Nanos};
use nephoscope_runtime::mailbox;
use nephoscope_runtime::{Io, Runtime};
use nephoscope_script::{KeySpace, ScriptError, Source, Vm};

use crate::error::EngineError;
use crate::spec::load::Change;
use crate::spec::routes::TenantPlan;
use crate::spec::{RetrySpec, Role};
use crate::worker::history::{HistoryRecorder, OwnHistory};
use crate::worker::recorder::{Outcome, Recorder, Sample, SeriesData, Shard};
use crate::worker::report::{Order, Report, WorkerTotals, add};
use crate::worker::tenant::Tenant;
use crate::worker::watchdog::Watched;

/// What a tenant needs on each worker.
#[derive(Clone)]
pub(crate) struct TenantSetup {
    pub(crate) plan: Arc<TenantPlan>,
    /// The tenant whose key space it has and whose tallies it adds to: itself, or the one that it is a stream of.
    pub(crate) owner: String,
    pub(crate) source: Arc<Source>,
    pub(crate) keys: Vec<(String, Arc<KeySpace>)>,
}

/// What a worker is made with.
pub(crate) struct WorkerSetup {
    pub(crate) number: usize,
    pub(crate) workers: usize,
    pub(crate) tenants: Vec<TenantSetup>,
    pub(crate) series: usize,
    /// The series' transactions, with their workloads, as messages name them.
    pub(crate) transactions: Arc<[String]>,
    pub(crate) pipeline: bool,
    pub(crate) io: Io,
    pub(crate) interval: Nanos,
    pub(crate) statement_timeout: Nanos,
    pub(crate) drain_timeout: Nanos,
    pub(crate) retry: RetrySpec,
    pub(crate) changes: Vec<Change>,
    pub(crate) orders: mailbox::Receiver<Order>,
    pub(crate) reports: Sender<(usize, Report)>,
    pub(crate) shards: Sender<Shard>,
    pub(crate) used: Receiver<Box<SeriesData>>,
    pub(crate) history: Option<HistoryRecorder>,
}

/// Makes a session of a tenant and lets it run.
pub(super) type Recruit = fn(&Rc<Course>, &Rc<Tenant>) -> Result<(), ScriptError>;

/// The course of the load on one worker: what its sessions share.
pub(crate) struct Course {
    pub(crate) runtime: Runtime,
    pub(crate) retry: Cell<RetrySpec>,
    pub(crate) statement_timeout: Nanos,
    /// How the load comes to more sessions, which know the course.
    recruit: Recruit,
    number: usize,
    drain_timeout: Nanos,
    transactions: Arc<[String]>,
    reports: Sender<(usize, Report)>,
    tenants: RefCell<Vec<Rc<Tenant>>>,
    recorder: RefCell<Recorder>,
    pub(super) history: OwnHistory,
    /// When the open interval ends: the recorder's word, where every transaction looks.
    interval_ends: Cell<Nanos>,
    pub(crate) origin: Cell<Nanos>,
    orders: RefCell<mailbox::Receiver<Order>>,
    changes: RefCell<VecDeque<Change>>,
    /// When the present phase began.
    phase: Cell<Nanos>,
    in_flight: Cell<u64>,
    /// Sessions that have something to do at the end of the run, and have not done it.
    unended: Cell<u64>,
    totals: RefCell<WorkerTotals>,
    failed: Cell<bool>,
    ending: Cell<bool>,
}

/// Statements are known by their places, which every thread has from a state of its own.
const DECLARED_OTHERWISE: &str = "the workload's file does not declare the same statements in the same order each time \
                                  it is read: a loop over next has no order; pairs has one, and so has a list";

impl Course {
    /// A course with nothing done yet.
    pub(super) fn new(setup: WorkerSetup, recruit: Recruit) -> Result<Rc<Self>, EngineError> {
        let runtime = Runtime::with_io(setup.io)
            .map_err(|error| EngineError::Failed(format!("no runtime for a worker: {error}")))?;
        let mut tenants = Vec::new();
        for tenant in &setup.tenants {
            let (vm, workload) = Vm::new(&tenant.source, &tenant.keys, setup.pipeline)?;
            if workload.statements != *tenant.plan.statements {
                return Err(EngineError::Input(DECLARED_OTHERWISE.to_owned()));
            }
            tenants.push(Rc::new(Tenant::new(Arc::clone(&tenant.plan), vm, setup.number, setup.workers)));
        }
        let totals = WorkerTotals::of(setup.series, tenants.len());
        let recorder = Recorder::new(setup.number, setup.series, setup.interval, setup.shards, setup.used);
        Ok(Rc::new(Self {
            runtime,
            retry: Cell::new(setup.retry),
            statement_timeout: setup.statement_timeout,
            recruit,
            number: setup.number,
            drain_timeout: setup.drain_timeout,
            transactions: setup.transactions,
            reports: setup.reports,
            tenants: RefCell::new(tenants),
            recorder: RefCell::new(recorder),
            history: OwnHistory::new(setup.history),
            interval_ends: Cell::new(Nanos::MAX),
            origin: Cell::new(clock::now()),
            orders: RefCell::new(setup.orders),
            changes: RefCell::new(setup.changes.into()),
            phase: Cell::new(0),
            in_flight: Cell::new(0),
            unended: Cell::new(0),
            totals: RefCell::new(totals),
            failed: Cell::new(false),
            ending: Cell::new(false),
        }))
    }

    /// The change that the load begins with.
    pub(super) fn first_change(&self) -> Option<Change> {
        self.changes.borrow().front().cloned()
    }

    /// Whether the last change has been applied.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.get()
    }

    /// What was done altogether, once nothing more comes.
    pub(super) fn take_totals(&self) -> WorkerTotals {
        self.totals.take()
    }

    pub(super) fn tenants(&self) -> Vec<Rc<Tenant>> {
        self.tenants.borrow().clone()
    }

    pub(super) fn report(&self, report: Report) {
        // Nobody listens any more if the run was given up.
        let _ = self.reports.send((self.number, report));
    }

    pub(super) async fn first_order(&self) -> Order {
        loop {
            let order = poll_fn(|cx| self.orders.borrow_mut().poll_receive(cx)).await;
            match order {
                Some(Order::Change(change)) => self.take_change(change),
                Some(order) => return order,
                None => return Order::Abort,
            }
        }
    }

    pub(super) async fn begin(self: &Rc<Self>, origin: Nanos) {
        // The first phase was applied while getting ready; its ramps and arrivals begin now.
        self.origin.set(origin);
        self.runtime.sleep_until(origin).await;
        let mut recorder = self.recorder.borrow_mut();
        recorder.begin(origin);
        self.interval_ends.set(recorder.ends());
        drop(recorder);
        self.advance(origin);
    }

    /// How the coordinator sees whether it goes on.
    pub(super) fn watched(&self) -> Result<Watched, EngineError> {
        let scripts = self.tenants().iter().map(|t| (t.vm.watch(), t.plan.first_series)).collect();
        Watched::new(self.runtime.turns(), scripts)
    }

    /// Starts the arrivals of an open load at their times.
    pub(super) async fn pace(self: &Rc<Self>, tenant: &Tenant) {
        while !tenant.stopped() {
            let next = tenant.next_arrival(self.origin.get()).unwrap_or(Nanos::MAX);
            let mut sleep = pin!(self.runtime.sleep_until(next));
            poll_fn(|cx| {
                if tenant.poll_new_course(cx).is_ready() {
                    return Poll::Ready(());
                }
                sleep.as_mut().poll(cx)
            })
            .await;
            // Intervals first: an arrival is counted in the one that it was due in.
            let now = clock::now();
            if now >= self.interval_ends.get() {
                self.advance(now);
            }
            self.dispatch(tenant, now);
        }
    }

    /// Hands out due arrivals, but none from beyond the next change of the load.
    fn dispatch(&self, tenant: &Tenant, now: Nanos) {
        let origin = self.origin.get();
        let change =
            self.changes.borrow().front().map_or(Nanos::MAX, |change| origin.saturating_add(change.at));
        tenant.dispatch(now.min(change.saturating_sub(1)), origin);
    }

    /// Waits for the end of the interval, the next change, or an order.
    pub(super) async fn wait_for_boundary(&self) {
        let change = self.changes.borrow().front().map_or(Nanos::MAX, |next| next.at);
        let mut next = self.interval_ends.get().min(self.origin.get().saturating_add(change));
        let now = clock::now();
        if self.tenants.borrow().iter().any(|tenant| tenant.moves(now)) {
            next = next.min(now + 10 * MILLISECOND);
        }
        let mut sleep = pin!(self.runtime.sleep_until(next));
        let order = poll_fn(|cx| {
            if let Poll::Ready(order) = self.orders.borrow_mut().poll_receive(cx) {
                return Poll::Ready(order);
            }
            sleep.as_mut().poll(cx).map(|()| None)
        })
        .await;
        if let Some(Order::Change(change)) = order {
            self.take_change(change);
        }
    }

    fn take_change(&self, change: Change) {
        let mut changes = self.changes.borrow_mut();
        let index = changes.partition_point(|known| known.at <= change.at);
        changes.insert(index, change);
    }

    /// Brings intervals and changes up to a time, in the order in which they come.
    pub(crate) fn advance(self: &Rc<Self>, now: Nanos) {
        while let Some(order) = self.orders.borrow_mut().try_receive() {
            if let Order::Change(change) = order {
                self.take_change(change);
            }
        }
        let origin = self.origin.get();
        loop {
            let change =
                self.changes.borrow().front().map_or(Nanos::MAX, |next| origin.saturating_add(next.at));
            let interval = self.interval_ends.get();
            if change.min(interval) > now {
                break;
            }
            if change <= interval {
                let next = self.changes.borrow_mut().pop_front();
                if let Some(next) = next {
                    self.apply(&next);
                }
            } else {
                self.rotate(interval - origin);
            }
        }
        for tenant in self.tenants() {
            if tenant.has_moved(now) {
                tenant.look_again();
                self.staff(&tenant, now);
            }
        }
    }

    fn rotate(&self, end: Nanos) {
        let now = self.origin.get() + end;
        let tenants = self.tenants.borrow();
        for tenant in &*tenants {
            // An arrival is counted where it was due, even if its turn comes only now.
            tenant.dispatch(now.saturating_sub(1), self.origin.get());
        }
        let mut recorder = self.recorder.borrow_mut();
        let gauges = || tenants.iter().map(|tenant| tenant.take_gauges(now)).collect();
        recorder.rotate(end, self.phase.get(), gauges);
        self.history.flush();
        self.interval_ends.set(recorder.ends());
    }

    fn apply(self: &Rc<Self>, change: &Change) {
        let origin = self.origin.get();
        let at = origin + change.at;
        // What was due before the change belongs to the load before it.
        for tenant in self.tenants() {
            tenant.dispatch(at.saturating_sub(1), origin);
        }
        if let Some(phase) = &change.phase {
            self.recorder.borrow_mut().end_phase(&self.tenants.borrow(), at);
            self.phase.set(change.at);
            self.rotate(change.at);
            if phase.history {
                self.history.mark(change.at);
            }
            self.retry.set(phase.retry.unwrap_or(self.retry.get()));
        }
        for (tenant, change) in self.tenants().iter().zip(&change.tenants) {
            tenant.change(change, at, origin);
            self.staff(tenant, at);
        }
        if change.end && !self.ending.replace(true) {
            self.changes.borrow_mut().clear();
            for tenant in self.tenants() {
                tenant.stop();
            }
        }
    }

    /// Adds the sessions that the load wants and that are not there yet.
    fn staff(self: &Rc<Self>, tenant: &Rc<Tenant>, now: Nanos) {
        while tenant.sessions() < tenant.wanted(now) {
            if let Err(error) = (self.recruit)(self, tenant) {
                self.fail(&error.to_string());
                return;
            }
        }
    }

    /// Waits for transactions in flight, and for what sessions do at the end, within the time limit.
    pub(super) async fn drain(self: &Rc<Self>) {
        let deadline = clock::now() + self.drain_timeout;
        let busy = || {
            self.in_flight.get() + self.unended.get() > 0
                || self.tenants.borrow().iter().any(|tenant| tenant.has_work())
        };
        while busy() && clock::now() < deadline {
            self.runtime.sleep_until(clock::now() + MILLISECOND).await;
        }
        for tenant in self.tenants() {
            tenant.drop_work();
        }
        let now = clock::now();
        self.advance(now);
        self.recorder.borrow_mut().end_phase(&self.tenants.borrow(), now);
        // However soon it is over, the drain has an interval, or what it has dropped would be lost.
        self.rotate(now.saturating_sub(self.origin.get()).max(self.phase.get() + 1));
        let memory = self.tenants.borrow().iter().map(|tenant| tenant.vm.memory()).sum();
        self.totals.borrow_mut().script_memory = memory;
    }

    // ---- what sessions tell ----------------------------------------------------------------------------------

    /// A session has begun that has something to do at the end.
    pub(crate) fn awaits_end(&self) {
        self.unended.set(self.unended.get() + 1);
    }

    /// Such a session has done it, or cannot.
    pub(crate) fn has_ended(&self) {
        self.unended.set(self.unended.get() - 1);
    }

    #[inline]
    pub(crate) fn started(&self, series: usize) {
        self.totals.borrow_mut().started[series] += 1;
        self.in_flight.set(self.in_flight.get() + 1);
    }

    /// A transaction that was started had nothing to do, and another is started in its place.
    pub(crate) fn starts_instead(&self, skipped: usize, series: usize) {
        let mut totals = self.totals.borrow_mut();
        totals.started[skipped] -= 1;
        totals.started[series] += 1;
    }

    #[inline]
    pub(crate) fn ended(self: &Rc<Self>, series: usize, sample: &Sample) {
        if sample.end >= self.interval_ends.get() {
            self.advance(sample.end);
        }
        self.recorder.borrow_mut().add(series, sample);
        self.totals.borrow_mut().ended[series] += 1;
        self.in_flight.set(self.in_flight.get() - 1);
        debug_assert!(sample.outcome != Outcome::Committed || sample.end >= sample.start);
    }

    #[inline]
    pub(crate) fn add_lag(&self, lag: Nanos) {
        self.recorder.borrow_mut().add_lag(lag);
    }

    pub(crate) fn add_error(&self, series: usize, error: &Error) {
        self.recorder.borrow_mut().add_error(series, error);
    }

    /// A connection could not be made: counted under the tenant's first transaction of the role.
    pub(crate) fn note_refusal(&self, tenant: &Tenant, role: Role, error: &Error) {
        self.recorder.borrow_mut().note(tenant.series_of(role), error, false);
    }

    /// An attempt at a transaction has ended that has observed something. Its times are on the monotonic clock.
    #[cold]
    pub(crate) fn observed(&self, tenant: &Rc<Tenant>, session: usize, observed: &mut Transaction) {
        let place = self.tenants.borrow().iter().position(|other| Rc::ptr_eq(other, tenant));
        self.history.take(place.unwrap_or_default(), session, self.origin.get(), observed);
    }

    pub(crate) fn transaction_name(&self, series: usize) -> &str {
        &self.transactions[series]
    }

    /// Counts a transaction of which nobody knows whether it was committed.
    pub(crate) fn add_uncertain(&self) {
        self.totals.borrow_mut().uncertain += 1;
    }

    /// Adds to the tallies of a tenant what a transaction brought: surely, or perhaps.
    pub(crate) fn tally(
        &self,
        tenant: &Rc<Tenant>,
        amounts: std::vec::Drain<'_, (usize, f64)>,
        surely: bool,
    ) {
        if amounts.len() == 0 {
            return;
        }
        let mut totals = self.totals.borrow_mut();
        let tenants = self.tenants.borrow();
        let Some(index) = tenants.iter().position(|other| Rc::ptr_eq(other, tenant)) else { return };
        for (tally, amount) in amounts {
            let tallies = &mut totals.tallies[index];
            if tallies.len() <= tally {
                let names = tenant.vm.tally_names();
                tallies.extend(names[tallies.len()..].iter().map(|name| (name.clone(), 0.0, 0.0)));
            }
            let (_, sure, uncertain) = &mut tallies[tally];
            if surely { add(sure, amount) } else { add(uncertain, amount.abs()) }
        }
    }

    /// The run cannot go on. Said once; here, nothing more is started.
    pub(crate) fn fail(&self, message: &str) {
        if !self.failed.replace(true) {
            self.report(Report::Fatal(message.to_owned()));
            self.tenants().iter().for_each(|tenant| tenant.stop());
        }
    }
}
