//! A run: the coordinator's side of the workers.

mod collect;
mod history;
mod intake;
mod interval;
pub mod json;
mod open;
#[cfg(feature = "simulated-time")]
mod simulation;

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nephoscope_runtime::clock::{self, MILLISECOND, Nanos};
use nephoscope_runtime::mailbox::{self, mailbox};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::error::{EngineError, GiveUp};
use crate::heartbeat::Heartbeat;
use crate::lock::lock;
use crate::run::collect::Collector;
pub use crate::run::collect::Record;
use crate::run::intake::{Announcement, Intake};
use crate::run::open::{Opening, ending, open, resolve};
use crate::spec::load::{Change, Resolver};
use crate::spec::routes::{Endpoint, is_same};
use crate::spec::{LoadSpec, PhaseSpec};
use crate::worker::report::{Order, Report, SET_UP};
use crate::worker::watchdog::Watchdog;
use crate::worker::{self, WorkerSetup};

pub use collect::ErrorEvent;
pub use history::History;
pub use intake::{Ending, Totals};
pub use interval::{Interval, Series, SeriesName, TenantInterval};
pub use open::{read_source, settings};
#[cfg(feature = "simulated-time")]
pub use simulation::Simulation;

/// How long before its time a change is sent, so that every worker knows of it when its time comes, even if the
/// sender is held up on the way.
const LEAD: Nanos = 10 * MILLISECOND;
/// How much longer than its limits a worker may take to end, until a run that is dropped leaves it behind.
const MARGIN: Duration = Duration::from_secs(2);

struct Control {
    resolvers: Vec<Resolver>,
    /// The endpoints that know when the run has started.
    told: Vec<Endpoint>,
    orders: Vec<mailbox::Sender<Order>>,
    announce: Sender<Announcement>,
    last_change: Nanos,
    /// When the phases that the run was started with end it.
    ends: Option<Nanos>,
    stopped: bool,
}

/// A run that is going on. It may be used from several threads: one to read, another to change the load.
pub struct Run {
    origin: Nanos,
    control: Mutex<Control>,
    intake: Mutex<Intake>,
    /// How long dropping it waits for its workers.
    patience: Duration,
    /// None in simulated time, which stands still as it should.
    heartbeat: Option<Mutex<Heartbeat>>,
}

impl Run {
    /// Starts a load: checks it, connects its sessions, and returns when it has begun.
    ///
    /// An [`EngineError::Input`] comes before any endpoint is touched; [`EngineError::Failed`] when the endpoints
    /// cannot be used.
    pub fn start(spec: &LoadSpec) -> Result<Self, EngineError> {
        Self::start_unless(spec, &mut || false)
    }

    /// As [`Run::start`]; where `give_up` says so before the load has begun, it never does, and the sessions are let go.
    pub fn start_unless(spec: &LoadSpec, give_up: GiveUp<'_>) -> Result<Self, EngineError> {
        let (mut prepared, setups) = prepare(spec, give_up)?;
        for (number, setup) in setups.into_iter().enumerate() {
            let cpu = spec.cpus.get(number % spec.cpus.len().max(1));
            prepared.intake.threads.push(spawn(setup, cpu.copied())?);
        }
        prepared.await_ready(give_up)?;
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
        control.put(self.origin, phase, is_phase, at)?;
        control.last_change = at;
        Ok(at)
    }

