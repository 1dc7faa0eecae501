//! Loading a dataset into a database from several threads.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use nephoscope_drivers::{Admin, Error, RowEncoder, RowSource};

use crate::dataset::Dataset;
use crate::generate::{Cells, TableRows};

/// The time between two reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// How a dataset is loaded.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions<'a> {
    /// How many threads load, each with a connection of its own; 0 for one per available core. There are
    /// never more than chunks.
    pub threads: usize,
    /// How many rows are stored at a time, all or none of them; at least 1.
    pub chunk_rows: u64,
    /// Ends the load, with an error, when it becomes true.
    pub cancel: Option<&'a AtomicBool>,
}

impl Default for LoadOptions<'_> {
    fn default() -> Self {
        Self { threads: 0, chunk_rows: 65_536, cancel: None }
    }
}

/// How far a load is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress<'a> {
    /// The tables, as they were declared.
    pub tables: Vec<TableProgress<'a>>,
    /// Since the load began.
    pub seconds: f64,
}

/// How far a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableProgress<'a> {
    /// The table's name.
    pub name: &'a str,
    /// How many rows were handed to the database.
    pub done: u64,
    /// How many rows the table has.
    pub rows: u64,
}

/// What was loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadReport {
    /// The tables, as they were declared, and how many rows were stored in each.
    pub tables: Vec<(String, u64)>,
    /// How long it took.
    pub seconds: f64,
}

/// Stores all rows of a dataset, chunk by chunk, in tables that exist and are empty. Tables are loaded at the
/// same time, so foreign keys and indexes are better made afterwards.
///
/// `connect` is called once on each loading thread. `progress` is called on the calling thread, ten times a
/// second at most, and once at the end of a load that succeeds.
///
/// The first error stops all threads after the some thousand rows that each is at, and says which rows of
/// which table it met; rows are counted from 0. A load that was cancelled gives an error, too. Chunks that
/// were stored before stay.
pub fn load(
    dataset: &Dataset,
    options: &LoadOptions<'_>,
    connect: &(dyn Fn() -> Result<Box<dyn Admin>, Error> + Sync),
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<LoadReport, Error> {
    let start = Instant::now();
    let load = Load::new(dataset, options);
    let (failed, failures) = mpsc::channel();
    let failure = thread::scope(|scope| {
        for _ in 0..load.threads(options.threads) {
            let (load, failed) = (&load, failed.clone());
            scope.spawn(move || load.work(connect, &failed));
        }
        drop(failed);
        watch(&failures, &mut || progress(&load.progress(start)))
    });
    match failure {
        Some(error) => Err(error),
        None if load.is_complete() => {
            progress(&load.progress(start));
            let tables =
                dataset.tables().iter().map(|table| (table.name().to_owned(), table.rows())).collect();
            Ok(LoadReport { tables, seconds: start.elapsed().as_secs_f64() })
        }
        None => Err(interrupted()),
    }
}

/// What the threads of a load share.
struct Load<'a> {
    dataset: &'a Dataset,
    chunk_rows: u64,
    cancel: Option<&'a AtomicBool>,
    /// The number of the chunk that the next free thread takes.
    next: AtomicU64,
    /// Set by the first error.
    stop: AtomicBool,
    /// For each table, how many rows were handed over.
    done: Vec<AtomicU64>,
}

/// Rows of a table that are stored together.
struct Chunk {
    table: usize,
    rows: Range<u64>,
}

fn interrupted() -> Error {
    Error::other("the load was interrupted")
}

