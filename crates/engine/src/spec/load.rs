//! The load of a tenant, resolved: from the words of a study to what workers execute.

use std::collections::BTreeMap;
use std::sync::Arc;

use nephoscope_datagen::MAX_THETA;
use nephoscope_drivers::{Dialect, Isolation};
use nephoscope_runtime::Nanos;
use nephoscope_runtime::clock::{MILLISECOND, SECOND};
use nephoscope_script::{Access, Pause, Transaction, Workload};

use crate::error::EngineError;
use crate::spec::routes::{Endpoint, Opener, RoutesChange};
use crate::spec::schedule::{Ramp, Spacing};
use crate::spec::{AccessSpec, ArrivalLaw, Level, LoadChange, MixSpec, PhaseSpec, Think};

/// When transactions start, and how many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Model {
    /// When the one before has ended: so many at a time.
    Closed(Ramp),
    /// At times that do not depend on the system: so many a second.
    Open(Ramp),
}

/// A tenant's part in a change; `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct TenantChange {
    pub(crate) model: Option<Model>,
    pub(crate) think: Option<Think>,
    pub(crate) spacing: Option<Spacing>,
    pub(crate) weights: Option<Arc<[f64]>>,
    pub(crate) access: Option<Access>,
    pub(crate) release: Option<bool>,
    pub(crate) isolation: Option<Isolation>,
    pub(crate) routes: Option<RoutesChange>,
}

impl TenantChange {
    /// How sessions think and arrivals lie from now on. Where the model changes, nothing is left of the old one's
    /// manners. That is known only when the change takes effect: others may have come before it.
    pub(crate) fn manners(&self, before: Model) -> (Option<Think>, Option<Spacing>) {
        let turns = self.model.is_some_and(|model| kind(model) != kind(before));
        (self.think.or(turns.then_some(Think::None)), self.spacing.or(turns.then_some(Spacing::Constant)))
    }
}

/// The sums of weights up to each.
pub(crate) fn cumulated(weights: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let add = |weight| {
        sum += weight;
        sum
    };
    weights.iter().map(add).collect()
}

/// Something that all workers do at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// When, since the start of the load.
    pub(crate) at: Nanos,
    /// The phase that begins.
    pub(crate) phase: Option<Arc<PhaseSpec>>,
    /// One for each tenant.
    pub(crate) tenants: Vec<TenantChange>,
    /// The load is over.
    pub(crate) end: bool,
}

/// Which model, without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Closed,
    Open,
}

/// What is known of a tenant when a change is to be resolved.
pub(crate) struct Resolver {
    pub(crate) name: String,
    pub(crate) workload: Workload,
    /// Which model begins when; changes are not always made in the order of their times.
    kinds: BTreeMap<Nanos, Kind>,
    /// When the tenant has a mix for the first time.
    mixed: Option<Nanos>,
    opener: Opener,
    dialect: &'static Dialect,
}

/// A concurrency above this is a slip of the pen.
const MOST_SESSIONS: f64 = 100_000.0;
/// So is a rate.
const HIGHEST_RATE: f64 = 1e8;

impl Resolver {
    pub(crate) fn new(name: &str, workload: Workload, opener: Opener, dialect: &'static Dialect) -> Self {
        Self { name: name.to_owned(), workload, kinds: BTreeMap::new(), mixed: None, opener, dialect }
    }

    /// What messages call the tenant's series, in their order: each transaction with its workload, and then those that
    /// only read once more.
    pub(crate) fn series_names(&self) -> impl Iterator<Item = String> {
        let all = &self.workload.transactions;
        let name = |of: &Transaction| format!("workload {}, transaction {}", self.workload.name, of.name);
        all.iter().chain(all.iter().filter(|of| of.read_only)).map(name)
    }

