//! Cells that say themselves what they hold: for drivers whose columns have no type of their own.

use crate::contract::rows::Rows;
use crate::contract::value::Value;

/// Adds a value to the newest row as a cell: a letter that says what it is, then its bytes.
#[inline]
pub(crate) fn push(value: Value<'_>, rows: &mut Rows) {
    match value {
        Value::Null => rows.push_cell(None),
        Value::Bool(value) => rows.push_marked_cell(b'b', &[u8::from(value)]),
        Value::Int(value) => rows.push_marked_cell(b'i', &value.to_be_bytes()),
        Value::Float(value) => rows.push_marked_cell(b'f', &value.to_be_bytes()),
        Value::Decimal { units, scale } => {
            let mut body = [0; 9];
            body[0] = scale;
            body[1..].copy_from_slice(&units.to_be_bytes());
            rows.push_marked_cell(b'd', &body);
        }
        Value::Numeric(text) => rows.push_marked_cell(b'n', text.as_bytes()),
        Value::Text(bytes) => rows.push_marked_cell(b't', bytes),
        Value::Json(bytes) => rows.push_marked_cell(b'j', bytes),
        Value::Bytes(bytes) => rows.push_marked_cell(b'x', bytes),
        Value::Uuid(uuid) => rows.push_marked_cell(b'u', &uuid),
        Value::Date(days) => rows.push_marked_cell(b'D', &days.to_be_bytes()),
        Value::Timestamp(micros) => rows.push_marked_cell(b'T', &micros.to_be_bytes()),
        Value::Unsigned(number) => rows.push_marked_cell(b'U', &number.to_be_bytes()),
        Value::Time(micros) => rows.push_marked_cell(b'c', &micros.to_be_bytes()),
    }
}

/// Decodes a cell that [`push`] has made; its column's kind says nothing.
pub(crate) fn decode(_kind: u32, cell: &[u8]) -> Value<'_> {
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
        b'U' => Value::Unsigned(u64::from_be_bytes(fixed(body))),
        b'c' => Value::Time(i64::from_be_bytes(fixed(body))),
        _ => Value::Text(body),
    }
}
