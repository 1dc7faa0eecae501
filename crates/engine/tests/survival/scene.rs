//! A load on a database of its own, and what must hold of it whatever it has met.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nephoscope_drivers::{ErrorClass, Settings, open};
use nephoscope_engine::spec::IoChoice;
use nephoscope_engine::{LoadSpec, Run};
use nephoscope_faults::Proxy;
use nephoscope_runtime::Io;
use nephoscope_runtime::clock::{self, Nanos, SECOND};
use serde_json::json;

use crate::servers::postgres::{Plan, Server, programs};
use crate::support::survivals::Survival;
use crate::support::{self, Story, check, open_phase, phase, spec, written};

pub(crate) const SESSIONS: usize = 6;
/// Arrivals a second.
pub(crate) const RATE: f64 = 100.0;
/// When the fault is planted, when it is over, and when the load ends, in seconds.
pub(crate) const BEGIN: f64 = 0.5;
pub(crate) const OVER: f64 = 1.5;
pub(crate) const END: f64 = 4.5;
/// Limits for a statement in milliseconds: one that ends the wait in a fault, and one that does not.
pub(crate) const IMPATIENT: u64 = 500;
pub(crate) const PATIENT: u64 = 30_000;

/// Who the load connects as: a user for whom limits hold.
const USER: &str = "measurer";

const TRANSACTION: &str = r#"
local survival = workload "survival"
survival:describe "a transaction that leaves two traces"
survival:table("item", { rows = 100, columns = { { "id", serial() } } })
survival:transaction("write", { help = "an update and an entry" }, function(tx, pick)
  local id = pick.item()
  tx:begin()
  tx:exec("update", id)
  tx:exec("enter", id)
  tx:tally("written", 1)
  tx:commit()
end)
"#;

const STATEMENTS: &str = "-- name: update
UPDATE item SET hits = hits + 1 WHERE id = :id;
-- name: enter
INSERT INTO entry (item) VALUES (:id);
";

const TABLES: &str = "CREATE TABLE item (id int PRIMARY KEY, hits int NOT NULL DEFAULT 0);
    INSERT INTO item SELECT generate_series(1, 100);
    CREATE TABLE entry (item int NOT NULL);
    GRANT ALL ON item, entry TO measurer";

/// The server that all tests share whose faults end with their own database.
pub(crate) fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(started).as_ref()
}

/// A new server.
pub(crate) fn started() -> Option<Server> {
    let plan = Plan {
        set_up: "CREATE ROLE measurer LOGIN;\n",
        access: "host all all 127.0.0.1/32 trust\n",
        settings: &[("max_connections", "100")],
        ..Plan::default()
    };
    let server = Server::start(&programs()?, plan);
    wait_until_ready(&server);
    Some(server)
}

/// Waits until a server that was started takes connections.
pub(crate) fn wait_until_ready(server: &Server) {
    let limit = Instant::now() + Duration::from_mins(1);
    while admin(server.port, "postgres", "SELECT 1").is_none() {
        assert!(Instant::now() < limit, "{}", server.log());
        thread::sleep(Duration::from_millis(50));
    }
}

pub(crate) fn url(user: &str, port: u16, database: &str) -> String {
    format!("postgresql://{user}@127.0.0.1:{port}/{database}")
}

/// The first value of what a statement returns; nothing if there is no connection to be had.
pub(crate) fn admin(port: u16, database: &str, sql: &str) -> Option<String> {
    let driver = open(&url("postgres", port, database), &Settings::default()).unwrap();
    let mut admin = driver.admin().ok()?;
    let table = admin.query(sql).unwrap();
    Some(table.rows.first().map_or_else(String::new, |row| row[0].clone().unwrap_or_default()))
}

/// A load on a database of its own.
pub(crate) struct Scene {
    port: u16,
    database: String,
    spec: LoadSpec,
    _workload: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new(server: &Server, io: IoChoice, statement_timeout_ms: u64) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let database = format!("survival_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        admin(server.port, "postgres", &format!("CREATE DATABASE {database}"));
        admin(server.port, &database, TABLES);
        let workload = written(TRANSACTION, STATEMENTS);
        let load = json!({"rate": RATE, "mix": {"write": 1}});
        let mut spec = spec(&url(USER, server.port, &database), [phase("all", END, load)]);
        spec.io = io;
        spec.statement_timeout_ms = statement_timeout_ms;
        spec.connect_timeout_ms = 500;
        spec.tenants[0].workload.folder = workload.path().into();
        spec.tenants[0].sessions = SESSIONS;
        Self { port: server.port, database, spec, _workload: workload }
    }

    /// The load goes through a proxy.
    pub(crate) fn through(mut self, proxy: &Proxy) -> Self {
        self.spec.tenants[0].rw = vec![url(USER, proxy.address().port(), &self.database)];
        self
    }

