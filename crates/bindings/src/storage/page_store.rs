//! A page store.

use std::sync::{Arc, Mutex, PoisonError};

use nephoscope_storage::page_store::{self, Settings};
use pyo3::prelude::*;

use crate::owned::Owned;
use crate::signals::beside;
use crate::{errors, logging};

/// A running page store: segments with logs and pages whose costs are planted. It is made from a JSON object of settings
/// (see `Settings::from_json` of the crate nephoscope-storage) and runs until `close`, or until it is dropped.
///
/// `InputError` is raised for what cannot be used, `MeasurementError` for what the system does not allow (a port that is
/// taken), or after `close`.
#[pyclass(frozen)]
pub(crate) struct PageStore {
    url: String,
    store: Mutex<Option<Arc<Owned<page_store::PageStore>>>>,
}

#[pymethods]
impl PageStore {
    #[new]
    fn new(py: Python<'_>, settings: &str) -> PyResult<Self> {
        let settings =
            Settings::from_json(settings).map_err(|why| errors::input(py, &format!("page store: {why}")))?;
        let started = beside(py, "page-store-start", move || page_store::PageStore::start(&settings))?;
        let store = started.map_err(|error| errors::failed(py, &format!("page store: {error}")))?;
        let (url, store) = (store.url(), Owned::new("page store", store));
        Ok(Self { url, store: Mutex::new(Some(Arc::new(store))) })
    }

    /// Its URL as a target, with a quorum of more than half of the replicas.
    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    /// What each replica has counted: a JSON list of objects.
    fn statistics(&self, py: Python<'_>) -> PyResult<String> {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let store = store.ok_or_else(|| errors::failed(py, "the page store is closed"))?;
        serde_json::to_string(&store.get(py)?.statistics())
            .map_err(|error| errors::failed(py, &error.to_string()))
    }

    /// Ends it; its ports are free then.
    fn close(&self, py: Python<'_>) {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(store);
        logging::attend_later(py);
    }
}
