//! The engine's errors as `nephoscope.errors` has them.

use nephoscope_engine::EngineError;
use pyo3::prelude::*;

fn raise(py: Python<'_>, class: &str, message: &str) -> PyErr {
    let made = py
        .import("nephoscope.errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((message,)));
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// The user gave something that cannot be used.
pub(crate) fn input(py: Python<'_>, message: &str) -> PyErr {
    raise(py, "InputError", message)
}

/// The input was right, and something else was not.
pub(crate) fn failed(py: Python<'_>, message: &str) -> PyErr {
    raise(py, "MeasurementError", message)
}

pub(crate) fn engine(py: Python<'_>, error: &EngineError) -> PyErr {
    match error {
        EngineError::Input(message) => input(py, message),
        EngineError::Failed(message) => failed(py, message),
    }
}

/// Reads a description that our own Python made.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(py: Python<'_>, json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| input(py, &format!("the description cannot be read: {error}")))
}
