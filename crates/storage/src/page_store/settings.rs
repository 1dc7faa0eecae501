//! What a page store is to be.

use std::net::SocketAddr;
use std::path::PathBuf;

use nephoscope_runtime::Nanos;
use serde::Deserialize;

use crate::page_store::costs::{Costs, Stall};

/// A page store: what holds for all replicas, and each of them.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The bytes of a page: a power of two from 512 to 65,536.
    pub page_size: u32,
    /// Service times.
    pub costs: Costs,
    /// How many requests a replica serves at once; others wait.
    pub parallel: usize,
    /// How long a page's chain grows until an image is made of it in the background; `None` is never.
    pub consolidate: Option<usize>,
    /// Of how many of its newest LSNs a segment can be read, whatever was consolidated.
    pub retain: u64,
    /// The most bytes of images and records that a replica holds; then it takes no more.
    pub memory: u64,
    /// Whether a record is durable in the replica's file before it is acknowledged.
    pub sync: bool,
    /// The replicas, 1 to 3 of them.
    pub replicas: Vec<ReplicaSettings>,
}

/// What is a replica's own.
#[derive(Clone, Debug)]
pub struct ReplicaSettings {
    /// Where it listens; port 0 is any that is free.
    pub address: SocketAddr,
    /// When it does nothing.
    pub stalls: Vec<Stall>,
    /// Where it keeps its log; `None` is in memory alone.
    pub file: Option<PathBuf>,
}

impl Settings {
    /// Replicas in memory on free ports of 127.0.0.1 that cost nothing: 8 KiB pages, 4 requests at once, images made of
    /// chains of 32 records, the newest 1,024 LSNs kept, 1 GiB.
    #[must_use]
    pub fn of(replicas: usize) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let one = ReplicaSettings { address, stalls: Vec::new(), file: None };
        Self {
            page_size: 8192,
            costs: Costs::default(),
            parallel: 4,
            consolidate: Some(32),
            retain: 1024,
            memory: 1 << 30,
            sync: false,
            replicas: vec![one; replicas],
        }
    }

    /// What is wrong with them, in the words of the settings.
    pub(super) fn check(&self) -> Result<(), String> {
        if !(1..=3).contains(&self.replicas.len()) {
            return Err(format!("{} replicas; allowed are 1 to 3", self.replicas.len()));
        }
        if !self.page_size.is_power_of_two() || !(512..=65_536).contains(&self.page_size) {
            return Err(format!(
                "pages of {} bytes; allowed are powers of two from 512 to 65536",
                self.page_size
            ));
        }
        if !(1..=1024).contains(&self.parallel) {
            return Err(format!("{} requests at once; allowed are 1 to 1024", self.parallel));
        }
        if self.consolidate == Some(0) {
            return Err("images of chains of 0 records; allowed are 1 and more, or none at all".to_owned());
        }
        if !self.costs.byte.is_finite() || self.costs.byte < 0.0 {
            return Err("the time per byte is no time".to_owned());
        }
        Ok(())
    }
}

/// The same as JSON, with times in seconds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    page_size: u32,
    append_s: f64,
    read_s: f64,
    byte_s: f64,
    record_s: f64,
    parallel: usize,
    /// 0 is never.
    consolidate: usize,
    retain: u64,
    memory: u64,
    sync: bool,
    replicas: Vec<GivenReplica>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenReplica {
    address: SocketAddr,
    /// When each begins, and how long it lasts.
    #[serde(default)]
    stalls: Vec<(f64, f64)>,
    file: Option<PathBuf>,
}

fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9).round() as Nanos
}

impl Settings {
    /// Reads them from a JSON object with times in seconds. The error says what is not understood.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let given: Given = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let replica = |one: GivenReplica| ReplicaSettings {
            address: one.address,
            stalls: one
                .stalls
                .into_iter()
                .map(|(from, length)| Stall { from: nanos(from), length: nanos(length) })
                .collect(),
            file: one.file,
        };
        let (append, read, record) = (nanos(given.append_s), nanos(given.read_s), nanos(given.record_s));
        let settings = Self {
            page_size: given.page_size,
            costs: Costs { append, read, byte: given.byte_s * 1e9, record },
            parallel: given.parallel,
            consolidate: (given.consolidate > 0).then_some(given.consolidate),
            retain: given.retain,
            memory: given.memory,
            sync: given.sync,
            replicas: given.replicas.into_iter().map(replica).collect(),
        };
        settings.check().map(|()| settings)
    }
}
