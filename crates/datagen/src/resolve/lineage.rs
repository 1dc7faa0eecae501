//! How many rows each table has, and whose children they are.

use nephoscope_drivers::ConfigError;

use super::names::Names;
use crate::plan::{At, Family};
use crate::spec::{Children, Generator};

/// The rows of a table, and where they come from.
#[derive(Clone, Debug)]
pub(super) struct Lineage {
    pub(super) rows: u64,
    pub(super) descent: Option<Descent>,
}

/// A table is the children of another.
#[derive(Clone, Debug)]
pub(super) struct Descent {
    pub(super) parent: usize,
    pub(super) family: Family,
    /// The most children of a parent.
    pub(super) most: u32,
}

/// What a parent column says.
#[derive(Clone, Copy)]
struct Claim<'s> {
    at: At,
    parent: usize,
    children: &'s Children,
}

/// The lineage of each table. Keys are integers of 64 bits, so no table has more rows than these can count.
pub(super) fn lineages(names: &Names<'_>, seed: u64) -> Result<Vec<Lineage>, ConfigError> {
    let claims = (0..names.specs.len()).map(|table| claim(names, table)).collect::<Result<Vec<_>, _>>()?;
    let mut known: Vec<Option<Lineage>> = vec![None; claims.len()];
    for table in 0..claims.len() {
        // Up to the first ancestor whose rows are known, and back down.
        let mut line: Vec<Claim<'_>> = Vec::new();
        let mut ancestor = table;
        while known[ancestor].is_none() {
            let Some(claim) = claims[ancestor] else {
                known[ancestor] = Some(Lineage { rows: declared_rows(names, ancestor)?, descent: None });
                break;
            };
            if line.iter().any(|passed| passed.at.table == ancestor) {
                return Err(names.refuse(claim.at, "parent: the table would be its own ancestor"));
            }
            line.push(claim);
            ancestor = claim.parent;
        }
        let mut parents = known[ancestor].as_ref().map_or(0, |lineage| lineage.rows);
        for claim in line.into_iter().rev() {
            let lineage = descended(names, claim, parents, seed)?;
            parents = lineage.rows;
            known[claim.at.table] = Some(lineage);
        }
    }
    Ok(known.into_iter().flatten().collect())
}

/// The parent column of a table, if it has one.
fn claim<'s>(names: &Names<'s>, table: usize) -> Result<Option<Claim<'s>>, ConfigError> {
    let mut found: Option<Claim<'s>> = None;
    for (column, spec) in names.specs[table].columns.iter().enumerate() {
        let at = At { table, column };
        let Generator::Parent { table: parent, children, .. } = &spec.generator else {
            if let Generator::Optional { of, .. } = &spec.generator
                && holds_parent(of)
            {
                return Err(names.refuse(at, "optional: cannot hold a parent, which every child has"));
            }
            continue;
        };
        if let Some(first) = found {
            let other = &names.column_spec(first.at).name;
            return Err(names
                .refuse(at, &format!("parent: column {other:?} is one already; a table has at most one")));
        }
        found = Some(Claim { at, parent: names.table(at, parent)?, children });
    }
    Ok(found)
}

fn holds_parent(generator: &Generator) -> bool {
    match generator {
        Generator::Parent { .. } => true,
        Generator::Optional { of, .. } => holds_parent(of),
        _ => false,
    }
}

fn declared_rows(names: &Names<'_>, table: usize) -> Result<u64, ConfigError> {
    let spec = &names.specs[table];
    match spec.rows {
        Some(rows) if i64::try_from(rows).is_ok() => Ok(rows),
        Some(rows) => Err(ConfigError(format!("table {:?}: {rows} rows are too many", spec.name))),
        None => Err(ConfigError(format!(
            "table {:?}: does not say how many rows it has, and has no parent column that they follow from",
            spec.name
        ))),
    }
}

fn descended(names: &Names<'_>, claim: Claim<'_>, parents: u64, seed: u64) -> Result<Lineage, ConfigError> {
    let family = Family::new(parents, claim.children, names.key(claim.at, seed));
    let family = family.map_err(|why| names.refuse(claim.at, &format!("parent: {why}")))?;
    let Some(rows) = family.rows().filter(|rows| i64::try_from(*rows).is_ok()) else {
        return Err(names.refuse(claim.at, "parent: gives the table too many rows"));
    };
    let spec = &names.specs[claim.at.table];
    if let Some(declared) = spec.rows.filter(|declared| *declared != rows) {
        let parent = &names.specs[claim.parent].name;
        let why =
            format!("{parents} rows of {parent:?} have {rows} children, but the table says {declared} rows");
        return Err(names.refuse(claim.at, &format!("parent: {why}")));
    }
    let most = family.most(claim.children);
    Ok(Lineage { rows, descent: Some(Descent { parent: claim.parent, family, most }) })
}
