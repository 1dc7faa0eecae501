//! Values as statements take and give them, whatever the driver.

use std::io::{self, Write};

use crate::contract::calendar::{format_date, format_timestamp};

/// One value of a parameter, a column of a result, or a column of a row to be loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// SQL `NULL`.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number of 64 bits with a sign.
    Int(i64),
    /// A whole number of 64 bits without one, where [`Value::Int`] cannot hold it: 2^63 and above.
    Unsigned(u64),
    /// A floating-point number of 64 bits.
    Float(f64),
    /// A decimal number `units / 10^scale`: what generators make and what money is kept in.
    Decimal {
        /// The number without its decimal point.
        units: i64,
        /// How many digits stand behind the point, at most 18.
        scale: u8,
    },
    /// A decimal number of any size, as a database prints it.
    Numeric(&'a str),
    /// Text, in UTF-8 unless a workload made something else.
    Text(&'a [u8]),
    /// A JSON document as text.
    Json(&'a [u8]),
    /// Raw bytes.
    Bytes(&'a [u8]),
    /// A UUID.
    Uuid([u8; 16]),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01 00:00 UTC.
    Timestamp(i64),
    /// A time of day, or a length of time, in microseconds.
    Time(i64),
}

// A value is copied for every parameter and cell.
const _: () = assert!(size_of::<Value<'_>>() == 24);

impl Value<'_> {
    /// A whole number of 64 bits, in the one form that it has.
    #[inline]
    #[must_use]
    pub fn whole(number: u64) -> Self {
        i64::try_from(number).map_or(Self::Unsigned(number), Self::Int)
    }
}

#[derive(Clone, Copy)]
enum Item {
    /// A value without a body of its own.
    Plain(Value<'static>),
    Text(usize, usize),
    Json(usize, usize),
    Bytes(usize, usize),
    Numeric(usize, usize),
}

/// The parameters of one call of a statement. Cleared and filled again for each call, so that a session in its
/// stride allocates nothing.
#[derive(Default)]
pub struct Params {
    items: Vec<Item>,
    bodies: Vec<u8>,
}

impl Params {
    /// Forgets every value.
    pub fn clear(&mut self) {
        self.items.clear();
        self.bodies.clear();
    }

    /// Adds a value behind the others.
    #[inline]
    pub fn push(&mut self, value: Value<'_>) {
        // Most values are whole numbers.
        if let Value::Int(number) = value {
            self.items.push(Item::Plain(Value::Int(number)));
        } else {
            self.push_any(value);
        }
    }

    fn push_any(&mut self, value: Value<'_>) {
        let mut keep = |body: &[u8]| {
            let start = self.bodies.len();
            self.bodies.extend_from_slice(body);
            (start, self.bodies.len())
        };
        let item = match value {
            Value::Text(body) => {
                let (start, end) = keep(body);
                Item::Text(start, end)
            }
            Value::Json(body) => {
                let (start, end) = keep(body);
                Item::Json(start, end)
            }
            Value::Bytes(body) => {
                let (start, end) = keep(body);
                Item::Bytes(start, end)
            }
            Value::Numeric(body) => {
                let (start, end) = keep(body.as_bytes());
                Item::Numeric(start, end)
            }
            Value::Null => Item::Plain(Value::Null),
            Value::Bool(value) => Item::Plain(Value::Bool(value)),
            Value::Int(value) => Item::Plain(Value::Int(value)),
            Value::Float(value) => Item::Plain(Value::Float(value)),
            Value::Decimal { units, scale } => Item::Plain(Value::Decimal { units, scale }),
            Value::Uuid(value) => Item::Plain(Value::Uuid(value)),
            Value::Date(value) => Item::Plain(Value::Date(value)),
            Value::Timestamp(value) => Item::Plain(Value::Timestamp(value)),
            Value::Unsigned(value) => Item::Plain(Value::Unsigned(value)),
            Value::Time(value) => Item::Plain(Value::Time(value)),
        };
        self.items.push(item);
    }

    /// How many values there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The values in their order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Value<'_>> {
        self.items.iter().map(|item| self.value(*item))
    }

    /// The value at a place, counted from 0.
    #[inline]
    #[must_use]
    pub fn get(&self, place: usize) -> Option<Value<'_>> {
        self.items.get(place).map(|item| self.value(*item))
    }

    #[inline]
    fn value(&self, item: Item) -> Value<'_> {
        match item {
            Item::Plain(value) => value,
            Item::Text(start, end) => Value::Text(&self.bodies[start..end]),
            Item::Json(start, end) => Value::Json(&self.bodies[start..end]),
            Item::Bytes(start, end) => Value::Bytes(&self.bodies[start..end]),
            Item::Numeric(start, end) => {
                Value::Numeric(std::str::from_utf8(&self.bodies[start..end]).unwrap_or("NaN"))
            }
        }
    }
}

/// Writes `units / 10^scale` as text.
pub(crate) fn write_decimal(units: i64, scale: u8, out: &mut Vec<u8>) -> io::Result<()> {
    let power = 10_u64.pow(u32::from(scale.min(18)));
    let (size, sign) = (units.unsigned_abs(), if units < 0 { "-" } else { "" });
    if scale == 0 {
        return write!(out, "{sign}{size}");
    }
    write!(out, "{sign}{}.{:0width$}", size / power, size % power, width = usize::from(scale.min(18)))
}

/// Writes a value as plain text, for systems that keep texts alone; `false` where it has none.
#[inline]
pub(crate) fn write_plain(value: Value<'_>, out: &mut Vec<u8>) -> bool {
    // Writing into a vector cannot fail.
    let _ = match value {
        Value::Null => return false,
        Value::Text(text) | Value::Json(text) | Value::Bytes(text) => {
            out.extend_from_slice(text);
            Ok(())
        }
        Value::Bool(value) => write!(out, "{}", u8::from(value)),
        Value::Int(number) | Value::Time(number) => write!(out, "{number}"),
        Value::Unsigned(number) => write!(out, "{number}"),
        Value::Float(number) => write!(out, "{number}"),
        Value::Decimal { units, scale } => write_decimal(units, scale, out),
        Value::Numeric(text) => write!(out, "{text}"),
        Value::Uuid(bytes) => bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}")),
        Value::Date(days) => write!(out, "{}", format_date(days.into())),
        Value::Timestamp(micros) => write!(out, "{}", format_timestamp(micros)),
    };
    true
}

