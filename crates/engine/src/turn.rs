//! What a session is told when it asks its tenant for work.

use nephoscope_runtime::Nanos;

/// Work for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// When it should start; `None` in a closed loop, where that is when it does.
    pub(crate) intended: Option<Nanos>,
    /// A session was free when it was due, so that its lateness is the client's own.
    pub(crate) session_was_free: bool,
}

/// What a session is told when it asks for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Work(Job),
    /// Wait until this time and ask again.
    Pause(Nanos),
    /// Close the connections, and ask again.
    Release,
    /// Make the connections anew that were closed, and ask again.
    Connect,
    /// The run is over.
    Stop,
}
