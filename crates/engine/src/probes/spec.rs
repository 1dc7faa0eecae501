//! What probes are asked to do, as plain data.

use nephoscope_runtime::clock::{MILLISECOND, SECOND};
use nephoscope_runtime::{Io, Nanos};
use serde::Deserialize;

use crate::error::EngineError;
use crate::probes::marker::KINDS;
use crate::spec::{IoChoice, Role};

/// How long a first connection may take: what is not measured yet may be busy, and that is no reason not to begin.
pub(crate) const FIRST_CONNECTION: Nanos = 10 * SECOND;

/// No more markers than this may be on their way to a replica at once: the limit over the interval.
const MOST_MARKERS: f64 = 10_000.0;

/// No more sessions than this may read, or write.
const MOST_SESSIONS: f64 = 1000.0;

/// Probes of one system. Times are in the unit that a field's name ends in.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbesSpec {
    /// The zero of all times, on the monotonic clock: the start of the load beside which they run.
    pub origin_ns: Nanos,
    /// Where they go, in the order in which samples number them.
    pub endpoints: Vec<EndpointSpec>,
    /// Whether each endpoint serves, at a fixed rate.
    pub availability: Option<AvailabilitySpec>,
    /// How long a change of the first rw endpoint takes to be seen on each ro endpoint.
    pub lag: Option<LagSpec>,
    /// How stale reads are, and which guarantees of a session they break.
    #[serde(default)]
    pub consistency: Option<ConsistencySpec>,
    /// The consistency level of every connection; the system's default where there is none.
    #[serde(default)]
    pub level: Option<String>,
    /// SQL that each connection runs first.
    #[serde(default)]
    pub on_connect: Vec<String>,
    /// The seed of what is drawn.
    #[serde(default)]
    pub seed: u64,
    /// How the probes' thread waits for its sockets.
    #[serde(default)]
    pub io: IoChoice,
}

/// An endpoint that is probed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointSpec {
    /// What it takes: probes write to `rw` and read from `ro`.
    pub role: Role,
    /// Its name in samples.
    pub node: String,
    /// Its URL.
    pub url: String,
}

/// Probes of availability.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AvailabilitySpec {
    /// So many a second to each endpoint.
    pub rate: f64,
    /// So many connections are kept to each endpoint, one for each probe that may be on its way.
    pub lanes: usize,
    /// How long a probe may take, a connection that has to be made on the way included.
    pub limit_ms: u64,
}

impl Default for AvailabilitySpec {
    fn default() -> Self {
        Self { rate: 200.0, lanes: 8, limit_ms: 1000 }
    }
}

/// Probes of replication lag.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LagSpec {
    /// The time between the intended starts of two markers.
    pub interval_ms: f64,
    /// How long a marker is looked for.
    pub limit_ms: u64,
    /// How long one look may take, and making a connection again.
    pub poll_limit_ms: u64,
    /// How long the rows that markers change may take to be there on every replica, before the first marker.
    pub setup_limit_ms: u64,
}

impl Default for LagSpec {
    fn default() -> Self {
        Self { interval_ms: 50.0, limit_ms: 10_000, poll_limit_ms: 1000, setup_limit_ms: 30_000 }
    }
}

/// Which endpoints are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadFrom {
    /// The read-only ones.
    #[default]
    Ro,
    /// The first that takes writes.
    Rw,
    /// Both.
    All,
}

/// Which endpoint a session reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// Always the same.
    #[default]
    Affinity,
    /// One after the other.
    RoundRobin,
}

/// Probes of consistency.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConsistencySpec {
    /// Sessions that read.
    pub readers: usize,
    /// The time between two reads of a session.
    pub read_interval_ms: f64,
    /// Sessions that write; each reads what it has written, too.
    pub writers: usize,
    /// The time between the intended starts of two writes of a session.
    pub write_interval_ms: f64,
    /// Registers; each is written by one session.
    pub keys: usize,
    /// Which endpoints are read,
    pub read_from: ReadFrom,
    /// and by whom.
    pub routing: Routing,
    /// Whether two sessions write at the same time and both writes are read: in which order, is looked at.
    pub long_fork: bool,
    /// How long a write may take, and how long it is looked for.
    pub limit_ms: u64,
    /// How long a read may take.
    pub read_limit_ms: u64,
}

impl Default for ConsistencySpec {
    fn default() -> Self {
        Self {
            readers: 12,
            read_interval_ms: 1.0,
            writers: 1,
            write_interval_ms: 10_000.0,
            keys: 1,
            read_from: ReadFrom::Ro,
            routing: Routing::Affinity,
            long_fork: false,
            limit_ms: 10_000,
            read_limit_ms: 1000,
        }
    }
}

impl ProbesSpec {
    /// The longest that a probe waits for an answer.
    pub(crate) fn limit(&self) -> Nanos {
        let (availability, lag) = (self.availability.unwrap_or_default(), self.lag.unwrap_or_default());
        let consistency = self.consistency.map_or(0, |consistency| consistency.read_limit());
        availability.limit().max(lag.poll_limit()).max(consistency)
    }

