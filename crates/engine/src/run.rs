//! A run: the coordinator's side of the workers.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nephoscope_drivers::{Driver, Settings, Statement, StatementMode};
use nephoscope_runtime::clock::{self, MILLISECOND, Nanos};
use nephoscope_runtime::mailbox::{self, mailbox};
use nephoscope_script::{KeySpace, OptionValue, Source};

use crate::collect::{Collector, Record, SeriesName};
use crate::error::EngineError;
use crate::load::{Change, Phase, Resolver, TenantChange, to_nanos};
use crate::recorder::{SeriesData, Shard};
use crate::spec::{LoadSpec, PhaseKind, PhaseSpec, Role, TenantSpec, WorkloadSpec};
use crate::tenant::TenantPlan;
use crate::worker::{self, Order, Report, TenantSetup, WorkerSetup, WorkerTotals};

/// What the whole run has done.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Transactions that were started.
    pub started: u64,
    /// Of these, the ones in flight when the run ended.
    pub in_flight: u64,
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
    /// Why it ended before its time: an error of the workload.
    pub failure: Option<String>,
}

/// How long before its time a change is sent, so that every worker knows of it when its time comes.
const LEAD: Nanos = 3 * MILLISECOND;

struct Control {
    resolvers: Vec<Resolver>,
    orders: Vec<mailbox::Sender<Order>>,
    phases: u32,
    last_change: Nanos,
    ended: bool,
}

