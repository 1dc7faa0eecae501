//! Rows as a server sent them, decoded only where somebody looks.

use std::rc::Rc;

use crate::contract::driver::Reply;
use crate::contract::error::Error;
use crate::contract::value::Value;

/// Decodes the bytes of one cell; `kind` is what the driver put into [`Column::kind`].
pub type Decode = for<'a> fn(kind: u32, cell: &'a [u8]) -> Value<'a>;

/// One column of a result.
#[derive(Clone, Debug)]
pub struct Column {
    /// The name that the server gave it.
    pub name: Box<str>,
    /// Its type and format, in the driver's own terms.
    pub kind: u32,
}

/// The columns of a statement's result. Shared by all results of the statement on a connection.
#[derive(Debug)]
pub struct Columns {
    /// In the order in which the cells of a row come.
    pub columns: Vec<Column>,
    /// How a cell is read.
    pub decode: Decode,
    /// Every name is a column and holds 1: for drivers that have no database behind them.
    pub any_name: bool,
}

/// Which of a transaction's results: see [`Rows::result`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultIndex(u32);

impl ResultIndex {
    /// As a plain number, for a script to keep.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }
}

impl From<u32> for ResultIndex {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

struct Set {
    columns: Rc<Columns>,
    first: usize,
    count: usize,
}

/// The most rows that a transaction may read: what a workload keeps of each takes memory, too.
pub const MOST_ROWS: usize = 1_000_000;
/// The most bytes that they may have.
pub const MOST_BYTES: usize = 64 << 20;

/// What a transaction fails with for which there was no room.
#[cold]
pub(crate) fn too_many() -> Error {
    let megabytes = MOST_BYTES >> 20;
    Error::other(format!(
        "the transaction reads more rows than are kept: {MOST_ROWS} at most, and {megabytes} MiB; let the statement \
         return less"
    ))
}

/// All rows that a transaction has read so far, so that a workload may use a row after further statements.
///
/// The bytes of a row are kept as cells, each a length (a big-endian `i32`, −1 for null) and its body. The
/// store is emptied, and keeps its memory, when the session starts its next transaction.
#[derive(Default)]
pub struct Rows {
    cells: Vec<u8>,
    starts: Vec<usize>,
    sets: Vec<Set>,
    kept: Vec<Reply>,
}

impl Rows {
    /// Forgets every row.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.starts.clear();
        self.sets.clear();
        self.kept.clear();
    }

    /// Keeps the reply to a command with [`crate::Want::Kept`].
    pub fn keep(&mut self, reply: Reply) {
        self.kept.push(reply);
    }

    /// The replies that were kept since the store was emptied, in the order of their commands.
    #[must_use]
    pub fn kept(&self) -> &[Reply] {
        &self.kept
    }

    /// Begins the result of one statement; the rows that follow belong to it.
    pub fn begin(&mut self, columns: &Rc<Columns>) -> ResultIndex {
        let index = ResultIndex(self.sets.len() as u32);
        self.sets.push(Set { columns: Rc::clone(columns), first: self.starts.len(), count: 0 });
        index
    }

    /// Whether a further row of so many bytes may be added.
    #[inline]
    #[must_use]
    pub fn has_room(&self, bytes: usize) -> bool {
        self.starts.len() < MOST_ROWS && self.cells.len() + bytes <= MOST_BYTES
    }

    /// Whether what was added takes more bytes than there may be.
    #[inline]
    pub(crate) fn is_over_full(&self) -> bool {
        self.cells.len() > MOST_BYTES
    }

    /// Adds a row whose cells are encoded as the store keeps them.
    pub fn push_cells(&mut self, cells: &[u8]) {
        if let Some(set) = self.sets.last_mut() {
            set.count += 1;
            self.starts.push(self.cells.len());
            self.cells.extend_from_slice(cells);
        }
    }

    /// Begins a row whose cells are added one by one with [`Rows::push_cell`].
    pub fn push_row(&mut self) {
        self.push_cells(&[]);
    }

    /// Adds a cell to the newest row; `None` is null.
    pub fn push_cell(&mut self, body: Option<&[u8]>) {
        let length = body.map_or(-1, |body| body.len() as i32);
        self.cells.extend_from_slice(&length.to_be_bytes());
        self.cells.extend_from_slice(body.unwrap_or_default());
    }

