//! A run: the coordinator's side of the workers.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nephoscope_drivers::Driver;
use nephoscope_runtime::clock::{self, MILLISECOND, Nanos};
use nephoscope_runtime::mailbox::{self, mailbox};
use nephoscope_script::KeySpace;

use crate::collect::{Collector, Record, SeriesName};
use crate::error::EngineError;
use crate::heartbeat::Heartbeat;
use crate::load::{Change, Resolver};
use crate::open::{Opening, ending, open, resolve};
use crate::recorder::{SeriesData, Shard};
use crate::report::{Order, Report, WorkerTotals};
use crate::spec::{LoadSpec, PhaseSpec};
use crate::watchdog::Watchdog;
use crate::worker::{self, WorkerSetup};

/// What the whole run has done.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Transactions that were started.
    pub started: u64,
    /// Of these, the ones in flight when the run ended.
    pub in_flight: u64,
    /// The same two of each series.
    pub by_series: Vec<(SeriesName, u64, u64)>,
    /// Transactions of which nobody knows whether they were committed.
    pub uncertain: u64,
    /// By tenant and tally: what committed transactions have added, and the size of what uncertain ones would have.
    pub tallies: BTreeMap<String, BTreeMap<String, (f64, f64)>>,
    /// By tenant and table: how many keys were used up by `pick.once`, earlier runs included.
    pub handed_out: BTreeMap<String, BTreeMap<String, u64>>,
    /// Memory that the workloads' Lua states held at the end, in bytes.
    pub script_memory: u64,
}

/// How a run has ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// What it has done.
    pub totals: Totals,
    /// Whether every worker came to its end; otherwise the totals lack the part of those that did not.
    pub complete: bool,
    /// Why it ended before its time: an error of the workload.
    pub failure: Option<String>,
}

/// How long before its time a change is sent, so that every worker knows of it when its time comes, even if the
/// sender is held up on the way.
const LEAD: Nanos = 10 * MILLISECOND;

struct Control {
    resolvers: Vec<Resolver>,
    orders: Vec<mailbox::Sender<Order>>,
    announce: Sender<Announcement>,
    last_change: Nanos,
    /// When the phases that the run was started with end it.
    ends: Option<Nanos>,
    stopped: bool,
}

/// A phase that the control side lets begin. It is announced before the workers hear of it, so the collector knows
/// of a phase before the first shard of it; and by a channel, so that nobody who reads holds up a change.
struct Announcement {
    at: Nanos,
    phase: Arc<PhaseSpec>,
    /// It is the last: phases that were to begin after it will not.
    end: bool,
}

struct Intake {
    shards: Receiver<Shard>,
    reports: Receiver<(usize, Report)>,
    announced: Receiver<Announcement>,
    collector: Collector,
    finished: Vec<WorkerTotals>,
    workers: usize,
    /// Workers that have ended or were given up.
    gone: usize,
    threads: Vec<JoinHandle<()>>,
    watchdog: Watchdog,
    failure: Option<String>,
    keys: Vec<(String, TenantKeys)>,
}

/// The key spaces of a tenant, by table.
type TenantKeys = Vec<(String, Arc<KeySpace>)>;