    /// Every endpoint that the tenant has, has had, or is going to have by the changes that are resolved.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.opener.known()
    }

    /// An opener for a stream of the tenant: an endpoint of both is one.
    pub(crate) fn opener(&self) -> Opener {
        self.opener.clone()
    }

    /// Resolves the tenant's part of a phase that begins `at` a time. `length` is the phase's, for ramps that take
    /// all of it.
    pub(crate) fn resolve(
        &mut self,
        loads: &BTreeMap<String, LoadChange>,
        length: Option<f64>,
        at: Nanos,
    ) -> Result<TenantChange, EngineError> {
        let load = match (loads.get("*"), loads.get(&self.name)) {
            (None, None) => return Ok(TenantChange::default()),
            (Some(load), None) | (None, Some(load)) => load.clone(),
            (Some(general), Some(own)) => overlay(general, own),
        };
        let resolved = self.one(&load, length, at).and_then(|change| {
            let open = |spec| self.opener.change(spec, self.dialect);
            Ok(TenantChange { routes: load.endpoints.as_ref().map(open).transpose()?, ..change })
        });
        resolved.map_err(|what| EngineError::Input(format!("the load of tenant {}: {what}", self.name)))
    }

    /// Keeps in mind what a change that was resolved will have done.
    pub(crate) fn accept(&mut self, change: &TenantChange, at: Nanos) {
        if let Some(model) = change.model {
            self.kinds.insert(at, kind(model));
        }
        if change.weights.is_some() {
            self.mixed = Some(self.mixed.map_or(at, |known| known.min(at)));
        }
    }

    fn one(&self, load: &LoadChange, length: Option<f64>, at: Nanos) -> Result<TenantChange, String> {
        let before = self.kinds.range(..=at).next_back().map(|(_, kind)| *kind);
        let model = model(load, length)?;
        let after = model.map(kind).or(before);
        let no_load = "the load has none yet";
        if load.arrivals.is_some() && after != Some(Kind::Open) {
            let has = if after.is_none() { no_load } else { "the load has a concurrency" };
            return Err(format!("arrivals belong to a rate, and {has}"));
        }
        if load.think.is_some() && after != Some(Kind::Closed) {
            let has = if after.is_none() { no_load } else { "the load has a rate" };
            return Err(format!("think belongs to a concurrency, and {has}"));
        }
        if let Some(think) = load.think {
            check_think(think)?;
            let has_pause = |of: &Transaction| [of.keying, of.think] != [Pause::None; 2];
            if think == Think::Workload && !self.workload.transactions.iter().any(has_pause) {
                let name = &self.workload.name;
                return Err(format!(
                    "think is \"workload\", and {name} gives no transaction keying or think"
                ));
            }
        }
        let weights = load.mix.as_ref().map(|mix| self.weights(mix)).transpose()?;
        let is_mixed = weights.is_some() || self.mixed.is_some_and(|mixed| mixed <= at);
        if !is_mixed && model.is_some_and(has_work) {
            return Err("the load has no mix, neither here nor from before".to_owned());
        }
        let access = load.access.map(access).transpose()?;
        let (spacing, release) = (load.arrivals.map(spacing), load.release);
        let isolation = load.isolation.as_deref().map(|name| self.isolation(name)).transpose()?;
        let think = load.think;
        Ok(TenantChange { model, think, spacing, weights, access, release, isolation, routes: None })
    }

    /// A level that the dialect has.
    fn isolation(&self, name: &str) -> Result<Isolation, String> {
        let levels = self.dialect.capabilities.isolation;
        Isolation::from_name(name)
            .filter(|_| levels.contains(&name))
            .ok_or_else(|| format!("isolation is {name:?}; {} has {}", self.dialect.name, levels.join(", ")))
    }

    fn weights(&self, mix: &MixSpec) -> Result<Arc<[f64]>, String> {
        let transactions = &self.workload.transactions;
        let given: Vec<(String, f64)> = match mix {
            MixSpec::Name(name) => {
                let known: Vec<&str> = self.workload.mixes.iter().map(|mix| mix.name.as_str()).collect();
                let mix = self.workload.mix(name).ok_or_else(|| {
                    format!("{} has no mix {name:?}; its mixes are {}", self.workload.name, known.join(", "))
                })?;
                mix.weights.clone()
            }
            MixSpec::Weights(weights) => weights.clone().into_iter().collect(),
        };
        let mut weights = vec![0.0; transactions.len()];
        for (name, weight) in given {
            let Some(index) = transactions.iter().position(|transaction| transaction.name == name) else {
                let known: Vec<&str> = transactions.iter().map(|known| known.name.as_str()).collect();
                return Err(format!("mix: no transaction is called {name:?}; they are {}", known.join(", ")));
            };
            if !(0.0..1e12).contains(&weight) {
                return Err(format!("mix: the weight of {name} is {weight}; it must be 0 or more"));
            }
            weights[index] = weight;
        }
        if weights.iter().sum::<f64>() <= 0.0 {
            return Err("mix: no transaction has a weight above 0".to_owned());
        }
        Ok(weights.into())
    }
}

