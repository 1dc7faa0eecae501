//! Results read whole, as texts.

use std::io::Write;

use super::types::{read_columns, take_row};
use super::wire::{Fields, garbage, kind};
use crate::contract::bulk::Table;
use crate::contract::error::Error;
use crate::contract::rows::{Rows, too_many};
use crate::contract::value::{Value, write_plain};

/// A result as a table of texts; one without rows has no columns.
pub(super) fn table(body: &[u8]) -> Result<Table, Error> {
    let mut fields = Fields(body);
    if fields.i32()? != kind::ROWS {
        return Ok(Table::default());
    }
    let (flags, width) = (fields.i32()?, fields.count()?);
    let columns = read_columns(&mut fields, width, flags & 1 != 0)?;
    if columns.columns.is_empty() {
        return Err(garbage("a result without columns"));
    }
    let (mut rows, count) = (Rows::default(), fields.count()?);
    let result = rows.begin(&columns);
    for _ in 0..count {
        if !rows.has_room(0) {
            return Err(too_many());
        }
        take_row(&columns, &mut fields, Some(&mut rows))?;
    }
    let cell = |row, column| {
        let mut text = Vec::new();
        let is_there = match rows.value(result, row, column) {
            Some(Value::Bytes(bytes)) => bytes.iter().try_for_each(|byte| write!(text, "{byte:02x}")).is_ok(),
            value => write_plain(value.unwrap_or(Value::Null), &mut text),
        };
        is_there.then(|| String::from_utf8_lossy(&text).into_owned())
    };
    Ok(Table {
        columns: columns.columns.iter().map(|column| column.name.to_string()).collect(),
        rows: (0..count).map(|row| (0..width).map(|column| cell(row, column)).collect()).collect(),
    })
}
