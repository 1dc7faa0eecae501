//! From a specification to what a run begins with: everything that can be wrong with it is found here, before any
//! endpoint is touched.

use std::collections::BTreeMap;
use std::sync::Arc;

use nephoscope_drivers::{Settings, Statement, StatementMode};
use nephoscope_runtime::clock::{MILLISECOND, Nanos};
use nephoscope_script::{OptionValue, Source, Transaction, Workload};
use rustix::thread::CpuSet;

use crate::error::{EngineError, GiveUp};
use crate::run::interval::SeriesName;
use crate::spec::load::{Change, Resolver, TenantChange, to_nanos};
use crate::spec::routes::{Opener, TenantPlan};
use crate::spec::{LoadSpec, PhaseKind, PhaseSpec, Reads, RetrySpec, Role, TenantSpec, Think, WorkloadSpec};
use crate::worker::TenantSetup;

/// What a run begins with.
pub(crate) struct Opening {
    pub(crate) setups: Vec<TenantSetup>,
    pub(crate) resolvers: Vec<Resolver>,
    /// The series of all tenants, one after the other.
    pub(crate) series: Vec<SeriesName>,
    pub(crate) changes: Vec<Change>,
}

/// Checks a load, opens its tenants and resolves its phases.
pub(crate) fn open(spec: &LoadSpec, give_up: GiveUp<'_>) -> Result<Opening, EngineError> {
    check(spec)?;
    let settings = settings(spec)?;
    let (mut setups, mut resolvers, mut series) = (Vec::new(), Vec::new(), Vec::new());
    for (index, tenant) in spec.tenants.iter().enumerate() {
        let owner =
            owner_of(tenant, &spec.tenants[..index])?.map(|owner| (&setups[owner], &resolvers[owner]));
        let opened = open_tenant(tenant, spec, &settings, owner, (index, series.len()), give_up)?;
        setups.push(opened.setup);
        resolvers.push(opened.resolver);
        series.extend(opened.series);
    }
    let changes = timeline(&mut resolvers, &spec.phases)?;
    Ok(Opening { setups, resolvers, series, changes })
}

/// Reads and checks a workload: also what `nephoscope workloads` shows.
pub fn read_source(
    spec: &WorkloadSpec,
    dialect: &'static nephoscope_drivers::Dialect,
) -> Result<Source, EngineError> {
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
    let source = Source::read(&spec.folder, options, spec.scale, spec.data_seed, dialect)?;
    Ok(source.with_packaged(spec.packaged.as_deref()))
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
        consistency: spec.consistency.clone(),
        ..Settings::default()
    })
}

/// A tenant, opened: what is the same for all workers.
struct Opened {
    setup: TenantSetup,
    resolver: Resolver,
    series: Vec<SeriesName>,
}

/// The number of the tenant that one is a stream of.
fn owner_of(spec: &TenantSpec, before: &[TenantSpec]) -> Result<Option<usize>, EngineError> {
    let Some(name) = &spec.stream_of else { return Ok(None) };
    let wrong =
        |what: &str| Err(EngineError::Input(format!("stream {} of tenant {name:?}: {what}", spec.name)));
    match before.iter().position(|other| other.name == *name && other.stream_of.is_none()) {
        None => wrong("no tenant before it has that name"),
        Some(owner) if before[owner].workload != spec.workload => wrong("its workload is not the tenant's"),
        owner => Ok(owner),
    }
}