impl Clone for Params {
    fn clone(&self) -> Self {
        Self { items: self.items.clone(), bodies: self.bodies.clone() }
    }

    /// Reuses the memory that is there.
    fn clone_from(&mut self, source: &Self) {
        self.items.clone_from(&source.items);
        self.bodies.clone_from(&source.bodies);
    }
}

impl<'a> FromIterator<Value<'a>> for Params {
    fn from_iter<I: IntoIterator<Item = Value<'a>>>(values: I) -> Self {
        let mut params = Self::default();
        for value in values {
            params.push(value);
        }
        params
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_give_back_what_was_pushed() {
        let values = [
            Value::Null,
            Value::Text(b"caf\xc3\xa9"),
            Value::Int(-7),
            Value::Bytes(&[0, 255]),
            Value::Numeric("12.50"),
            Value::Json(b"{}"),
            Value::Decimal { units: 1250, scale: 2 },
            Value::Unsigned(u64::MAX),
            Value::Time(-1),
        ];
        let mut params: Params = values.into_iter().collect();
        assert!(params.iter().eq(values));
        assert_eq!(params.len(), 9);
        assert_eq!((params.get(4), params.get(9)), (Some(Value::Numeric("12.50")), None));
        params.clear();
        assert!(params.is_empty());
    }
}
