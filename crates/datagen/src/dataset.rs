//! The tables of a workload, checked and ready to be computed.

use std::sync::Arc;

use crate::function::RowFunction;
use crate::kind::Kind;
use crate::plan::{At, Plan};

/// All tables of a workload with one seed. Every cell is a pure function of the seed, the names of its table
/// and its column, its row's number, and of what its generator says; memory does not grow with the rows.
#[derive(Debug)]
pub struct Dataset {
    tables: Vec<TablePlan>,
    pub(crate) functions: Vec<Arc<dyn RowFunction>>,
    /// What each function gives.
    pub(crate) function_kinds: Vec<Kind>,
    /// How many columns are totals.
    pub(crate) totals: usize,
}

/// A table of a [`Dataset`].
#[derive(Debug)]
pub struct TablePlan {
    name: String,
    rows: u64,
    columns: Vec<ColumnPlan>,
    stored: Vec<String>,
}

/// A column of a [`TablePlan`].
#[derive(Debug)]
pub struct ColumnPlan {
    name: String,
    kind: Kind,
    stored: bool,
    pub(crate) plan: Plan,
}

impl Dataset {
    /// The tables, as they were declared.
    #[must_use]
    pub fn tables(&self) -> &[TablePlan] {
        &self.tables
    }

    /// The index of a table among the tables.
    #[must_use]
    pub fn find(&self, table: &str) -> Option<usize> {
        self.tables.iter().position(|plan| plan.name == table)
    }

    #[inline]
    pub(crate) fn plan(&self, at: At) -> &Plan {
        &self.tables[at.table].columns[at.column].plan
    }

    pub(crate) fn assemble(
        tables: Vec<TablePlan>,
        functions: Vec<(Kind, Arc<dyn RowFunction>)>,
        totals: usize,
    ) -> Self {
        let (function_kinds, functions) = functions.into_iter().unzip();
        Self { tables, functions, function_kinds, totals }
    }
}

impl TablePlan {
    pub(crate) fn new(name: String, rows: u64, columns: Vec<ColumnPlan>) -> Self {
        let stored =
            columns.iter().filter(|column| column.stored).map(|column| column.name.clone()).collect();
        Self { name, rows, columns, stored }
    }

    /// The table's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many rows it has.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// All columns, as they were declared.
    #[must_use]
    pub fn columns(&self) -> &[ColumnPlan] {
        &self.columns
    }

    /// The names of the columns that the database's table has.
    #[must_use]
    pub fn stored_names(&self) -> &[String] {
        &self.stored
    }

    pub(crate) fn stored(&self) -> impl Iterator<Item = &ColumnPlan> {
        self.columns.iter().filter(|column| column.stored)
    }
}

impl ColumnPlan {
    pub(crate) fn new(name: String, kind: Kind, stored: bool, plan: Plan) -> Self {
        Self { name, kind, stored, plan }
    }

    /// The column's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its values are.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether the database's table has it.
    #[must_use]
    pub fn stored(&self) -> bool {
        self.stored
    }
}
