//! What a load is, as plain data: it can be written down, kept and sent elsewhere.

pub(crate) mod load;
pub(crate) mod routes;
pub mod schedule;

use std::collections::BTreeMap;
use std::path::PathBuf;

use nephoscope_drivers::{ErrorClass, ErrorClasses};
use nephoscope_runtime::Io;
use nephoscope_script::{LONGEST, Pause};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::error::EngineError;

/// A whole load: tenants, phases, and how transactions are run. Times are in the unit that a field's name ends in.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// The seed of everything that is drawn while the load runs.
    pub seed: u64,
    /// How many threads drive sessions.
    pub threads: usize,
    /// Processors that the threads are pinned to, one after the other; they are not pinned if there are none.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// The length of an interval, 50 ms or more.
    pub interval_ms: u64,
    /// `simple`, `extended` or `prepared`.
    pub statement_mode: String,
    /// Whether commands without a result ride with the next that waits for one.
    pub pipeline: bool,
    /// The longest that making a connection may take.
    pub connect_timeout_ms: u64,
    /// The longest that a statement may take.
    pub statement_timeout_ms: u64,
    /// The longest that transactions in flight are waited for at the end.
    pub drain_timeout_ms: u64,
    /// The processor time after which a transaction whose Lua neither waits nor ends is interrupted, and the run
    /// with it.
    #[serde(default = "longest_script_ms")]
    pub script_timeout_ms: u64,
    /// How transactions are tried again.
    pub retry: RetrySpec,
    /// SQL that each connection runs first.
    pub on_connect: Vec<String>,
    /// The consistency level of every session; the system's default where there is none.
    #[serde(default)]
    pub consistency: Option<String>,
    /// How sessions are dealt to the endpoints of a role.
    pub balance: Balance,
    /// How threads wait for their sessions' sockets.
    #[serde(default)]
    pub io: IoChoice,
    /// Where what transactions observe goes; without it, nowhere.
    #[serde(default)]
    pub history: Option<HistorySpec>,
    /// Who runs what against which endpoints; at least one.
    pub tenants: Vec<TenantSpec>,
    /// The course of the load; at least one phase. The first gives every tenant its load.
    pub phases: Vec<PhaseSpec>,
}

fn longest_script_ms() -> u64 {
    LONGEST.as_millis() as u64
}

/// How transactions are tried again after an error that allows it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetrySpec {
    /// How often a transaction is tried at the most, the first time included.
    pub attempts: u32,
    /// The mean wait before the second attempt; it doubles with each further one.
    pub backoff_ms: f64,
    /// The longest mean wait.
    pub backoff_max_ms: f64,
    /// After errors of which classes, by their names.
    #[serde(default = "retried", deserialize_with = "classes")]
    pub classes: ErrorClasses,
}

fn retried() -> ErrorClasses {
    ErrorClasses::RETRIED
}

fn classes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ErrorClasses, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    ErrorClasses::named(&names).map_err(|stray| {
        let known = ErrorClass::ALL.map(ErrorClass::name).join(", ");
        D::Error::custom(format!("retry.classes: {stray:?} is no class of errors; allowed are {known}"))
    })
}

/// What becomes of what transactions observe.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistorySpec {
    /// The folder of the histories' files; it is made with the first.
    pub folder: PathBuf,
    /// What orders transactions besides their dependencies.
    pub order: HistoryOrder,
    /// How long the files may be altogether.
    pub most_bytes: u64,
    /// So many witnesses of each anomaly are told.
    pub witnesses: u64,
}

/// What orders transactions besides their dependencies.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum HistoryOrder {
    /// Nothing.
    None,
    /// Their sessions.
    Session,
    /// Time, by the clock of this machine, and their sessions.
    RealTime,
}

impl From<HistoryOrder> for nephoscope_histories::Order {
    fn from(order: HistoryOrder) -> Self {
        match order {
            HistoryOrder::None => Self::None,
            HistoryOrder::Session => Self::Session,
            HistoryOrder::RealTime => Self::RealTime,
        }
    }
}

