//! What kind of value a column holds.

use std::fmt;

use nephoscope_drivers::Value;

/// What kind of value a column holds. Any column may hold null besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Known only when a function has run.
    Any,
    /// Nothing but null.
    Null,
    /// Truth values.
    Boolean,
    /// Integers of 64 bits.
    Integer,
    /// Decimals with this many digits behind the point.
    Decimal(u8),
    /// Floating-point numbers of 64 bits.
    Float,
    /// Text.
    Text,
    /// Raw bytes.
    Bytes,
    /// UUIDs.
    Uuid,
    /// Dates.
    Date,
    /// Points in time.
    Timestamp,
}

impl Kind {
    /// Whether a column of this kind can hold the value.
    #[must_use]
    pub fn holds(self, value: &Value<'_>) -> bool {
        match value {
            Value::Null => true,
            Value::Decimal { scale, .. } => matches!(self, Self::Any) || self == Self::Decimal(*scale),
            Value::Bool(_) => matches!(self, Self::Any | Self::Boolean),
            Value::Int(_) => matches!(self, Self::Any | Self::Integer),
            Value::Float(_) => matches!(self, Self::Any | Self::Float),
            Value::Text(_) => matches!(self, Self::Any | Self::Text),
            Value::Bytes(_) => matches!(self, Self::Any | Self::Bytes),
            Value::Uuid(_) => matches!(self, Self::Any | Self::Uuid),
            Value::Date(_) => matches!(self, Self::Any | Self::Date),
            Value::Timestamp(_) => matches!(self, Self::Any | Self::Timestamp),
            Value::Json(_) | Value::Numeric(_) | Value::Unsigned(_) | Value::Time(_) => {
                matches!(self, Self::Any)
            }
        }
    }

    /// The kind in a word, without the digits of a decimal.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Decimal(_) => "decimal",
            Self::Float => "float",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Uuid => "uuid",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
        }
    }

    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Decimal(_) | Self::Float)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Decimal(scale) => return write!(f, "decimal with {scale} digits behind the point"),
            Self::Any => "of a kind that is known only when its function runs",
            _ => self.word(),
        })
    }
}
