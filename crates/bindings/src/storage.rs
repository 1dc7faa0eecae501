//! I/O of a storage tier. Columns of requests go in and out as bytes of their native numbers, for numpy's `frombuffer`.

mod capture;
mod execute;
mod generate;
mod page_store;
mod reuse;
mod trace;
mod wal;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nephoscope_storage::{Columns, Operation, Process, Segments};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors;

/// Adds everything of the storage tier to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<capture::StorageRecording>()?;
    module.add_class::<execute::StorageExecution>()?;
    module.add_class::<execute::StorageTarget>()?;
    module.add_class::<generate::StorageGenerator>()?;
    module.add_class::<generate::StoragePatternCounts>()?;
    module.add_class::<page_store::PageStore>()?;
    module.add_class::<StorageSegments>()?;
    module.add_class::<trace::TraceColumns>()?;
    module.add_class::<trace::TraceReader>()?;
    module.add_class::<wal::StorageLogView>()?;
    module.add_function(wrap_pyfunction!(capture::storage_preload, module)?)?;
    module.add_function(wrap_pyfunction!(generate::storage_iolog, module)?)?;
    module.add_function(wrap_pyfunction!(generate::storage_iolog_head, module)?)?;
    module.add_function(wrap_pyfunction!(reuse::storage_miss_ratios, module)?)?;
    module.add_function(wrap_pyfunction!(storage_operations, module)?)?;
    module.add_function(wrap_pyfunction!(storage_processes, module)?)?;
    module.add_function(wrap_pyfunction!(trace::guess_trace_format, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_formats, module)?)
}

/// Numbers segments: one table for all runs of a corpus.
#[pyclass(frozen)]
pub(crate) struct StorageSegments(Arc<Mutex<Segments>>);

#[pymethods]
impl StorageSegments {
    /// Segments of so many bytes. Raises `InputError` if that is too few.
    #[new]
    fn new(py: Python<'_>, segment_bytes: u64) -> PyResult<Self> {
        let segments = Segments::new(segment_bytes).map_err(|why| errors::input(py, &why))?;
        Ok(Self(Arc::new(Mutex::new(segments))))
    }

    /// The name and the chunk of each segment, in the order of their numbers.
    fn table(&self) -> (Vec<String>, Vec<u32>) {
        self.lock().table().map(|(name, chunk)| (name.to_owned(), chunk)).unzip()
    }
}

impl StorageSegments {
    fn lock(&self) -> MutexGuard<'_, Segments> {
        locked(&self.0)
    }
}

fn locked(segments: &Mutex<Segments>) -> MutexGuard<'_, Segments> {
    segments.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The names of the operations; an operation's place is its number in a column.
#[pyfunction]
pub(crate) fn storage_operations() -> Vec<&'static str> {
    Operation::ALL.map(Operation::name).to_vec()
}

/// The names of the kinds of processes; a kind's place is its number in a column.
#[pyfunction]
pub(crate) fn storage_processes() -> Vec<&'static str> {
    Process::ALL.map(Process::name).to_vec()
}

/// Columns of requests as a dictionary: `time_us` (i64), `segment` (u32), `offset` (u64), `bytes` (u32), `operation`
/// (u8), `process` (u8), `latency_us` (f32).
pub(crate) fn columns_to_python<'py>(py: Python<'py>, columns: &Columns) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("time_us", native(py, &columns.time_us, i64::to_ne_bytes))?;
    dict.set_item("segment", native(py, &columns.segment, u32::to_ne_bytes))?;
    dict.set_item("offset", native(py, &columns.offset, u64::to_ne_bytes))?;
    dict.set_item("bytes", native(py, &columns.bytes, u32::to_ne_bytes))?;
    dict.set_item("operation", PyBytes::new(py, &columns.operation))?;
    dict.set_item("process", PyBytes::new(py, &columns.process))?;
    dict.set_item("latency_us", native(py, &columns.latency_us, f32::to_ne_bytes))?;
    Ok(dict)
}

/// Numbers as their bytes.
pub(crate) fn native<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    column: &[T],
    bytes: fn(T) -> [u8; N],
) -> Bound<'py, PyBytes> {
    let mut all = Vec::with_capacity(column.len() * N);
    for value in column {
        all.extend_from_slice(&bytes(*value));
    }
    PyBytes::new(py, &all)
}
