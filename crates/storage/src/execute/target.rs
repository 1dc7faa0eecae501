//! What a target is. Each is a file beside this one, and a line in `open`.

use std::rc::Rc;

use nephoscope_runtime::{Nanos, Runtime};

use crate::execute::layout::Layout;
use crate::requests::Request;

/// Why a request, or the way to a target, failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The session can be used no more (a connection that broke): the executor drops it and connects anew.
    #[error("{0}")]
    Broken(String),
    /// The request took longer than it may. The session is dropped as well.
    #[error("{0}")]
    Timeout(String),
    /// The target refused this request; the session goes on.
    #[error("{0}")]
    Refused(String),
}

/// Where requests are executed. One is shared by all workers; it is made by whoever knows its URL and its options.
///
/// The executor calls [`Target::prepare`] once, then [`Target::connect`] for each session on its worker's thread: as many
/// sessions in all as requests may be in flight. A session executes one request at a time.
#[allow(async_fn_in_trait)] // A session and its futures stay on one thread, so none has to be `Send`.
pub trait Target: Send + Sync + 'static {
    /// What executes requests one by one: a connection, or a file with a buffer.
    type Session: Session;

    /// Creates the segments and fills them, so that reads find bytes. Blocks; nothing is measured yet. What is there
    /// already and fits may stay. The message of a failure is shown to the user as it is.
    fn prepare(&self, layout: &Layout) -> Result<(), Failure>;

    /// What is worth knowing of it beside what was measured, by name. Never a secret.
    fn facts(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Opens a session on a worker's thread, until `deadline` on the monotonic clock at the latest.
    async fn connect(
        &self,
        runtime: &Runtime,
        layout: &Rc<Layout>,
        deadline: Nanos,
    ) -> Result<Self::Session, Failure>;
}

/// A session of a target.
#[allow(async_fn_in_trait)] // As above.
pub trait Session: 'static {
    /// Executes a request; it is complete when the target says that it is done: a read has all its bytes, a sync has made
    /// durable what was complete before it began. Ends with [`Failure::Timeout`] when `deadline` on the monotonic clock
    /// has passed, if it can; the executor does not wait for it at the end of a run.
    async fn execute(&mut self, request: &Request, deadline: Nanos) -> Result<(), Failure>;
}
