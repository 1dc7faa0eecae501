//! Loading a workload's rows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nephoscope_datagen::{LoadOptions, LoadReport, Progress, load as load_rows};
use nephoscope_drivers::{Error, Settings, open};
use nephoscope_engine::read_source;
use nephoscope_engine::spec::WorkloadSpec;
use pyo3::prelude::*;

use crate::errors;

/// Rows that are there and rows that are to be, by table.
type Done = Vec<(String, u64, u64)>;

/// Makes the rows of a workload (a JSON object: see the engine's `WorkloadSpec`) and loads them into its tables, which
/// exist and are empty. `threads` is 0 for one per core. `progress` is called several times a second with a list of
/// table, rows done and rows in all.
///
/// Gives the rows of each table and the seconds it took. Raises `InputError` for a workload that is wrong,
/// `MeasurementError` for what goes wrong on the way; an exception of `progress`, or Ctrl-C, ends the load.
#[pyfunction]
#[pyo3(signature = (workload, url, threads, progress))]
pub(crate) fn load(
    py: Python<'_>,
    workload: &str,
    url: &str,
    threads: usize,
    progress: Py<PyAny>,
) -> PyResult<(Vec<(String, u64)>, f64)> {
    let spec: WorkloadSpec = errors::parse(py, workload)?;
    let driver = open(url, &Settings::default()).map_err(|error| errors::input(py, &error.0))?;
    let source = read_source(&spec, driver.dialect()).map_err(|error| errors::engine(py, &error))?;
    let workload = source.workload().map_err(|error| errors::input(py, &error.to_string()))?;
    let cancel = AtomicBool::new(false);
    let (sender, receiver) = channel::<Done>();
    // Waited for without the interpreter's lock, which a receiver alone could not be.
    let receiver = Mutex::new(receiver);
    let outcome = std::thread::scope(|scope| {
        let cancel = &cancel;
        let loader = scope.spawn(move || -> Result<LoadReport, Error> {
            let options = LoadOptions { threads, cancel: Some(cancel), ..LoadOptions::default() };
            let mut report = |progress: &Progress<'_>| {
                let tables = progress.tables.iter();
                let done = tables.map(|table| (table.name.to_owned(), table.done, table.rows)).collect();
                // Nobody listens any more if the load was cancelled.
                let _ = sender.send(done);
            };
            load_rows(&workload.dataset, &options, &|| driver.admin(), &mut report)
        });
        let mut interrupted = None;
        loop {
            let news = py.detach(|| {
                let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
                receiver.recv_timeout(Duration::from_millis(100))
            });
            let told = match news {
                Ok(done) => progress.call1(py, (done,)).map(drop),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if let Err(error) = told.and_then(|()| py.check_signals()) {
                cancel.store(true, Ordering::Relaxed);
                interrupted = Some(error);
                break;
            }
        }
        let loaded = py.detach(|| loader.join());
        match (interrupted, loaded) {
            (Some(error), _) => Err(error),
            (None, Ok(Ok(report))) => Ok(report),
            (None, Ok(Err(error))) => Err(errors::failed(py, &error.to_string())),
            (None, Err(_)) => Err(errors::failed(py, "the loader died; standard error says why")),
        }
    });
    outcome.map(|report| (report.tables, report.seconds))
}
