//! What a seed draws: the load, what is planted in the databases, and the changes on the way.

use std::collections::BTreeMap;
use std::path::PathBuf;

use nephoscope_drivers::{ErrorClass, ErrorClasses};
use nephoscope_engine::LoadSpec;
use nephoscope_engine::spec::{
    ArrivalLaw, Balance, EndpointsSpec, IoChoice, Level, LoadChange, MixSpec, PhaseKind, PhaseSpec, Reads,
    RetrySpec, TenantSpec, Think, WorkloadSpec,
};
use nephoscope_script::Random;

/// Transactions that the mixes are drawn from.
const TRANSACTIONS: [&str; 7] =
    ["write", "read", "transfer", "change_of_mind", "leave_queued", "expects", "perhaps"];

/// The most sessions that a closed load has.
pub const SESSIONS: u64 = 16;

/// Random choices, all from one seed.
pub struct Draw {
    random: Random,
    /// Of this run's loads, the share that is closed.
    closed: f64,
    /// What the endpoints of each tenant are drawn from: the URLs of both roles.
    urls: BTreeMap<String, [Vec<String>; 2]>,
}

impl Draw {
    pub fn new(seed: u64) -> Self {
        let mut draw = Self { random: Random::new(seed, 7), closed: 0.5, urls: BTreeMap::new() };
        draw.closed = draw.one(&[0.5, 0.5, 0.0, 1.0]);
        draw
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.random.uniform() < probability
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + self.random.uniform() * (high - low)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// A load whose databases have their faults within `horizon` seconds.
    pub fn spec(&mut self, seed: u64, horizon: f64) -> LoadSpec {
        let tenants = (0..=self.below(2)).map(|number| self.tenant(seed, number, horizon)).collect();
        let mut spec = LoadSpec {
            seed,
            threads: 1 + self.below(3) as usize,
            cpus: Vec::new(),
            interval_ms: self.one(&[200, 500, 1000, 1700]),
            statement_mode: "prepared".to_owned(),
            consistency: None,
            pipeline: self.chance(0.5),
            connect_timeout_ms: 2_000,
            statement_timeout_ms: 5 + self.below(60),
            drain_timeout_ms: self.one(&[0, 1, 20, 500]),
            script_timeout_ms: 10_000,
            retry: RetrySpec {
                attempts: 1 + self.below(5) as u32,
                backoff_ms: self.between(0.0, 5.0),
                backoff_max_ms: 20.0,
                classes: ErrorClasses::RETRIED,
            },
            on_connect: Vec::new(),
            balance: self.one(&[Balance::RoundRobin, Balance::Random, Balance::First]),
            io: IoChoice::Epoll,
            history: None,
            tenants,
            phases: Vec::new(),
        };
        let planned = self.below(3);
        spec.phases = (0..planned).map(|number| self.phase(number, true)).collect();
        spec.phases.push(self.phase(planned, false));
        spec
    }

    fn tenant(&mut self, seed: u64, number: u64, horizon: f64) -> TenantSpec {
        let urls = |draw: &mut Self, role: &str, count: u64| -> Vec<String> {
            (0..count).map(|url| draw.url(&format!("soak-{seed}-{number}-{role}-{url}"), horizon)).collect()
        };
        let count = 1 + self.below(2);
        let rw = urls(self, "rw", count);
        let count = self.below(3);
        let ro = urls(self, "ro", count);
        let name = format!("tenant {number}");
        self.urls.insert(name.clone(), [rw.clone(), ro.clone()]);
        TenantSpec {
            name,
            stream_of: None,
            reads: if ro.is_empty() { Reads::Rw } else { self.one(&[Reads::Rw, Reads::Ro, Reads::All]) },
            writer_weight: [1.0, 0.5, 3.0][number as usize % 3],
            rw,
            ro,
            workload: WorkloadSpec {
                folder: PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/workload"),
                packaged: None,
                options: BTreeMap::new(),
                scale: 1.0,
                data_seed: 1,
                handed_out: BTreeMap::new(),
            },
            sessions: 1 + self.below(SESSIONS) as usize,
            backlog: self.one(&[0, 5, 200, 100_000]),
        }
    }

    /// A simulated database and its faults.
    fn url(&mut self, name: &str, horizon: f64) -> String {
        let mean = self.between(0.2, 2.0);
        let law = self.one(&["constant(M)", "uniform(0.1ms,M)", "exponential(M)", "lognormal(M,0.8)"]);
        let law = law.replace('M', &format!("{:.3}ms", mean.max(0.2)));
        let mut planted = vec![format!("seed={}", self.below(1 << 40)), format!("latency={law}")];
        if self.chance(0.3) {
            planted.push(format!("capacity={}", 1 + self.below(12)));
        }
        for (kind, longest) in [("stall", 150.0), ("outage", 200.0), ("refusal", 300.0), ("failure", 50.0)] {
            // A long run has more of them.
            for _ in 0..self.below(4) * (1 + horizon as u64 / 10).min(20) {
                let start = self.between(0.002, horizon);
                let mut window = format!("{kind}={start:.6}s+{:.3}ms", self.between(1.0, longest));
                if kind == "failure" {
                    window = format!("{window}:{}", self.one(&ErrorClass::ALL).name());
                }
                planted.push(window);
            }
        }
        for class in ErrorClass::ALL {
            if self.chance(0.4) {
                planted.push(format!("error={}:{:.5}", class.name(), self.between(0.0, 0.01)));
            }
        }
        if self.chance(0.3) {
            let class = self.one(&[ErrorClass::ShuttingDown, ErrorClass::ConnectionLost]).name();
            planted.push(format!("late_error={class}:{:.5}", self.between(0.0, 0.02)));
        }
        if self.chance(0.5) {
            planted.push(format!("reply_lost={:.5}", self.between(0.0, 0.01)));
        }
        format!("sim://{name}?{}", planted.join("&"))
    }

    /// A phase that gives a load to every tenant; without a length it lasts until something else comes.
    pub fn phase(&mut self, number: u64, has_length: bool) -> PhaseSpec {
        let seconds = has_length.then(|| self.between(0.02, 0.4));
        let load = self.load();
        let mut loads = BTreeMap::from([("*".to_owned(), load)]);
        for (tenant, urls) in self.urls.clone() {
            if self.chance(0.3) {
                let endpoints = Some(self.endpoints(&urls));
                loads.insert(tenant, LoadChange { endpoints, ..LoadChange::default() });
            }
        }
        PhaseSpec {
            name: format!("phase {number}"),
            kind: PhaseKind::Measure,
            seconds,
            labels: BTreeMap::new(),
            history: false,
            retry: None,
            loads,
        }
    }

    /// Some of a tenant's endpoints, in any order; of those that take writes at least one.
    fn endpoints(&mut self, [rw, ro]: &[Vec<String>; 2]) -> EndpointsSpec {
        let mut some = |of: &[String], least: usize| {
            let mut left = of.to_vec();
            while left.len() > least && self.chance(0.4) {
                let gone = self.below(left.len() as u64) as usize;
                left.remove(gone);
            }
            let first = self.below(left.len().max(1) as u64) as usize;
            left.rotate_left(first);
            Some(left)
        };
        let (rw, ro) = (some(rw, 1), some(ro, 0));
        EndpointsSpec {
            rw: rw.filter(|_| self.chance(0.5)),
            ro: ro.filter(|_| self.chance(0.8)),
            reads: self.one(&[None, Some(Reads::Ro), Some(Reads::Rw), Some(Reads::All)]),
        }
    }

    fn load(&mut self) -> LoadChange {
        let mut load = LoadChange::default();
        if self.chance(self.closed) {
            load.concurrency = Some(self.level(SESSIONS as f64));
            load.think = match self.below(3) {
                0 => Some(Think::Constant { ms: self.between(0.0, 5.0) }),
                1 => Some(Think::Exponential { ms: self.between(0.0, 5.0) }),
                _ => None,
            };
        } else {
            load.rate = Some(self.level(8_000.0));
            load.arrivals = self.one(&[None, Some(ArrivalLaw::Constant), Some(ArrivalLaw::Poisson)]);
        }
        let mut weights: BTreeMap<String, f64> =
            TRANSACTIONS.iter().map(|name| ((*name).to_owned(), self.one(&[0.0, 1.0, 5.0]))).collect();
        weights.insert(self.one(&TRANSACTIONS).to_owned(), 2.0);
        load.mix =
            Some(if self.chance(0.3) { MixSpec::Name("all".to_owned()) } else { MixSpec::Weights(weights) });
        load.release = self.one(&[None, None, Some(false), Some(true)]);
        load
    }

    fn level(&mut self, highest: f64) -> Level {
        let mut value = || if self.chance(0.1) { 0.0 } else { self.between(0.0, highest) };
        let (from, to) = (value(), value());
        if self.chance(0.6) {
            return Level::At(to);
        }
        Level::Ramp { from, to, seconds: Some(self.between(0.001, 0.5)) }
    }
}

/// The phase in which every session is to say that it is there.
pub fn roll_call() -> PhaseSpec {
    let load = LoadChange {
        concurrency: Some(Level::At(SESSIONS as f64)),
        think: Some(Think::Constant { ms: 100.0 }),
        mix: Some(MixSpec::Name("roll_call".to_owned())),
        ..LoadChange::default()
    };
    PhaseSpec {
        name: "roll call".to_owned(),
        kind: PhaseKind::Measure,
        seconds: None,
        labels: BTreeMap::new(),
        history: false,
        retry: None,
        loads: [("*".to_owned(), load)].into(),
    }
}

/// The phase in which nothing is asked for.
pub fn rest() -> PhaseSpec {
    let load = LoadChange { concurrency: Some(Level::At(0.0)), ..LoadChange::default() };
    PhaseSpec { name: "rest".to_owned(), loads: [("*".to_owned(), load)].into(), ..roll_call() }
}