    /// The load lasts until it is stopped.
    pub(crate) fn endless(mut self) -> Self {
        self.spec.phases = vec![open_phase("all", json!({"rate": RATE, "mix": {"write": 1}}))];
        self
    }

    /// Runs the load, with something planted, and checks what must hold whatever it was.
    pub(crate) fn run(&self, plant: impl FnOnce(&Run) + Send) -> Story {
        let story = support::run_with(&self.spec, plant);
        assert_eq!(story.failure(), None);
        check::arrivals(&story);
        let before = story.between(0.0, BEGIN);
        assert!(before.committed() as f64 > RATE * BEGIN * 0.5, "the load is on its way");
        assert_whole_again(&story);
        self.is_accounted_for(&story);
        story
    }

    /// The database holds what the load says that it has committed, and of the uncertain no more than all.
    fn is_accounted_for(&self, story: &Story) {
        // The server may still be at work for sessions that were given up.
        let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                      AND pid <> pg_backend_pid()";
        let limit = Instant::now() + Duration::from_secs(20);
        while self.ask(others) > 0 {
            assert!(Instant::now() < limit, "{} sessions are left behind", self.ask(others));
            thread::sleep(Duration::from_millis(20));
        }
        let (sure, uncertain) = story.tally("written");
        let (hits, entries) =
            (self.ask("SELECT sum(hits) FROM item"), self.ask("SELECT count(*) FROM entry"));
        assert_eq!(hits, entries, "transactions are whole");
        let (least, most) = (sure as u64, (sure + uncertain) as u64);
        assert!((least..=most).contains(&hits), "{hits} in the database, {least} to {most} were committed");
        assert_eq!(story.all().committed(), least, "each commit was tallied");
    }

    /// Lets the load's database have so many connections at a time; all there are for -1.
    pub(crate) fn limit_connections(&self, count: i32) {
        let sql = format!("ALTER DATABASE {} CONNECTION LIMIT {count}", self.database);
        admin(self.port, "postgres", &sql).unwrap();
    }

    /// A number from the load's database, asked beside the load.
    pub(crate) fn ask(&self, sql: &str) -> u64 {
        admin(self.port, &self.database, sql).unwrap().parse().unwrap()
    }
}

/// The load goes on as before, and no session has lost its connection for good.
fn assert_whole_again(story: &Story) {
    let end = story.phase("all").0.last().unwrap().end as f64 / support::SECOND;
    // Where a phase was ended by hand its last interval is a part of one.
    let last = story.between(end - 1.1, end);
    assert!(last.committed() as f64 > RATE * 0.5, "{} committed in the last second", last.committed());
    // A busy machine may well let a statement time out by itself.
    assert!(last.failed() < 5, "{} failed in the last second: {:?}", last.failed(), story.errors.last());
    let sessions = story.phase("all");
    let (connected, backlog) = (sessions.gauge(|of| of.connected), sessions.gauge(|of| of.backlog));
    assert_eq!(connected.last(), Some(&(SESSIONS as u64)), "every session has its connection");
    assert!(backlog.last().is_some_and(|backlog| *backlog < 50), "{backlog:?}");
    let all = story.all();
    let (lost, restored) = (all.counted(|of| of.lost), all.counted(|of| of.restored));
    assert_eq!(lost, restored, "what was lost was made anew");
}

/// Lets a load meet the same fault on each way of waiting, looks at what it tells, and puts it on record.
pub(crate) fn survive(survival: &Survival, meet: impl Fn(&Server, IoChoice) -> Story + Sync) {
    let Some(server) = server() else { return survival.record(false) };
    let uring = Io::Uring.check().is_ok();
    let kinds = if uring { vec![IoChoice::Epoll, IoChoice::Uring] } else { vec![IoChoice::Epoll] };
    thread::scope(|scope| {
        for io in kinds {
            let meet = &meet;
            scope.spawn(move || assert_only(&meet(server, io), survival.errors));
        }
    });
    survival.record(true);
}

pub(crate) fn at(origin: Nanos, seconds: f64) -> Nanos {
    origin + (seconds * SECOND as f64) as Nanos
}

pub(crate) fn sleep_until(time: Nanos) {
    thread::sleep(Duration::from_nanos(time.saturating_sub(clock::now())));
}

/// The first of these classes was met, and no other than these.
#[track_caller]
pub(crate) fn assert_only(story: &Story, classes: &[ErrorClass]) {
    let all = story.all();
    let met: Vec<&str> = ErrorClass::ALL
        .iter()
        .filter(|class| all.errors(**class) > 0 && !classes.contains(class))
        .map(|class| class.name())
        .collect();
    assert!(met.is_empty(), "errors of the classes {met:?}: {:?}", story.errors);
    if let Some(first) = classes.first() {
        assert!(all.errors(*first) > 0, "{} is met: {:?}", first.name(), story.errors);
    }
}