/// How threads wait for their sessions' sockets.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum IoChoice {
    /// By io_uring where the kernel allows it, else by epoll.
    #[default]
    Auto,
    /// By io_uring, or not at all.
    Uring,
    /// By epoll.
    Epoll,
}

impl IoChoice {
    /// What that means on this machine, and why. An [`EngineError::Input`] if it cannot be had.
    pub fn decide(self) -> Result<(Io, String), EngineError> {
        match (self, Io::Uring.check()) {
            (Self::Epoll, _) => Ok((Io::Epoll, "asked for".to_owned())),
            (Self::Uring, Ok(())) => Ok((Io::Uring, "asked for".to_owned())),
            (Self::Auto, Ok(())) => Ok((Io::Uring, "the kernel allows it".to_owned())),
            (Self::Auto, Err(error)) => Ok((Io::Epoll, format!("io_uring cannot be used here: {error}"))),
            (Self::Uring, Err(error)) => Err(EngineError::Input(format!(
                "load.io: io_uring cannot be used here ({error}); allowed are auto and epoll"
            ))),
        }
    }
}

/// How sessions are dealt to the endpoints of a role. A session whose endpoint does not take connections tries the
/// next one.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// One after the other.
    RoundRobin,
    /// By chance, from the seed.
    Random,
    /// All to the first, the others for when it fails.
    First,
}

/// Where a transaction may run.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// On an endpoint that takes writes.
    Rw,
    /// On a read-only endpoint.
    Ro,
}

impl Role {
    /// Both roles, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::Rw, Self::Ro];

    /// The role's name in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rw => "rw",
            Self::Ro => "ro",
        }
    }
}

/// Where transactions run that only read.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Reads {
    /// On the endpoints that take writes.
    Rw,
    /// On the read-only endpoints; on those that take writes as long as there is none.
    Ro,
    /// On all of them: each session reads on one, dealt by weight.
    All,
}

/// One tenant: its endpoints, its workload, its sessions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantSpec {
    /// Its name in every output.
    pub name: String,
    /// It is a stream of the tenant of this name, which stands before it: both have one key space, their tallies are
    /// added up under that tenant's name, and their loads, sessions and series are their own.
    #[serde(default)]
    pub stream_of: Option<String>,
    /// URLs of the endpoints that take writes; at least one.
    pub rw: Vec<String>,
    /// URLs of the read-only endpoints.
    pub ro: Vec<String>,
    /// Where transactions run that only read.
    pub reads: Reads,
    /// How many sessions read on an endpoint that takes writes for each that reads on a read-only one, where they read
    /// on all; above 0.
    pub writer_weight: f64,
    /// What it runs.
    pub workload: WorkloadSpec,
    /// How many sessions an open load has.
    pub sessions: usize,
    /// How many arrivals may wait for a session; what comes beyond is dropped, and counted.
    pub backlog: usize,
}

/// A workload as a study names it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// The folder of its files.
    pub folder: PathBuf,
    /// The folder of the workloads that come with nephoscope: another may extend one of them by its name.
    #[serde(default)]
    pub packaged: Option<PathBuf>,
    /// Its options.
    #[serde(default)]
    pub options: BTreeMap<String, serde_json::Value>,
    /// The scale factor that the data was loaded with.
    pub scale: f64,
    /// The seed that the data was loaded with.
    pub data_seed: u64,
    /// What earlier runs have used up: see `nephoscope_script::used_keys`.
    #[serde(default)]
    pub handed_out: BTreeMap<String, u64>,
}

/// What a phase is for. Only `measure` counts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// The system gets into its stride.
    WarmUp,
    /// What is measured.
    Measure,
    /// The load goes down.
    RampDown,
    /// No load, or none that counts.
    Pause,
}

impl PhaseKind {
    /// The kind's name in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WarmUp => "warm_up",
            Self::Measure => "measure",
            Self::RampDown => "ramp_down",
            Self::Pause => "pause",
        }
    }
}

