//! Rows from the wire into the store, cell by cell and without an allocation of their own.

use std::io::Cursor;

use super::{field, instant};
use crate::contract::error::Error;
use crate::contract::rows::{Columns, Rows};
use crate::mysql::wire::{Fields, garbage};

/// Adds a row of the binary form. What no value can hold in its binary form is kept as text: dates that the calendar
/// does not have.
#[inline]
pub(crate) fn push_binary_row(columns: &Columns, payload: &[u8], rows: &mut Rows) -> Result<(), Error> {
    let count = columns.columns.len();
    // The bits of the first two places are not used.
    let (nulls, cells) = payload
        .get(1..)
        .and_then(|rest| rest.split_at_checked((count + 9) / 8))
        .ok_or_else(|| garbage("a row"))?;
    let mut fields = Fields(cells);
    rows.push_row();
    for (place, column) in columns.columns.iter().enumerate() {
        let bit = place + 2;
        if nulls[bit / 8] >> (bit % 8) & 1 == 1 {
            rows.push_cell(None);
            continue;
        }
        push_cell(column.kind, cell(column.kind as u8, &mut fields)?, rows)?;
    }
    if fields.0.is_empty() { Ok(()) } else { Err(garbage("a row that is too long")) }
}

/// The bytes of a value of the binary form, without its length.
#[inline]
pub(super) fn cell<'a>(kind: u8, fields: &mut Fields<'a>) -> Result<&'a [u8], Error> {
    match kind {
        field::TINY => fields.bytes(1),
        field::SHORT | field::YEAR => fields.bytes(2),
        field::LONG | field::INT24 | field::FLOAT => fields.bytes(4),
        field::LONGLONG | field::DOUBLE => fields.bytes(8),
        field::DATE | field::DATETIME | field::TIMESTAMP | field::TIME => {
            let length = fields.u8()?;
            fields.bytes(length.into())
        }
        field::NULL => Ok(&[]),
        _ => fields.string(),
    }
}

#[inline]
fn push_cell(kind: u32, cell: &[u8], rows: &mut Rows) -> Result<(), Error> {
    match kind as u8 {
        field::TIME if instant::time(cell, false).is_none() => Err(garbage("a time")),
        field::DATE if instant::date(cell).is_none() => {
            push_written(rows, |out| instant::write_impossible(cell, false, out).ok())
        }
        field::DATETIME | field::TIMESTAMP if instant::timestamp(cell).is_none() => {
            push_written(rows, |out| instant::write_impossible(cell, true, out).ok())
        }
        _ => {
            rows.push_cell(Some(cell));
            Ok(())
        }
    }
}

/// Adds a cell of a text that is written; no such text has more than 40 characters.
fn push_written(
    rows: &mut Rows,
    write: impl FnOnce(&mut Cursor<&mut [u8]>) -> Option<()>,
) -> Result<(), Error> {
    let mut buffer = [0; 40];
    let mut out = Cursor::new(&mut buffer[..]);
    write(&mut out).ok_or_else(|| garbage("a time"))?;
    let length = out.position() as usize;
    rows.push_cell(buffer.get(..length));
    Ok(())
}

/// Adds a row of the text form.
#[inline]
pub(crate) fn push_text_row(columns: &Columns, payload: &[u8], rows: &mut Rows) -> Result<(), Error> {
    let mut fields = Fields(payload);
    rows.push_row();
    for _ in &columns.columns {
        rows.push_cell(fields.text_cell()?);
    }
    if fields.0.is_empty() { Ok(()) } else { Err(garbage("a row that is too long")) }
}
