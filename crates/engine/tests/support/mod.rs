//! What the tests of the engine share: a load in few words, a run written down whole, and what must hold of every run.
#![allow(dead_code, unreachable_pub)] // Each test program uses its part.

pub mod check;
pub mod story;
pub mod survivals;
pub mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nephoscope_drivers::{ErrorClasses, Settings};
use nephoscope_engine::spec::{
    Balance, IoChoice, LoadChange, PhaseKind, PhaseSpec, Reads, RetrySpec, TenantSpec, WorkloadSpec,
};
use nephoscope_engine::{LoadSpec, Record, Run};
use serde_json::{Value, json};

pub use story::Story;
#[allow(unused_imports)] // As above.
pub use watch::{Lateness, watched};

/// A second in nanoseconds, as a float: times in tests are compared in seconds.
pub const SECOND: f64 = 1e9;

/// The folder of a workload that lies beside the tests.
pub fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/workloads").join(name)
}

/// A workload of the repository.
pub fn shipped(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../workloads").join(name)
}

/// A workload in a folder of its own, gone with the value that is returned.
pub fn written(lua: &str, statements: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("workload.lua"), lua).unwrap();
    std::fs::write(folder.path().join("statements.sql"), statements).unwrap();
    folder
}

pub fn tenant(name: &str, url: &str) -> TenantSpec {
    TenantSpec {
        name: name.to_owned(),
        stream_of: None,
        rw: vec![url.to_owned()],
        ro: Vec::new(),
        reads: Reads::Rw,
        writer_weight: 1.0,
        workload: WorkloadSpec {
            folder: folder("lab"),
            packaged: None,
            options: BTreeMap::new(),
            scale: 1.0,
            data_seed: 1,
            handed_out: BTreeMap::new(),
        },
        sessions: 16,
        backlog: 100_000,
    }
}

/// A load of one tenant, `default`, that runs the workload `lab` against a URL on one thread.
pub fn spec(url: &str, phases: impl IntoIterator<Item = PhaseSpec>) -> LoadSpec {
    LoadSpec {
        seed: 42,
        threads: 1,
        cpus: Vec::new(),
        interval_ms: 100,
        statement_mode: "prepared".to_owned(),
        consistency: None,
        pipeline: false,
        connect_timeout_ms: 2_000,
        statement_timeout_ms: 5_000,
        drain_timeout_ms: 5_000,
        script_timeout_ms: 10_000,
        retry: RetrySpec {
            attempts: 3,
            backoff_ms: 1.0,
            backoff_max_ms: 20.0,
            classes: ErrorClasses::RETRIED,
        },
        on_connect: Vec::new(),
        balance: Balance::RoundRobin,
        io: IoChoice::default(),
        history: None,
        tenants: vec![tenant("default", url)],
        phases: phases.into_iter().collect(),
    }
}

/// As [`spec`], of a workload that lies in a folder.
pub fn spec_of(
    folder: &tempfile::TempDir,
    url: &str,
    phases: impl IntoIterator<Item = PhaseSpec>,
) -> LoadSpec {
    let mut spec = spec(url, phases);
    folder.path().clone_into(&mut spec.tenants[0].workload.folder);
    spec
}

/// The load of a tenant from the words that a study has for it.
pub fn load(load: Value) -> LoadChange {
    serde_json::from_value(load).unwrap()
}

/// A phase in which all tenants have a load.
pub fn phase(name: &str, seconds: f64, change: Value) -> PhaseSpec {
    PhaseSpec { seconds: Some(seconds), ..open_phase(name, change) }
}

/// A phase that lasts until the run is changed or stopped.
pub fn open_phase(name: &str, change: Value) -> PhaseSpec {
    let loads = if change == json!({}) { BTreeMap::new() } else { [("*".to_owned(), load(change))].into() };
    PhaseSpec {
        name: name.to_owned(),
        kind: PhaseKind::Measure,
        seconds: None,
        labels: BTreeMap::new(),
        history: false,
        retry: None,
        loads,
    }
}

/// Runs a load to its end, writes it down and checks what must hold of every run.
pub fn run(spec: &LoadSpec) -> Story {
    run_with(spec, |_| ())
}

/// As [`run`], while `act` does something to the run from another thread.
pub fn run_with(spec: &LoadSpec, act: impl FnOnce(&Run) + Send) -> Story {
    let run = Run::start(spec).unwrap();
    let story = std::thread::scope(|scope| {
        scope.spawn(|| act(&run));
        read_all(&run, spec)
    });
    assert!(run.next(Duration::ZERO).is_none(), "nothing comes after the end");
    check::every_run(&story, spec);
    story
}

/// As [`run`], while the rate of its only phase falls to 0 after a time in seconds: what waits is still served.
pub fn run_to_rest(spec: &LoadSpec, seconds: f64) -> Story {
    run_with(spec, |run| {
        run.change_at(open_phase("rest", json!({"rate": 0})), false, (seconds * SECOND) as u64).unwrap();
    })
}

/// Reads a run's records up to its end. A run that does not come to an end is stopped, and is a failure.
pub fn read_all(run: &Run, spec: &LoadSpec) -> Story {
    let planned: f64 = spec.phases.iter().filter_map(|phase| phase.seconds).sum();
    let limit = Instant::now() + Duration::from_secs_f64(planned + 60.0);
    let mut story = Story::default();
    loop {
        match run.next(Duration::from_millis(500)) {
            Some(Record::End(ending)) => {
                story.ending = Some(*ending);
                return story;
            }
            Some(record) => story.add(record),
            None if Instant::now() > limit => {
                run.stop();
                panic!("the run has no end");
            }
            None => {}
        }
    }
}

/// Waits until a run has come to a time in seconds.
pub fn wait_until(run: &Run, seconds: f64) {
    let left = seconds - run.elapsed() as f64 / SECOND;
    if left > 0.0 {
        std::thread::sleep(Duration::from_secs_f64(left));
    }
}

/// A simulated database that a test looks into: its counters live as long as this does.
pub struct SimBase {
    pub url: String,
    driver: std::sync::Arc<dyn nephoscope_drivers::Driver>,
}

impl SimBase {
    /// One of its own, with what is planted in it.
    pub fn new(planted: &str) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let url = format!("sim://test-{}?{planted}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let driver = nephoscope_drivers::open(&url, &Settings::default()).unwrap();
        Self { url, driver }
    }

    fn count(&self, column: usize) -> u64 {
        let table = self.driver.admin().unwrap().query("").unwrap();
        table.rows[0][column].as_deref().unwrap().parse().unwrap()
    }

    /// How many transactions it has committed.
    pub fn commits(&self) -> u64 {
        self.count(0)
    }

    /// How many connections were made to it.
    pub fn connections(&self) -> u64 {
        self.count(1)
    }
}

/// One test at a time: for those that measure time, which others on the same cores would disturb.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Compares measured times with what was planted. Where that fails, and the machine stood still meanwhile, it measures
/// again, twice at most, and says so.
#[allow(clippy::print_stderr)]
pub fn measured(comparison: impl Fn()) {
    const STILL_S: f64 = 0.03;
    for _ in 0..2 {
        let once = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(&comparison));
        match watched(once) {
            (Ok(()), _) => return,
            (Err(panic), late) if late.longest < STILL_S => std::panic::resume_unwind(panic),
            (Err(_), late) => eprintln!("measured again: the machine stood still for {:.3} s", late.longest),
        }
    }
    comparison();
}
