//! The rows that were loaded, made again where a transaction asks for one.

use std::cell::RefCell;
use std::sync::Arc;

use nephoscope_datagen::{Cells, ColumnPlan, Dataset, Shuffle, TablePlan};
use nephoscope_drivers::{Error, Value};

use crate::access::{Access, Picker};
use crate::random::Random;

/// The rows that were loaded, for one thread. Nothing is made before a transaction asks for it.
pub(crate) struct Loaded {
    /// Made by the first row that is looked at. It refers to `dataset`, so it is dropped before that.
    cells: RefCell<Option<Cells<'static>>>,
    dataset: Arc<Dataset>,
    /// One for each table, and a last one for ranges of keys.
    pickers: RefCell<Vec<Picker>>,
}

impl Loaded {
    pub(super) fn new(dataset: &Arc<Dataset>) -> Self {
        let pickers = (0..=dataset.tables().len()).map(|_| Picker::new()).collect();
        Self { cells: RefCell::default(), dataset: Arc::clone(dataset), pickers: RefCell::new(pickers) }
    }

    pub(super) fn set_access(&self, access: Access) {
        for picker in &mut *self.pickers.borrow_mut() {
            picker.set_access(access);
        }
    }

    /// The index of a table.
    pub(crate) fn find(&self, table: &[u8]) -> Result<usize, String> {
        let tables = self.dataset.tables();
        tables.iter().position(|known| known.name().as_bytes() == table).ok_or_else(|| {
            let known: Vec<&str> = tables.iter().map(TablePlan::name).collect();
            let table = String::from_utf8_lossy(table);
            format!("no table is called {table:?}; the tables are {}", known.join(", "))
        })
    }

    /// The number of a row of a table, from 0, by the access distribution; `None` where the table is empty.
    pub(crate) fn row(&self, table: usize, random: &mut Random) -> Option<u64> {
        let rows = self.dataset.tables()[table].rows();
        let picker = &mut self.pickers.borrow_mut()[table];
        (rows > 0).then(|| picker.row(rows, Shuffle::new(rows), random))
    }

    /// One of so many keys, at least one, from 0, by the access distribution.
    pub(crate) fn key(&self, keys: u64, random: &mut Random) -> u64 {
        let picker = &mut self.pickers.borrow_mut()[self.dataset.tables().len()];
        picker.row(keys, Shuffle::new(keys), random)
    }

    /// A cell of a row, by its column's name. It is there until the next one is made.
    ///
    /// # Safety
    /// Nothing of an earlier cell may be used any more.
    pub(crate) unsafe fn cell(&self, table: usize, row: u64, column: &[u8]) -> Result<Value<'_>, String> {
        let plan = &self.dataset.tables()[table];
        let Some(index) = plan.columns().iter().position(|known| known.name().as_bytes() == column) else {
            let known: Vec<&str> = plan.columns().iter().map(ColumnPlan::name).collect();
            let (column, table) = (String::from_utf8_lossy(column), plan.name());
            return Err(format!(
                "a row of {table} has no column {column}; its columns are {}",
                known.join(", ")
            ));
        };
        let said = |error: Error| error.to_string();
        if self.cells.borrow().is_none() {
            // SAFETY: the dataset does not move, and lives longer than the cells.
            let dataset: &'static Dataset = unsafe { &*Arc::as_ptr(&self.dataset) };
            self.cells.replace(Some(dataset.cells().map_err(said)?));
        }
        // SAFETY: nobody borrows the cells meanwhile: what computes one cannot reach this.
        let cells = unsafe { &mut *self.cells.as_ptr() };
        cells.as_mut().map_or(Ok(Value::Null), |cells| cells.get(table, index, row).map_err(said))
    }
}
