//! The library that records a server's I/O, and what it has recorded.

use std::collections::HashMap;
use std::path::PathBuf;

use nephoscope_storage::capture::{self, RecordingError, Relations};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::{StorageSegments, columns_to_python};
use crate::{errors, logging};

/// The library, as `build.rs` made it; empty where there is none for this machine.
static PRELOAD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preload.so"));

/// The shared library that a database server is started with (`LD_PRELOAD`) so that its I/O is recorded. Raises
/// `MeasurementError` where there is none for this kind of machine.
#[pyfunction]
pub(crate) fn storage_preload(py: Python<'_>) -> PyResult<Bound<'_, PyBytes>> {
    if PRELOAD.is_empty() {
        return Err(errors::failed(py, "I/O can be recorded on 64-bit Linux with the GNU C library only"));
    }
    Ok(PyBytes::new(py, PRELOAD))
}

/// What a server's processes recorded up to the time of the opening, in a folder.
#[pyclass]
pub(crate) struct StorageRecording(pub(crate) capture::Recording);

#[pymethods]
impl StorageRecording {
    /// Looks through all files of records. Raises `MeasurementError` where one cannot be read or is damaged.
    #[new]
    fn new(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        let opened = py.detach(|| capture::Recording::open(&folder));
        logging::attend_later(py);
        opened.map(Self).map_err(|error| failed(py, &error))
    }

    /// How many calls were recorded.
    #[getter]
    fn calls(&self) -> u64 {
        self.0.calls()
    }

    /// How many calls could not be recorded.
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost()
    }

    /// How many records were begun and not finished, because a process was killed.
    #[getter]
    fn unfinished(&self) -> u64 {
        self.0.unfinished()
    }

    /// How many processes have recorded something.
    #[getter]
    fn processes(&self) -> usize {
        self.0.processes()
    }

    /// The processes whose recording ended early, each with the error number of the system.
    #[getter]
    fn ended(&self) -> Vec<(u32, u32)> {
        self.0.ended()
    }

    /// Every read, write and sync that began in a time (on the monotonic clock, in nanoseconds) as columns of requests,
    /// whose times count from its beginning. `relations` has the names of relations by the paths of their first files.
    /// Raises `MeasurementError`.
    fn page_view<'py>(
        &self,
        py: Python<'py>,
        from_ns: u64,
        to_ns: u64,
        relations: HashMap<String, String>,
        segments: &StorageSegments,
    ) -> PyResult<Bound<'py, PyDict>> {
        let relations: Relations = relations.into_iter().collect();
        let viewed =
            py.detach(|| capture::page_view(&self.0, from_ns, to_ns, &relations, &mut segments.lock()));
        match viewed {
            Ok(columns) => columns_to_python(py, &columns),
            Err(error) => Err(failed(py, &error)),
        }
    }
}

fn failed(py: Python<'_>, error: &RecordingError) -> PyErr {
    errors::failed(py, &error.to_string())
}