/// A run that is going on. It may be used from several threads: one to read, another to change the load.
pub struct Run {
    origin: Nanos,
    control: Mutex<Control>,
    intake: Mutex<Intake>,
    /// None in simulated time, which stands still as it should.
    heartbeat: Option<Mutex<Heartbeat>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Run {
    /// Starts a load: checks it, connects its sessions, and returns when it has begun.
    ///
    /// An [`EngineError::Input`] comes before any endpoint is touched; [`EngineError::Failed`] when the endpoints
    /// cannot be used.
    pub fn start(spec: &LoadSpec) -> Result<Self, EngineError> {
        let (mut prepared, setups) = prepare(spec)?;
        for setup in setups {
            prepared.intake.threads.push(spawn(setup)?);
        }
        prepared.await_ready()?;
        let mut run = prepared.begin();
        run.heartbeat = Some(Mutex::new(Heartbeat::start(run.origin)?));
        Ok(run)
    }

    /// The start of the load on the monotonic clock, in nanoseconds.
    #[must_use]
    pub fn origin(&self) -> Nanos {
        self.origin
    }

    /// Time since the start of the load.
    #[must_use]
    pub fn elapsed(&self) -> Nanos {
        clock::now().saturating_sub(self.origin)
    }

    /// Changes the load now. A name begins a new phase; without one the present phase goes on. Returns when the
    /// change takes effect, since the start of the load.
    pub fn change(&self, phase: PhaseSpec, is_phase: bool) -> Result<Nanos, EngineError> {
        self.change_at(phase, is_phase, 0)
    }

    /// As [`Run::change`], at a time since the start of the load, or now if that has passed. Changes take effect in
    /// the order in which they were made.
    pub fn change_at(&self, phase: PhaseSpec, is_phase: bool, at: Nanos) -> Result<Nanos, EngineError> {
        let control = &mut *lock(&self.control);
        let at = at.max(self.elapsed() + LEAD).max(control.last_change + 1);
        if control.stopped || control.ends.is_some_and(|ends| ends <= at) {
            return Err(EngineError::Failed("the run is over".to_owned()));
        }
        let tenants = resolve(&mut control.resolvers, &phase, at)?;
        control.last_change = at;
        let phase = is_phase.then(|| Arc::new(phase));
        control.order(&Change { at, phase, tenants, end: false });
        Ok(at)
    }

    /// Ends the run: no further transaction is started, and those in flight are waited for. [`Run::next`] goes on
    /// to give what there is.
    pub fn stop(&self) {
        let control = &mut *lock(&self.control);
        // Changes that are still to come will not: the end overtakes them.
        let at = self.elapsed() + LEAD;
        if std::mem::replace(&mut control.stopped, true) || control.ends.is_some_and(|ends| ends <= at) {
            return;
        }
        control.order(&ending(at, control.resolvers.len()));
    }

    /// The next record; `None` if there is none within the time. After [`Record::End`] there is no more.
    pub fn next(&self, timeout: Duration) -> Option<Record> {
        let begun = Instant::now();
        loop {
            let intake = &mut *lock(&self.intake);
            intake.take_shards();
            let gap = self.heartbeat.as_ref().and_then(|heartbeat| lock(heartbeat).gap());
            let gap = gap.filter(|_| !intake.collector.ended);
            if let Some(record) = gap.map(Record::Gap).or_else(|| intake.collector.take()) {
                return Some(record);
            }
            if intake.take_reports() {
                self.stop();
            }
            if let Some(record) = intake.end_if_finished() {
                return Some(record);
            }
            let left = timeout.checked_sub(begun.elapsed())?;
            // Short waits: that a worker has ended comes by another way.
            let wait = left.min(Duration::from_millis(20));
            match intake.shards.recv_timeout(wait) {
                Ok(shard) => intake.add(shard),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(wait.min(Duration::from_millis(1))),
            }
        }
    }
}

impl Control {
    fn order(&self, change: &Change) {
        if let Some(phase) = &change.phase {
            // The reader is gone only with the run.
            let _ =
                self.announce.send(Announcement { at: change.at, phase: Arc::clone(phase), end: change.end });
        }
        for sender in &self.orders {
            sender.send(Order::Change(change.clone()));
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.stop();
        let intake = &mut *lock(&self.intake);
        // Nobody else looks after transactions without an end by now.
        while intake.gone < intake.threads.len() {
            intake.take_reports();
            std::thread::sleep(Duration::from_millis(1));
        }
        for thread in intake.threads.drain(..).filter(JoinHandle::is_finished) {
            // A worker that panicked has said so on standard error.
            let _ = thread.join();
        }
    }
}

/// A run whose workers are to come to life.
pub(crate) struct Prepared {
    control: Control,
    intake: Intake,
    drivers: Vec<Arc<dyn Driver>>,
    /// Workers that are connected.
    ready: usize,
}

/// Checks a load and prepares its run, and what its workers are made with.
pub(crate) fn prepare(spec: &LoadSpec) -> Result<(Prepared, Vec<WorkerSetup>), EngineError> {
    let Opening { setups, resolvers, series, changes } = open(spec)?;
    let (io, _) = spec.io.decide()?;
    let (shard_sender, shards) = channel();
    let (report_sender, reports) = channel();
    let (announce, announced) = channel();
    let transactions: Arc<[String]> = resolvers.iter().flat_map(Resolver::transactions).collect();
    let (mut orders, mut workers, mut recycle) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..spec.threads {
        let (order_sender, order_receiver) = mailbox();
        let (used_sender, used) = channel();
        workers.push(WorkerSetup {
            number,
            workers: spec.threads,
            tenants: setups.clone(),
            series: series.len(),
            transactions: Arc::clone(&transactions),
            pipeline: spec.pipeline,
            io,
            interval: spec.interval_ms * MILLISECOND,
            statement_timeout: spec.statement_timeout_ms * MILLISECOND,
            drain_timeout: spec.drain_timeout_ms * MILLISECOND,
            retry: spec.retry,
            changes: changes.clone(),
            orders: order_receiver,
            reports: report_sender.clone(),
            shards: shard_sender.clone(),
            used,
        });
        orders.push(order_sender);
        recycle.push(used_sender);
    }
    let keys = setups.iter().map(|setup| (setup.plan.name.clone(), setup.keys.clone())).collect();
    let phases = changes.iter().filter_map(|change| Some((change.at, change.phase.clone()?))).collect();
    let collector = Collector::new(series, recycle, spec.interval_ms * MILLISECOND, phases);
    let ends = changes.iter().find(|change| change.end).map(|change| change.at);
    let control = Control { resolvers, orders, announce, last_change: 0, ends, stopped: false };
    let intake = Intake {
        shards,
        reports,
        announced,
        collector,
        finished: Vec::new(),
        workers: spec.threads,
        gone: 0,
        threads: Vec::new(),
        watchdog: Watchdog::new(spec.script_timeout_ms * MILLISECOND, transactions),
        failure: None,
        keys,
    };
    let drivers = setups.iter().flat_map(|setup| setup.plan.endpoints.iter().flatten().cloned()).collect();
    Ok((Prepared { control, intake, drivers, ready: 0 }, workers))
}

fn spawn(setup: WorkerSetup) -> Result<JoinHandle<()>, EngineError> {
    std::thread::Builder::new()
        .name(format!("load-{}", setup.number))
        .spawn(move || worker::run(setup))
        .map_err(|error| EngineError::Failed(format!("no thread for a worker: {error}")))
}

impl Prepared {
    /// Waits until every worker is connected, or gives up with the first that cannot.
    fn await_ready(&mut self) -> Result<(), EngineError> {
        while self.ready < self.intake.workers {
            match self.intake.reports.recv_timeout(Duration::from_millis(100)) {
                Ok((number, report)) => self.hear(number, report)?,
                Err(_) if self.intake.threads.iter().any(JoinHandle::is_finished) => {
                    let died = EngineError::Failed("a worker died before the start".to_owned());
                    self.hear(0, Report::NotReady(died))?;
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Whether every worker is connected by now.
    #[cfg(feature = "simulated-time")]
    pub(crate) fn is_ready(&mut self) -> Result<bool, EngineError> {
        while let Ok((number, report)) = self.intake.reports.try_recv() {
            self.hear(number, report)?;
        }
        Ok(self.ready == self.intake.workers)
    }

    fn hear(&mut self, number: usize, report: Report) -> Result<(), EngineError> {
        let error = match report {
            Report::Ready(watched) => {
                self.intake.watchdog.watch(number, watched);
                self.ready += 1;
                return Ok(());
            }
            Report::NotReady(error) => error,
            Report::Fatal(message) => EngineError::Failed(message),
            Report::Finished(_) => EngineError::Failed("a worker ended before the start".to_owned()),
        };
        for sender in &self.control.orders {
            sender.send(Order::Abort);
        }
        Err(error)
    }

    /// Lets the load begin.
    pub(crate) fn begin(self) -> Run {
        let Self { control, intake, drivers, .. } = self;
        let origin = clock::now() + 5 * MILLISECOND;
        for driver in drivers {
            driver.run_starts(origin);
        }
        for sender in &control.orders {
            sender.send(Order::Start(origin));
        }
        Run { origin, control: Mutex::new(control), intake: Mutex::new(intake), heartbeat: None }
    }
}

impl Intake {
    fn add(&mut self, shard: Shard) {
        // What was announced before the shard was made is here by now.
        while let Ok(Announcement { at, phase, end }) = self.announced.try_recv() {
            if end {
                self.collector.end_at(at);
            }
            self.collector.announce(at, phase);
        }
        self.collector.add(shard);
    }

    /// Reads what the workers report; says whether the run has to be stopped.
    fn take_reports(&mut self) -> bool {
        let mut fatal = self.watch();
        // Counted before reports are read: whoever is gone by now has sent all that it had to say.
        let is_gone = |(number, thread): &(usize, &JoinHandle<()>)| {
            thread.is_finished() || self.watchdog.has_given_up(*number)
        };
        self.gone = self.threads.iter().enumerate().filter(is_gone).count();
        while let Ok((number, report)) = self.reports.try_recv() {
            match report {
                Report::Finished(totals) => {
                    self.finished.push(*totals);
                    self.take_shards();
                    self.collector.finished(number);
                }
                Report::Fatal(message) => {
                    self.failure.get_or_insert(message);
                    fatal = true;
                }
                Report::NotReady(error) => {
                    self.failure.get_or_insert(error.to_string());
                    fatal = true;
                }
                Report::Ready(_) => {}
            }
        }
        if self.gone > self.finished.len() && self.failure.is_none() {
            self.failure = Some("a worker died; standard error says why".to_owned());
            fatal = true;
        }
        fatal
    }

    /// Looks after transactions without an end; says whether the run has to be stopped because a worker is given up.
    fn watch(&mut self) -> bool {
        if self.failure.is_some() {
            self.watchdog.hurry();
        }
        let Some((number, message)) = self.watchdog.look() else { return false };
        self.failure.get_or_insert(message);
        self.collector.finished(number);
        true
    }

    /// Whatever a worker has sent, it has sent before it said that it is finished.
    fn take_shards(&mut self) {
        while let Ok(shard) = self.shards.try_recv() {
            self.add(shard);
        }
    }

    fn end_if_finished(&mut self) -> Option<Record> {
        if self.finished.len() < self.workers {
            if self.gone < self.workers {
                return None;
            }
            self.take_shards();
            (0..self.workers).for_each(|worker| self.collector.finished(worker));
        }
        if let Some(record) = self.collector.take() {
            return Some(record);
        }
        if std::mem::replace(&mut self.collector.ended, true) {
            return None;
        }
        let by_series = self.collector.names().iter().map(|name| (name.clone(), 0, 0)).collect();
        let mut totals = Totals { by_series, ..Totals::default() };
        for worker in &self.finished {
            for (place, (started, ended)) in worker.started.iter().zip(&worker.ended).enumerate() {
                let in_flight = started - ended;
                totals.started += started;
                totals.in_flight += in_flight;
                totals.by_series[place].1 += started;
                totals.by_series[place].2 += in_flight;
            }
            totals.uncertain += worker.uncertain;
            totals.script_memory += worker.script_memory as u64;
            for ((tenant, _), tallies) in self.keys.iter().zip(&worker.tallies) {
                let of_tenant = totals.tallies.entry(tenant.clone()).or_default();
                for (name, sure, uncertain) in tallies {
                    let tally = of_tenant.entry(name.clone()).or_default();
                    tally.0 += sure;
                    tally.1 += uncertain;
                }
            }
        }
        for (tenant, keys) in &self.keys {
            let used = keys.iter().map(|(table, keys)| (table.clone(), keys.handed_out()));
            totals.handed_out.insert(tenant.clone(), used.filter(|(_, count)| *count > 0).collect());
        }
        let complete = self.finished.len() == self.workers;
        Some(Record::End(Box::new(Ending { totals, complete, failure: self.failure.take() })))
    }
}

/// The channel by which used boxes go back to their worker.
pub(crate) type Recycle = Sender<Box<SeriesData>>;
