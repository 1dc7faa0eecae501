//! What servers do to connections: they are restarted, end sessions, and take no more of them.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nephoscope_drivers::ErrorClass;
use nephoscope_engine::spec::IoChoice;
use rustix::process::Signal;

use crate::scene::{
    self, BEGIN, OVER, PATIENT, SESSIONS, Scene, assert_only, at, sleep_until, started, survive,
    wait_until_ready,
};
use crate::servers::postgres::Server;
use crate::support::survivals::Survival;
use crate::support::{self, SECOND, Story, phase, written};
use crate::this_test;

const fn server(
    test: &'static str,
    fault: &'static str,
    promise: &'static str,
    errors: &'static [ErrorClass],
) -> Survival {
    Survival { test, part: "server", fault, promise, errors, on: "PostgreSQL" }
}

/// Restarts a server under a load that lasts until all is well again.
fn restart(survival: &Survival, signal: Signal) {
    static OWN: OnceLock<Option<Server>> = OnceLock::new();
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(server) = OWN.get_or_init(started) else { return survival.record(false) };
    let scene = Scene::new(server, IoChoice::Auto, PATIENT).endless();
    let story = scene.run(|run| {
        sleep_until(at(run.origin(), BEGIN));
        server.restart(signal, Duration::from_millis(500));
        wait_until_ready(server);
        // Sessions try again at least once a second.
        thread::sleep(Duration::from_millis(2500));
        run.stop();
    });
    assert_only(&story, survival.errors);
    let all = story.all();
    assert!(all.counted(|of| of.lost) >= SESSIONS as u64, "every session was ended");
    assert!(all.counted(|of| of.refused) > 0, "none was to be had for half a second");
    assert!(all.latency().max() as f64 / SECOND > 0.4, "who arrived meanwhile has waited");
    survival.record(true);
}

#[test]
fn a_fast_restart() {
    let survival = server(
        this_test!(),
        "a restart in mode fast, half a second without a server",
        "every session comes back; what was committed is in the database, and no more than that and the uncertain",
        &[ErrorClass::ShuttingDown, ErrorClass::ConnectionLost],
    );
    restart(&survival, Signal::INT);
}

#[test]
fn an_immediate_restart() {
    let survival = server(
        this_test!(),
        "a restart in mode immediate: the server recovers as from a crash, half a second later",
        "every session comes back; what was committed is in the database, and no more than that and the uncertain",
        &[ErrorClass::ShuttingDown, ErrorClass::ConnectionLost],
    );
    restart(&survival, Signal::QUIT);
}

/// Ends every session of the load in a scene's database, when all are there.
fn terminate(scene: &Scene) {
    let of_load = "FROM pg_stat_activity WHERE datname = current_database() AND usename = 'measurer'";
    let limit = Instant::now() + Duration::from_secs(20);
    while scene.ask(&format!("SELECT count(*) {of_load}")) < SESSIONS as u64 {
        assert!(Instant::now() < limit, "every session is there");
        thread::sleep(Duration::from_millis(10));
    }
    let ended = scene.ask(&format!("SELECT count(pg_terminate_backend(pid)) {of_load}"));
    assert_eq!(ended, SESSIONS as u64);
}

#[test]
fn every_session_terminated() {
    let survival = server(
        this_test!(),
        "pg_terminate_backend of every session",
        "every session comes back",
        &[ErrorClass::ShuttingDown, ErrorClass::ConnectionLost],
    );
    survive(&survival, |server, io| {
        let scene = Scene::new(server, io, PATIENT);
        let story = scene.run(|run| {
            for seconds in [BEGIN, OVER] {
                sleep_until(at(run.origin(), seconds));
                terminate(&scene);
            }
        });
        assert_eq!(story.all().counted(|of| of.lost), 2 * SESSIONS as u64);
        story
    });
}

/// The attempts at a connection that the server has refused for one reason.
fn refused_with(story: &Story, code: &str) -> u64 {
    story.errors.iter().filter(|event| event.code == code).map(|event| event.count).sum()
}

#[test]
fn too_many_connections() {
    let survival = server(
        this_test!(),
        "too many connections: all are ended, and for a second only two may come back",
        "attempts that are refused (53300) are counted, the load goes on with two sessions; then every session comes back",
        &[ErrorClass::ShuttingDown, ErrorClass::ConnectionLost],
    );
    survive(&survival, |server, io| {
        let scene = Scene::new(server, io, PATIENT);
        let story = scene.run(|run| {
            sleep_until(at(run.origin(), BEGIN));
            scene.limit_connections(2);
            terminate(&scene);
            sleep_until(at(run.origin(), OVER));
            scene.limit_connections(-1);
        });
        assert!(refused_with(&story, "53300") > 0, "{:?}", story.errors);
        assert!(story.all().counted(|of| of.refused) >= 4, "four sessions have no place");
        let within = story.between(BEGIN + 0.5, OVER - 0.1);
        assert!(within.committed() > 10, "two sessions go on");
        let connected = within.gauge(|of| of.connected);
        assert!(connected.iter().all(|count| *count <= 2), "{connected:?}");
        story
    });
}

/// A transaction that keeps what it reads, and a function of the server that says how much that is.
const READER: (&str, &str) = (
    r#"
local reader = workload "reader"
reader:transaction("read", { read_only = true, help = "keeps rows" }, function(tx) tx:rows("rows") end)
"#,
    "-- name: rows\nSELECT repeat('x', width()) FROM (SELECT generate_series(1, 100000)) AS n LIMIT least(width(), 100000);\n",
);

#[test]
fn rows_without_an_end() {
    let survival = server(
        this_test!(),
        "a statement whose rows have no end",
        "its transaction fails when a million rows are read, or 64 MiB, and the statement is cancelled; no connection is lost",
        &[ErrorClass::Other],
    );
    let Some(shared) = scene::server() else { return survival.record(false) };
    let wide = |width: u32| {
        format!("CREATE OR REPLACE FUNCTION width() RETURNS int LANGUAGE sql AS 'SELECT {width}'")
    };
    scene::admin(shared.port, "postgres", "CREATE DATABASE endless_rows");
    let plant = |width: u32| scene::admin(shared.port, "endless_rows", &wide(width)).unwrap();
    plant(3);
    let workload = written(READER.0, READER.1);
    let load = serde_json::json!({"concurrency": 2, "mix": {"read": 1}});
    let url = scene::url("postgres", shared.port, "endless_rows");
    let mut spec = support::spec(&url, [phase("all", 5.0, load)]);
    spec.tenants[0].workload.folder = workload.path().into();
    let story = support::run_with(&spec, |run| {
        sleep_until(at(run.origin(), BEGIN));
        plant(4_000_000);
        sleep_until(at(run.origin(), OVER));
        plant(3);
    });
    assert_eq!(story.failure(), None);
    assert_only(&story, survival.errors);
    assert!(
        story.errors.iter().all(|of| of.message.contains("more rows than are kept")),
        "{:?}",
        story.errors
    );
    assert_eq!(story.all().counted(|of| of.lost), 0, "the sessions go on with their connections");
    let after = story.between(4.0, 5.0);
    assert!(after.committed() > 100 && after.failed() == 0, "{} and {}", after.committed(), after.failed());
    survival.record(true);
}