struct Intake {
    shards: Receiver<Shard>,
    reports: Receiver<(usize, Report)>,
    collector: Collector,
    finished: Vec<WorkerTotals>,
    threads: Vec<JoinHandle<()>>,
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
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads and checks a workload: also what `nephoscope workloads` shows.
pub fn read_source(spec: &WorkloadSpec, dialect: nephoscope_drivers::Dialect) -> Result<Source, EngineError> {
    let mut options = BTreeMap::new();
    for (name, value) in &spec.options {
        let value = match value {
            serde_json::Value::String(text) => OptionValue::Text(text.clone()),
            serde_json::Value::Bool(value) => OptionValue::Boolean(*value),
            serde_json::Value::Number(number) => OptionValue::Number(number.as_f64().unwrap_or(f64::NAN)),
            other => {
                let message =
                    format!("workload.options.{name} is {other}; it must be a text, a number or a boolean");
                return Err(EngineError::Input(message));
            }
        };
        options.insert(name.clone(), value);
    }
    Ok(Source::read(&spec.folder, options, spec.scale, spec.data_seed, dialect)?)
}

/// The settings of a load's connections.
pub fn settings(spec: &LoadSpec) -> Result<Settings, EngineError> {
    let statement_mode = match spec.statement_mode.as_str() {
        "simple" => StatementMode::Simple,
        "extended" => StatementMode::Extended,
        "prepared" => StatementMode::Prepared,
        other => {
            let message = format!("load.statement_mode is {other:?}; allowed are simple, extended, prepared");
            return Err(EngineError::Input(message));
        }
    };
    Ok(Settings {
        statement_mode,
        connect_timeout: spec.connect_timeout_ms * MILLISECOND,
        on_connect: spec.on_connect.clone(),
    })
}

/// A tenant, opened: what is the same for all workers.
struct Opened {
    setup: TenantSetup,
    resolver: Resolver,
    series: Vec<SeriesName>,
}

fn open_tenant(
    spec: &TenantSpec,
    load: &LoadSpec,
    settings: &Settings,
    index: usize,
    first_series: usize,
) -> Result<Opened, EngineError> {
    let open = |urls: &[String]| -> Result<Vec<Arc<dyn Driver>>, EngineError> {
        urls.iter().map(|url| Ok(nephoscope_drivers::open(url, settings)?)).collect()
    };
    let endpoints = [open(&spec.rw)?, open(&spec.ro)?];
    let Some(first) = endpoints[0].first() else {
        return Err(EngineError::Input(format!("tenant {} has no rw endpoint", spec.name)));
    };
    if spec.reads == Role::Ro && endpoints[1].is_empty() {
        let message = format!("tenant {}: reads go to ro, and it has no ro endpoint", spec.name);
        return Err(EngineError::Input(message));
    }
    let source = read_source(&spec.workload, first.dialect())?;
    let workload = source.workload()?;
    let role = |read_only: bool| if read_only { spec.reads } else { Role::Rw };
    let series = workload.transactions.iter().map(|transaction| SeriesName {
        tenant: spec.name.clone(),
        role: role(transaction.read_only),
        transaction: transaction.name.clone(),
    });
    let series: Vec<SeriesName> = series.collect();
    let statements: Arc<[Statement]> = workload.statements.clone().into();
    let keys = workload.key_spaces(&spec.workload.handed_out);
    let plan = TenantPlan {
        name: spec.name.clone(),
        endpoints,
        balance: load.balance,
        statements,
        roles: series.iter().map(|series| series.role).collect(),
        read_only: workload.transactions.iter().map(|transaction| transaction.read_only).collect(),
        sessions: spec.sessions,
        backlog: spec.backlog,
        // Each tenant has random numbers of its own.
        seed: load.seed.wrapping_add((index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        first_series,
    };
    let setup = TenantSetup { plan: Arc::new(plan), source: Arc::new(source), keys };
    Ok(Opened { setup, resolver: Resolver::new(&spec.name, workload), series })
}

fn check(spec: &LoadSpec) -> Result<(), EngineError> {
    let bounds = [
        ("load.threads", spec.threads as u64, 1, 256),
        ("load.interval_ms", spec.interval_ms, 50, 3_600_000),
        ("load.connect_timeout_ms", spec.connect_timeout_ms, 1, 3_600_000),
        ("load.statement_timeout_ms", spec.statement_timeout_ms, 1, 86_400_000),
        ("load.drain_timeout_ms", spec.drain_timeout_ms, 0, 3_600_000),
        ("load.retry.attempts", u64::from(spec.retry.attempts), 1, 1000),
    ];
    for (name, value, low, high) in bounds {
        if !(low..=high).contains(&value) {
            return Err(EngineError::Input(format!("{name} is {value}; it must be from {low} to {high}")));
        }
    }
    if spec.tenants.is_empty() || spec.phases.is_empty() {
        return Err(EngineError::Input("a load has at least one tenant and one phase".to_owned()));
    }
    for tenant in &spec.tenants {
        if !(1..=100_000).contains(&tenant.sessions) || tenant.backlog > 100_000_000 {
            let message = format!(
                "tenant {}: sessions must be from 1 to 100000, and backlog to 100000000",
                tenant.name
            );
            return Err(EngineError::Input(message));
        }
        if spec.tenants.iter().filter(|other| other.name == tenant.name).count() > 1 || tenant.name == "*" {
            return Err(EngineError::Input(format!("the tenant name {:?} is not unique", tenant.name)));
        }
    }
    Ok(())
}

fn resolve(resolvers: &mut [Resolver], phase: &PhaseSpec) -> Result<Vec<TenantChange>, EngineError> {
    for name in phase.loads.keys() {
        if name != "*" && !resolvers.iter().any(|resolver| resolver.name == *name) {
            let known: Vec<&str> = resolvers.iter().map(|resolver| resolver.name.as_str()).collect();
            let message =
                format!("phase {:?}: there is no tenant {name:?}; they are {}", phase.name, known.join(", "));
            return Err(EngineError::Input(message));
        }
    }
    let resolve = |resolver: &mut Resolver| {
        resolver
            .resolve(&phase.loads, phase.seconds)
            .map_err(|error| EngineError::Input(format!("phase {:?}: {error}", phase.name)))
    };
    resolvers.iter_mut().map(resolve).collect()
}

/// The changes that the phases bring, with the end behind the last if that has a length.
fn timeline(resolvers: &mut [Resolver], phases: &[PhaseSpec]) -> Result<Vec<Change>, EngineError> {
    let mut changes = Vec::new();
    let mut at = 0;
    for (number, phase) in phases.iter().enumerate() {
        let tenants = resolve(resolvers, phase)?;
        let spec = Arc::new(phase.clone());
        changes.push(Change { at, phase: Some(Phase { number: number as u32, spec }), tenants, end: false });
        match phase.seconds {
            Some(seconds) => at += to_nanos(seconds, "phase").map_err(EngineError::Input)?,
            None if number + 1 < phases.len() => {
                let message = format!("phase {:?} has no seconds, and another follows", phase.name);
                return Err(EngineError::Input(message));
            }
            None => return Ok(changes),
        }
    }
    changes.push(ending(at, phases.len() as u32, resolvers.len()));
    Ok(changes)
}

/// The change that ends a run: what is still in flight ends in a phase of its own, which does not count.
fn ending(at: Nanos, number: u32, tenants: usize) -> Change {
    let spec = PhaseSpec {
        name: "drain".to_owned(),
        kind: PhaseKind::RampDown,
        seconds: None,
        labels: BTreeMap::new(),
        loads: BTreeMap::new(),
    };
    let phase = Some(Phase { number, spec: Arc::new(spec) });
    Change { at, phase, tenants: vec![TenantChange::default(); tenants], end: true }
}

impl Run {
    /// Starts a load: checks it, connects its sessions, and returns when it has begun.
    ///
    /// An [`EngineError::Input`] comes before any endpoint is touched; [`EngineError::Failed`] when the endpoints
    /// cannot be used.
    pub fn start(spec: &LoadSpec) -> Result<Self, EngineError> {
        check(spec)?;
        let settings = settings(spec)?;
        let mut opened = Vec::new();
        let mut series: Vec<SeriesName> = Vec::new();
        for (index, tenant) in spec.tenants.iter().enumerate() {
            let tenant = open_tenant(tenant, spec, &settings, index, series.len())?;
            series.extend(tenant.series.iter().cloned());
            opened.push(tenant);
        }
        let (setups, mut resolvers): (Vec<TenantSetup>, Vec<Resolver>) =
            opened.into_iter().map(|tenant| (tenant.setup, tenant.resolver)).unzip();
        let changes = timeline(&mut resolvers, &spec.phases)?;
        let (shard_sender, shards) = channel();
        let (report_sender, reports) = channel();
        let transactions: Arc<[String]> = series.iter().map(|name| name.transaction.clone()).collect();
        let (mut orders, mut threads, mut recycle) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..spec.threads {
            let (order_sender, order_receiver) = mailbox();
            let (used_sender, used) = channel();
            let setup = WorkerSetup {
                number,
                workers: spec.threads,
                tenants: setups.clone(),
                series: series.len(),
                transactions: Arc::clone(&transactions),
                pipeline: spec.pipeline,
                interval: spec.interval_ms * MILLISECOND,
                statement_timeout: spec.statement_timeout_ms * MILLISECOND,
                drain_timeout: spec.drain_timeout_ms * MILLISECOND,
                retry: spec.retry,
                changes: changes.clone(),
                orders: order_receiver,
                reports: report_sender.clone(),
                shards: shard_sender.clone(),
                used,
            };
            threads.push(spawn(number, setup)?);
            orders.push(order_sender);
            recycle.push(used_sender);
        }
        let keys = setups.iter().map(|setup| (setup.plan.name.clone(), setup.keys.clone())).collect();
        let phases = changes.iter().filter_map(|change| Some((change.at, change.phase.clone()?))).collect();
        let collector = Collector::new(series, recycle, spec.interval_ms * MILLISECOND, phases);
        let control =
            Control { resolvers, orders, phases: changes.len() as u32, last_change: 0, ended: false };
        let intake =
            Intake { shards, reports, collector, finished: Vec::new(), threads, failure: None, keys };
        await_ready(&intake, &control)?;
        let origin = clock::now() + 5 * MILLISECOND;
        for driver in setups.iter().flat_map(|setup| setup.plan.endpoints.iter().flatten()) {
            driver.run_starts(origin);
        }
        for sender in &control.orders {
            sender.send(Order::Start(origin));
        }
        Ok(Self { origin, control: Mutex::new(control), intake: Mutex::new(intake) })
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
        if control.ended {
            return Err(EngineError::Failed("the run is over".to_owned()));
        }
        let tenants = resolve(&mut control.resolvers, &phase)?;
        let at = at.max(self.elapsed() + LEAD).max(control.last_change + 1);
        control.last_change = at;
        let phase = is_phase.then(|| {
            control.phases += 1;
            Phase { number: control.phases - 1, spec: Arc::new(phase) }
        });
        if let Some(phase) = &phase {
            lock(&self.intake).collector.announce(at, phase.clone());
        }
        let change = Change { at, phase, tenants, end: false };
        for sender in &control.orders {
            sender.send(Order::Change(change.clone()));
        }
        Ok(at)
    }

    /// Ends the run: no further transaction is started, and those in flight are waited for. [`Run::next`] goes on
    /// to give what there is.
    pub fn stop(&self) {
        let control = &mut *lock(&self.control);
        if std::mem::replace(&mut control.ended, true) {
            return;
        }
        // Changes that are still to come will not: the end overtakes them.
        let at = self.elapsed() + LEAD;
        let change = ending(at, control.phases, control.resolvers.len());
        if let Some(phase) = &change.phase {
            let collector = &mut lock(&self.intake).collector;
            collector.end_at(at);
            collector.announce(at, phase.clone());
        }
        for sender in &control.orders {
            sender.send(Order::Change(change.clone()));
        }
    }

    /// The next record; `None` if there is none within the time. After [`Record::End`] there is no more.
    pub fn next(&self, timeout: Duration) -> Option<Record> {
        let deadline = std::time::Instant::now() + timeout;
        loop {
            let intake = &mut *lock(&self.intake);
            if let Some(record) = intake.collector.take() {
                return Some(record);
            }
            let fatal = intake.take_reports();
            if let Some(record) = intake.end_if_finished() {
                return Some(record);
            }
            if fatal {
                // Not while the intake is locked: stopping announces a phase there.
                return self.stop_then_next(timeout);
            }
            let now = std::time::Instant::now();
            if now >= deadline {
                return None;
            }
            // Short waits, so that a change can announce its phase in between.
            let wait = (deadline - now).min(Duration::from_millis(20));
            match intake.shards.recv_timeout(wait) {
                Ok(shard) => intake.collector.add(shard),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(wait.min(Duration::from_millis(1))),
            }
        }
    }

    fn stop_then_next(&self, timeout: Duration) -> Option<Record> {
        self.stop();
        self.next(timeout)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.stop();
        for thread in lock(&self.intake).threads.drain(..) {
            // A worker that panicked has said so on standard error.
            let _ = thread.join();
        }
    }
}

fn spawn(number: usize, setup: WorkerSetup) -> Result<JoinHandle<()>, EngineError> {
    std::thread::Builder::new()
        .name(format!("load-{number}"))
        .spawn(move || worker::run(setup))
        .map_err(|error| EngineError::Failed(format!("no thread for a worker: {error}")))
}

/// Waits until every worker is connected, or gives up with the first that cannot.
fn await_ready(intake: &Intake, control: &Control) -> Result<(), EngineError> {
    let mut ready = 0;
    while ready < intake.threads.len() {
        let error = match intake.reports.recv_timeout(Duration::from_millis(100)) {
            Ok((_, Report::Ready)) => {
                ready += 1;
                continue;
            }
            Ok((_, Report::NotReady(error))) => error,
            Ok((_, Report::Fatal(message))) => EngineError::Failed(message),
            Ok((_, Report::Finished(_))) => EngineError::Failed("a worker ended before the start".to_owned()),
            Err(_) if intake.threads.iter().any(JoinHandle::is_finished) => {
                EngineError::Failed("a worker died before the start".to_owned())
            }
            Err(_) => continue,
        };
        for sender in &control.orders {
            sender.send(Order::Abort);
        }
        return Err(error);
    }
    Ok(())
}

impl Intake {
    /// Reads what the workers report; says whether the run has to be stopped.
    fn take_reports(&mut self) -> bool {
        let mut fatal = false;
        while let Ok((number, report)) = self.reports.try_recv() {
            match report {
                Report::Finished(totals) => {
                    self.finished.push(*totals);
                    // Whatever a worker sent was sent before it finished.
                    while let Ok(shard) = self.shards.try_recv() {
                        self.collector.add(shard);
                    }
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
                Report::Ready => {}
            }
        }
        let dead = self.threads.iter().filter(|thread| thread.is_finished()).count();
        if dead > self.finished.len() && self.reports.try_recv().is_err() && self.failure.is_none() {
            self.failure = Some("a worker died; standard error says why".to_owned());
            fatal = true;
        }
        fatal
    }

    fn end_if_finished(&mut self) -> Option<Record> {
        let dead = self.threads.iter().all(JoinHandle::is_finished);
        if self.finished.len() < self.threads.len() && !dead {
            return None;
        }
        if let Some(record) = self.collector.take() {
            return Some(record);
        }
        if std::mem::replace(&mut self.collector.ended, true) {
            return None;
        }
        let mut totals = Totals::default();
        for worker in &self.finished {
            let (started, ended): (u64, u64) = (worker.started.iter().sum(), worker.ended.iter().sum());
            totals.started += started;
            totals.in_flight += started - ended;
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
        Some(Record::End(Box::new(Ending { totals, failure: self.failure.take() })))
    }
}

/// The channel by which used boxes go back to their worker.
pub(crate) type Recycle = Sender<Box<SeriesData>>;
