//! What is checked of the declarations as a whole.

use nephoscope_datagen::{Generator, TableSpec};

/// Refuses a table without rows that another table refers to: at that scale the other would be empty, too, or have
/// nothing to refer to.
pub(super) fn rows(tables: &[TableSpec], scale: f64) -> Result<(), String> {
    for table in tables {
        for column in &table.columns {
            let Some(other) = referred(&column.generator).filter(|other| *other != table.name) else {
                continue;
            };
            let is_empty = |spec: &&TableSpec| spec.name == other && spec.rows == Some(0);
            // A table that is itself declared to be empty may refer to anything.
            if table.rows != Some(0) && tables.iter().any(|spec| is_empty(&spec)) {
                return Err(format!(
                    "table {:?}, column {:?}: the table {other:?}, which it refers to, has no rows at scale {scale}; \
                     rows are rounded down: choose a larger scale, or declare math.max(1, …) rows",
                    table.name, column.name
                ));
            }
        }
    }
    Ok(())
}

/// The table that a generator draws its keys from.
fn referred(generator: &Generator) -> Option<&str> {
    match generator {
        Generator::Reference { table, .. } | Generator::Parent { table, .. } => Some(table),
        Generator::Optional { of, .. } => referred(of),
        _ => None,
    }
}
