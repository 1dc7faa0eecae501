//! From what a workload says to plans: names become indexes, and what cannot work is refused.

mod computed;
mod kin;
mod lineage;
mod names;
mod values;

use std::sync::Arc;

use nephoscope_drivers::ConfigError;

use self::lineage::Lineage;
use self::names::Names;
use crate::dataset::{ColumnPlan, Dataset, TablePlan};
use crate::function::RowFunction;
use crate::kind::Kind;
use crate::plan::{At, Plan};
use crate::random::Key;
use crate::spec::{Generator, TableSpec};

/// The most values that one cell may be computed from, not counting how many children a total has. It bounds
/// the depth of the recursion and refuses a chain of products that doubles the work with each column.
const MAX_COST: u32 = 256;

/// What is known of a column's values before any is computed.
#[derive(Clone, Copy, Debug)]
struct Facts {
    kind: Kind,
    /// The smallest and the greatest value in units, where the values are exact numbers that no function
    /// makes.
    bounds: Option<(i64, i64)>,
    /// From how many values one is computed, itself included.
    cost: u32,
}

impl Facts {
    fn new(kind: Kind) -> Self {
        Self { kind, bounds: None, cost: 1 }
    }

    fn within(self, min: i64, max: i64) -> Self {
        Self { bounds: Some((min, max)), ..self }
    }

    /// The facts of what is computed from this and no more.
    fn passed_on(self) -> Self {
        Self { cost: self.cost.saturating_add(1), ..self }
    }
}

/// A plan, and what is known of its values.
type Resolved = (Plan, Facts);

enum State {
    Waiting,
    /// Being resolved: a column that meets itself in this state depends on itself.
    Underway,
    Done(Plan, Facts),
}

struct Resolver<'s> {
    names: Names<'s>,
    lineages: Vec<Lineage>,
    seed: u64,
    states: Vec<Vec<State>>,
    /// The columns underway, each needed by the one before.
    trail: Vec<At>,
    functions: Vec<(Kind, Arc<dyn RowFunction>)>,
    totals: usize,
}

impl Dataset {
    /// Checks what a workload declares. An error names the table, the column, what is wrong and what is
    /// allowed.
    pub fn new(tables: &[TableSpec], seed: u64) -> Result<Self, ConfigError> {
        let names = Names::new(tables)?;
        let lineages = lineage::lineages(&names, seed)?;
        let waiting = |table: &TableSpec| table.columns.iter().map(|_| State::Waiting).collect();
        let states = tables.iter().map(waiting).collect();
        let mut resolver =
            Resolver { names, lineages, seed, states, trail: Vec::new(), functions: Vec::new(), totals: 0 };
        for (table, spec) in tables.iter().enumerate() {
            for column in 0..spec.columns.len() {
                resolver.facts(At { table, column })?;
            }
        }
        Ok(resolver.assemble())
    }
}

impl<'s> Resolver<'s> {
    /// What is known of a column, which is resolved first if it is not yet.
    fn facts(&mut self, at: At) -> Result<Facts, ConfigError> {
        match &self.states[at.table][at.column] {
            State::Done(_, facts) => return Ok(*facts),
            State::Underway => return Err(self.depends_on_itself(at)),
            State::Waiting => {}
        }
        if self.trail.len() >= MAX_COST as usize {
            return Err(self.too_costly(at));
        }
        self.states[at.table][at.column] = State::Underway;
        self.trail.push(at);
        let (plan, facts) = self.generator(at, &self.names.column_spec(at).generator, self.key(at))?;
        self.trail.pop();
        if facts.cost > MAX_COST {
            return Err(self.too_costly(at));
        }
        self.states[at.table][at.column] = State::Done(plan, facts);
        Ok(facts)
    }

    fn generator(&mut self, at: At, generator: &'s Generator, key: Key) -> Result<Resolved, ConfigError> {
        let rows = self.lineages[at.table].rows;
        if let Some(resolved) =
            values::simple(generator, key, rows).map_err(|why| self.refuse(at, generator, &why))?
        {
            return Ok(resolved);
        }
        if let Some(resolved) = self.reaching(at, generator, key)? {
            return Ok(resolved);
        }
        self.computed(at, generator, key)
    }

    fn key(&self, at: At) -> Key {
        self.names.key(at, self.seed)
    }

    /// A column of the row that a generator names.
    fn same_row(&self, at: At, column: &str) -> Result<At, ConfigError> {
        self.names.column(at, at.table, column)
    }

    /// What is known of a column that must hold numbers.
    fn number(&mut self, at: At, generator: &Generator, column: At) -> Result<Facts, ConfigError> {
        let facts = self.facts(column)?;
        if facts.kind.is_number() {
            return Ok(facts);
        }
        let why =
            format!("needs numbers, but column {:?} is {}", self.names.column_spec(column).name, facts.kind);
        Err(self.refuse(at, generator, &why))
    }

    /// Bounds that may not fit 64 bits are refused before anything is loaded.
    fn fitting(&self, at: At, generator: &Generator, ends: (i128, i128)) -> Result<(i64, i64), ConfigError> {
        let (Ok(min), Ok(max)) = (i64::try_from(ends.0), i64::try_from(ends.1)) else {
            let why = "can be too large for 64 bits; narrow what it is computed from, or use fewer digits \
                       behind the point";
            return Err(self.refuse(at, generator, why));
        };
        Ok((min, max))
    }

    fn refuse(&self, at: At, generator: &Generator, why: &str) -> ConfigError {
        self.names.refuse(at, &format!("{}: {why}", generator.word()))
    }

    fn depends_on_itself(&self, at: At) -> ConfigError {
        let start = self.trail.iter().position(|passed| *passed == at).unwrap_or(0);
        let ring: Vec<String> =
            self.trail[start..].iter().chain([&at]).map(|at| self.names.path(*at)).collect();
        self.names.refuse(at, &format!("depends on itself: {}", ring.join(" needs ")))
    }

    fn too_costly(&self, at: At) -> ConfigError {
        self.names.refuse(at, &format!("each value is computed from more than {MAX_COST} others"))
    }

    fn assemble(self) -> Dataset {
        let tables =
            self.names.specs.iter().zip(self.states).zip(&self.lineages).map(|((spec, states), lineage)| {
                let columns = spec.columns.iter().zip(states).filter_map(|(column, state)| match state {
                    State::Done(plan, facts) => {
                        Some(ColumnPlan::new(column.name.clone(), facts.kind, column.stored, plan))
                    }
                    State::Waiting | State::Underway => None,
                });
                TablePlan::new(spec.name.clone(), lineage.rows, columns.collect())
            });
        Dataset::assemble(tables.collect(), self.functions, self.totals)
    }
}

#[cfg(test)]
mod tests;
