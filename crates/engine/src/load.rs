//! The load of a tenant, resolved: from the words of a study to what workers execute.

use std::collections::BTreeMap;
use std::sync::Arc;

use nephoscope_runtime::Nanos;
use nephoscope_runtime::clock::{MILLISECOND, SECOND};
use nephoscope_script::{Access, Workload};

use crate::error::EngineError;
use crate::schedule::{Ramp, Spacing};
use crate::spec::{AccessSpec, ArrivalLaw, Level, LoadChange, MixSpec, PhaseSpec, Think};

/// When transactions start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Model {
    /// When the one before has ended: so many at a time.
    Closed { concurrency: Ramp, think: Think },
    /// At times that do not depend on the system.
    Open { rate: Ramp, spacing: Spacing },
}

/// A tenant's part in a change; `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct TenantChange {
    pub(crate) model: Option<Model>,
    pub(crate) weights: Option<Arc<[f64]>>,
    pub(crate) access: Option<Access>,
}

/// A phase, as events and intervals know it.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub(crate) number: u32,
    pub(crate) spec: Arc<PhaseSpec>,
}

/// Something that all workers do at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// When, since the start of the load.
    pub(crate) at: Nanos,
    /// The phase that begins.
    pub(crate) phase: Option<Phase>,
    /// One for each tenant.
    pub(crate) tenants: Vec<TenantChange>,
    /// The load is over.
    pub(crate) end: bool,
}

/// What is known of a tenant when a change is to be resolved.
pub(crate) struct Resolver {
    pub(crate) name: String,
    pub(crate) workload: Workload,
    /// What the load was changed to last.
    model: Option<Model>,
}

/// A concurrency above this is a slip of the pen.
const MOST_SESSIONS: f64 = 100_000.0;
/// So is a rate.
const HIGHEST_RATE: f64 = 1e8;

impl Resolver {
    pub(crate) fn new(name: &str, workload: Workload) -> Self {
        Self { name: name.to_owned(), workload, model: None }
    }

    /// Resolves the tenant's part of a phase. `length` is the phase's, for ramps that take all of it.
    pub(crate) fn resolve(
        &mut self,
        loads: &BTreeMap<String, LoadChange>,
        length: Option<f64>,
    ) -> Result<TenantChange, EngineError> {
        let mut change = TenantChange::default();
        for key in ["*", &self.name.clone()] {
            if let Some(load) = loads.get(key) {
                let own = self.one(load, length).map_err(|what| {
                    EngineError::Input(format!("the load of tenant {}: {what}", self.name))
                })?;
                change.model = own.model.or(change.model);
                change.weights = own.weights.or(change.weights);
                change.access = own.access.or(change.access);
            }
        }
        Ok(change)
    }

    fn one(&mut self, load: &LoadChange, length: Option<f64>) -> Result<TenantChange, String> {
        let model = self.model(load, length)?;
        if model.is_some() {
            self.model = model;
        }
        let weights = load.mix.as_ref().map(|mix| self.weights(mix)).transpose()?;
        let access = load.access.map(access).transpose()?;
        Ok(TenantChange { model, weights, access })
    }

    fn model(&self, load: &LoadChange, length: Option<f64>) -> Result<Option<Model>, String> {
        let LoadChange { concurrency, think, rate, arrivals, .. } = *load;
        let closed = match self.model {
            Some(Model::Closed { concurrency, think }) => Some((concurrency, think)),
            _ => None,
        };
        let open = match self.model {
            Some(Model::Open { rate, spacing }) => Some((rate, spacing)),
            _ => None,
        };
        if concurrency.is_some() && rate.is_some() {
            return Err("concurrency and rate exclude each other: a load is closed or open".to_owned());
        }
        let settled = |ramp: Ramp| Ramp::level(ramp.to);
        if concurrency.is_some() || (think.is_some() && rate.is_none() && closed.is_some()) {
            if arrivals.is_some() {
                return Err("arrivals belong to a rate, and the load has a concurrency".to_owned());
            }
            let concurrency = match concurrency {
                Some(level) => ramp("concurrency", level, length, MOST_SESSIONS)?,
                None => closed.map_or(Ramp::level(0.0), |(concurrency, _)| settled(concurrency)),
            };
            let think = think.or(closed.map(|(_, think)| think)).unwrap_or(Think::None);
            check_think(think)?;
            return Ok(Some(Model::Closed { concurrency, think }));
        }
        if think.is_some() {
            return Err("think belongs to a concurrency, and the load has a rate".to_owned());
        }
        if rate.is_some() || (arrivals.is_some() && open.is_some()) {
            let rate = match rate {
                Some(level) => ramp("rate", level, length, HIGHEST_RATE)?,
                None => open.map_or(Ramp::level(0.0), |(rate, _)| settled(rate)),
            };
            let spacing = match arrivals {
                Some(ArrivalLaw::Poisson) => Spacing::Poisson,
                Some(ArrivalLaw::Constant) => Spacing::Constant,
                None => open.map_or(Spacing::Constant, |(_, spacing)| spacing),
            };
            return Ok(Some(Model::Open { rate, spacing }));
        }
        if arrivals.is_some() {
            return Err("arrivals belong to a rate, and the load has none".to_owned());
        }
        Ok(None)
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
            let Some(place) = transactions.iter().position(|transaction| transaction.name == name) else {
                let known: Vec<&str> = transactions.iter().map(|known| known.name.as_str()).collect();
                return Err(format!("mix: no transaction is called {name:?}; they are {}", known.join(", ")));
            };
            if !(0.0..1e12).contains(&weight) {
                return Err(format!("mix: the weight of {name} is {weight}; it must be 0 or more"));
            }
            weights[place] = weight;
        }
        if weights.iter().sum::<f64>() <= 0.0 {
            return Err("mix: no transaction has a weight above 0".to_owned());
        }
        Ok(weights.into())
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
        Think::None => 0,
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
        AccessSpec::Zipfian { theta } if (0.0..=10.0).contains(&theta) => Access::Zipfian { theta },
        AccessSpec::Zipfian { theta } => {
            return Err(format!("access.theta is {theta}; it must be from 0 to 10"));
        }
        AccessSpec::Hotspot { keys, accesses } => {
            Access::Hotspot { keys: share("keys", keys)?, accesses: share("accesses", accesses)? }
        }
    })
}
