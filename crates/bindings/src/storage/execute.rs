//! Requests executed on a target.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nephoscope_storage::Columns;
use nephoscope_storage::execute::{AnyTarget, Execution, Layout, Options, Schedule, open};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::owned::Owned;
use crate::signals::{self, LOOK};
use crate::{errors, logging};

/// Columns of requests as Python has them: see `columns_to_python`.
type Given = HashMap<String, PyBackedBytes>;

/// Where requests are executed: a file or a block device, by its URL.
#[pyclass(frozen)]
pub(crate) struct StorageTarget {
    target: Arc<dyn AnyTarget>,
    layout: Mutex<Arc<Layout>>,
}

#[pymethods]
impl StorageTarget {
    /// The target of a URL; nothing is touched yet. With `overwrite` it may hold something that is not ours. Raises
    /// `InputError`.
    #[new]
    fn new(py: Python<'_>, url: &str, overwrite: bool) -> PyResult<Self> {
        let target = open(url, overwrite).map_err(|why| errors::input(py, &why))?;
        Ok(Self { target: Arc::from(target), layout: Mutex::default() })
    }

    /// Makes room for the requests of all sources, and fills it. A signal ends the wait. Raises `InputError` for a target
    /// that cannot be taken.
    fn prepare(&self, py: Python<'_>, sources: Vec<Given>) -> PyResult<()> {
        let sources: Vec<Columns> =
            sources.iter().map(|given| columns(py, given)).collect::<PyResult<_>>()?;
        let target = Arc::clone(&self.target);
        let prepared = signals::beside(py, "prepare", move || {
            let layout = Layout::of(&sources);
            target.prepare(&layout).map(|()| layout)
        })?;
        let layout = prepared.map_err(|why| errors::input(py, &why.to_string()))?;
        *self.layout.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(layout);
        Ok(())
    }

    /// What is worth knowing of it, by name.
    fn facts(&self) -> HashMap<&'static str, String> {
        self.target.facts().into_iter().collect()
    }

    /// Begins to execute requests (options as JSON: see the engine's `Options`). Raises `InputError` for what is wrong
    /// with them, `MeasurementError` for a target that does not let its sessions in.
    fn execute(&self, py: Python<'_>, requests: Given, options: &str) -> PyResult<StorageExecution> {
        let options: Options = errors::parse(py, options)?;
        let schedule = Schedule::new(&columns(py, &requests)?, options.syncs, options.speed)
            .map_err(|why| errors::input(py, &why))?;
        let layout = Arc::clone(&self.layout.lock().unwrap_or_else(PoisonError::into_inner));
        let target = Arc::clone(&self.target);
        let begun = signals::beside(py, "connect", move || target.start(&layout, schedule, &options))?;
        let execution = begun.map_err(|why| errors::failed(py, &why.to_string()))?;
        Ok(StorageExecution(Owned::new("execution", execution)))
    }
}

/// Requests that are executed: `next` gives records until the one that says `end`.
#[pyclass(frozen)]
pub(crate) struct StorageExecution(Owned<Execution>);

#[pymethods]
impl StorageExecution {
    /// The start on the monotonic clock, in nanoseconds.
    #[getter]
    fn origin_ns(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.0.get(py)?.origin())
    }

    /// The next record as JSON, or `None` if there is none within the time in seconds. A signal ends the wait.
    fn next(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<String>> {
        let (execution, mut left) = (self.0.get(py)?, Duration::from_secs_f64(timeout.clamp(0.0, 3600.0)));
        loop {
            logging::attend(py)?;
            let wait = left.min(LOOK);
            let record = py.detach(|| execution.next(wait).map(|record| record.to_string()));
            logging::attend_later(py);
            left -= wait;
            if record.is_some() || left.is_zero() {
                return Ok(record);
            }
            py.check_signals()?;
        }
    }

    /// Ends it now; `next` goes on to give what there is.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let execution = self.0.get(py)?;
        py.detach(|| execution.stop());
        Ok(())
    }
}

/// Columns from bytes of native numbers.
fn columns(py: Python<'_>, given: &Given) -> PyResult<Columns> {
    Ok(Columns {
        time_us: numbers(py, given, "time_us", i64::from_ne_bytes)?,
        segment: numbers(py, given, "segment", u32::from_ne_bytes)?,
        offset: numbers(py, given, "offset", u64::from_ne_bytes)?,
        bytes: numbers(py, given, "bytes", u32::from_ne_bytes)?,
        operation: numbers(py, given, "operation", u8::from_ne_bytes)?,
        process: numbers(py, given, "process", u8::from_ne_bytes)?,
        latency_us: numbers(py, given, "latency_us", f32::from_ne_bytes)?,
    })
}

fn numbers<T, const N: usize>(
    py: Python<'_>,
    given: &Given,
    name: &str,
    read: fn([u8; N]) -> T,
) -> PyResult<Vec<T>> {
    let bytes: &[u8] = given.get(name).ok_or_else(|| errors::input(py, &format!("no column {name}")))?;
    let (whole, rest) = bytes.as_chunks::<N>();
    if !rest.is_empty() {
        return Err(errors::input(py, &format!("the column {name} ends within a number")));
    }
    Ok(whole.iter().map(|one| read(*one)).collect())
}
