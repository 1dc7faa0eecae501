//! Probes.

use std::collections::BTreeMap;
use std::time::Duration;

use nephoscope_engine::probes::{Probes as EngineProbes, ProbesSpec};
use pyo3::prelude::*;

use crate::owned::Owned;
use crate::signals::{LOOK, Signals};
use crate::{errors, logging};

/// Probes that are going on. They have begun when this is made; `next` gives their samples until it gives `None` after
/// `stop`.
#[pyclass(frozen)]
pub(crate) struct Probes(Owned<EngineProbes>);

#[pymethods]
impl Probes {
    /// Checks what is asked for (a JSON object: see the engine's `ProbesSpec`), connects and starts.
    #[new]
    fn new(py: Python<'_>, spec: &str) -> PyResult<Self> {
        let spec: ProbesSpec = errors::parse(py, spec)?;
        logging::attend(py)?;
        let mut signals = Signals::default();
        let probes = py.detach(|| EngineProbes::start_unless(&spec, &mut || signals.look()));
        let probes = probes.map(|probes| Self(Owned::new("probes", probes)));
        signals.or(probes.map_err(|error| errors::engine(py, &error)))
    }

    /// What was found next, as lines of JSON: rows of `probes.parquet` and rows of `checks.parquet`; or `None` if that is
    /// nothing within the time in seconds.
    fn next(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<(String, String)>> {
        let (probes, mut left) = (self.0.get(py)?, Duration::from_secs_f64(timeout.clamp(0.0, 3600.0)));
        loop {
            logging::attend(py)?;
            let wait = left.min(LOOK);
            let lines = py.detach(|| {
                let found = probes.next(wait)?;
                Ok(found.map(|found| probes.legend().lines(&found)))
            });
            logging::attend_later(py);
            let lines = lines.map_err(|error| errors::engine(py, &error))?;
            left -= wait;
            if lines.is_some() || left.is_zero() {
                return Ok(lines);
            }
            py.check_signals()?;
        }
    }

    /// Ends the probes, when those on their way have ended; `next` goes on to give what there is.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let (probes, mut signals) = (self.0.get(py)?, Signals::default());
        py.detach(|| probes.stop_unless(&mut || signals.look()));
        signals.or(Ok(()))
    }
}

/// The SQL of the probes' tables in the dialect of a URL's driver, by what it is for: `create`, `empty`, `stand` (to be
/// followed by a number and a bracket), `read`, `written`, `drop`. Where there is no SQL: `keyed`, the dialect's name, and
/// `markers`, the table of registers. Raises `InputError` for a URL that has no driver.
#[pyfunction]
pub(crate) fn probe_tables(py: Python<'_>, url: &str) -> PyResult<BTreeMap<&'static str, &'static str>> {
    let driver = nephoscope_drivers::open(url, &nephoscope_drivers::Settings::default());
    let driver = driver.map_err(|error| errors::input(py, &error.0))?;
    let dialect = driver.dialect();
    if dialect.capabilities.sql {
        return Ok(dialect.probes.set_up().into_iter().collect());
    }
    Ok(BTreeMap::from([("keyed", dialect.name), ("markers", nephoscope_drivers::probe_tables::MARKERS)]))
}
