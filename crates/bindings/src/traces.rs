//! Logs of servers, read batch by batch, and values that are masked. Columns go out as bytes of their native numbers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use nephoscope_drivers::Lexer;
use nephoscope_traces::logs::{FORMATS, Format};
use nephoscope_traces::normal::{self, Kind};
use nephoscope_traces::{Batch, Mask, Named, Options, Reader, Texts, guess};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::storage::native;
use crate::{errors, signals};

/// Adds everything of SQL traces to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SqlTraceMask>()?;
    module.add_class::<SqlTraceReader>()?;
    module.add_function(wrap_pyfunction!(fingerprint_sql, module)?)?;
    module.add_function(wrap_pyfunction!(filled_sql, module)?)?;
    module.add_function(wrap_pyfunction!(guess_log_format, module)?)?;
    module.add_function(wrap_pyfunction!(log_formats, module)?)
}

/// Every format of logs: its name, what writes it, the dialect of its statements, how fine its times are (µs).
#[pyfunction]
fn log_formats() -> Vec<(&'static str, &'static str, &'static str, u64)> {
    FORMATS.map(|format| (format.name, format.about, format.dialect, format.resolution_us)).to_vec()
}

/// The format of a file, if its first line belongs to one format alone. Raises `InputError` if it cannot be read.
#[pyfunction]
fn guess_log_format(py: Python<'_>, path: PathBuf) -> PyResult<Option<&'static str>> {
    let found = signals::beside(py, "log format", move || guess(&path))?;
    found.map(|format| format.map(|format| format.name)).map_err(|why| errors::input(py, &why))
}

/// A statement without its literals: its text, its fingerprint, the values, a letter for each. The dialect is that of one
/// of the formats. Raises `InputError`.
#[pyfunction]
#[allow(clippy::type_complexity)] // It is taken apart at once, in Python.
fn fingerprint_sql(
    py: Python<'_>,
    sql: &str,
    dialect: &str,
) -> PyResult<(String, u64, Vec<Option<String>>, String)> {
    let lexer = lexer_of(py, dialect)?;
    let found = normal::normalised(sql, lexer);
    let values = found.literals.into_iter().map(|literal| literal.value).collect();
    Ok((found.text, found.fingerprint, values, found.kinds))
}

/// A statement with its values in their places again: what `fingerprint_sql` has taken apart. Raises `InputError` where
/// they do not fit.
#[pyfunction]
fn filled_sql(
    py: Python<'_>,
    text: &str,
    kinds: &str,
    values: Vec<Option<String>>,
    dialect: &str,
) -> PyResult<String> {
    let values: Vec<Option<&str>> = values.iter().map(Option::as_deref).collect();
    normal::filled(text, kinds, &values, lexer_of(py, dialect)?).map_err(|why| errors::input(py, &why))
}

/// How a dialect's texts are read. Raises `InputError` for one that no trace has.
pub(crate) fn lexer_of(py: Python<'_>, dialect: &str) -> PyResult<Lexer> {
    let lexer = FORMATS.iter().find(|format| format.dialect == dialect).map(|format| format.lexer());
    lexer.ok_or_else(|| errors::input(py, &format!("no dialect {dialect:?} of a trace")))
}

/// Reads logs of one format as one trace.
#[pyclass]
pub(crate) struct SqlTraceReader {
    /// `None` once it has ended or failed.
    reader: Mutex<Option<Reader>>,
    progress: Progress,
}

/// How far a trace that is made has come.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) records: u64,
    pub(crate) zone: String,
    pub(crate) left_out: BTreeMap<&'static str, u64>,
}

#[pymethods]
impl SqlTraceReader {
    /// Opens logs, which are parts of one log in their order; with `mask` every value is replaced, with a `database`
    /// only its statements are taken. Raises `InputError`.
    #[new]
    fn new(
        py: Python<'_>,
        kind: &str,
        paths: Vec<PathBuf>,
        mask: bool,
        database: Option<String>,
    ) -> PyResult<Self> {
        let format = Format::of(kind).map_err(|why| errors::input(py, &why))?;
        let options = Options { mask, database };
        // A pipe may keep whoever opens it waiting.
        let opened = signals::beside(py, "log", move || Reader::open(paths, format, &options))?;
        let reader = Mutex::new(Some(opened.map_err(|why| errors::input(py, &why))?));
        Ok(Self { reader, progress: Progress::default() })
    }