    /// How the probes' thread is to wait. An [`EngineError::Input`] if anything of this cannot be done.
    pub(crate) fn check(&self) -> Result<Io, EngineError> {
        let bad = |message: String| Err(EngineError::Input(message));
        let has = |role| self.endpoints.iter().any(|endpoint| endpoint.role == role);
        let is_idle = self.availability.is_none() && self.lag.is_none() && self.consistency.is_none();
        if is_idle || self.endpoints.is_empty() {
            return bad("probes need endpoints, and availability, lag or consistency to look at".to_owned());
        }
        if self.lag.is_some() && !(has(Role::Rw) && has(Role::Ro)) {
            return bad("probes.lag needs an endpoint that takes writes and a read-only one".to_owned());
        }
        let availability = self.availability.unwrap_or_default();
        let lag = self.lag.unwrap_or_default();
        let bounds = [
            ("availability.rate", availability.rate, 1.0, 10_000.0),
            ("availability.lanes", availability.lanes as f64, 1.0, 1000.0),
            ("availability.limit_ms", availability.limit_ms as f64, 10.0, 60_000.0),
            ("lag.interval_ms", lag.interval_ms, 1.0, 60_000.0),
            ("lag.limit_ms", lag.limit_ms as f64, 10.0, 3_600_000.0),
            ("lag.poll_limit_ms", lag.poll_limit_ms as f64, 10.0, 60_000.0),
            ("lag.setup_limit_ms", lag.setup_limit_ms as f64, 10.0, 3_600_000.0),
        ];
        for (name, value, low, high) in bounds {
            if !(low..=high).contains(&value) {
                return bad(format!("probes.{name} is {value}; it must be from {low} to {high}"));
            }
        }
        if lag.limit_ms as f64 > MOST_MARKERS * lag.interval_ms {
            let least = lag.limit_ms as f64 / MOST_MARKERS;
            return bad(format!(
                "probes.lag.interval_ms is {}; with a limit of {} ms it must be at least {least}",
                lag.interval_ms, lag.limit_ms
            ));
        }
        if let Some(consistency) = &self.consistency {
            consistency.check(&has)?;
        }
        Ok(self.io.decide()?.0)
    }
}

impl ConsistencySpec {
    fn check(&self, has: &dyn Fn(Role) -> bool) -> Result<(), EngineError> {
        let bad = |message: String| Err(EngineError::Input(message));
        if !has(Role::Rw) || self.read_from != ReadFrom::Rw && !has(Role::Ro) {
            return bad(
                "probes.consistency needs an endpoint that takes writes, and those that are read".to_owned()
            );
        }
        let bounds = [
            ("readers", self.readers as f64, 1.0, MOST_SESSIONS),
            ("read_interval_ms", self.read_interval_ms, 0.1, 60_000.0),
            ("writers", self.writers as f64, 1.0, MOST_SESSIONS),
            ("write_interval_ms", self.write_interval_ms, 1.0, 3_600_000.0),
            ("keys", self.keys as f64, self.writers as f64, 10.0 * MOST_SESSIONS),
            ("limit_ms", self.limit_ms as f64, 10.0, MOST_MARKERS * self.write_interval_ms),
            ("read_limit_ms", self.read_limit_ms as f64, 10.0, 60_000.0),
        ];
        for (name, value, low, high) in bounds {
            if !(low..=high).contains(&value) {
                return bad(format!("probes.consistency.{name} is {value}; it must be from {low} to {high}"));
            }
        }
        Ok(())
    }

    pub(crate) fn limit(&self) -> Nanos {
        self.limit_ms * MILLISECOND
    }

    pub(crate) fn read_limit(&self) -> Nanos {
        self.read_limit_ms * MILLISECOND
    }

    /// In nanoseconds.
    pub(crate) fn read_interval(&self) -> f64 {
        self.read_interval_ms * MILLISECOND as f64
    }

    /// Of each session.
    pub(crate) fn reads_a_second(&self) -> f64 {
        1000.0 / self.read_interval_ms
    }

    /// In nanoseconds.
    pub(crate) fn write_interval(&self) -> f64 {
        self.write_interval_ms * MILLISECOND as f64
    }
}

impl AvailabilitySpec {
    pub(crate) fn limit(&self) -> Nanos {
        self.limit_ms * MILLISECOND
    }
}

impl LagSpec {
    pub(crate) fn limit(&self) -> Nanos {
        self.limit_ms * MILLISECOND
    }

    pub(crate) fn poll_limit(&self) -> Nanos {
        self.poll_limit_ms * MILLISECOND
    }

    pub(crate) fn setup_limit(&self) -> Nanos {
        self.setup_limit_ms * MILLISECOND
    }

    /// In nanoseconds.
    pub(crate) fn interval(&self) -> f64 {
        self.interval_ms * MILLISECOND as f64
    }

    /// So many turns of the kinds take longer than a marker is looked for.
    pub(crate) fn turns(&self) -> i64 {
        (self.limit_ms as f64 / (KINDS.len() as f64 * self.interval_ms)).ceil() as i64 + 2
    }
}
