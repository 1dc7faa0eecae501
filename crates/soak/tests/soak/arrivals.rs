//! The arrivals that are due by the schedule, told without the engine: where the integral of the rate says.

use nephoscope_engine::LoadSpec;
use nephoscope_engine::schedule::{Arrivals, Ramp, Spacing};
use nephoscope_engine::spec::{ArrivalLaw, Level, LoadChange, PhaseSpec};
use nephoscope_script::Random;

/// What one tenant's workers are to start. A second reading of the schedule with the same random numbers: it is never
/// late, and nobody stands in its way.
struct OfTenant {
    /// One for each worker that has sessions for arrivals.
    workers: Vec<Arrivals>,
    is_open: Option<bool>,
}

/// What all tenants' workers are to start.
pub struct Due {
    tenants: Vec<OfTenant>,
    /// Changes that are still to come.
    coming: Vec<(u64, LoadChange)>,
    /// Some load had a concurrency in place of a rate.
    pub ever_closed: bool,
}

impl Due {
    pub fn new(spec: &LoadSpec) -> Self {
        let tenant = |(index, tenant): (usize, &nephoscope_engine::spec::TenantSpec)| {
            let seed = spec.seed.wrapping_add((index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let dealt = spec.threads.min(tenant.sessions);
            let worker = |worker| Arrivals::new(worker, dealt, Random::new(seed, u64::MAX - worker as u64));
            OfTenant { workers: (0..dealt).map(worker).collect(), is_open: None }
        };
        let mut due = Self {
            tenants: spec.tenants.iter().enumerate().map(tenant).collect(),
            coming: Vec::new(),
            ever_closed: false,
        };
        let mut at = 0;
        for phase in &spec.phases {
            due.change(at, phase);
            at += phase.seconds.map_or(0, |seconds| (seconds * 1e9) as u64);
        }
        due
    }

    /// The load will change, for all tenants alike.
    pub fn change(&mut self, at: u64, phase: &PhaseSpec) {
        self.ever_closed |= phase.loads.values().any(|load| load.concurrency.is_some());
        self.coming.extend(phase.loads.get("*").map(|load| (at, load.clone())));
        self.coming.sort_by_key(|(at, _)| *at);
    }

    /// The load is over, and with it what was to come.
    pub fn end(&mut self, at: u64) {
        self.coming.retain(|(change, _)| *change <= at);
        let nothing = LoadChange { concurrency: Some(Level::At(0.0)), ..LoadChange::default() };
        self.coming.push((at, nothing));
    }

    /// How many arrivals of each tenant are due before a time, but for those that were told of before.
    pub fn until(&mut self, end: u64) -> Vec<u64> {
        let mut counts = vec![0; self.tenants.len()];
        while let Some((at, load)) = self.coming.first().filter(|(at, _)| *at < end).cloned() {
            self.coming.remove(0);
            for (tenant, count) in self.tenants.iter_mut().zip(&mut counts) {
                *count += tenant.take(at);
                tenant.change(at, &load);
            }
        }
        for (tenant, count) in self.tenants.iter_mut().zip(&mut counts) {
            *count += tenant.take(end);
        }
        counts
    }
}

impl OfTenant {
    fn take(&mut self, end: u64) -> u64 {
        let mut count = 0;
        for arrivals in &mut self.workers {
            while arrivals.due().is_some_and(|due| due < end) {
                arrivals.advance();
                count += 1;
            }
        }
        count
    }

    fn change(&mut self, at: u64, load: &LoadChange) {
        let rate = load.rate.map(ramp).or(load.concurrency.map(|_| Ramp::level(0.0)));
        let turns = self.is_open != Some(load.rate.is_some());
        self.is_open = Some(load.rate.is_some());
        let spacing = match load.arrivals {
            Some(ArrivalLaw::Poisson) => Some(Spacing::Poisson),
            Some(ArrivalLaw::Constant) => Some(Spacing::Constant),
            None => turns.then_some(Spacing::Constant),
        };
        for arrivals in &mut self.workers {
            if let Some(rate) = rate {
                arrivals.change(at, rate);
            }
            if let Some(spacing) = spacing {
                arrivals.respace(at, spacing);
            }
        }
    }
}

fn ramp(level: Level) -> Ramp {
    match level {
        Level::At(value) => Ramp::level(value),
        Level::Ramp { from, to, seconds } => {
            Ramp { from, to, over: (seconds.expect("ramps are drawn with their seconds") * 1e9) as u64 }
        }
    }
}