    /// Adds a cell to the newest row that begins with a byte of the driver's own.
    #[inline]
    pub(crate) fn push_marked_cell(&mut self, mark: u8, body: &[u8]) {
        let length = body.len() as i32 + 1;
        self.cells.extend_from_slice(&length.to_be_bytes());
        self.cells.push(mark);
        self.cells.extend_from_slice(body);
    }

    /// Forgets a result and those that came after it: their statement is run again.
    pub(crate) fn take_back(&mut self, result: ResultIndex) {
        let Some(set) = self.sets.get(result.0 as usize) else { return };
        if let Some(start) = self.starts.get(set.first) {
            self.cells.truncate(*start);
        }
        self.starts.truncate(set.first);
        self.sets.truncate(result.0 as usize);
    }

    /// How many rows a result has.
    #[must_use]
    pub fn count(&self, result: ResultIndex) -> usize {
        self.sets.get(result.0 as usize).map_or(0, |set| set.count)
    }

    /// A result's columns, if there is such a result.
    #[must_use]
    pub fn columns(&self, result: ResultIndex) -> Option<&Columns> {
        self.sets.get(result.0 as usize).map(|set| &*set.columns)
    }

    /// The cell of a row by the column's place, counted from 0; `None` where there is no such cell.
    #[must_use]
    pub fn value(&self, result: ResultIndex, row: usize, column: usize) -> Option<Value<'_>> {
        let set = self.sets.get(result.0 as usize).filter(|set| row < set.count)?;
        let kind = set.columns.columns.get(column)?.kind;
        let mut cells = &self.cells[*self.starts.get(set.first + row)?..];
        for place in 0..=column {
            let (length, rest) = cells.split_first_chunk::<4>()?;
            let length = i32::from_be_bytes(*length);
            let Ok(size) = usize::try_from(length) else {
                if place == column {
                    return Some(Value::Null);
                }
                cells = rest;
                continue;
            };
            if place == column {
                return Some((set.columns.decode)(kind, rest.get(..size)?));
            }
            cells = rest.get(size..)?;
        }
        None
    }

    /// The cell of a row by the column's name; `None` where there is no such column.
    #[must_use]
    pub fn named(&self, result: ResultIndex, row: usize, name: impl AsRef<[u8]>) -> Option<Value<'_>> {
        let columns = self.columns(result)?;
        match columns.columns.iter().position(|column| column.name.as_bytes() == name.as_ref()) {
            Some(place) => self.value(result, row, place),
            None if columns.any_name => Some(Value::Int(1)),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(names: &[&str]) -> Rc<Columns> {
        let columns = names.iter().map(|name| Column { name: (*name).into(), kind: 0 }).collect();
        Rc::new(Columns { columns, decode: |_, cell| Value::Text(cell), any_name: false })
    }

    #[test]
    fn rows_of_several_results_are_kept_apart() {
        let mut rows = Rows::default();
        let first = rows.begin(&columns(&["a", "b"]));
        rows.push_row();
        rows.push_cell(Some(b"one"));
        rows.push_cell(None);
        let second = rows.begin(&columns(&["c"]));
        for text in ["two", "three"] {
            rows.push_row();
            rows.push_cell(Some(text.as_bytes()));
        }
        assert_eq!((rows.count(first), rows.count(second)), (1, 2));
        assert_eq!(rows.named(first, 0, "a"), Some(Value::Text(b"one")));
        assert_eq!(rows.named(first, 0, "b"), Some(Value::Null));
        assert_eq!(rows.named(second, 1, "c"), Some(Value::Text(b"three")));
        assert_eq!(rows.named(second, 1, "a"), None);
        assert_eq!(rows.value(first, 1, 0), None);
        rows.take_back(second);
        assert_eq!((rows.count(first), rows.count(second)), (1, 0));
        let again = rows.begin(&columns(&["c"]));
        assert_eq!((again, rows.count(again)), (second, 0));
        rows.push_row();
        rows.push_cell(Some(b"four"));
        assert_eq!(rows.named(second, 0, "c"), Some(Value::Text(b"four")));
        rows.clear();
        assert_eq!(rows.count(first), 0);
        assert_eq!(rows.named(first, 0, "a"), None);
    }
}
