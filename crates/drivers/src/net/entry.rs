//! What a driver says of itself: the one thing that the rest of the crate knows of it.

use std::sync::Arc;

use crate::contract::dialect::Dialect;
use crate::contract::driver::{Driver, Settings};
use crate::contract::error::ConfigError;
use crate::net::given::Keys;

/// A driver that has read a URL, or what is wrong with that.
pub(crate) type Opened = Result<Arc<dyn Driver>, ConfigError>;

/// A driver in the words of a dialect.
pub(crate) type OpenAs = fn(&'static Dialect) -> Arc<dyn Driver>;

/// A driver: its URLs, and how one is opened.
pub(crate) struct Entry {
    /// The schemes of its URLs; the first is the one that is listed.
    pub(crate) schemes: &'static [&'static str],
    /// What it is for, in a line.
    pub(crate) about: &'static str,
    /// Reads a URL of one of these schemes. Nothing is connected yet.
    pub(crate) open: fn(&str, &Settings) -> Opened,
    /// Opens it in the words of a dialect (`?dialect=`), where it has none of its own.
    pub(crate) open_as: Option<OpenAs>,
    /// The settings that its URLs may have, where it reads them by `given`.
    pub(crate) keys: Option<&'static Keys>,
    /// The dialect of its statements.
    pub(crate) dialect: &'static Dialect,
}
