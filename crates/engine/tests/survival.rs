//! A load on a real PostgreSQL survives what networks do to its connections: it goes on afterwards with all its
//! sessions, says what happened in the right classes, and knows what it has committed.
//!
//! Each test plants one fault for a second by a proxy, on epoll and on io_uring side by side. Where PostgreSQL is not
//! installed the tests say so and pass.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[path = "../../drivers/tests/support/mod.rs"]
mod servers;
mod support;

use std::num::NonZeroU64;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nephoscope_drivers::{ErrorClass, Settings, open};
use nephoscope_engine::spec::IoChoice;
use nephoscope_engine::{LoadSpec, Run};
use nephoscope_faults::{Accept, Channel, Direction, Faults, Garbage, Law, Planned, Proxy, target};
use nephoscope_runtime::Io;
use nephoscope_runtime::clock::{self, MILLISECOND, Nanos, SECOND};
use serde_json::json;
use servers::postgres::{Plan, Server, programs};
use support::{Story, check, phase, spec, written};

const SESSIONS: usize = 6;
/// Arrivals a second.
const RATE: f64 = 100.0;
/// When the fault is planted, when it is over, and when the load ends, in seconds.
const BEGIN: f64 = 0.5;
const OVER: f64 = 1.5;
const END: f64 = 4.5;
/// Limits for a statement in milliseconds: one that ends the wait in a fault, and one that does not.
const IMPATIENT: u64 = 500;
const PATIENT: u64 = 30_000;

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
    CREATE TABLE entry (item int NOT NULL)";

/// The server that all tests share; each has databases of its own.
fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let start = || {
        let plan = Plan {
            access: "host all all 127.0.0.1/32 trust\n",
            settings: &[("max_connections", "100")],
            ..Plan::default()
        };
        let server = Server::start(&programs()?, plan);
        let limit = Instant::now() + Duration::from_mins(1);
        while admin(server.port, "postgres", "SELECT 1").is_none() {
            assert!(Instant::now() < limit, "{}", server.log());
            thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    };
    SERVER.get_or_init(start).as_ref()
}

fn url(port: u16, database: &str) -> String {
    format!("postgresql://postgres@127.0.0.1:{port}/{database}")
}

/// The first value of what a statement returns; nothing if there is no connection to be had.
fn admin(port: u16, database: &str, sql: &str) -> Option<String> {
    let driver = open(&url(port, database), &Settings::default()).unwrap();
    let mut admin = driver.admin().ok()?;
    let table = admin.query(sql).unwrap();
    Some(table.rows.first().map_or_else(String::new, |row| row[0].clone().unwrap_or_default()))
}

/// A load through a proxy to a database of its own.
struct Scene {
    port: u16,
    database: String,
    proxy: Proxy,
    spec: LoadSpec,
    _workload: tempfile::TempDir,
}

impl Scene {
    fn new(server: &Server, io: IoChoice, statement_timeout_ms: u64) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let database = format!("survival_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        admin(server.port, "postgres", &format!("CREATE DATABASE {database}"));
        admin(server.port, &database, TABLES);
        let proxy = Proxy::start(None, target(&format!("127.0.0.1:{}", server.port)).unwrap()).unwrap();
        let workload = written(TRANSACTION, STATEMENTS);
        let load = json!({"rate": RATE, "mix": {"write": 1}});
        let mut spec = spec(&url(proxy.address().port(), &database), [phase("all", END, load)]);
        spec.io = io;
        spec.statement_timeout_ms = statement_timeout_ms;
        spec.connect_timeout_ms = 500;
        spec.tenants[0].workload.folder = workload.path().into();
        spec.tenants[0].sessions = SESSIONS;
        Self { port: server.port, database, proxy, spec, _workload: workload }
    }

