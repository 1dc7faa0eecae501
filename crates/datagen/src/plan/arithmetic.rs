//! In which numbers sums and products are computed.

use nephoscope_drivers::Value;

use crate::kind::Kind;

/// In which numbers a sum or a product is computed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arithmetic {
    /// Exactly; as integers, or as decimals with so many digits behind the point.
    Exact(Option<u8>),
    /// In floating point.
    Float,
}

/// A sum or a product.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sum {
    Units(i64),
    Float(f64),
}

impl Arithmetic {
    /// The arithmetic of a kind of number.
    pub(crate) fn of(kind: Kind) -> Self {
        match kind {
            Kind::Float => Self::Float,
            Kind::Decimal(scale) => Self::Exact(Some(scale)),
            _ => Self::Exact(None),
        }
    }

    #[inline]
    pub(crate) fn value(self, sum: Sum) -> Value<'static> {
        match (self, sum) {
            (Self::Exact(Some(scale)), Sum::Units(units)) => Value::Decimal { units, scale },
            (_, Sum::Units(units)) => Value::Int(units),
            (_, Sum::Float(float)) => Value::Float(float),
        }
    }
}
