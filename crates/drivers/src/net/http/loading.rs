//! Rows on their way into a system behind HTTP, as texts: such systems keep nothing else.

use nephoscope_runtime::clock::{self, MILLISECOND, Nanos, SECOND};
use nephoscope_runtime::{Runtime, Yield};

use crate::contract::bulk::{RowEncoder, RowSource};
use crate::contract::error::{Error, ErrorClass};
use crate::contract::value::{Value, write_plain};
use crate::net::http::service::Service;

/// How much one request stores.
pub(crate) struct Batch {
    pub(crate) rows: usize,
    /// Of keys and values; a row that has more goes alone.
    pub(crate) bytes: usize,
}

/// Rows of texts, each with a text per column.
pub(crate) struct TextRows<'a> {
    product: &'static str,
    longest: usize,
    columns: &'a [String],
    text: String,
    /// Where each cell ends.
    ends: Vec<usize>,
    /// How many cells the present row has.
    cells: usize,
    cell: Vec<u8>,
}

/// One of them.
#[derive(Clone, Copy)]
pub(crate) struct TextRow<'a> {
    rows: &'a TextRows<'a>,
    first: usize,
}

impl<'a> TextRows<'a> {
    /// None yet, for a system.
    pub(crate) fn new<S: Service>(columns: &'a [String]) -> Self {
        let (text, ends, cell) = (String::new(), Vec::new(), Vec::new());
        Self { product: S::NAME, longest: S::LONGEST_TEXT, columns, text, ends, cells: 0, cell }
    }

    /// The rows that are whole.
    pub(crate) fn rows(&self) -> impl Iterator<Item = TextRow<'_>> {
        let width = self.columns.len().max(1);
        (0..self.ends.len() / width).map(move |row| TextRow { rows: self, first: row * width })
    }

    fn start(&self, place: usize) -> usize {
        place.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    fn cell(&self, place: usize) -> &str {
        &self.text[self.start(place)..self.ends[place]]
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }
}

impl<'a> TextRow<'a> {
    /// The first column's text.
    pub(crate) fn key(&self) -> &'a str {
        self.rows.cell(self.first)
    }

    /// All columns' names and texts, the key first.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let Self { rows, first } = *self;
        rows.columns.iter().enumerate().map(move |(place, name)| (name.as_str(), rows.cell(first + place)))
    }

    /// The same without the key.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.cells().skip(1)
    }

    fn bytes(&self) -> usize {
        self.rows.ends[self.first + self.rows.columns.len() - 1] - self.rows.start(self.first)
    }
}

impl RowEncoder for TextRows<'_> {
    fn push(&mut self, value: Value<'_>) -> Result<(), Error> {
        let Some(column) = self.columns.get(self.cells) else {
            return Err(Error::other("a row has more values than columns"));
        };
        let Self { product, longest, .. } = self;
        let wrong = |what: String| Err(Error::other(format!("column {column}: {product} keeps {what}")));
        self.cell.clear();
        if !write_plain(value, &mut self.cell) {
            return wrong("no NULL".to_owned());
        }
        if self.cell.len() > *longest {
            return wrong(format!("texts of {longest} bytes at most, and this one has {}", self.cell.len()));
        }
        let Ok(text) = std::str::from_utf8(&self.cell) else { return wrong("UTF-8 here".to_owned()) };
        self.text.push_str(text);
        self.ends.push(self.text.len());
        self.cells += 1;
        Ok(())
    }

    fn end_row(&mut self) -> Result<(), Error> {
        if self.cells != self.columns.len() {
            return Err(Error::other("a row has fewer values than columns"));
        }
        self.cells = 0;
        Ok(())
    }
}

/// How many of the rows, one at least, make a batch.
fn fitting(rows: &[TextRow<'_>], batch: &Batch) -> usize {
    let mut bytes = 0;
    let fits = |row: &&TextRow<'_>| {
        bytes += row.bytes();
        bytes <= batch.bytes
    };
    rows.iter().take(batch.rows).take_while(fits).count().max(1)
}

/// Has rows stored, a batch at a time; gives their number. Rows that were stored before an error stay.
pub(crate) async fn load<S: Service>(
    columns: &[String],
    rows: &mut dyn RowSource,
    batch: Batch,
    mut store: impl AsyncFnMut(&[TextRow<'_>]) -> Result<(), Error>,
) -> Result<u64, Error> {
    let (mut texts, mut count) = (TextRows::new::<S>(columns), 0);
    loop {
        let more = rows.fill(&mut texts)?;
        let all: Vec<TextRow<'_>> = texts.rows().collect();
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let (next, after) = rest.split_at(fitting(rest, &batch));
            store(next).await?;
            (rest, count) = (after, count + next.len() as u64);
        }
        texts.clear();
        if !more {
            return Ok(count);
        }
        Yield::default().await;
    }
}

/// The pauses before what was refused is sent again.
const PAUSES: (Nanos, Nanos) = (50 * MILLISECOND, 5 * SECOND);

/// Does something until it says that all of it is done, with growing pauses and up to the deadline: it may be refused
/// beyond a rate, or be done in part.
pub(crate) async fn patiently(
    runtime: &Runtime,
    deadline: Nanos,
    mut done: impl AsyncFnMut() -> Result<bool, Error>,
) -> Result<(), Error> {
    let (mut pause, longest) = PAUSES;
    loop {
        match done().await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) if error.class() == ErrorClass::Throttled => {}
            Err(error) => return Err(error),
        }
        if clock::now().saturating_add(pause) >= deadline {
            let what = "rows were refused beyond a rate up to the time limit";
            return Err(Error::new(ErrorClass::Throttled, "", what));
        }
        runtime.sleep_until(clock::now() + pause).await;
        pause = (2 * pause).min(longest);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Rows of a key and two fields: the second has what JSON and XML escape.
    pub(crate) fn example<S: Service>(columns: &[String; 3]) -> TextRows<'_> {
        let mut rows = TextRows::new::<S>(columns);
        for key in [7, 8] {
            for value in [Value::Int(key), Value::Text(b"x\"y"), Value::Bool(true)] {
                rows.push(value).unwrap();
            }
            rows.end_row().unwrap();
        }
        rows
    }

    /// What a system refuses, which says so by its name.
    pub(crate) fn refusals<S: Service>() {
        let columns = ["k", "a"].map(str::to_owned);
        let mut rows = TextRows::new::<S>(&columns);
        rows.push(Value::Int(7)).unwrap();
        assert!(rows.end_row().unwrap_err().message().contains("fewer values"));
        let long = vec![b'x'; S::LONGEST_TEXT.saturating_add(1).min(2000)];
        let mut refused = vec![(Value::Null, "no NULL"), (Value::Bytes(b"\xff"), "UTF-8 here")];
        if S::LONGEST_TEXT < long.len() {
            refused.push((Value::Text(&long), "texts of 1024 bytes at most, and this one has 1025"));
        }
        for (value, what) in refused {
            let told = rows.push(value).unwrap_err();
            assert_eq!(told.message(), format!("column a: {} keeps {what}", S::NAME));
        }
        rows.push(Value::Int(1)).unwrap();
        assert!(rows.push(Value::Int(1)).unwrap_err().message().contains("more values"));
        rows.end_row().unwrap();
        assert_eq!(rows.rows().map(|row| (row.key(), row.fields().count())).collect::<Vec<_>>(), [("7", 1)]);
    }

    pub(crate) fn sizes_of_batches(rows: &TextRows<'_>, batch: &Batch) -> usize {
        fitting(&rows.rows().collect::<Vec<_>>(), batch)
    }
}
