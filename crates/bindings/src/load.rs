//! Loading a workload's rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use nephoscope_datagen::{LoadOptions, LoadReport, Progress, load as load_rows};
use nephoscope_drivers::{Driver, Error, Interrupt, Settings, open};
use nephoscope_engine::loading::{PartsOptions, load_parts};
use nephoscope_engine::spec::WorkloadSpec;
use nephoscope_script::{LONGEST, Source, Workload};
use pyo3::prelude::*;

use crate::signals::{LOOK, await_end};
use crate::{errors, logging, workload};

/// Rows that are there and rows that are to be, by table.
type Done = Vec<(String, u64, u64)>;

enum News {
    Progress(Done),
    /// What was loaded, and how many statements `w:load` has run.
    Over(Result<(LoadReport, u64), Error>),
}

/// Makes the rows of a workload (a JSON object: see the engine's `WorkloadSpec`) and loads them into its tables, which
/// exist and are empty. `threads` is 0 for one per core. `progress` is called several times a second with a list of
/// table, rows done and rows in all; then comes what the workload's `w:load` makes, and the list has one entry more, of
/// its parts.
///
/// Gives the rows of each table, and how many statements `w:load` has run. Raises `InputError` for a workload that is wrong,
/// `MeasurementError` for what goes wrong on the way. An exception of `progress`, or of a signal's handler, ends the
/// load: its servers are asked to give up, and what does not end within a moment is left behind.
#[pyfunction]
#[pyo3(signature = (workload, url, threads, progress))]
pub(crate) fn load(
    py: Python<'_>,
    workload: &str,
    url: &str,
    threads: usize,
    progress: Py<PyAny>,
) -> PyResult<(Vec<(String, u64)>, u64)> {
    let spec: WorkloadSpec = errors::parse(py, workload)?;
    let settings = Settings::default();
    let driver = open(url, &settings).map_err(|error| errors::input(py, &error.0))?;
    let (source, workload) = workload::read(py, spec, driver.dialect())?;
    let (cancel, interrupt) = (Arc::new(AtomicBool::new(false)), settings.interrupt);
    let (sender, mut news) = channel();
    let loader = Loader { driver, source, workload, threads, cancel: Arc::clone(&cancel), news: sender };
    std::thread::Builder::new().name("loader".to_owned()).spawn(move || loader.run())?;
    loop {
        let came;
        (news, came) = py.detach(move || {
            let came = news.recv_timeout(LOOK);
            (news, came)
        });
        let attended = logging::attend(py);
        let told = match came {
            Ok(News::Over(loaded)) => {
                logging::raise_later(attended);
                let (report, statements) = loaded.map_err(|error| errors::failed(py, &error.to_string()))?;
                return Ok((report.tables, statements));
            }
            Ok(News::Progress(done)) => progress.call1(py, (done,)).map(drop),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(errors::failed(py, "the loader died; standard error says why"));
            }
        };
        if let Err(raised) = attended.and(told).and_then(|()| py.check_signals()) {
            give_up(py, &cancel, &interrupt, news);
            return Err(raised);
        }
    }
}

fn give_up(py: Python<'_>, cancel: &AtomicBool, interrupt: &Interrupt, news: Receiver<News>) {
    cancel.store(true, Ordering::Relaxed);
    interrupt.strike();
    await_end(py, news);
}

/// What the loading thread is made with.
struct Loader {
    driver: Arc<dyn Driver>,
    source: Source,
    workload: Workload,
    threads: usize,
    cancel: Arc<AtomicBool>,
    news: Sender<News>,
}

impl Loader {
    /// Loads; nobody listens any more if the load was given up.
    fn run(self) {
        let options =
            LoadOptions { threads: self.threads, cancel: Some(&self.cancel), ..LoadOptions::default() };
        let mut done = Done::new();
        let mut report = |progress: &Progress<'_>| {
            let tables = progress.tables.iter();
            done = tables.map(|table| (table.name.to_owned(), table.done, table.rows)).collect();
            let _ = self.news.send(News::Progress(done.clone()));
        };
        let loaded = load_rows(&self.workload.dataset, &options, &|| self.driver.admin(), &mut report);
        let loaded = loaded.and_then(|report| Ok((report, self.parts(&done)?)));
        let _ = self.news.send(News::Over(loaded));
    }

    /// Loads what `w:load` makes, if the workload has one, after the tables that are `done`.
    fn parts(&self, done: &Done) -> Result<u64, Error> {
        let Some(parts) = self.workload.load_parts else { return Ok(0) };
        let options =
            PartsOptions { threads: self.threads, cancel: Arc::clone(&self.cancel), limit: LONGEST };
        let mut report = |part: u32| {
            let all = done.iter().cloned().chain([("w:load".to_owned(), part.into(), parts.into())]);
            let _ = self.news.send(News::Progress(all.collect()));
        };
        load_parts(&self.source, &self.workload, &self.driver, &options, &mut report)
    }
}
