//! A run.

use std::time::Duration;

use nephoscope_engine::spec::PhaseSpec;
use nephoscope_engine::{EngineError, LoadSpec, Run as EngineRun, json};
use pyo3::prelude::*;

use crate::owned::Owned;
use crate::signals::{LOOK, Signals};
use crate::{errors, logging};

/// A load that is going on. It has begun when it is made; `next` gives its records until the one that says `end`.
#[pyclass(frozen)]
pub(crate) struct Run(Owned<EngineRun>);

#[pymethods]
impl Run {
    /// Checks a load (a JSON object: see the engine's `LoadSpec`), connects its sessions and starts it. A signal ends the
    /// wait for the sessions: then nothing has begun.
    #[new]
    fn new(py: Python<'_>, spec: &str) -> PyResult<Self> {
        let spec: LoadSpec = errors::parse(py, spec)?;
        logging::attend(py)?;
        let mut signals = Signals::default();
        let run = py.detach(|| EngineRun::start_unless(&spec, &mut || signals.look()));
        signals.or(run.map(|run| Self(Owned::new("load", run))).map_err(|error| errors::engine(py, &error)))
    }

    /// The start of the load on the monotonic clock, in nanoseconds.
    #[getter]
    fn origin_ns(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.0.get(py)?.origin())
    }

    /// Seconds since the start of the load.
    fn elapsed(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.0.get(py)?.elapsed() as f64 / 1e9)
    }

    /// The next record as JSON, or `None` if there is none within the time in seconds. A signal ends the wait, and never
    /// takes a record with it.
    fn next(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<String>> {
        let (run, mut left) = (self.0.get(py)?, Duration::from_secs_f64(timeout.clamp(0.0, 3600.0)));
        loop {
            logging::attend(py)?;
            let wait = left.min(LOOK);
            let record = py.detach(|| run.next(wait).map(|record| json::record(&record).to_string()));
            logging::attend_later(py);
            left -= wait;
            if record.is_some() || left.is_zero() {
                return Ok(record);
            }
            py.check_signals()?;
        }
    }

    /// Changes the load (a JSON object: see the engine's `PhaseSpec`) at a time in seconds since its start, or now if
    /// that has passed; with `is_phase` a new phase begins. Gives the time at which the change takes effect.
    #[pyo3(signature = (change, is_phase, at_s = 0.0))]
    fn change(&self, py: Python<'_>, change: &str, is_phase: bool, at_s: f64) -> PyResult<f64> {
        let change: PhaseSpec = errors::parse(py, change)?;
        let at_ns = (at_s * 1e9) as u64;
        let run = self.0.get(py)?;
        let at: Result<u64, EngineError> = py.detach(|| run.change_at(change, is_phase, at_ns));
        at.map(|at| at as f64 / 1e9).map_err(|error| errors::engine(py, &error))
    }

    /// As `change` within the present phase: before what was asked for already and is still to come.
    #[pyo3(signature = (change, at_s = 0.0))]
    fn overtake(&self, py: Python<'_>, change: &str, at_s: f64) -> PyResult<f64> {
        let change: PhaseSpec = errors::parse(py, change)?;
        let at_ns = (at_s * 1e9) as u64;
        let run = self.0.get(py)?;
        let at: Result<u64, EngineError> = py.detach(|| run.overtake(change, at_ns));
        at.map(|at| at as f64 / 1e9).map_err(|error| errors::engine(py, &error))
    }

    /// Ends the load; `next` goes on to give what there is.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let run = self.0.get(py)?;
        py.detach(|| run.stop());
        Ok(())
    }
}
