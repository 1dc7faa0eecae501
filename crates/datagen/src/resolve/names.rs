//! The names of tables and columns, and messages that say where something is wrong.

use std::collections::HashMap;

use nephoscope_drivers::ConfigError;

use crate::plan::At;
use crate::random::Key;
use crate::spec::{ColumnSpec, TableSpec};

pub(super) struct Names<'s> {
    pub(super) specs: &'s [TableSpec],
    tables: HashMap<&'s str, usize>,
    columns: Vec<HashMap<&'s str, usize>>,
}

impl<'s> Names<'s> {
    /// Refuses names that are empty or stand twice, and tables that nothing could be loaded into.
    pub(super) fn new(specs: &'s [TableSpec]) -> Result<Self, ConfigError> {
        let mut tables = HashMap::new();
        let mut columns = Vec::with_capacity(specs.len());
        for (index, table) in specs.iter().enumerate() {
            let refuse = |why: &str| ConfigError(format!("table {:?}: {why}", table.name));
            if table.name.is_empty() {
                return Err(refuse("has no name"));
            }
            if tables.insert(table.name.as_str(), index).is_some() {
                return Err(refuse("is declared twice"));
            }
            let mut indexes = HashMap::new();
            for (index, column) in table.columns.iter().enumerate() {
                if column.name.is_empty() {
                    return Err(refuse(&format!("column {} has no name", index + 1)));
                }
                if indexes.insert(column.name.as_str(), index).is_some() {
                    return Err(refuse(&format!("column {:?} is declared twice", column.name)));
                }
            }
            if !table.columns.iter().any(|column| column.stored) {
                return Err(refuse("has no stored column"));
            }
            columns.push(indexes);
        }
        Ok(Self { specs, tables, columns })
    }

    pub(super) fn column_spec(&self, at: At) -> &'s ColumnSpec {
        &self.specs[at.table].columns[at.column]
    }

    /// The key of the draws of a column.
    pub(super) fn key(&self, at: At, seed: u64) -> Key {
        Key::new(seed, &self.specs[at.table].name, &self.column_spec(at).name)
    }

    /// The table that a column's generator names.
    pub(super) fn table(&self, at: At, name: &str) -> Result<usize, ConfigError> {
        self.tables.get(name).copied().ok_or_else(|| {
            let declared: Vec<&str> = self.specs.iter().map(|table| table.name.as_str()).collect();
            let word = self.column_spec(at).generator.word();
            let why = format!(
                "{word} names table {name:?}, which is not declared; tables are {}",
                declared.join(", ")
            );
            self.refuse(at, &why)
        })
    }

    /// The column of a table that a column's generator names.
    pub(super) fn column(&self, at: At, table: usize, name: &str) -> Result<At, ConfigError> {
        let Some(&column) = self.columns[table].get(name) else {
            let spec = &self.specs[table];
            let declared: Vec<&str> = spec.columns.iter().map(|column| column.name.as_str()).collect();
            let why = format!(
                "{} names column {name:?}, which table {:?} does not have; its columns are {}",
                self.column_spec(at).generator.word(),
                spec.name,
                declared.join(", ")
            );
            return Err(self.refuse(at, &why));
        };
        Ok(At { table, column })
    }

    /// `table.column`.
    pub(super) fn path(&self, at: At) -> String {
        format!("{}.{}", self.specs[at.table].name, self.column_spec(at).name)
    }

    pub(super) fn refuse(&self, at: At, why: &str) -> ConfigError {
        let (table, column) = (&self.specs[at.table].name, &self.column_spec(at).name);
        ConfigError(format!("table {table:?}, column {column:?}: {why}"))
    }
}