impl<'a> Load<'a> {
    fn new(dataset: &'a Dataset, options: &LoadOptions<'a>) -> Self {
        Self {
            dataset,
            chunk_rows: options.chunk_rows.max(1),
            cancel: options.cancel,
            next: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            done: dataset.tables().iter().map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn threads(&self, wanted: usize) -> u64 {
        let wanted =
            if wanted == 0 { thread::available_parallelism().map_or(1, usize::from) } else { wanted };
        let chunks = self.dataset.tables().iter().map(|table| table.rows().div_ceil(self.chunk_rows));
        chunks.fold(0, u64::saturating_add).min(wanted as u64)
    }

    /// The next chunk that no thread has taken, table after table.
    fn take(&self) -> Option<Chunk> {
        let mut number = self.next.fetch_add(1, Ordering::Relaxed);
        for (table, plan) in self.dataset.tables().iter().enumerate() {
            let chunks = plan.rows().div_ceil(self.chunk_rows);
            if number < chunks {
                let first = number * self.chunk_rows;
                return Some(Chunk {
                    table,
                    rows: first..plan.rows().min(first.saturating_add(self.chunk_rows)),
                });
            }
            number -= chunks;
        }
        None
    }

    fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }

    /// Whether every row was handed over.
    fn is_complete(&self) -> bool {
        let tables = self.dataset.tables().iter().zip(&self.done);
        tables
            .map(|(table, done)| (table.rows(), done.load(Ordering::Relaxed)))
            .all(|(rows, done)| rows == done)
    }

    fn progress(&self, start: Instant) -> Progress<'_> {
        let tables = self.dataset.tables().iter().zip(&self.done).map(|(table, done)| TableProgress {
            name: table.name(),
            done: done.load(Ordering::Relaxed),
            rows: table.rows(),
        });
        Progress { tables: tables.collect(), seconds: start.elapsed().as_secs_f64() }
    }

    /// One thread's part. Only the first error is told: those of threads that were stopped say nothing new.
    fn work(&self, connect: &(dyn Fn() -> Result<Box<dyn Admin>, Error> + Sync), failed: &Sender<Error>) {
        let stop_on_panic = StopOnPanic(&self.stop);
        if let Err(error) = self.store_chunks(connect)
            && !self.stop.swap(true, Ordering::Relaxed)
        {
            // Nobody listens only if the caller panicked.
            let _ = failed.send(error);
        }
        drop(stop_on_panic);
    }

    fn store_chunks(
        &self,
        connect: &(dyn Fn() -> Result<Box<dyn Admin>, Error> + Sync),
    ) -> Result<(), Error> {
        let mut cells = self.dataset.cells()?;
        let mut admin = connect().map_err(|error| error.context("connecting for the load"))?;
        while !self.must_stop() {
            let Some(chunk) = self.take() else { return Ok(()) };
            self.store(&chunk, admin.as_mut(), &mut cells)?;
        }
        Ok(())
    }

    fn store(&self, chunk: &Chunk, admin: &mut dyn Admin, cells: &mut Cells<'_>) -> Result<(), Error> {
        let table = &self.dataset.tables()[chunk.table];
        let wanted = chunk.rows.end - chunk.rows.start;
        let mut source =
            ChunkRows { load: self, table: chunk.table, rows: cells.rows(chunk.table, chunk.rows.clone()) };
        let stored = admin.bulk_load(table.name(), table.stored_names(), &mut source);
        let stored = match stored {
            Ok(stored) if stored == wanted => stored,
            _ if self.cancelled() => return Err(interrupted()),
            Ok(stored) => {
                let error = Error::other(format!("the database took {stored} of {wanted} rows"));
                return Err(error.context(&chunk_name(table.name(), &chunk.rows)));
            }
            Err(error) => return Err(error.context(&chunk_name(table.name(), &chunk.rows))),
        };
        tracing::debug!(table = table.name(), first = chunk.rows.start, rows = stored, "chunk stored");
        Ok(())
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }
}

/// Reports progress until all threads have ended, and gives the first error.
fn watch(failures: &Receiver<Error>, report: &mut dyn FnMut()) -> Option<Error> {
    let mut first = None;
    loop {
        match failures.recv_timeout(PROGRESS_INTERVAL) {
            Ok(error) => first = first.or(Some(error)),
            Err(RecvTimeoutError::Timeout) => report(),
            Err(RecvTimeoutError::Disconnected) => return first,
        }
    }
}

fn chunk_name(table: &str, rows: &Range<u64>) -> String {
    format!("table {table:?}, rows {} to {}", rows.start, rows.end - 1)
}

/// Lets the other threads end when one of them panics.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// The rows of a chunk, counted as they are handed over, until the load is to stop.
struct ChunkRows<'l, 'c, 'd> {
    load: &'l Load<'l>,
    table: usize,
    rows: TableRows<'c, 'd>,
}

impl RowSource for ChunkRows<'_, '_, '_> {
    fn fill(&mut self, encoder: &mut dyn RowEncoder) -> Result<bool, Error> {
        if self.load.must_stop() {
            return Err(interrupted());
        }
        let first = self.rows.next_row();
        let more = self.rows.fill(encoder)?;
        self.load.done[self.table].fetch_add(self.rows.next_row() - first, Ordering::Relaxed);
        Ok(more)
    }
}
