//! Traces that other tools wrote, read batch by batch into one table of segments.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use nephoscope_storage::trace::{Entry, FORMATS, Format, Intake, Reader, guess};
use nephoscope_storage::{Columns, Operation, Process, Segments};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{StorageSegments, columns_to_python, locked};
use crate::{errors, signals};

/// Every format of traces: its name, what it is, and its options (name, what it decides, what it may be, the default
/// first).
#[pyfunction]
#[allow(clippy::type_complexity)] // It is read once, from Python.
pub(crate) fn trace_formats()
-> Vec<(&'static str, &'static str, Vec<(&'static str, &'static str, Vec<&'static str>)>)> {
    let choices = |format: &Format| {
        let choices = format.choices.iter();
        choices.map(|choice| (choice.name, choice.about, choice.allowed.to_vec())).collect()
    };
    FORMATS.iter().map(|format| (format.name, format.about, choices(format))).collect()
}

/// The format of a file, if its first lines belong to one format alone. Raises `InputError` if it cannot be read.
#[pyfunction]
pub(crate) fn guess_trace_format(py: Python<'_>, path: PathBuf) -> PyResult<Option<&'static str>> {
    let found = signals::beside(py, "trace format", move || guess(&path))?;
    found.map(|format| format.map(|format| format.name)).map_err(|why| errors::input(py, &why))
}

/// Reads a trace.
#[pyclass]
pub(crate) struct TraceReader {
    /// `None` once it has ended or failed.
    reader: Mutex<Option<Reader>>,
    segments: Arc<Mutex<Segments>>,
    lines: u64,
    left_out: BTreeMap<&'static str, u64>,
}

#[pymethods]
impl TraceReader {
    /// Opens a trace of a format with its options, as names and values. Raises `InputError`.
    #[new]
    fn new(
        py: Python<'_>,
        kind: &str,
        path: PathBuf,
        options: Vec<(String, String)>,
        segments: &StorageSegments,
    ) -> PyResult<Self> {
        let format = Format::of(kind).map_err(|why| errors::input(py, &why))?;
        // A pipe may keep whoever opens it waiting.
        let opened = signals::beside(py, "trace", move || Reader::open(&path, format, &options))?;
        let reader = Mutex::new(Some(opened.map_err(|why| errors::input(py, &why))?));
        Ok(Self { reader, segments: Arc::clone(&segments.0), lines: 0, left_out: BTreeMap::new() })
    }

    /// The next requests as columns, in the order of their times, or `None` behind the last. Raises `InputError` with
    /// the number of the line that is wrong.
    fn next<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let reader = self.reader.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(reader) = reader.take() else { return Ok(None) };
        let segments = Arc::clone(&self.segments);
        let (reader, read) = signals::beside(py, "trace", move || batch(reader, &segments))?;
        self.lines = reader.lines();
        self.left_out.clone_from(reader.intake().left_out());
        let columns = read.map_err(|why| errors::input(py, &why))?;
        self.reader = Mutex::new(columns.is_some().then_some(reader));
        columns.map(|columns| columns_to_python(py, &columns)).transpose()
    }

    /// How many lines were read.
    #[getter]
    fn lines(&self) -> u64 {
        self.lines
    }

    /// What of the trace is no request: why, and how often.
    #[getter]
    fn left_out(&self) -> BTreeMap<&'static str, u64> {
        self.left_out.clone()
    }
}

fn batch(mut reader: Reader, segments: &Mutex<Segments>) -> (Reader, Result<Option<Columns>, String>) {
    let read = reader.next(&mut locked(segments));
    (reader, read)
}

/// Takes requests as columns that Python has read, and gives them back in order and in segments.
#[pyclass]
pub(crate) struct TraceColumns {
    place: String,
    intake: Intake,
    segments: Arc<Mutex<Segments>>,
}

#[pymethods]
impl TraceColumns {
    /// `place` is what a message says before the number of a row.
    #[new]
    fn new(place: String, segments: &StorageSegments) -> Self {
        Self { place, intake: Intake::default(), segments: Arc::clone(&segments.0) }
    }

    /// Takes rows of which the first has the number `first`: places in `names` (u32), times (i64), offsets (u64), sizes
    /// (u64), operations and processes (u8) and latencies (f32), as native bytes. Raises `InputError` with the number of a
    /// row.
    #[pyo3(signature = (first, names, name, time_us, offset, size, operation, process, latency_us))]
    #[allow(clippy::too_many_arguments)] // Each is a column.
    fn push(
        &mut self,
        py: Python<'_>,
        first: u64,
        names: Vec<String>,
        name: &[u8],
        time_us: &[u8],
        offset: &[u8],
        size: &[u8],
        operation: &[u8],
        process: &[u8],
        latency_us: &[u8],
    ) -> PyResult<()> {
        let segments = &mut locked(&self.segments);
        let rows = operation.iter().enumerate();
        for (row, operation) in rows {
            let taken = (|| {
                let name = names.get(u32::from_ne_bytes(cell(name, row)?) as usize).ok_or("no such name")?;
                let entry = Entry {
                    time_us: i64::from_ne_bytes(cell(time_us, row)?),
                    offset: u64::from_ne_bytes(cell(offset, row)?),
                    bytes: u64::from_ne_bytes(cell(size, row)?),
                    operation: *Operation::ALL.get(usize::from(*operation)).ok_or("no such operation")?,
                    latency_us: f32::from_ne_bytes(cell(latency_us, row)?),
                };
                let [process] = cell(process, row)?;
                let process = *Process::ALL.get(usize::from(process)).ok_or("no such process")?;
                self.intake.take_of(segments, name, &entry, process)
            })();
            taken
                .map_err(|why| errors::input(py, &format!("{} {}: {why}", self.place, first + row as u64)))?;
        }
        Ok(())
    }

    /// Nothing comes any more.
    fn end(&mut self) {
        self.intake.end();
    }

    /// What is ready, or `None`.
    fn next<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.intake.ready().map(|columns| columns_to_python(py, &columns)).transpose()
    }
}

/// The bytes of a row's number in a column.
fn cell<const N: usize>(column: &[u8], row: usize) -> Result<[u8; N], String> {
    let found = column.get(row * N..(row + 1) * N).and_then(|bytes| bytes.try_into().ok());
    found.ok_or_else(|| "a column is too short".to_owned())
}
