//! Files of histories: checked, and written as Elle reads them.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use nephoscope_histories::forms::{self, Dialect, Family};
use nephoscope_histories::{Checker, Options, Order, json};
use pyo3::prelude::*;

use crate::{errors, signals};

/// Why a file could not be read or written.
enum Trouble {
    Input(String),
    Failed(String),
}

fn raised(py: Python<'_>, trouble: &Trouble) -> PyErr {
    match trouble {
        Trouble::Input(message) => errors::input(py, message),
        Trouble::Failed(message) => errors::failed(py, message),
    }
}

fn opened(path: &Path) -> Result<BufReader<File>, Trouble> {
    let file = File::open(path);
    file.map(BufReader::new).map_err(|error| Trouble::Input(format!("{}: {error}", path.display())))
}

/// Checks the history in a file and gives what was found as JSON. `order` is `none`, `session` or `real-time`. Raises
/// `InputError` where the file cannot be read, with the line.
#[pyfunction]
pub(crate) fn check_history(
    py: Python<'_>,
    path: PathBuf,
    order: &str,
    window_s: f64,
    witnesses: u64,
) -> PyResult<String> {
    let Some(order) =
        [Order::None, Order::Session, Order::RealTime].into_iter().find(|it| it.name() == order)
    else {
        return Err(errors::input(
            py,
            &format!("{order:?} is no order; allowed are none, session, real-time"),
        ));
    };
    let window = (window_s * 1e9) as u64;
    let options = Options { order, window, reads_before_writes: true, witnesses, ..Options::default() };
    let work = move || check(&path, options);
    signals::beside(py, "histories", work)?.map_err(|trouble| raised(py, &trouble))
}

fn check(path: &Path, options: Options) -> Result<String, Trouble> {
    let order = options.order;
    let mut checker = Checker::new(options);
    let told = forms::read(opened(path)?, |transaction| checker.push(transaction))
        .map_err(|fault| Trouble::Input(format!("{}: {fault}", path.display())))?;
    let summary =
        checker.finish().map_err(|message| Trouble::Input(format!("{}: {message}", path.display())))?;
    let mut found = json::summary(&summary, order);
    found["skipped"] = told.skipped.into();
    found["is_cut"] = told.is_cut.into();
    Ok(found.to_string())
}

/// Writes the history in a file as Elle reads it; gives how many transactions were written, and how many operations were
/// left out because Elle's histories are of one kind. `form` is `edn` or `elle-json`, `kind` is `list-append` or
/// `rw-register`. Raises `InputError` where the file cannot be read, `MeasurementError` where the other cannot be written.
#[pyfunction]
pub(crate) fn export_history(
    py: Python<'_>,
    path: PathBuf,
    out: PathBuf,
    form: &str,
    kind: &str,
) -> PyResult<(u64, u64)> {
    let dialect = if form == "edn" { Dialect::Edn } else { Dialect::Json };
    let family = if kind == "list-append" { Family::Lists } else { Family::Registers };
    let work = move || export(&path, &out, dialect, family);
    signals::beside(py, "histories", work)?.map_err(|trouble| raised(py, &trouble))
}

fn export(path: &Path, out: &Path, dialect: Dialect, family: Family) -> Result<(u64, u64), Trouble> {
    let mut history = Vec::new();
    let keep = |transaction: &nephoscope_histories::Transaction| {
        history.push(transaction.clone());
        Ok(())
    };
    forms::read(opened(path)?, keep)
        .map_err(|fault| Trouble::Input(format!("{}: {fault}", path.display())))?;
    let failed =
        |error: std::io::Error| Trouble::Failed(format!("{} cannot be written: {error}", out.display()));
    let mut file = BufWriter::new(File::create(out).map_err(failed)?);
    let told = forms::export(&history, dialect, family, &mut file).map_err(failed)?;
    file.flush().map_err(failed)?;
    Ok(told)
}
