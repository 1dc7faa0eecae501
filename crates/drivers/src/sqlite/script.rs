//! SQL texts of several statements, for set-up and checks.

use super::raw::{Database, Failure, Prepared, Step};
use super::statement::Trouble;
use crate::contract::bulk::Table;
use crate::contract::error::Error;
use crate::contract::value::Value;

/// The most memory that a result may take, in bytes.
const LARGEST: usize = 256 << 20;

/// A text whose statements are run one after the other.
pub(super) struct Script<'a> {
    rest: &'a [u8],
    /// What the last statement gave.
    pub(super) table: Table,
}

impl<'a> Script<'a> {
    pub(super) fn new(sql: &'a str) -> Self {
        Self { rest: sql.as_bytes(), table: Table::default() }
    }

    /// Runs the next statement; `false` when there are no more. One that fails can be run again.
    pub(super) fn run_next(&mut self, database: &Database) -> Result<bool, Trouble> {
        if self.rest.is_empty() {
            return Ok(false);
        }
        let (prepared, used) = database.prepare(self.rest, false)?;
        if let Some(prepared) = prepared {
            self.table = result(prepared)?;
        }
        self.rest = &self.rest[used..];
        Ok(used > 0)
    }
}

/// Runs a statement to its end and gives its rows as text.
fn result(mut prepared: Prepared) -> Result<Table, Trouble> {
    let mut table = Table { columns: prepared.column_names(), rows: Vec::new() };
    let (mut run, mut size) = (prepared.run(), 0);
    while run.step()? == Step::Row {
        let row: Vec<_> = (0..table.columns.len()).map(|column| text(run.cell(column))).collect();
        size += row.iter().flatten().map(String::len).sum::<usize>();
        size += size_of_val(&row) + size_of_val(row.as_slice());
        if size > LARGEST {
            return Err(Trouble::Error(too_large(table.rows.len())));
        }
        table.rows.push(row);
    }
    Ok(table)
}

fn too_large(rows: usize) -> Error {
    let megabytes = LARGEST >> 20;
    Error::other(format!("the result was given up after {rows} rows: it takes more than {megabytes} MiB"))
}

/// A cell as text: floats with the digits that they need to come back exactly, bytes as `\x` and hexadecimal digits.
fn text(value: Value<'_>) -> Option<String> {
    match value {
        Value::Int(number) => Some(number.to_string()),
        Value::Float(number) => Some(format!("{number:?}")),
        Value::Bytes(bytes) => {
            Some(bytes.iter().fold("\\x".to_owned(), |text, byte| text + &format!("{byte:02x}")))
        }
        Value::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    }
}

/// Whether somebody else's lock was in the way.
pub(super) fn is_locked(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Failure(failure) if Failure::is_locked(failure))
}
