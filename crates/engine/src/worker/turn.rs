//! What a session is told when it asks its tenant for work.

use nephoscope_runtime::Nanos;

/// Work for a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Job {
    /// When it should start; `None` in a closed loop, where that is when it does.
    pub(crate) intended: Option<Nanos>,
    /// A session was free when it was due, so that its lateness is the client's own.
    pub(crate) session_was_free: bool,
    /// Which transaction, where that is known already.
    pub(crate) transaction: Option<usize>,
}

impl Job {
    /// When it was due, where it had to wait for a session.
    #[inline]
    pub(crate) fn waited_since(&self) -> Option<Nanos> {
        self.intended.filter(|_| !self.session_was_free)
    }
}

/// How a session stands to what its tenant wants of its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has those that it should have, or makes them when it needs them.
    #[default]
    Settled,
    /// It has closed them, as it is not wanted.
    Released,
    /// The endpoints have changed since it last looked.
    Unsettled,
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
    /// The endpoints have changed: see which are the session's now, and ask again.
    Move,
    /// The run is over.
    Stop,
}
