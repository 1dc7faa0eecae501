//! The contract between the engine and a database: it knows nothing of the rest of the crate.

pub(crate) mod added;
pub(crate) mod bulk;
pub mod calendar;
pub(crate) mod capabilities;
pub(crate) mod cells;
pub(crate) mod dialect;
pub(crate) mod driver;
pub(crate) mod error;
pub(crate) mod fnv;
pub(crate) mod interrupt;
pub(crate) mod isolation;
pub(crate) mod lexer;
pub mod probe_tables;
pub(crate) mod rows;
pub(crate) mod statement;
pub(crate) mod value;
pub(crate) mod verb;
