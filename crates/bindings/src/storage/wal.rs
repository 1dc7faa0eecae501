//! A recording of a server as the log view has it.

use std::collections::HashMap;
use std::path::PathBuf;

use nephoscope_storage::capture::Relations;
use nephoscope_storage::wal::log_view::{self, Clock, LogView};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::capture::StorageRecording;
use super::{StorageSegments, columns_to_python};
use crate::errors;

/// A recording as the log view has it: what was read, as it was, and what was written, as the redo of each flush of the
/// log. Without a log (of a product that is not `PostgreSQL`) it has the writes of the log as they were.
#[pyclass]
pub(crate) struct StorageLogView {
    recording: Py<StorageRecording>,
    view: Option<LogView>,
}

#[pymethods]
impl StorageLogView {
    /// Looks for the flushes. `wal` is the folder `pg_wal`; `clocks` are pairs of the monotonic clock and the time of
    /// day, in nanoseconds, in their order. Raises `MeasurementError` where the recording or the log cannot be read.
    #[new]
    fn new(
        py: Python<'_>,
        recording: Py<StorageRecording>,
        wal: Option<PathBuf>,
        clocks: Vec<(u64, i64)>,
    ) -> PyResult<Self> {
        let mut view = None;
        if let Some(folder) = wal {
            let of = recording.borrow(py);
            let inner = &of.0;
            let opened = py.detach(|| LogView::open(inner, &folder, Clock(clocks)));
            view = Some(opened.map_err(|error| errors::failed(py, &error.to_string()))?);
        }
        Ok(Self { recording, view })
    }

    /// How often the log was flushed; None where it is not read.
    #[getter]
    fn flushes(&self) -> Option<usize> {
        self.view.as_ref().map(|view| view.flushes)
    }

    /// Where the log begins that was read, as the server writes places; None where it is not read.
    #[getter]
    fn first(&self) -> Option<String> {
        self.view.as_ref().map(|view| view.first.to_string())
    }

    /// The requests of the calls and flushes that began in a time (on the monotonic clock, in nanoseconds) as columns,
    /// whose times count from its beginning. Runs are asked for in their order. Raises `MeasurementError`.
    fn of_run<'py>(
        &mut self,
        py: Python<'py>,
        from_ns: u64,
        to_ns: u64,
        relations: HashMap<String, String>,
        segments: &StorageSegments,
    ) -> PyResult<Bound<'py, PyDict>> {
        let relations: Relations = relations.into_iter().collect();
        let of = self.recording.borrow(py);
        let (recording, view) = (&of.0, &mut self.view);
        let viewed = py.detach(|| {
            let segments = &mut segments.lock();
            match view {
                Some(view) => view.of_run(recording, from_ns, to_ns, &relations, segments),
                None => Ok(log_view::log_calls(recording, from_ns, to_ns, &relations, segments)?),
            }
        });
        match viewed {
            Ok(columns) => columns_to_python(py, &columns),
            Err(error) => Err(errors::failed(py, &error.to_string())),
        }
    }
}
