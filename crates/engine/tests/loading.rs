//! `w:load`: what columns cannot say, part by part.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nephoscope_drivers::{Admin, Connection, Dialect, Driver, Error, LocalFuture, Settings, Statement, open};
use nephoscope_engine::loading::{PartsOptions, load_parts};
use nephoscope_runtime::Runtime;
use nephoscope_script::Source;

const STATEMENTS: &str = "
-- name: add
INSERT INTO edge (part, number, value, word) VALUES (:part, :number, :value, :word);
-- name: count
SELECT count(*) AS rows FROM edge WHERE part = :part;
-- name: now
SELECT (julianday('now') - 2440587.5) * 86400 AS seconds;
";

/// A database of its own with an empty table, and a workload whose `w:load` has a body.
struct Place {
    folder: tempfile::TempDir,
    driver: Arc<dyn Driver>,
}

impl Place {
    fn new(settings: &str, body: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let lua = format!(
            r#"local w = workload "graph"
w:table("node", {{ rows = 50, columns = {{ {{ "n_id", serial() }} }} }})
w:load({settings}function(tx, part, parts, pick)
{body}
end)
w:transaction("t", function() end)"#
        );
        std::fs::write(folder.path().join("workload.lua"), lua).unwrap();
        std::fs::write(folder.path().join("statements.sql"), STATEMENTS).unwrap();
        let url = format!("sqlite:{}", folder.path().join("data.db").display());
        let driver = open(&url, &Settings::default()).unwrap();
        let mut admin = driver.admin().unwrap();
        admin.query("CREATE TABLE edge (part, number, value, word)").unwrap();
        Self { folder, driver }
    }

    /// Loads on some threads: how many statements were run.
    fn load(&self, threads: usize, seed: u64, cancelled: bool) -> Result<u64, String> {
        self.load_within(threads, seed, &Arc::new(AtomicBool::new(cancelled)), Duration::from_secs(10))
    }

    fn load_within(
        &self,
        threads: usize,
        seed: u64,
        cancel: &Arc<AtomicBool>,
        limit: Duration,
    ) -> Result<u64, String> {
        let dialect = self.driver.dialect();
        let source = Source::read(self.folder.path(), BTreeMap::new(), 1.0, seed, dialect).unwrap();
        let workload = source.workload().unwrap();
        let mut last = 0;
        let options = PartsOptions { threads, cancel: Arc::clone(cancel), limit };
        let loaded = load_parts(&source, &workload, &self.driver, &options, &mut |done| last = done);
        assert_eq!(loaded.is_ok(), Some(last) == workload.load_parts);
        loaded.map_err(|error| error.to_string())
    }

    fn rows(&self) -> Vec<Vec<Option<String>>> {
        let sql = "SELECT part, number, value, word FROM edge ORDER BY part, number";
        self.driver.admin().unwrap().query(sql).unwrap().rows
    }
}

const BODY: &str = r#"
tx:begin()
for number = 1, 700 do
  tx:queue("add", part, number, pick.integer(1, 1000000) + pick.node(), pick.pattern("??") .. pick.row("node").n_id)
end
tx:commit()
assert(tx:one("count", part).rows == 700 and parts == 6)"#;

#[test]
fn the_data_does_not_depend_on_the_number_of_threads() {
    let rows = |threads, seed| {
        let place = Place::new("{ parts = 6 }, ", BODY);
        assert_eq!(place.load(threads, seed, false).unwrap(), 6 * 701);
        place.rows()
    };
    let (one, three, other) = (rows(1, 7), rows(3, 7), rows(1, 8));
    assert_eq!(one.len(), 4200);
    assert!(one == three);
    assert!(one != other);
    assert_ne!(one[0][2], one[700][2], "each part draws numbers of its own");
}

#[test]
fn an_error_names_its_part() {
    for (body, message) in [
        (
            "if part == 3 then tx:exec('add', 1, 2, 3) end",
            "w:load, part 3 of 16: workload.lua:4: add takes 4 parameters",
        ),
        ("tx:begin()", "the function returned within a transaction: tx:commit() or tx:rollback() is missing"),
        ("tx:tally('sum', 1)", "tx:tally is for transactions; w:load cannot use it"),
        ("pick.new('node')", "workload.lua:4: pick.new is for transactions; w:load cannot use it"),
        ("pick.once('node')", "workload.lua:4: pick.once is for transactions; w:load cannot use it"),
    ] {
        let error = Place::new("", body).load(2, 7, false).unwrap_err();
        assert!(error.contains("w:load, part ") && error.contains(message), "{error}");
    }
}

