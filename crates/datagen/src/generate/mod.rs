//! From a checked plan to values.

mod arithmetic;
mod relation;
mod rows;

use nephoscope_drivers::{Error, Params, Value};

use crate::dataset::Dataset;
use crate::function::CellFunction;
use crate::plan::{At, Owner, Plan, Sum};
use crate::random::{Draws, Key, Span, Weights};
use crate::spec::Literal;

pub use self::rows::TableRows;

/// Computes cells of a dataset, each from nothing but its place. One thread's own, with room for the text at
/// hand.
pub struct Cells<'d> {
    dataset: &'d Dataset,
    /// The text or the bytes of the present cell.
    text: Vec<u8>,
    /// Where a text is built from another.
    spare: Vec<u8>,
    /// For each table, the owner of the row asked for last: the next row mostly has the same.
    owners: Vec<Owner>,
    /// For each total, the row asked for last and its sum: children that look it up ask for it again and
    /// again.
    totals: Vec<Option<(u64, Sum)>>,
    functions: Vec<Box<dyn CellFunction>>,
    /// For each function, the row asked for last and its value: children that look it up ask for it again and again.
    given: Vec<(Option<u64>, Params)>,
    /// Room for the inputs of functions, one for each that is being called.
    inputs: Vec<Params>,
}

impl Dataset {
    /// Makes a thread ready to compute cells. An error comes from a function that cannot be made ready.
    pub fn cells(&self) -> Result<Cells<'_>, Error> {
        Ok(Cells {
            dataset: self,
            text: Vec::new(),
            spare: Vec::new(),
            owners: vec![Owner::default(); self.tables().len()],
            totals: vec![None; self.totals],
            functions: self.functions.iter().map(|function| function.instance()).collect::<Result<_, _>>()?,
            given: self.functions.iter().map(|_| (None, Params::default())).collect(),
            inputs: Vec::new(),
        })
    }
}

impl<'d> Cells<'d> {
    /// The cell of a row, which is counted from 0. Tables and columns are counted as they were declared,
    /// columns that are not stored among them.
    ///
    /// An error names table, column and row: there is none such, a function failed, or a number is too large
    /// for 64 bits (which is possible only where functions supply numbers).
    pub fn get(&mut self, table: usize, column: usize, row: u64) -> Result<Value<'_>, Error> {
        let dataset = self.dataset;
        let found =
            dataset.tables().get(table).filter(|plan| row < plan.rows() && column < plan.columns().len());
        let Some(plan) = found else {
            return Err(Error::other(format!("table {table} has no column {column} or no row {row}")));
        };
        self.eval(At { table, column }, row).map_err(|error| {
            let name = plan.columns()[column].name();
            error.context(&format!("table {:?}, column {name:?}, row {row}", plan.name()))
        })
    }

    #[inline]
    fn eval(&mut self, at: At, row: u64) -> Result<Value<'_>, Error> {
        let dataset: &'d Dataset = self.dataset;
        self.make(dataset.plan(at), at.table, row)
    }

    /// The value of a plan in a row of a table. Most columns are simple, so these are made without a call.
    #[inline]
    fn make(&mut self, plan: &'d Plan, table: usize, row: u64) -> Result<Value<'_>, Error> {
        match plan {
            Plan::Simple(simple) => Ok(simple.value(row)),
            other => self.make_other(other, table, row),
        }
    }

    #[inline(never)]
    fn make_other(&mut self, plan: &'d Plan, table: usize, row: u64) -> Result<Value<'_>, Error> {
        Ok(match plan {
            Plan::Simple(simple) => simple.value(row),
            Plan::Constant(literal) => literal.value(),
            Plan::Choice { key, weights, values } => {
                choose(&mut key.draws(row), weights.as_ref(), values).value()
            }
            Plan::Bytes(key, lengths) => Value::Bytes(bytes(&mut key.draws(row), *lengths, &mut self.text)),
            Plan::Text(key, text) => Value::Text(text.make(*key, row, &mut self.text)),
            Plan::Relation(relation) => return self.relate(relation, table, row),
            Plan::Optional { key, null, of } => {
                if null.hits(&mut key.draws(row)) {
                    Value::Null
                } else {
                    return self.make(of, table, row);
                }
            }
            Plan::Function { key, index, inputs } => return self.call(*index, *key, inputs, row),
        })
    }

    /// What a function of the workload gives.
    #[inline(never)]
    fn call(&mut self, index: usize, key: Key, columns: &[At], row: u64) -> Result<Value<'_>, Error> {
        if self.given[index].0 != Some(row) {
            self.ask(index, key, columns, row)?;
        }
        Ok(self.given[index].1.get(0).unwrap_or(Value::Null))
    }

    /// Calls a function of the workload, and keeps what it gives.
    fn ask(&mut self, index: usize, key: Key, columns: &[At], row: u64) -> Result<(), Error> {
        // An input can be computed by a function with inputs of its own, so there may be several at a time.
        let mut inputs = self.inputs.pop().unwrap_or_default();
        inputs.clear();
        for column in columns {
            inputs.push(self.eval(*column, row)?);
        }
        let (kept, given) = &mut self.given[index];
        *kept = None;
        let value = self.functions[index].call(row, key.draws(row), &inputs)?;
        self.inputs.push(inputs);
        let kind = self.dataset.function_kinds[index];
        if !kind.holds(&value) {
            return Err(Error::other(format!(
                "the function gave {value:?} and not, as declared, a value that is {kind}"
            )));
        }
        given.clear();
        given.push(value);
        *kept = Some(row);
        Ok(())
    }
}

impl Literal {
    #[inline]
    fn value(&self) -> Value<'_> {
        match self {
            Self::Text(text) => Value::Text(text.as_bytes()),
            Self::Integer(value) => Value::Int(*value),
            Self::Float(value) => Value::Float(*value),
            Self::Boolean(value) => Value::Bool(*value),
        }
    }
}

#[inline]
fn choose<'a>(draws: &mut Draws, weights: Option<&Weights>, values: &'a [Literal]) -> &'a Literal {
    match weights {
        Some(weights) => &values[weights.draw(draws)],
        None => &values[draws.below(values.len() as u64) as usize],
    }
}

fn bytes<'a>(draws: &mut Draws, lengths: Span, out: &'a mut Vec<u8>) -> &'a [u8] {
    let length = lengths.draw(draws) as usize;
    out.clear();
    while out.len() < length {
        out.extend_from_slice(&draws.bits().to_le_bytes());
    }
    out.truncate(length);
    out
}