    /// The next statements as columns, or `None` behind the last. Raises `InputError` with the number of the line that is
    /// wrong.
    fn next<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let reader = self.reader.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(mut reader) = reader.take() else { return Ok(None) };
        let (reader, read) = signals::beside(py, "log", move || {
            let read = reader.next();
            (reader, read)
        })?;
        self.progress.records = reader.records();
        reader.zone().clone_into(&mut self.progress.zone);
        self.progress.left_out.clone_from(reader.left_out());
        let batch = read.map_err(|why| errors::input(py, &why))?;
        self.reader = Mutex::new(batch.is_some().then_some(reader));
        batch.map(|batch| to_python(py, &batch)).transpose()
    }

    /// How many records were read.
    #[getter]
    fn records(&self) -> u64 {
        self.progress.records
    }

    /// The time zone of the log's clock, where the log says it.
    #[getter]
    fn zone(&self) -> &str {
        &self.progress.zone
    }

    /// What of the log is not in the trace: why, and how often.
    #[getter]
    fn left_out(&self) -> BTreeMap<&'static str, u64> {
        self.progress.left_out.clone()
    }
}

type Column<'py> = (&'static str, Bound<'py, PyBytes>);

/// Statements as columns, by their names.
pub(crate) fn to_python<'py>(py: Python<'py>, batch: &Batch) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let numbers: [Column<'py>; 9] = [
        ("time_us", native(py, &batch.time_us, i64::to_ne_bytes)),
        ("duration_us", native(py, &batch.duration_us, i64::to_ne_bytes)),
        ("rows", native(py, &batch.rows, i64::to_ne_bytes)),
        ("session", native(py, &batch.session, u32::to_ne_bytes)),
        ("transaction", native(py, &batch.transaction, u64::to_ne_bytes)),
        ("place", native(py, &batch.place, u32::to_ne_bytes)),
        ("fingerprint", native(py, &batch.fingerprint, u64::to_ne_bytes)),
        ("parameter_ends", native(py, &batch.parameter_ends, i32::to_ne_bytes)),
        ("given", PyBytes::new(py, &batch.given)),
    ];
    for (name, bytes) in numbers {
        dict.set_item(name, bytes)?;
    }
    dict.set_item("parameters", texts(py, &batch.parameters))?;
    dict.set_item("statement", named(py, &batch.statement))?;
    dict.set_item("kinds", named(py, &batch.kinds))?;
    dict.set_item("error", named(py, &batch.error))?;
    dict.set_item("database", named(py, &batch.database))?;
    Ok(dict)
}

type Pair<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Texts as their bytes, and where each ends (i32).
fn texts<'py>(py: Python<'py>, texts: &Texts) -> Pair<'py> {
    (PyBytes::new(py, &texts.bytes), native(py, &texts.ends, i32::to_ne_bytes))
}

/// The number of each row's text (i32), and the texts.
fn named<'py>(py: Python<'py>, named: &Named) -> (Bound<'py, PyBytes>, Pair<'py>) {
    (native(py, &named.codes, i32::to_ne_bytes), texts(py, &named.texts))
}

/// Replaces values: the same value by the same throughout. What it needs for that is random, and goes with it.
#[pyclass(frozen)]
pub(crate) struct SqlTraceMask(Mask);

#[pymethods]
impl SqlTraceMask {
    /// A new mask. Raises `MeasurementError` where the system has no random numbers.
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        Mask::new().map(Self).map_err(|why| errors::failed(py, &why))
    }

    /// The replacements of values, of which `kinds` has a letter for each; brackets in it do not count. Raises
    /// `InputError` where they are not as many.
    fn masked(
        &self,
        py: Python<'_>,
        values: Vec<Option<String>>,
        kinds: &str,
    ) -> PyResult<Vec<Option<String>>> {
        let kinds: Option<Vec<Kind>> =
            kinds.bytes().filter(|letter| !matches!(letter, b'[' | b']')).map(Kind::of).collect();
        match kinds {
            Some(kinds) if kinds.len() == values.len() => Ok(py.detach(|| {
                let pairs = values.iter().zip(kinds);
                pairs.map(|(value, kind)| value.as_ref().map(|value| self.0.masked(kind, value))).collect()
            })),
            _ => Err(errors::input(py, "the kinds do not fit the parameters")),
        }
    }
}