    /// As [`Run::change_at`] within the present phase, before what was asked for already and is still to come.
    pub fn overtake(&self, change: PhaseSpec, at: Nanos) -> Result<Nanos, EngineError> {
        let at = at.max(self.elapsed() + LEAD);
        lock(&self.control).put(self.origin, change, false, at)?;
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
            if let Some(history) = intake.take_history() {
                return Some(Record::History(Box::new(history)));
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
    /// Resolves a change and sends it to the workers.
    fn put(&mut self, origin: Nanos, phase: PhaseSpec, is_phase: bool, at: Nanos) -> Result<(), EngineError> {
        if self.stopped || self.ends.is_some_and(|ends| ends <= at) {
            return Err(EngineError::Failed("the run is over".to_owned()));
        }
        let tenants = resolve(&mut self.resolvers, &phase, at)?;
        self.tell_start(origin);
        let phase = is_phase.then(|| Arc::new(phase));
        self.order(&Change { at, phase, tenants, end: false });
        Ok(())
    }

    /// Tells the endpoints that do not know it yet when the run has started.
    fn tell_start(&mut self, origin: Nanos) {
        for endpoint in self.resolvers.iter().flat_map(Resolver::endpoints) {
            if !self.told.iter().any(|told| is_same(told, endpoint)) {
                endpoint.run_starts(origin);
                self.told.push(Arc::clone(endpoint));
            }
        }
    }

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
    /// Waits for the workers, but not for ever: one that does not end is left behind, as the watchdog does.
    fn drop(&mut self) {
        self.stop();
        let (begun, intake) = (Instant::now(), &mut *lock(&self.intake));
        // Nobody else looks after transactions without an end by now.
        while intake.gone < intake.threads.len() && begun.elapsed() < self.patience {
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
    patience: Duration,
    /// Workers that are connected.
    ready: usize,
}

/// Checks a load and prepares its run, and what its workers are made with.
pub(crate) fn prepare(
    spec: &LoadSpec,
    give_up: GiveUp<'_>,
) -> Result<(Prepared, Vec<WorkerSetup>), EngineError> {
    let Opening { setups, resolvers, series, changes } = open(spec, give_up)?;
    let (io, _) = spec.io.decide()?;
    let (shard_sender, shards) = channel();
    let (report_sender, reports) = channel();
    let (announce, announced) = channel();
    let transactions: Arc<[String]> = resolvers.iter().flat_map(Resolver::series_names).collect();
    let (mut orders, mut workers, mut recycle) = (Vec::new(), Vec::new(), Vec::new());
    let (histories, mut recorders) = history::start(spec)?;
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
            history: recorders.next(),
        });
        orders.push(order_sender);
        recycle.push(used_sender);
    }
    let phases = changes.iter().filter_map(|change| Some((change.at, change.phase.clone()?))).collect();
    let collector = Collector::new(series, recycle, spec.interval_ms * MILLISECOND, phases);
    let ends = changes.iter().find(|change| change.end).map(|change| change.at);
    let control =
        Control { resolvers, told: Vec::new(), orders, announce, last_change: 0, ends, stopped: false };
    let intake = Intake {
        shards,
        reports,
        announced,
        collector,
        finished: Vec::new(),
        workers: spec.threads,
        gone: 0,
        threads: Vec::new(),
        watchdog: Watchdog::new(spec.script_timeout_ms * MILLISECOND, transactions, SET_UP),
        failure: None,
        keys: setups.iter().map(|setup| (setup.owner.clone(), setup.keys.clone())).collect(),
        histories,
    };
    // A transaction without an end is interrupted meanwhile, or its worker given up.
    let patience = Duration::from_millis(spec.drain_timeout_ms + 2 * spec.script_timeout_ms) + MARGIN;
    Ok((Prepared { control, intake, patience, ready: 0 }, workers))
}

/// Starts a worker's thread, which runs on one processor only if that is given.
fn spawn(setup: WorkerSetup, cpu: Option<usize>) -> Result<JoinHandle<()>, EngineError> {
    let name = format!("load-{}", setup.number);
    let work = move || match cpu.map_or(Ok(()), pin) {
        Ok(()) => worker::run(setup),
        // Nobody listens any more if the run was given up.
        Err(error) => drop(setup.reports.send((setup.number, Report::NotReady(error)))),
    };
    std::thread::Builder::new()
        .name(name)
        .spawn(work)
        .map_err(|error| EngineError::Failed(format!("no thread for a worker: {error}")))
}

fn pin(cpu: usize) -> Result<(), EngineError> {
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only)
        .map_err(|error| EngineError::Failed(format!("load.cpus: processor {cpu} cannot be had: {error}")))
}

impl Prepared {
    /// Waits until every worker is connected, or gives up with the first that cannot.
    fn await_ready(&mut self, give_up: GiveUp<'_>) -> Result<(), EngineError> {
        while self.ready < self.intake.workers {
            if give_up() {
                let message = "interrupted while the sessions were connected".to_owned();
                self.hear(0, Report::NotReady(EngineError::Failed(message)))?;
            }
            // Seen before reports are read: whoever is gone by now has sent all that it had to say.
            let has_died = self.intake.threads.iter().any(JoinHandle::is_finished);
            match self.intake.reports.recv_timeout(Duration::from_millis(100)) {
                Ok((number, report)) => self.hear(number, report)?,
                Err(_) if self.intake.watch() => {
                    let stuck = self.intake.failure.take().unwrap_or_default();
                    self.hear(0, Report::NotReady(EngineError::Failed(stuck)))?;
                }
                Err(_) if has_died => {
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
            Report::Begun(watched) => {
                self.intake.watchdog.watch(number, watched);
                return Ok(());
            }
            Report::Ready => {
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
        let Self { mut control, intake, patience, .. } = self;
        let origin = clock::now() + 5 * MILLISECOND;
        control.tell_start(origin);
        for sender in &control.orders {
            sender.send(Order::Start(origin));
        }
        Run { origin, control: Mutex::new(control), intake: Mutex::new(intake), patience, heartbeat: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_dropped_leaves_a_worker_that_does_not_end() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/workloads/lab");
        let load = serde_json::json!({"concurrency": 1, "mix": {"write": 1}});
        let spec = serde_json::json!({
            "seed": 1, "threads": 1, "interval_ms": 100, "statement_mode": "prepared", "pipeline": false,
            "connect_timeout_ms": 1000, "statement_timeout_ms": 1000, "drain_timeout_ms": 100,
            "script_timeout_ms": 100, "retry": {"attempts": 1, "backoff_ms": 1.0, "backoff_max_ms": 1.0},
            "on_connect": [], "balance": "round-robin", "io": "epoll",
            "tenants": [{
                "name": "t", "rw": ["sim://"], "ro": [], "reads": "rw", "writer_weight": 1.0, "sessions": 1, "backlog": 10,
                "workload": {"folder": folder, "scale": 1.0, "data_seed": 1},
            }],
            "phases": [{"name": "all", "kind": "measure", "seconds": null, "loads": {"*": load}}],
        });
        let run = Run::start(&serde_json::from_value(spec).unwrap()).unwrap();
        lock(&run.intake).threads.push(std::thread::spawn(|| std::thread::sleep(Duration::from_hours(1))));
        let begun = Instant::now();
        drop(run);
        assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
    }
}