/// A stretch of the run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseSpec {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub kind: PhaseKind,
    /// How long it lasts; a phase without a length lasts until the run is changed or stopped.
    pub seconds: Option<f64>,
    /// What an evaluator wants to know of it later.
    #[serde(default)]
    pub labels: BTreeMap<String, serde_json::Value>,
    /// What transactions observe that begin in it, or later, is a history of its own.
    #[serde(default)]
    pub history: bool,
    /// How transactions are tried again from its beginning on. What is not said stays as it was.
    #[serde(default)]
    pub retry: Option<RetrySpec>,
    /// The load of each tenant; `*` stands for all. What is not said stays as it was.
    #[serde(default)]
    pub loads: BTreeMap<String, LoadChange>,
}

/// A change of one tenant's load. What is left out stays as it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadChange {
    /// A closed loop with so many transactions at a time.
    pub concurrency: Option<Level>,
    /// The pause of a closed loop between two transactions.
    pub think: Option<Think>,
    /// An open load with so many arrivals a second.
    pub rate: Option<Level>,
    /// How the arrivals of an open load lie.
    pub arrivals: Option<ArrivalLaw>,
    /// Which transactions, by the name of a mix or by weights.
    pub mix: Option<MixSpec>,
    /// Which keys.
    pub access: Option<AccessSpec>,
    /// Whether sessions that are not wanted close their connections, so that an idle system may pause. They make them
    /// anew when they are wanted again.
    pub release: Option<bool>,
    /// In which isolation level transactions begin that declare none: one of the system's, in the words of SQL.
    pub isolation: Option<String>,
    /// Other endpoints: nodes have come or gone.
    pub endpoints: Option<EndpointsSpec>,
}

/// Endpoints in the place of those that a tenant has. Each session goes to the one that it has by the rule of
/// [`Balance`] when its transaction has ended; who has the same one keeps its connection. A session that is not wanted
/// closes its connections, and makes them anew when it is. What is left out stays.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointsSpec {
    /// URLs of the endpoints that take writes; at least one.
    pub rw: Option<Vec<String>>,
    /// URLs of the read-only endpoints; there may be none.
    pub ro: Option<Vec<String>>,
    /// Where transactions run that only read.
    pub reads: Option<Reads>,
}

/// A level, or the way from one to another.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(untagged, deny_unknown_fields)]
pub enum Level {
    /// The level at once.
    At(f64),
    /// A straight line.
    Ramp {
        /// Where it begins.
        from: f64,
        /// Where it ends.
        to: f64,
        /// How long it takes; the phase's length if left out.
        seconds: Option<f64>,
    },
}

/// The pause between two transactions of a session.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(tag = "law", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Think {
    /// None.
    None,
    /// Always the same.
    Constant {
        /// Its length.
        ms: f64,
    },
    /// With an exponential law.
    Exponential {
        /// Its mean.
        ms: f64,
    },
    /// What the workload says of each transaction: keying before it, think time after it.
    Workload,
}

impl From<Pause> for Think {
    fn from(pause: Pause) -> Self {
        match pause {
            Pause::None => Self::None,
            Pause::Constant { seconds } => Self::Constant { ms: seconds * 1e3 },
            Pause::Exponential { seconds } => Self::Exponential { ms: seconds * 1e3 },
        }
    }
}

/// How the arrivals of an open load lie.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalLaw {
    /// Evenly.
    Constant,
    /// As a Poisson process.
    Poisson,
}

/// Which transactions.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum MixSpec {
    /// A mix that the workload declares.
    Name(String),
    /// Weights by transaction.
    Weights(BTreeMap<String, f64>),
}

/// Which keys.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(tag = "distribution", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AccessSpec {
    /// All alike.
    Uniform,
    /// The `k` newest alike.
    Latest {
        /// How many.
        k: u64,
    },
    /// Popular and unpopular ones, by Zipf's law.
    Zipfian {
        /// The skew.
        theta: f64,
    },
    /// Newer ones more often, by Zipf's law.
    LatestZipfian {
        /// The skew.
        theta: f64,
    },
    /// A share of the keys gets a share of the accesses.
    Hotspot {
        /// The share of keys, 0–1.
        keys: f64,
        /// The share of accesses, 0–1.
        accesses: f64,
    },
}
