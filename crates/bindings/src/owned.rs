//! What has threads of its own: it is dropped without Python's lock, and only by the process that made it.

use pyo3::prelude::*;

use crate::{errors, logging};

/// Something of the engine's that Python holds. Dropping it waits for its threads.
pub(crate) struct Owned<T: Send> {
    what: &'static str,
    process: u32,
    /// `None` only while it is dropped.
    inner: Option<T>,
}

impl<T: Send> Owned<T> {
    /// `what` is its name in an error.
    pub(crate) fn new(what: &'static str, inner: T) -> Self {
        Self { what, process: std::process::id(), inner: Some(inner) }
    }

    /// It itself; an error in a process that was forked, where its threads are not.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&T> {
        let (here, of) = (std::process::id(), self.process);
        self.inner.as_ref().filter(|_| here == of).ok_or_else(|| {
            let message = format!("the {} belongs to process {of}, which forked this one, {here}", self.what);
            errors::failed(py, &message)
        })
    }
}

impl<T: Send> Drop for Owned<T> {
    fn drop(&mut self) {
        let mut inner = self.inner.take();
        if std::process::id() != self.process {
            // Nobody is here to wait for, and a thread that is not here may hold its locks.
            std::mem::forget(inner);
            return;
        }
        // Python calls this with its lock held, and whoever is waited for may wait for that.
        Python::try_attach(|py| {
            py.detach(|| drop(inner.take()));
            logging::attend_later(py);
        });
    }
}
