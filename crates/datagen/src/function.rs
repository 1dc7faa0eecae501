//! Columns that code of a workload computes.

use std::fmt;

use nephoscope_drivers::{Error, Params, Value};

use crate::random::Draws;

/// A function of a workload file that computes a column, shared by all threads.
pub trait RowFunction: fmt::Debug + Send + Sync {
    /// Makes the function ready for one thread, which keeps what it gets: an interpreter of its own, for
    /// instance.
    fn instance(&self) -> Result<Box<dyn CellFunction>, Error>;
}

/// A [`RowFunction`] on one thread.
pub trait CellFunction {
    /// The cell of a row. It must depend on nothing but the arguments, or the rows differ from load to load.
    ///
    /// `row` is counted from 0, `draws` are the cell's own random numbers, `inputs` the values of the columns
    /// that the generator names. Text may be kept in the function's own buffer until the next call.
    fn call(&mut self, row: u64, draws: Draws, inputs: &Params) -> Result<Value<'_>, Error>;
}
