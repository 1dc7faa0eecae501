//! What drivers without a database give for rows: the parameters of the statement, and 1 under any other name.

use std::rc::Rc;

use crate::contract::rows::{Column, Columns, ResultIndex, Rows};
use crate::contract::statement::Statement;
use crate::contract::value::{Params, Value};

/// The results of a connection's statements, each with the statement's parameters as its columns.
pub(crate) struct Echo(Vec<Rc<Columns>>);

impl Echo {
    pub(crate) fn new(statements: &[Statement]) -> Self {
        let columns = |statement: &Statement| {
            let columns =
                statement.params().iter().map(|name| Column { name: name.as_str().into(), kind: 0 });
            Rc::new(Columns { columns: columns.collect(), decode, any_name: true })
        };
        Self(statements.iter().map(columns).collect())
    }

    /// Adds a result with one row, which holds the parameters.
    pub(crate) fn add(&self, statement: usize, params: &Params, rows: &mut Rows) -> Option<ResultIndex> {
        self.add_rows(statement, [params], rows)
    }

    /// Adds a result with any number of rows.
    pub(crate) fn add_rows<'a>(
        &self,
        statement: usize,
        added: impl IntoIterator<Item = &'a Params>,
        rows: &mut Rows,
    ) -> Option<ResultIndex> {
        let result = rows.begin(self.0.get(statement)?);
        for cells in added {
            rows.push_row();
            for value in cells.iter() {
                push(value, rows);
            }
        }
        Some(result)
    }
}

/// Adds a value as a cell: a letter that says what it is, then its bytes.
fn push(value: Value<'_>, rows: &mut Rows) {
    let mut cell = |letter: u8, body: &[u8]| {
        let mut small = [0; 17];
        small[0] = letter;
        if let Some(place) = small.get_mut(1..=body.len()) {
            place.copy_from_slice(body);
            rows.push_cell(Some(&small[..=body.len()]));
        } else {
            rows.push_cell(Some(&[&[letter], body].concat()));
        }
    };
    match value {
        Value::Null => rows.push_cell(None),
        Value::Bool(value) => cell(b'b', &[u8::from(value)]),
        Value::Int(value) => cell(b'i', &value.to_be_bytes()),
        Value::Float(value) => cell(b'f', &value.to_be_bytes()),
        Value::Decimal { units, scale } => {
            let mut body = [0; 9];
            body[0] = scale;
            body[1..].copy_from_slice(&units.to_be_bytes());
            cell(b'd', &body);
        }
        Value::Numeric(text) => cell(b'n', text.as_bytes()),
        Value::Text(bytes) => cell(b't', bytes),
        Value::Json(bytes) => cell(b'j', bytes),
        Value::Bytes(bytes) => cell(b'x', bytes),
        Value::Uuid(uuid) => cell(b'u', &uuid),
        Value::Date(days) => cell(b'D', &days.to_be_bytes()),
        Value::Timestamp(micros) => cell(b'T', &micros.to_be_bytes()),
    }
}

fn decode(_kind: u32, cell: &[u8]) -> Value<'_> {
    fn fixed<const N: usize>(body: &[u8]) -> [u8; N] {
        body.try_into().unwrap_or([0; N])
    }
    let Some((letter, body)) = cell.split_first() else { return Value::Null };
    match letter {
        b'b' => Value::Bool(body == [1]),
        b'i' => Value::Int(i64::from_be_bytes(fixed(body))),
        b'f' => Value::Float(f64::from_be_bytes(fixed(body))),
        b'd' => {
            let [scale, units @ ..] = fixed::<9>(body);
            Value::Decimal { units: i64::from_be_bytes(units), scale }
        }
        b'n' => Value::Numeric(std::str::from_utf8(body).unwrap_or("NaN")),
        b'j' => Value::Json(body),
        b'x' => Value::Bytes(body),
        b'u' => Value::Uuid(fixed(body)),
        b'D' => Value::Date(i32::from_be_bytes(fixed(body))),
        b'T' => Value::Timestamp(i64::from_be_bytes(fixed(body))),
        _ => Value::Text(body),
    }
}
