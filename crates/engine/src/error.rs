//! Why a load could not be run.

/// Whether whoever waits has had enough: asked ten times a second.
pub type GiveUp<'a> = &'a mut dyn FnMut() -> bool;

/// An error of the engine, by what the user can do about it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    /// The load, as it was described, cannot be run: bad input.
    #[error("{0}")]
    Input(String),
    /// The load was well described and failed: no connection, an error of the workload while it ran.
    #[error("{0}")]
    Failed(String),
}

impl From<nephoscope_drivers::ConfigError> for EngineError {
    fn from(error: nephoscope_drivers::ConfigError) -> Self {
        Self::Input(error.0)
    }
}

impl From<nephoscope_script::ScriptError> for EngineError {
    fn from(error: nephoscope_script::ScriptError) -> Self {
        Self::Input(error.to_string())
    }
}
