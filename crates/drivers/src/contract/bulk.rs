//! Set-up, loading and checks: what happens outside the measured load.

use nephoscope_runtime::Nanos;

use crate::contract::error::Error;
use crate::contract::value::Value;

/// Takes rows value by value and encodes them for one table.
pub trait RowEncoder {
    /// Adds a value to the present row. An error names the column that cannot hold it.
    fn push(&mut self, value: Value<'_>) -> Result<(), Error>;

    /// Ends the present row.
    fn end_row(&mut self) -> Result<(), Error>;
}

/// Gives rows to a bulk load, a batch at a time, so that memory does not grow with the table.
pub trait RowSource {
    /// Encodes the next rows (some thousands); `false` when there are no more.
    fn fill(&mut self, encoder: &mut dyn RowEncoder) -> Result<bool, Error>;
}

/// A result read whole, as text; `None` is null.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, each with one cell per column.
    pub rows: Vec<Vec<Option<String>>>,
}

/// A connection for set-up, loading and checks. It blocks, and it stays on the thread that made it.
pub trait Admin {
    /// Sets how long each question may take from now on, its answer included. Drivers that answer at once have no limit.
    fn limit_answers(&mut self, _limit: Nanos) {}

    /// Runs one or several statements and gives the last one's result.
    fn query(&mut self, sql: &str) -> Result<Table, Error>;

    /// Loads rows into a table's columns and returns how many it took. All or none of them are stored.
    fn bulk_load(&mut self, table: &str, columns: &[String], rows: &mut dyn RowSource) -> Result<u64, Error>;

    /// What a manifest should say of the server: its version, and its settings by name.
    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error>;
}
