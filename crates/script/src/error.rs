//! Errors of workload files.

/// Something is wrong with a workload file: where, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptError(String);

impl ScriptError {
    /// An error at a line of a file; line 0 stands for the file as a whole.
    #[must_use]
    pub fn new(file: &str, line: usize, message: &str) -> Self {
        Self(if line == 0 { format!("{file}: {message}") } else { format!("{file}:{line}: {message}") })
    }

    /// An error whose message says by itself where it is.
    #[must_use]
    pub fn plain(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}