    /// Runs the load, with something planted, and checks what must hold whatever it was.
    fn run(self, plant: impl FnOnce(&Proxy, Nanos) + Send) -> Story {
        let proxy = &self.proxy;
        let story = support::run_with(&self.spec, |run: &Run| plant(proxy, run.origin()));
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

    fn ask(&self, sql: &str) -> u64 {
        admin(self.port, &self.database, sql).unwrap().parse().unwrap()
    }
}

/// The load goes on as before, and no session has lost its connection for good.
fn assert_whole_again(story: &Story) {
    let last = story.between(END - 1.0, END);
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

/// Plants the same fault under a load on each way of waiting, and looks at what came of it.
fn survive(statement_timeout_ms: u64, plant: impl Fn(&Proxy, Nanos) + Sync, look: impl Fn(&Story) + Sync) {
    let Some(server) = server() else { return };
    let uring = Io::Uring.check().is_ok();
    let kinds = if uring { vec![IoChoice::Epoll, IoChoice::Uring] } else { vec![IoChoice::Epoll] };
    thread::scope(|scope| {
        for io in kinds {
            let (plant, look) = (&plant, &look);
            scope.spawn(move || {
                look(&Scene::new(server, io, statement_timeout_ms).run(|proxy, origin| plant(proxy, origin)));
            });
        }
    });
}

fn at(origin: Nanos, seconds: f64) -> Nanos {
    origin + (seconds * SECOND as f64) as Nanos
}

/// Plants faults for the second between [`BEGIN`] and [`OVER`].
fn outage(proxy: &Proxy, origin: Nanos, faults: Faults) {
    let begin = Planned { at: at(origin, BEGIN), faults };
    let over = Planned { at: at(origin, OVER), faults: Faults::default() };
    proxy.schedule(vec![begin, over]).unwrap();
}

fn sleep_until(time: Nanos) {
    thread::sleep(Duration::from_nanos(time.saturating_sub(clock::now())));
}

/// Nothing is committed while nothing passes: the second is read back from the intervals.
fn assert_nothing_passed(story: &Story) {
    // A tenth of a second at either end is for a thread that wakes late, and for the end of an interval.
    let within = story.between(BEGIN + 0.2, OVER - 0.1);
    assert_eq!(within.committed(), 0);
    let longest = story.all().latency().max() as f64 / SECOND as f64;
    assert!(longest > OVER - BEGIN - 0.35, "who arrived at its beginning waited: {longest} s");
}

#[track_caller]
fn assert_only(story: &Story, classes: &[ErrorClass]) {
    let all = story.all();
    let met: Vec<&str> = ErrorClass::ALL
        .iter()
        .filter(|class| all.errors(**class) > 0 && !classes.contains(class))
        .map(|class| class.name())
        .collect();
    assert!(met.is_empty(), "errors of the classes {met:?}: {:?}", story.errors);
    assert!(all.errors(classes[0]) > 0, "{} is met: {:?}", classes[0].name(), story.errors);
}

#[test]
fn a_second_in_a_black_hole() {
    survive(
        IMPATIENT,
        |proxy, origin| outage(proxy, origin, Faults::black_hole()),
        |story| {
            assert_nothing_passed(story);
            assert_only(story, &[ErrorClass::StatementTimeout, ErrorClass::ConnectionLost]);
            assert!(story.all().counted(|of| of.lost) >= SESSIONS as u64, "every session was in it");
            // When it is over, a session waits at most for a connection that was begun in it, and a little.
            let back = story.between(OVER, OVER + 0.9);
            assert!(back.committed() > 0, "the load is back soon");
        },
    );
}

#[test]
fn a_server_that_nobody_can_reach_for_a_second() {
    survive(
        PATIENT,
        |proxy, origin| {
            outage(proxy, origin, Faults { accept: Accept::Refuse, ..Faults::default() });
            sleep_until(at(origin, BEGIN) + 5 * MILLISECOND);
            proxy.cut_all().unwrap();
        },
        |story| {
            assert_nothing_passed(story);
            assert_only(story, &[ErrorClass::ConnectionLost]);
            assert!(story.all().counted(|of| of.refused) >= SESSIONS as u64);
        },
    );
}

#[test]
fn a_second_in_which_connections_are_taken_and_not_answered() {
    survive(
        PATIENT,
        |proxy, origin| {
            outage(proxy, origin, Faults { accept: Accept::Silent, ..Faults::default() });
            sleep_until(at(origin, BEGIN) + 5 * MILLISECOND);
            proxy.reset_all().unwrap();
        },
        |story| {
            assert_nothing_passed(story);
            assert_only(story, &[ErrorClass::ConnectionLost, ErrorClass::StatementTimeout]);
            assert!(story.all().counted(|of| of.refused) >= SESSIONS as u64);
        },
    );
}

#[test]
fn resets_again_and_again() {
    survive(
        PATIENT,
        |proxy, origin| {
            for step in 0..10 {
                sleep_until(at(origin, BEGIN + 0.1 * f64::from(step)));
                proxy.reset_all().unwrap();
            }
        },
        |story| {
            assert_only(story, &[ErrorClass::ConnectionLost]);
            assert!(story.all().counted(|of| of.lost) >= SESSIONS as u64);
        },
    );
}

#[test]
fn one_direction_closed_and_then_the_other() {
    survive(
        PATIENT,
        |proxy, origin| {
            for (direction, seconds) in [(Direction::ToServer, BEGIN), (Direction::ToClient, OVER)] {
                sleep_until(at(origin, seconds));
                proxy.half_close_all(direction).unwrap();
            }
        },
        |story| {
            assert_only(story, &[ErrorClass::ConnectionLost, ErrorClass::ShuttingDown]);
            for (start, end) in [(BEGIN, OVER), (OVER, END)] {
                let lost = story.between(start, end).counted(|of| of.lost);
                assert!(lost > 1, "{lost} sessions notice from {start} s on");
            }
        },
    );
}

#[test]
fn garbage_in_the_stream() {
    let garbage = |after, bytes: &[u8]| Channel {
        garbage_after: Some(Garbage { after, bytes: bytes.to_vec() }),
        ..Channel::default()
    };
    survive(
        IMPATIENT,
        move |proxy, origin| {
            // What is no message, a message that is none of the protocol's, and one that says it is endless.
            for (step, bytes) in [&[0_u8; 7][..], b"?\0\0\0\x04", b"D\x3f\xff\xff\xff"].iter().enumerate() {
                sleep_until(at(origin, BEGIN + 0.3 * step as f64));
                let to_client = garbage(10, bytes);
                proxy.set(Faults { to_client, ..Faults::default() }).unwrap();
                sleep_until(at(origin, BEGIN + 0.3 * step as f64 + 0.2));
                proxy.set(Faults::default()).unwrap();
            }
        },
        |story| {
            assert_only(story, &[ErrorClass::ConnectionLost, ErrorClass::StatementTimeout]);
            assert!(story.all().counted(|of| of.lost) >= SESSIONS as u64);
        },
    );
}

#[test]
fn a_line_so_slow_that_it_drips() {
    let drip = Channel { rate: NonZeroU64::new(40), ..Channel::default() };
    survive(
        IMPATIENT,
        |proxy, origin| outage(proxy, origin, Faults { to_client: drip.clone(), ..Faults::default() }),
        |story| {
            assert_only(story, &[ErrorClass::StatementTimeout, ErrorClass::ConnectionLost]);
        },
    );
}

#[test]
fn connections_that_are_cut_in_the_middle_of_a_message() {
    let short = Channel { cut_after: Some(1001), ..Channel::default() };
    survive(
        PATIENT,
        |proxy, origin| outage(proxy, origin, Faults { to_client: short.clone(), ..Faults::default() }),
        |story| {
            assert_only(story, &[ErrorClass::ConnectionLost]);
            assert!(story.all().counted(|of| of.lost) >= 1);
        },
    );
}

/// Faults of every kind, one after the other and on top of each other, as a generator of numbers has it.
fn everything(proxy: &Proxy, origin: Nanos) {
    let mut state = 0x5eed_u64;
    let mut draw = |many: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % many
    };
    let mut time = at(origin, BEGIN);
    while time < at(origin, OVER + 0.5) {
        sleep_until(time);
        time += (20 + draw(100)) * MILLISECOND;
        let direction = if draw(2) == 0 { Direction::ToServer } else { Direction::ToClient };
        let mut faults = Faults::default();
        let channel =
            if direction == Direction::ToServer { &mut faults.to_server } else { &mut faults.to_client };
        match draw(10) {
            0 => faults.accept = [Accept::Refuse, Accept::Reset, Accept::Silent][draw(3) as usize],
            1 => channel.black_hole = true,
            2 => channel.hold = true,
            3 => channel.rate = NonZeroU64::new(1 + draw(2000)),
            4 => channel.delay = Some(Law::Exponential { mean: draw(50) * MILLISECOND }),
            5 => channel.cut_after = Some(draw(500)),
            6 => drop(proxy.inject(direction, vec![draw(256) as u8; draw(50) as usize]).unwrap()),
            7 => drop(proxy.half_close_all(direction).unwrap()),
            8 => drop(proxy.reset_all().unwrap()),
            _ => drop(proxy.cut_all().unwrap()),
        }
        proxy.set(faults).unwrap();
    }
    proxy.set(Faults::default()).unwrap();
}

#[test]
fn everything_at_once() {
    survive(IMPATIENT, everything, |story| {
        assert_only(
            story,
            &[ErrorClass::ConnectionLost, ErrorClass::StatementTimeout, ErrorClass::ShuttingDown],
        );
        assert!(story.all().counted(|of| of.lost) >= SESSIONS as u64);
    });
}

#[test]
fn a_second_held_is_latency_and_nothing_else() {
    let hold = Channel { hold: true, ..Channel::default() };
    let Some(server) = server() else { return };
    let scene = Scene::new(server, IoChoice::Auto, PATIENT);
    let story =
        scene.run(|proxy, origin| outage(proxy, origin, Faults { to_server: hold, ..Faults::default() }));
    assert_nothing_passed(&story);
    let all = story.all();
    assert_eq!((all.failed(), all.counted(|of| of.lost)), (0, 0), "{:?}", story.errors);
    let longest = all.latency().max() as f64 / SECOND as f64;
    assert!(longest > 0.9 && longest < 2.0, "{longest} s for a second");
}
