//! Requests made from a plan, and requests as lines of fio's log.

use std::sync::{Mutex, PoisonError};

use nephoscope_storage::generate::{Generator, Plan};
use nephoscope_storage::patterns::PatternCounts;
use nephoscope_storage::trace::{Entry, fio};
use nephoscope_storage::{Columns, Operation};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::{columns_to_python, native};
use crate::errors;

/// Makes requests batch by batch from a plan (JSON: see the engine's `Plan`).
#[pyclass(frozen, module = "nephoscope._engine")]
pub(crate) struct StorageGenerator(Mutex<Generator>);

#[pymethods]
impl StorageGenerator {
    /// A generator on so many threads. Raises `InputError` for a plan that is wrong.
    #[new]
    #[pyo3(signature = (plan, threads=1))]
    fn new(py: Python<'_>, plan: &str, threads: usize) -> PyResult<Self> {
        let plan: Plan = errors::parse(py, plan)?;
        let made = Generator::new(plan, threads).map_err(|error| errors::input(py, &error.to_string()))?;
        Ok(Self(Mutex::new(made)))
    }

    /// How many requests there are in all.
    #[getter]
    fn requests(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).requests()
    }

    /// The columns of the next whole seconds that have `most` requests together, or of one second if that has more;
    /// `None` at the end.
    fn next<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Option<Bound<'py, PyDict>>> {
        let mut columns = Columns::default();
        let more = py.detach(|| {
            let mut generator = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            generator.fill(&mut columns, most)
        });
        more.then(|| columns_to_python(py, &columns)).transpose()
    }
}

/// Lines of fio's log, version 3, for requests to one file, from columns as bytes of their native numbers: offsets count
/// from the file's beginning. Columns of different lengths are read up to the shortest.
#[pyfunction]
pub(crate) fn storage_iolog<'py>(
    py: Python<'py>,
    file: &str,
    time_us: &[u8],
    offset: &[u8],
    size: &[u8],
    operation: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::with_capacity(operation.len() * (file.len() + 40));
    let rows = time_us.as_chunks().0.iter().zip(offset.as_chunks().0).zip(size.as_chunks().0).zip(operation);
    for (((time_us, offset), bytes), operation) in rows {
        let Some(operation) = Operation::ALL.get(usize::from(*operation)) else { continue };
        let entry = Entry {
            time_us: i64::from_ne_bytes(*time_us),
            offset: u64::from_ne_bytes(*offset),
            bytes: u64::from(u32::from_ne_bytes(*bytes)),
            operation: *operation,
            latency_us: f32::NAN,
        };
        fio::write_request(&mut out, file, &entry)?;
    }
    Ok(PyBytes::new(py, &out))
}

/// What stands before these lines.
#[pyfunction]
pub(crate) fn storage_iolog_head(file: &str) -> PyResult<String> {
    let mut out = Vec::new();
    fio::write_header(&mut out, &[file])?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Counts where requests begin inside their segments, for what patterns are learned from.
#[pyclass(frozen, module = "nephoscope._engine")]
pub(crate) struct StoragePatternCounts(Mutex<PatternCounts>);

#[pymethods]
impl StoragePatternCounts {
    #[new]
    fn new(page_bytes: u32) -> Self {
        Self(Mutex::new(PatternCounts::new(page_bytes)))
    }

    /// Counts a whole run, in the order of its requests' times: columns as bytes of their native numbers. Columns of
    /// different lengths are read up to the shortest.
    fn run(&self, py: Python<'_>, segment: &[u8], offset: &[u8], size: &[u8], operation: &[u8]) {
        py.detach(|| {
            let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            counts.next_run();
            let rows =
                segment.as_chunks().0.iter().zip(offset.as_chunks().0).zip(size.as_chunks().0).zip(operation);
            for (((segment, offset), bytes), operation) in rows {
                let Some(operation) = Operation::ALL.get(usize::from(*operation)) else { continue };
                let (offset, bytes) = (u64::from_ne_bytes(*offset), u32::from_ne_bytes(*bytes));
                counts.request(u32::from_ne_bytes(*segment), offset, bytes, *operation);
            }
        });
    }

    /// What was counted, as bytes of numbers (u64) by name, for M segments: `segment` and `last_page` (M), `again`
    /// (M, 2, bins, kinds of pages), `first` (M, 2, bins), `runs` (M, 2, 4, 2). The two are reads and writes.
    fn counted<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut segment, mut last_page) = (Vec::new(), Vec::new());
        let (mut again, mut first, mut runs) = (Vec::new(), Vec::new(), Vec::new());
        for (number, largest, both) in counts.segments() {
            segment.push(u64::from(number));
            last_page.push(largest);
            for counted in both {
                again.extend_from_slice(&counted.again);
                first.extend_from_slice(&counted.first);
                runs.extend(counted.runs.as_flattened());
            }
        }
        let found = PyDict::new(py);
        let columns = [
            ("segment", segment),
            ("last_page", last_page),
            ("again", again),
            ("first", first),
            ("runs", runs),
        ];
        for (name, column) in columns {
            found.set_item(name, native(py, &column, u64::to_ne_bytes))?;
        }
        Ok(found)
    }
}