/// A tenant's own load over the one for all.
fn overlay(general: &LoadChange, own: &LoadChange) -> LoadChange {
    let closed = |load: &LoadChange| (load.concurrency, load.think);
    let open = |load: &LoadChange| (load.rate, load.arrivals);
    // Of the two models the tenant's own counts.
    let (concurrency, think) = if own.rate.is_some() { (None, None) } else { closed(general) };
    let (rate, arrivals) = if own.concurrency.is_some() { (None, None) } else { open(general) };
    LoadChange {
        concurrency: own.concurrency.or(concurrency),
        think: own.think.or(think),
        rate: own.rate.or(rate),
        arrivals: own.arrivals.or(arrivals),
        mix: own.mix.clone().or_else(|| general.mix.clone()),
        access: own.access.or(general.access),
        release: own.release.or(general.release),
        isolation: own.isolation.clone().or_else(|| general.isolation.clone()),
        endpoints: own.endpoints.clone().or_else(|| general.endpoints.clone()),
    }
}

fn kind(model: Model) -> Kind {
    match model {
        Model::Closed(_) => Kind::Closed,
        Model::Open(_) => Kind::Open,
    }
}

fn has_work(model: Model) -> bool {
    let (Model::Closed(ramp) | Model::Open(ramp)) = model;
    ramp.from > 0.0 || ramp.to > 0.0
}

fn model(load: &LoadChange, length: Option<f64>) -> Result<Option<Model>, String> {
    match (load.concurrency, load.rate) {
        (Some(_), Some(_)) => {
            Err("concurrency and rate exclude each other: a load is closed or open".to_owned())
        }
        (Some(level), None) => Ok(Some(Model::Closed(ramp("concurrency", level, length, MOST_SESSIONS)?))),
        (None, Some(level)) => Ok(Some(Model::Open(ramp("rate", level, length, HIGHEST_RATE)?))),
        (None, None) => Ok(None),
    }
}

fn spacing(law: ArrivalLaw) -> Spacing {
    match law {
        ArrivalLaw::Constant => Spacing::Constant,
        ArrivalLaw::Poisson => Spacing::Poisson,
    }
}

fn ramp(what: &str, level: Level, length: Option<f64>, highest: f64) -> Result<Ramp, String> {
    let check = |value: f64| {
        if (0.0..=highest).contains(&value) {
            Ok(value)
        } else {
            Err(format!("{what} is {value}; it must be from 0 to {highest}"))
        }
    };
    match level {
        Level::At(value) => check(value).map(Ramp::level),
        Level::Ramp { from, to, seconds } => {
            let seconds = seconds
                .or(length)
                .ok_or_else(|| format!("{what}: a ramp needs its seconds where the phase has no length"))?;
            Ok(Ramp { from: check(from)?, to: check(to)?, over: to_nanos(seconds, what)? })
        }
    }
}

/// Seconds of a specification as nanoseconds.
pub(crate) fn to_nanos(seconds: f64, what: &str) -> Result<Nanos, String> {
    if seconds > 0.0 && seconds < 1e8 {
        Ok((seconds * SECOND as f64) as Nanos)
    } else {
        Err(format!("{what}: {seconds} seconds is no length; it must be above 0"))
    }
}

fn check_think(think: Think) -> Result<(), String> {
    match think {
        Think::Constant { ms } | Think::Exponential { ms } if !(0.0..1e9).contains(&ms) => {
            Err(format!("think is {ms} ms; it must be 0 or more"))
        }
        _ => Ok(()),
    }
}

/// How long a session pauses, drawn by `uniform` from [0, 1).
pub(crate) fn pause(think: Think, uniform: f64) -> Nanos {
    match think {
        // The workload's own pauses are each of one of the other laws.
        Think::None | Think::Workload => 0,
        Think::Constant { ms } => (ms * MILLISECOND as f64) as Nanos,
        Think::Exponential { ms } => (-(1.0 - uniform).ln() * ms * MILLISECOND as f64) as Nanos,
    }
}

fn access(spec: AccessSpec) -> Result<Access, String> {
    let share = |name: &str, value: f64| {
        if (0.0..=1.0).contains(&value) {
            Ok(value)
        } else {
            Err(format!("access.{name} is {value}; it must be from 0 to 1"))
        }
    };
    Ok(match spec {
        AccessSpec::Uniform => Access::Uniform,
        AccessSpec::Latest { k: 0 } => return Err("access.k is 0; it must be above 0".to_owned()),
        AccessSpec::Latest { k } => Access::Latest { k },
        AccessSpec::Zipfian { theta } | AccessSpec::LatestZipfian { theta }
            if !(0.0..=MAX_THETA).contains(&theta) =>
        {
            return Err(format!("access.theta is {theta}; it must be from 0 to {MAX_THETA}"));
        }
        AccessSpec::Zipfian { theta } => Access::Zipfian { theta },
        AccessSpec::LatestZipfian { theta } => Access::LatestZipfian { theta },
        AccessSpec::Hotspot { keys, accesses } => {
            Access::Hotspot { keys: share("keys", keys)?, accesses: share("accesses", accesses)? }
        }
    })
}
