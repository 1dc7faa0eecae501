//! The I/O of a database server, as the preload library (`crates/preload`) recorded it: a folder of files, one a process.

mod callers;
mod error;
#[path = "../../../preload/src/format.rs"]
mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod page_view;
mod record;
mod recording;
mod relations;
mod slots;
mod source;
#[cfg(test)]
mod tests;

pub use error::RecordingError;
pub use page_view::page_view;
pub(crate) use page_view::view;
pub use record::{Paths, Record};
pub use recording::{Recording, Records};
pub use relations::Relations;