#[test]
fn a_database_that_refuses_ends_the_load() {
    let place = Place::new("", "tx:exec('add', part, 1, 1, 'a')");
    let sql = "CREATE TRIGGER no BEFORE INSERT ON edge WHEN new.part = 5 BEGIN SELECT raise(ABORT, 'not this one'); END";
    place.driver.admin().unwrap().query(sql).unwrap();
    let error = place.load(1, 7, false).unwrap_err();
    assert!(error.contains("w:load, part 5 of 16") && error.contains("not this one"), "{error}");
    assert_eq!(place.rows().len(), 4);
}

/// A driver of which one thread's connection panics.
struct Panics {
    sound: Arc<dyn Driver>,
    has_panicked: AtomicBool,
}

impl Driver for Panics {
    fn name(&self) -> &'static str {
        self.sound.name()
    }

    fn dialect(&self) -> &'static Dialect {
        self.sound.dialect()
    }

    fn redacted_url(&self) -> String {
        self.sound.redacted_url()
    }

    fn connect<'a>(
        &'a self,
        runtime: &'a Runtime,
        statements: &'a Arc<[Statement]>,
    ) -> LocalFuture<'a, Result<Box<dyn Connection>, Error>> {
        assert!(self.has_panicked.swap(true, Ordering::Relaxed), "planted");
        self.sound.connect(runtime, statements)
    }

    fn admin(&self) -> Result<Box<dyn Admin>, Error> {
        self.sound.admin()
    }
}

#[test]
fn a_panic_of_one_thread_ends_the_others() {
    let mut place = Place::new("{ parts = 2000 }, ", "tx:exec('add', part, 1, 1, 'a')");
    place.driver =
        Arc::new(Panics { sound: Arc::clone(&place.driver), has_panicked: AtomicBool::new(false) });
    let error = place.load(2, 7, false).unwrap_err();
    assert_eq!(error, "a thread of w:load died; standard error says why");
    assert!(place.rows().len() < 2000);
}

#[test]
fn statements_are_prepared_before_the_load() {
    let place = Place::new("", "");
    place.driver.admin().unwrap().query("DROP TABLE edge").unwrap();
    let error = place.load(1, 7, false).unwrap_err();
    assert!(error.contains("connecting for w:load") && error.contains("edge"), "{error}");
}

#[test]
fn a_cancelled_load_says_so() {
    let place = Place::new("", BODY);
    assert_eq!(place.load(2, 7, true).unwrap_err(), "the load was interrupted");
    assert!(place.rows().is_empty());
}

const SHORT: Duration = Duration::from_millis(500);

#[test]
fn a_part_without_an_end_is_ended_and_named() {
    let place =
        Place::new("", "if part == 2 then while true do pcall(function() while true do end end) end end");
    let error = place.load_within(2, 7, &Arc::default(), SHORT).unwrap_err();
    let expected =
        "w:load, part 2 of 16: workload.lua:4: the function of w:load has run for 0.5 s without an end";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_part_that_cannot_be_interrupted_is_left_behind() {
    let place = Place::new("", r#"(("a"):rep(40)):find(("a-"):rep(40) .. "b")"#);
    let error = place.load_within(1, 7, &Arc::default(), SHORT).unwrap_err();
    let expected =
        "the function of w:load: it has run for 0.5 s without an end, and is within a function of Lua's";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_part_that_takes_long_and_goes_on_is_left_alone() {
    // Ten times the limit, in an embedded database, which never waits.
    let body = "local begun = tx.now
        local n = 0
        repeat n = n + 1 tx:queue('add', part, n, 1, 'a') until tx:one('now').seconds - begun > 1.5";
    let place = Place::new("{ parts = 1 }, ", body);
    place.load_within(1, 7, &Arc::default(), Duration::from_millis(300)).unwrap();
}

#[test]
fn a_load_without_an_end_is_cancelled() {
    let place = Place::new("", "while true do end");
    let cancel = Arc::new(AtomicBool::new(false));
    let begun = Instant::now();
    let error = std::thread::scope(|scope| {
        let load = scope.spawn(|| place.load_within(2, 7, &cancel, Duration::from_mins(1)));
        std::thread::sleep(Duration::from_millis(300));
        cancel.store(true, Ordering::Relaxed);
        load.join().unwrap().unwrap_err()
    });
    assert_eq!(error, "the load was interrupted");
    assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
}
