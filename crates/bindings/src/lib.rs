//! `nephoscope._engine`: the data plane as Python sees it. Glue only: what goes in and out is JSON, as the engine
//! defines it, and errors are those of `nephoscope.errors`.
#![allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value.

mod admin;
mod errors;
mod faults;
mod histogram;
mod histories;
mod load;
mod logging;
mod owned;
mod probes;
mod recording;
mod replay;
mod run;
mod signals;
mod storage;
mod traces;
mod workload;

use nephoscope_drivers::redact;
use nephoscope_engine::spec::IoChoice;
use pyo3::prelude::*;

/// A URL without its password, for logs and manifests: whatever the scheme, and even if it is malformed.
#[pyfunction]
#[pyo3(name = "redact")]
fn redact_url(url: &str) -> String {
    redact(url)
}

/// Every URL scheme that has a driver, with what it is for.
#[pyfunction]
fn schemes() -> Vec<(&'static str, &'static str)> {
    nephoscope_drivers::schemes().collect()
}

/// The names of the error classes, in the order in which they are counted and shown.
#[pyfunction]
fn error_classes() -> Vec<&'static str> {
    nephoscope_drivers::ErrorClass::ALL.map(nephoscope_drivers::ErrorClass::name).to_vec()
}

/// Checks that a URL can be used: its driver, its form, the files that it names. Raises `InputError`.
#[pyfunction]
fn check_url(py: Python<'_>, url: &str) -> PyResult<()> {
    let opened = nephoscope_drivers::open(url, &nephoscope_drivers::Settings::default());
    logging::attend_later(py);
    opened.map(drop).map_err(|error| errors::input(py, &error.0))
}

/// How threads will wait for sockets if a load asks for `choice` (`auto`, `uring` or `epoll`), and why. Raises
/// `InputError` if that cannot be had here.
#[pyfunction]
fn choose_io(py: Python<'_>, choice: &str) -> PyResult<(&'static str, String)> {
    let choice: IoChoice = errors::parse(py, &format!("{choice:?}"))?;
    let (io, why) = choice.decide().map_err(|error| errors::engine(py, &error))?;
    Ok((io.name(), why))
}

/// The monotonic clock that every measurement uses, in nanoseconds.
#[pyfunction]
fn monotonic_ns() -> u64 {
    nephoscope_runtime::clock::now()
}

/// Plants something in a simulated database while it runs (`capacity=8`, `stall=0s+2s`, `outage=0s+1s`, joined by
/// `&`); times count from now, which is returned on the monotonic clock. Raises `InputError`.
#[pyfunction]
fn sim_plant(py: Python<'_>, url: &str, planted: &str) -> PyResult<u64> {
    nephoscope_drivers::sim::plant(url, planted).map_err(|error| errors::input(py, &error.0))
}

#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    logging::install();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<admin::Admin>()?;
    module.add_class::<faults::FaultProxy>()?;
    module.add_class::<histogram::Histogram>()?;
    module.add_class::<probes::Probes>()?;
    module.add_class::<run::Run>()?;
    module.add_function(wrap_pyfunction!(check_url, module)?)?;
    module.add_function(wrap_pyfunction!(choose_io, module)?)?;
    module.add_function(wrap_pyfunction!(error_classes, module)?)?;
    module.add_function(wrap_pyfunction!(histories::check_history, module)?)?;
    module.add_function(wrap_pyfunction!(histories::export_history, module)?)?;
    module.add_function(wrap_pyfunction!(load::load, module)?)?;
    module.add_function(wrap_pyfunction!(monotonic_ns, module)?)?;
    module.add_function(wrap_pyfunction!(probes::probe_tables, module)?)?;
    module.add_function(wrap_pyfunction!(redact_url, module)?)?;
    module.add_function(wrap_pyfunction!(schemes, module)?)?;
    module.add_function(wrap_pyfunction!(sim_plant, module)?)?;
    recording::add_to(module)?;
    replay::add_to(module)?;
    storage::add_to(module)?;
    traces::add_to(module)?;
    module.add_function(wrap_pyfunction!(workload::render, module)?)?;
    module.add_function(wrap_pyfunction!(workload::workload, module)?)?;
    Ok(())
}