fn open_tenant(
    spec: &TenantSpec,
    load: &LoadSpec,
    settings: &Settings,
    owner: Option<(&TenantSetup, &Resolver)>,
    (index, first_series): (usize, usize),
    give_up: GiveUp<'_>,
) -> Result<Opened, EngineError> {
    let mut opener = owner.map_or_else(|| Opener::new(settings), |(_, resolver)| resolver.opener());
    let routes = opener.begin(&spec.rw, &spec.ro, spec.reads)?;
    let Some(dialect) = routes.of(Role::Rw).first().map(|first| first.dialect()) else {
        return Err(EngineError::Input(format!("tenant {} has no rw endpoint", spec.name)));
    };
    if spec.reads == Reads::Ro && routes.of(Role::Ro).is_empty() {
        let message = format!("tenant {}: reads go to ro, and it has no ro endpoint", spec.name);
        return Err(EngineError::Input(message));
    }
    if !(spec.writer_weight.is_finite() && spec.writer_weight > 0.0) {
        let message =
            format!("tenant {}: writer_weight is {}; it must be above 0", spec.name, spec.writer_weight);
        return Err(EngineError::Input(message));
    }
    let source = read_source(&spec.workload, dialect)?;
    let workload = source.workload_unless(give_up)?;
    let series = series_of(spec, &workload, |read_only| routes.role(read_only, Role::Ro));
    let statements: Arc<[Statement]> = workload.statements.clone().into();
    let (keys, owner) = match owner {
        Some((setup, _)) => (setup.keys.clone(), setup.owner.clone()),
        None => (workload.key_spaces(&spec.workload.handed_out), spec.name.clone()),
    };
    let plan = TenantPlan {
        name: spec.name.clone(),
        routes,
        balance: load.balance,
        writer_weight: spec.writer_weight,
        statements,
        read_only: workload.transactions.iter().map(|transaction| transaction.read_only).collect(),
        aborts_on: workload.transactions.iter().map(|transaction| transaction.aborts_on).collect(),
        pauses: workload.transactions.iter().map(|of| [of.keying, of.think].map(Think::from)).collect(),
        sessions: spec.sessions,
        backlog: spec.backlog,
        // Each tenant has random numbers of its own.
        seed: load.seed.wrapping_add((index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        first_series,
        series: series_by_role(&workload, &series, first_series),
    };
    let setup = TenantSetup { plan: Arc::new(plan), owner, source: Arc::new(source), keys };
    Ok(Opened { setup, resolver: Resolver::new(&spec.name, workload, opener, dialect), series })
}

/// Names the series of a tenant: the transactions where they run, and those that only read in the other role as well,
/// as endpoints may come and go.
fn series_of(spec: &TenantSpec, workload: &Workload, role: impl Fn(bool) -> Role) -> Vec<SeriesName> {
    let name = |role: Role, of: &Transaction| SeriesName {
        tenant: spec.name.clone(),
        role,
        transaction: of.name.clone(),
    };
    let other = if role(true) == Role::Ro { Role::Rw } else { Role::Ro };
    let first = workload.transactions.iter().map(|of| name(role(of.read_only), of));
    let again = workload.transactions.iter().filter(|of| of.read_only).map(|of| name(other, of));
    first.chain(again).collect()
}

/// Finds the series of each transaction by role.
fn series_by_role(workload: &Workload, series: &[SeriesName], first: usize) -> Vec<[usize; 2]> {
    let index = |(number, transaction): (usize, &Transaction)| {
        Role::ALL.map(|role| {
            let is_it = |of: &SeriesName| of.role == role && of.transaction == transaction.name;
            first + series.iter().position(is_it).unwrap_or(number)
        })
    };
    workload.transactions.iter().enumerate().map(index).collect()
}

fn check(spec: &LoadSpec) -> Result<(), EngineError> {
    let bounds = [
        ("load.threads", spec.threads as u64, 1, 256),
        ("load.interval_ms", spec.interval_ms, 50, 3_600_000),
        ("load.connect_timeout_ms", spec.connect_timeout_ms, 1, 3_600_000),
        ("load.statement_timeout_ms", spec.statement_timeout_ms, 1, 86_400_000),
        ("load.script_timeout_ms", spec.script_timeout_ms, 100, 3_600_000),
        ("load.drain_timeout_ms", spec.drain_timeout_ms, 0, 3_600_000),
    ];
    for (name, value, low, high) in bounds {
        if !(low..=high).contains(&value) {
            return Err(EngineError::Input(format!("{name} is {value}; it must be from {low} to {high}")));
        }
    }
    if let Some(cpu) = spec.cpus.iter().find(|cpu| **cpu >= CpuSet::MAX_CPU) {
        let last = CpuSet::MAX_CPU - 1;
        return Err(EngineError::Input(format!("load.cpus has {cpu}; it must be from 0 to {last}")));
    }
    check_retry(&spec.retry)?;
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

fn check_retry(retry: &RetrySpec) -> Result<(), EngineError> {
    let bounds = [
        ("attempts", f64::from(retry.attempts), 1.0, 1000.0),
        ("backoff_ms", retry.backoff_ms, 0.0, 3_600_000.0),
        ("backoff_max_ms", retry.backoff_max_ms, 0.0, 3_600_000.0),
    ];
    for (name, value, low, high) in bounds {
        if !(low..=high).contains(&value) {
            let message = format!("load.retry.{name} is {value}; it must be from {low} to {high}");
            return Err(EngineError::Input(message));
        }
    }
    Ok(())
}

/// Resolves a change that takes effect at a time; nothing is kept in mind if a tenant's part of it is wrong.
pub(crate) fn resolve(
    resolvers: &mut [Resolver],
    phase: &PhaseSpec,
    at: Nanos,
) -> Result<Vec<TenantChange>, EngineError> {
    let place = |error: EngineError| EngineError::Input(format!("phase {:?}: {error}", phase.name));
    for name in phase.loads.keys() {
        if name != "*" && !resolvers.iter().any(|resolver| resolver.name == *name) {
            let known: Vec<&str> = resolvers.iter().map(|resolver| resolver.name.as_str()).collect();
            let message = format!("there is no tenant {name:?}; they are {}", known.join(", "));
            return Err(place(EngineError::Input(message)));
        }
    }
    phase.retry.as_ref().map_or(Ok(()), check_retry).map_err(place)?;
    let resolve = |resolver: &mut Resolver| resolver.resolve(&phase.loads, phase.seconds, at).map_err(place);
    let changes = resolvers.iter_mut().map(resolve).collect::<Result<Vec<_>, _>>()?;
    for (resolver, change) in resolvers.iter_mut().zip(&changes) {
        resolver.accept(change, at);
    }
    Ok(changes)
}

/// The changes that the phases bring, with the end behind the last if that has a length.
fn timeline(resolvers: &mut [Resolver], phases: &[PhaseSpec]) -> Result<Vec<Change>, EngineError> {
    let mut changes = Vec::new();
    let mut at = 0;
    for (number, phase) in phases.iter().enumerate() {
        let tenants = resolve(resolvers, phase, at)?;
        changes.push(Change { at, phase: Some(Arc::new(phase.clone())), tenants, end: false });
        match phase.seconds {
            Some(seconds) => {
                at += to_nanos(seconds, &format!("phase {:?}", phase.name)).map_err(EngineError::Input)?;
            }
            None if number + 1 < phases.len() => {
                let message = format!("phase {:?} has no seconds, and another follows", phase.name);
                return Err(EngineError::Input(message));
            }
            None => return Ok(changes),
        }
    }
    changes.push(ending(at, resolvers.len()));
    Ok(changes)
}

/// The change that ends a run: what is still in flight ends in a phase of its own, which does not count.
pub(crate) fn ending(at: Nanos, tenants: usize) -> Change {
    let spec = PhaseSpec {
        name: "drain".to_owned(),
        kind: PhaseKind::RampDown,
        seconds: None,
        labels: BTreeMap::new(),
        history: false,
        retry: None,
        loads: BTreeMap::new(),
    };
    Change { at, phase: Some(Arc::new(spec)), tenants: vec![TenantChange::default(); tenants], end: true }
}
