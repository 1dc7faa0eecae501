//! Histograms.

use nephoscope_engine::histogram::{self, WindowHistogram};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A latency histogram of nanoseconds, 1 µs to 1 h to 3 significant digits, as the run directory holds them.
#[pyclass]
pub(crate) struct Histogram(WindowHistogram);

#[pymethods]
impl Histogram {
    #[new]
    fn new() -> Self {
        Self(histogram::empty())
    }

    /// Reads a histogram in HdrHistogram's V2 compressed form, in base64. Raises `ValueError`.
    #[staticmethod]
    fn decode(text: &str) -> PyResult<Self> {
        histogram::decode(text).map(Self).map_err(PyValueError::new_err)
    }

    /// The histogram in HdrHistogram's V2 compressed form, in base64.
    fn encode(&self) -> String {
        histogram::encode(&self.0)
    }

    /// Adds another histogram's counts. Raises `ValueError` if its bounds are wider.
    fn add(&mut self, other: &Self) -> PyResult<()> {
        self.0.add(&other.0).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Adds a time in nanoseconds, so often.
    #[pyo3(signature = (nanoseconds, count = 1))]
    fn record(&mut self, nanoseconds: u64, count: u64) {
        self.0.saturating_record_n(nanoseconds.max(1), count);
    }

    /// How many times it holds.
    #[getter]
    fn count(&self) -> u64 {
        self.0.len()
    }

    /// The mean in nanoseconds; 0 if it is empty.
    #[getter]
    fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// The largest time in nanoseconds, to 3 digits; 0 if it is empty.
    #[getter]
    fn max(&self) -> u64 {
        self.0.max()
    }

    /// The time in nanoseconds that a share of all (0–1) does not exceed; 0 if it is empty.
    fn quantile(&self, share: f64) -> u64 {
        self.0.value_at_quantile(share)
    }

    /// How many times do not exceed a bound in nanoseconds, to 3 digits.
    fn count_up_to(&self, nanoseconds: u64) -> u64 {
        let bound = self.0.highest_equivalent(nanoseconds);
        let within = self.0.iter_recorded().take_while(|value| value.value_iterated_to() <= bound);
        within.map(|value| value.count_at_value()).sum()
    }

    /// Every bucket that is not empty: its upper bound in nanoseconds, and its count.
    fn buckets(&self) -> Vec<(u64, u64)> {
        self.0.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value())).collect()
    }
}
