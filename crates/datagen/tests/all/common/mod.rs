//! What the tests share: the sales workload's tables, and an encoder that keeps the rows as text.

pub(crate) mod sales;

use nephoscope_datagen::{Children, ColumnSpec, Dataset, Generator, TableSpec};
use nephoscope_drivers::{Error, RowEncoder, RowSource, Value};

/// A row as text, one cell a column.
pub(crate) type Row = Vec<String>;

/// Keeps rows.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) rows: Vec<Row>,
    present: Row,
}

impl RowEncoder for Recorder {
    fn push(&mut self, value: Value<'_>) -> Result<(), Error> {
        self.present.push(text(value));
        Ok(())
    }

    fn end_row(&mut self) -> Result<(), Error> {
        self.rows.push(std::mem::take(&mut self.present));
        Ok(())
    }
}

/// A value as a person reads it; dates and timestamps as the numbers they are.
pub(crate) fn text(value: Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Unsigned(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Decimal { units, scale } => {
            let unit = 10_u64.pow(u32::from(scale));
            let (whole, rest) = (units.unsigned_abs() / unit, units.unsigned_abs() % unit);
            let sign = if units < 0 { "-" } else { "" };
            if scale == 0 {
                format!("{sign}{whole}")
            } else {
                format!("{sign}{whole}.{rest:0w$}", w = scale.into())
            }
        }
        Value::Text(body) | Value::Json(body) => String::from_utf8(body.to_vec()).unwrap(),
        Value::Numeric(body) => body.to_owned(),
        Value::Bytes(body) => format!("{body:02x?}"),
        Value::Uuid(body) => format!("{:032x}", u128::from_be_bytes(body)),
        Value::Date(days) => format!("day {days}"),
        Value::Time(micros) | Value::Timestamp(micros) => format!("{micros} µs"),
    }
}

/// All rows of a table, made in one go.
pub(crate) fn all_rows(dataset: &Dataset, table: usize) -> Vec<Row> {
    rows(dataset, table, 0..dataset.tables()[table].rows())
}

/// Some rows of a table.
pub(crate) fn rows(dataset: &Dataset, table: usize, range: std::ops::Range<u64>) -> Vec<Row> {
    let mut cells = dataset.cells().unwrap();
    let mut recorder = Recorder::default();
    let mut source = cells.rows(table, range);
    while source.fill(&mut recorder).unwrap() {}
    recorder.rows
}

/// A table with the given columns.
pub(crate) fn table(name: &str, rows: Option<u64>, columns: Vec<(&str, Generator)>) -> TableSpec {
    let columns = columns.into_iter().map(|(name, generator)| ColumnSpec::new(name, generator)).collect();
    TableSpec { name: name.to_owned(), rows, columns }
}

/// A parent column.
pub(crate) fn parent(table: &str, min: u32, max: u32) -> Generator {
    Generator::Parent { table: table.to_owned(), column: None, children: Children::Between { min, max } }
}

/// A column that counts the rows from 1.
pub(crate) fn serial() -> Generator {
    Generator::Serial { start: 1 }
}
