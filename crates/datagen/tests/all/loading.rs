//! Loading from several threads, into a database that is a list.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use nephoscope_datagen::{Dataset, LoadOptions, LoadReport, load};
use nephoscope_drivers::{Admin, Error, RowSource, Table};

use crate::common::{self, Recorder, Row, sales};

/// A database: the rows of its tables, and what is to go wrong.
#[derive(Default)]
struct Database {
    tables: Mutex<BTreeMap<String, Vec<Row>>>,
    connections: AtomicU64,
    closed: AtomicU64,
    loads: AtomicU64,
    cancel: AtomicBool,
    fault: Option<Fault>,
}

/// What goes wrong with the fourth bulk load.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Refuses,
    ForgetsRows,
    Panics,
    /// The user presses Ctrl-C while it runs.
    Cancel,
}

struct Connection(Arc<Database>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.closed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Admin for Connection {
    fn query(&mut self, _: &str) -> Result<Table, Error> {
        Err(Error::other("a load does not query"))
    }

    fn bulk_load(&mut self, table: &str, columns: &[String], rows: &mut dyn RowSource) -> Result<u64, Error> {
        let database = &*self.0;
        let load = database.loads.fetch_add(1, Ordering::Relaxed);
        let faulty = load == 3;
        if load > 3 && database.fault == Some(Fault::Panics) {
            // Printing the panic takes longer than loading the rest.
            while database.closed.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        match database.fault.filter(|_| faulty) {
            Some(Fault::Refuses) => {
                return Err(Error::new(nephoscope_drivers::ErrorClass::Other, "23505", "no"));
            }
            Some(Fault::ForgetsRows) => return Ok(5),
            Some(Fault::Panics) => panic!("planted"),
            Some(Fault::Cancel) => database.cancel.store(true, Ordering::Relaxed),
            None => {}
        }
        let mut recorder = Recorder::default();
        while rows.fill(&mut recorder)? {}
        assert!(recorder.rows.iter().all(|row| row.len() == columns.len()));
        let stored = recorder.rows.len() as u64;
        database.tables.lock().unwrap().entry(table.to_owned()).or_default().append(&mut recorder.rows);
        Ok(stored)
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        Ok(Vec::new())
    }
}

impl Database {
    fn with(fault: Fault) -> Arc<Self> {
        Arc::new(Self { fault: Some(fault), ..Self::default() })
    }

    fn load(
        self: &Arc<Self>,
        dataset: &Dataset,
        threads: usize,
        chunk_rows: u64,
    ) -> Result<LoadReport, Error> {
        let connect = || -> Result<Box<dyn Admin>, Error> {
            self.connections.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(Connection(self.clone())))
        };
        let options = LoadOptions { threads, chunk_rows, cancel: Some(&self.cancel) };
        load(dataset, &options, &connect, &mut |_| {})
    }

    /// The rows of each table, in the order of their text.
    fn sorted(&self) -> BTreeMap<String, Vec<Row>> {
        let mut tables = self.tables.lock().unwrap().clone();
        for rows in tables.values_mut() {
            rows.sort();
        }
        tables
    }
}

fn dataset() -> Dataset {
    Dataset::new(&sales::tables(301), 7).unwrap()
}

#[test]
fn the_same_rows_are_stored_by_any_number_of_threads_in_any_chunks() {
    let dataset = dataset();
    let expected: BTreeMap<String, Vec<Row>> = dataset
        .tables()
        .iter()
        .enumerate()
        .map(|(index, table)| {
            let mut rows = common::all_rows(&dataset, index);
            rows.sort();
            (table.name().to_owned(), rows)
        })
        .collect();
    for (threads, chunk_rows) in [(1, 65_536), (1, 7), (2, 100), (5, 64), (5, 1), (0, 3000), (3, 0)] {
        let database = Arc::new(Database::default());
        let report = database.load(&dataset, threads, chunk_rows).unwrap();
        assert_eq!(database.sorted(), expected, "{threads} threads, chunks of {chunk_rows}");
        let rows = [("customer", 301), ("orders", 301), ("orderline", 3010)];
        assert_eq!(report.tables, rows.map(|(table, rows)| (table.to_owned(), rows)));
        assert!(report.seconds > 0.0);
    }
}

#[test]
fn each_thread_has_one_connection_and_there_are_no_more_than_chunks() {
    let dataset = dataset();
    for (threads, chunk_rows, connections) in [(2, 100, 2), (5, 10, 5), (8, 65_536, 3), (1, 1, 1)] {
        let database = Arc::new(Database::default());
        database.load(&dataset, threads, chunk_rows).unwrap();
        assert_eq!(database.connections.load(Ordering::Relaxed), connections);
    }
}

#[test]
fn an_error_ends_the_load_and_says_where_it_was_met() {
    let dataset = dataset();
    let database = Database::with(Fault::Refuses);
    let error = database.load(&dataset, 1, 100).unwrap_err();
    // Four chunks of customers, the last with one row.
    assert_eq!(error.to_string(), r#"table "customer", rows 300 to 300: no (23505)"#);
    assert_eq!(database.loads.load(Ordering::Relaxed), 4, "nothing is begun after an error");
    for threads in [2, 5] {
        let database = Database::with(Fault::Refuses);
        let error = database.load(&dataset, threads, 10).unwrap_err();
        assert!(error.to_string().contains("no (23505)"), "{error}");
        assert!(database.loads.load(Ordering::Relaxed) <= 3 + 1 + 2 * threads as u64);
    }
}

#[test]
fn a_database_that_takes_fewer_rows_than_it_was_given_is_found_out() {
    let error = Database::with(Fault::ForgetsRows).load(&dataset(), 1, 50).unwrap_err();
    assert_eq!(error.to_string(), r#"table "customer", rows 150 to 199: the database took 5 of 50 rows"#);
}

#[test]
fn a_cancelled_load_ends_with_an_error() {
    for threads in [1, 2, 5] {
        let database = Database::with(Fault::Cancel);
        let error = database.load(&dataset(), threads, 10).unwrap_err();
        assert_eq!(error.to_string(), "the load was interrupted");
        assert!(database.loads.load(Ordering::Relaxed) <= 3 + threads as u64);
    }
    let database = Arc::new(Database::default());
    database.cancel.store(true, Ordering::Relaxed);
    assert!(database.load(&dataset(), 2, 10).is_err());
    assert!(database.sorted().is_empty());
}

#[test]
fn a_panic_of_one_thread_ends_the_others() {
    let dataset = dataset();
    let database = Database::with(Fault::Panics);
    let load = std::panic::AssertUnwindSafe(|| database.load(&dataset, 2, 10));
    assert!(std::panic::catch_unwind(load).is_err());
    assert!(database.loads.load(Ordering::Relaxed) < 200);
}

#[test]
fn a_connection_that_cannot_be_made_ends_the_load() {
    let connect = || -> Result<Box<dyn Admin>, Error> { Err(Error::connection_lost("refused")) };
    let error = load(&dataset(), &LoadOptions::default(), &connect, &mut |_| {}).unwrap_err();
    assert_eq!(error.to_string(), "connecting for the load: refused");
    assert_eq!(error.class(), nephoscope_drivers::ErrorClass::ConnectionLost);
}

#[test]
fn progress_grows_and_ends_with_all_rows() {
    let dataset = dataset();
    let database = Arc::new(Database::default());
    let connect = || -> Result<Box<dyn Admin>, Error> {
        std::thread::sleep(std::time::Duration::from_millis(250));
        Ok(Box::new(Connection(database.clone())))
    };
    let mut seen: Vec<Vec<(String, u64, u64)>> = Vec::new();
    load(&dataset, &LoadOptions::default(), &connect, &mut |progress| {
        let tables = progress.tables.iter().map(|table| (table.name.to_owned(), table.done, table.rows));
        seen.push(tables.collect());
    })
    .unwrap();
    assert!((2..=10).contains(&seen.len()), "{}", seen.len());
    for pair in seen.windows(2) {
        assert!(pair[0].iter().zip(&pair[1]).all(|(before, after)| before.1 <= after.1));
    }
    let ends = [("customer", 301, 301), ("orders", 301, 301), ("orderline", 3010, 3010)];
    assert_eq!(seen.last().unwrap().as_slice(), ends.map(|(name, done, rows)| (name.to_owned(), done, rows)));
}

#[test]
fn a_dataset_without_rows_needs_no_connection() {
    let dataset = Dataset::new(&[common::table("t", Some(0), vec![("id", common::serial())])], 1).unwrap();
    let database = Arc::new(Database::default());
    let report = database.load(&dataset, 4, 10).unwrap();
    assert_eq!(report.tables, [("t".to_owned(), 0)]);
    assert_eq!(database.connections.load(Ordering::Relaxed), 0);
}
