//! Values that need no room: numbers, truth values, points in time.

use nephoscope_drivers::Value;

use crate::random::{Chance, Draws, Key, Ranks, Span};

/// A value that depends on nothing but the row's number and random draws.
#[derive(Debug)]
pub(crate) enum Simple {
    Null,
    /// Counted from the number.
    Serial(i64),
    Integer(Key, Span),
    /// Counted from the number.
    Zipfian(Key, i64, Ranks),
    Decimal(Key, Span, u8),
    Float {
        key: Key,
        min: f64,
        width: f64,
    },
    Boolean(Key, Chance),
    Date(Key, Span),
    Timestamp(Key, Span),
    Uuid(Key),
}

impl Simple {
    #[inline]
    pub(crate) fn value(&self, row: u64) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Serial(start) => Value::Int(start.wrapping_add_unsigned(row)),
            Self::Integer(key, span) => Value::Int(span.draw(&mut key.draws(row))),
            Self::Zipfian(key, min, ranks) => {
                Value::Int(min.wrapping_add_unsigned(ranks.draw(&mut key.draws(row))))
            }
            Self::Decimal(key, span, scale) => {
                Value::Decimal { units: span.draw(&mut key.draws(row)), scale: *scale }
            }
            Self::Float { key, min, width } => Value::Float(min + key.draws(row).unit() * width),
            Self::Boolean(key, chance) => Value::Bool(chance.hits(&mut key.draws(row))),
            Self::Date(key, span) => Value::Date(span.draw(&mut key.draws(row)) as i32),
            Self::Timestamp(key, span) => Value::Timestamp(span.draw(&mut key.draws(row))),
            Self::Uuid(key) => Value::Uuid(uuid(&mut key.draws(row))),
        }
    }
}

fn uuid(draws: &mut Draws) -> [u8; 16] {
    let bits = u128::from(draws.bits()) << 64 | u128::from(draws.bits());
    // RFC 9562: version 4 in the seventh byte, the variant in the ninth.
    let marks = (4 << 76) | (2 << 62);
    (bits & !((0xF << 76) | (3 << 62)) | marks).to_be_bytes()
}
