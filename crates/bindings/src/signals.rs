//! Waits that look for signals ten times a second: Python handles them only when it is asked to.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::{errors, logging};

/// How often a wait looks for signals.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// How long what is interrupted may take to say good-bye: a request to cancel has a second.
const FAREWELL: Duration = Duration::from_millis(1500);

/// What comes by a channel, or `None` where its other side is gone. Raises what a signal's handler raises.
pub(crate) fn receive<T: Send>(py: Python<'_>, mut from: Receiver<T>) -> PyResult<Option<T>> {
    loop {
        logging::attend(py)?;
        let came;
        // A receiver may be sent to where the interpreter's lock is not held, and not shared with it.
        (from, came) = py.detach(move || {
            let came = from.recv_timeout(LOOK);
            (from, came)
        });
        logging::attend_later(py);
        match came {
            Ok(came) => return Ok(Some(came)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => look(py)?,
        }
    }
}

/// Waits a little for the other side of a channel to be gone, whatever still comes from there.
pub(crate) fn await_end<T: Send>(py: Python<'_>, from: Receiver<T>) {
    py.detach(move || {
        let until = Instant::now() + FAREWELL;
        while from.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
    });
}

/// Does something on a thread of its own, which is left behind if a signal's handler raises meanwhile.
pub(crate) fn beside<T: Send + 'static>(
    py: Python<'_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (done, outcome) = channel();
    // Nobody listens any more if the wait was given up.
    std::thread::Builder::new().name(name.to_owned()).spawn(move || drop(done.send(work())))?;
    let died = || errors::failed(py, &format!("the thread {name} died; standard error says why"));
    receive(py, outcome)?.ok_or_else(died)
}

/// Handles signals: raises what a handler raises. What `nephoscope.interrupts` holds back for the sake of what must be
/// done whole counts as well: a wait for a server is no part of that.
pub(crate) fn look(py: Python<'_>) -> PyResult<()> {
    py.check_signals()?;
    logging::attend(py)?;
    if py.import("nephoscope.interrupts")?.call_method0("is_held_back")?.extract()? {
        return Err(errors::failed(py, "interrupted"));
    }
    Ok(())
}

/// Looks for signals where the engine waits, and keeps what is raised.
#[derive(Default)]
pub(crate) struct Signals(Option<PyErr>);

impl Signals {
    /// Whether the wait is to be given up.
    pub(crate) fn look(&mut self) -> bool {
        if self.0.is_none() {
            self.0 = Python::attach(look).err();
        }
        self.0.is_some()
    }

    /// What was raised, or else the outcome of the wait.
    pub(crate) fn or<T>(self, outcome: PyResult<T>) -> PyResult<T> {
        self.0.map_or(outcome, Err)
    }
}
