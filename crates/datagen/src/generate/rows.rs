//! Rows for a bulk load.

use std::ops::Range;

use nephoscope_drivers::{Error, RowEncoder, RowSource, Value};

use super::Cells;
use crate::plan::Plan;

/// The most rows of a batch: enough that what is done once a batch does not count.
const BATCH_ROWS: u64 = 2048;
/// The batch ends with the row that brings it to so many bytes, lest wide rows fill the memory.
const BATCH_BYTES: usize = 1 << 20;

/// A range of a table's rows as a bulk load takes them: the stored columns, in batches of some thousands of
/// rows.
pub struct TableRows<'c, 'd> {
    cells: &'c mut Cells<'d>,
    table: usize,
    next: u64,
    end: u64,
}

impl<'d> Cells<'d> {
    /// Gives rows of a table, which is counted as declared, with their stored columns. Rows that the table
    /// does not have are left out.
    pub fn rows(&mut self, table: usize, range: Range<u64>) -> TableRows<'_, 'd> {
        let rows = self.dataset.tables().get(table).map_or(0, crate::TablePlan::rows);
        TableRows { cells: self, table, next: range.start, end: range.end.min(rows) }
    }

    /// Encodes a row and says about how many bytes it has.
    fn encode(&mut self, table: usize, row: u64, encoder: &mut dyn RowEncoder) -> Result<usize, Error> {
        let mut bytes = 0;
        let plan = &self.dataset.tables()[table];
        for column in plan.stored() {
            // Two calls of `push`: a value that comes to one call from two places is copied in pieces of
            // other sizes than it was written in, which stalls the processor for longer than the value takes
            // to make.
            let pushed = match &column.plan {
                Plan::Simple(simple) => {
                    bytes += size_of::<u64>();
                    encoder.push(simple.value(row))
                }
                other => {
                    let value = self
                        .make(other, table, row)
                        .map_err(|error| error.context(&format!("column {:?}, row {row}", column.name())))?;
                    bytes += width(&value);
                    encoder.push(value)
                }
            };
            pushed.map_err(|error| error.context(&format!("row {row}")))?;
        }
        encoder.end_row()?;
        Ok(bytes)
    }
}

impl TableRows<'_, '_> {
    /// The row that the next batch begins with.
    #[must_use]
    pub fn next_row(&self) -> u64 {
        self.next
    }
}

impl RowSource for TableRows<'_, '_> {
    fn fill(&mut self, encoder: &mut dyn RowEncoder) -> Result<bool, Error> {
        let end = self.end.min(self.next.saturating_add(BATCH_ROWS));
        let mut bytes = 0;
        while self.next < end && bytes < BATCH_BYTES {
            bytes += self.cells.encode(self.table, self.next, encoder)?;
            self.next += 1;
        }
        Ok(self.next < self.end)
    }
}

/// About how many bytes a value has.
fn width(value: &Value<'_>) -> usize {
    match value {
        Value::Text(body) | Value::Json(body) | Value::Bytes(body) => body.len(),
        Value::Numeric(body) => body.len(),
        _ => size_of::<u64>(),
    }
}
