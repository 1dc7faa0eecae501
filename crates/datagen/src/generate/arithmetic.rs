//! Sums and products of columns.

use nephoscope_drivers::{Error, Value};

use super::Cells;
use crate::plan::{Arithmetic, At, Family, Sum};

/// The units of an exact number; nothing for null.
#[inline]
fn units(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int(units) | Value::Decimal { units, .. } => Some(*units),
        _ => None,
    }
}

/// A number in floating point; nothing for null.
fn float(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Decimal { units, scale } => Some(*units as f64 / 10_f64.powi(i32::from(*scale))),
        Value::Float(value) => Some(*value),
        _ => None,
    }
}

fn too_large(what: &str) -> Error {
    Error::other(format!("the {what} is too large for 64 bits"))
}

impl Cells<'_> {
    /// The sum of a column over a row's children, nulls left out.
    #[inline(never)]
    pub(super) fn total(
        &mut self,
        family: &Family,
        column: At,
        arithmetic: Arithmetic,
        index: usize,
        row: u64,
    ) -> Result<Value<'static>, Error> {
        if let Some((kept, sum)) = self.totals[index]
            && kept == row
        {
            return Ok(arithmetic.value(sum));
        }
        let children = family.children(row);
        let sum = match arithmetic {
            Arithmetic::Exact(_) => {
                let mut sum = 0_i64;
                for child in children {
                    let units = units(&self.eval(column, child)?).unwrap_or(0);
                    sum = sum.checked_add(units).ok_or_else(|| too_large("total"))?;
                }
                Sum::Units(sum)
            }
            Arithmetic::Float => {
                let mut sum = 0.0;
                for child in children {
                    sum += float(&self.eval(column, child)?).unwrap_or(0.0);
                }
                Sum::Float(sum)
            }
        };
        self.totals[index] = Some((row, sum));
        Ok(arithmetic.value(sum))
    }

    /// The product of columns of a row; null if one of them is.
    pub(super) fn product(
        &mut self,
        factors: &[At],
        arithmetic: Arithmetic,
        row: u64,
    ) -> Result<Value<'static>, Error> {
        let product = match arithmetic {
            Arithmetic::Exact(_) => {
                let mut product = 1_i64;
                for factor in factors {
                    let Some(units) = units(&self.eval(*factor, row)?) else { return Ok(Value::Null) };
                    product = product.checked_mul(units).ok_or_else(|| too_large("product"))?;
                }
                Sum::Units(product)
            }
            Arithmetic::Float => {
                let mut product = 1.0;
                for factor in factors {
                    let Some(float) = float(&self.eval(*factor, row)?) else { return Ok(Value::Null) };
                    product *= float;
                }
                Sum::Float(product)
            }
        };
        Ok(arithmetic.value(product))
    }
}
