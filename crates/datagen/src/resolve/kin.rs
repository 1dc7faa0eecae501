//! Generators that reach rows of other tables.

use nephoscope_drivers::ConfigError;

use super::lineage::Descent;
use super::{Facts, Resolved, Resolver, values};
use crate::kind::Kind;
use crate::plan::{Arithmetic, At, Plan, Relation, Target};
use crate::random::{Key, Ranks, Shuffle};
use crate::spec::Generator;

impl<'s> Resolver<'s> {
    /// The plan of a generator that reaches rows of other tables; nothing for the others.
    pub(super) fn reaching(
        &mut self,
        at: At,
        generator: &'s Generator,
        key: Key,
    ) -> Result<Option<Resolved>, ConfigError> {
        let (relation, facts) = match generator {
            Generator::Reference { table, column, theta } => {
                self.reference(at, generator, key, (table, column.as_deref()), *theta)?
            }
            Generator::Parent { table, column, .. } => {
                let column = self.key_column(at, table, column.as_deref())?;
                let target = Target::Owner(self.descent(at, generator)?.family);
                (Relation::Reach { target, column }, self.facts(column)?.passed_on())
            }
            Generator::Line { start } => {
                let descent = self.descent(at, generator)?;
                let last = start.checked_add(i64::from(descent.most.max(1)) - 1);
                let last = last.ok_or_else(|| {
                    let why = format!("the last of {} lines from {start} does not fit 64 bits", descent.most);
                    self.refuse(at, generator, &why)
                })?;
                (Relation::Line(descent.family, *start), Facts::new(Kind::Integer).within(*start, last))
            }
            Generator::Distinct { min, max } => self.distinct(at, generator, key, *min, *max)?,
            Generator::Count { table } => {
                let (_, descent) = self.children(at, generator, table)?;
                (
                    Relation::Count(descent.family),
                    Facts::new(Kind::Integer).within(0, i64::from(descent.most)),
                )
            }
            Generator::Total { table, column } => self.total(at, generator, table, column)?,
            Generator::Lookup { reference, column } => {
                return self.lookup(at, generator, reference, column).map(Some);
            }
            _ => return Ok(None),
        };
        Ok(Some((Plan::Relation(relation), facts)))
    }

    /// The column that a reference takes its value from: the table's first unless another is named.
    fn key_column(&self, at: At, table: &str, column: Option<&str>) -> Result<At, ConfigError> {
        let table = self.names.table(at, table)?;
        column.map_or(Ok(At { table, column: 0 }), |column| self.names.column(at, table, column))
    }

    fn reference(
        &mut self,
        at: At,
        generator: &Generator,
        key: Key,
        (table, column): (&str, Option<&str>),
        theta: f64,
    ) -> Result<(Relation, Facts), ConfigError> {
        let column = self.key_column(at, table, column)?;
        let rows = self.lineages[column.table].rows;
        if rows == 0 && self.lineages[at.table].rows > 0 {
            return Err(self.refuse(at, generator, &format!("table {table:?} has no rows to refer to")));
        }
        let target = self.target(at, generator, key, theta, rows)?;
        Ok((Relation::Reach { target, column }, self.facts(column)?.passed_on()))
    }

    /// Which of so many rows a reference points at, with a skew.
    fn target(
        &self,
        at: At,
        generator: &Generator,
        key: Key,
        theta: f64,
        rows: u64,
    ) -> Result<Target, ConfigError> {
        let ranks = Ranks::new(rows, theta).map_err(|why| self.refuse(at, generator, &why))?;
        Ok(if theta == 0.0 {
            Target::Any { key, rows }
        } else {
            Target::Popular { key, ranks, shuffle: Shuffle::new(rows) }
        })
    }

    /// Each of a range once; in a table with a parent, once among the children of each parent.
    fn distinct(
        &self,
        at: At,
        generator: &Generator,
        key: Key,
        min: i64,
        max: i64,
    ) -> Result<(Relation, Facts), ConfigError> {
        let size = values::integers(min, max).map_err(|why| self.refuse(at, generator, &why))?;
        let lineage = &self.lineages[at.table];
        let (wanted, whose) = match &lineage.descent {
            Some(descent) => (u64::from(descent.most), "a parent can have"),
            None => (lineage.rows, "the table has"),
        };
        if wanted > size {
            let children = if lineage.descent.is_some() { "children" } else { "rows" };
            let why = format!("{whose} {wanted} {children}, but {min} to {max} are only {size} integers");
            return Err(self.refuse(at, generator, &why));
        }
        let family = lineage.descent.as_ref().map(|descent| descent.family.clone());
        let relation = Relation::Distinct { key, min, shuffle: Shuffle::new(size), family };
        Ok((relation, Facts::new(Kind::Integer).within(min, max)))
    }

    /// Whose children the rows of the column's table are.
    fn descent(&self, at: At, generator: &Generator) -> Result<Descent, ConfigError> {
        let descent = self.lineages[at.table].descent.clone();
        descent.ok_or_else(|| self.refuse(at, generator, "the table has no parent column"))
    }

    /// A table whose parent is the column's table.
    fn children(&self, at: At, generator: &Generator, table: &str) -> Result<(usize, Descent), ConfigError> {
        let child = self.names.table(at, table)?;
        match &self.lineages[child].descent {
            Some(descent) if descent.parent == at.table => Ok((child, descent.clone())),
            _ => {
                let parent = &self.names.specs[at.table].name;
                let why = format!("table {table:?} has no parent column that names {parent:?}");
                Err(self.refuse(at, generator, &why))
            }
        }
    }

    fn total(
        &mut self,
        at: At,
        generator: &Generator,
        table: &str,
        column: &str,
    ) -> Result<(Relation, Facts), ConfigError> {
        let (child, descent) = self.children(at, generator, table)?;
        let column = self.names.column(at, child, column)?;
        let facts = self.number(at, generator, column)?.passed_on();
        let most = i128::from(descent.most);
        let ends =
            facts.bounds.map(|(min, max)| (i128::from(min.min(0)) * most, i128::from(max.max(0)) * most));
        let bounds = ends.map(|ends| self.fitting(at, generator, ends)).transpose()?;
        let index = self.totals;
        self.totals += 1;
        let arithmetic = Arithmetic::of(facts.kind);
        Ok((Relation::Total { family: descent.family, column, arithmetic, index }, Facts { bounds, ..facts }))
    }

    /// The plan of a reference, with another column of the row that it points at; null wherever the reference
    /// is.
    fn lookup(
        &mut self,
        at: At,
        generator: &Generator,
        reference: &str,
        column: &str,
    ) -> Result<Resolved, ConfigError> {
        let reference = self.same_row(at, reference)?;
        let spec = self.names.column_spec(reference);
        let (mut present, mut key) = (&spec.generator, self.key(reference));
        let mut nulls = Vec::new();
        while let Generator::Optional { probability, of } = present {
            let chance = values::chance(*probability).map_err(|why| self.refuse(reference, present, &why))?;
            nulls.push((key, chance));
            (present, key) = (of, key.inner());
        }
        let (table, target) = match present {
            Generator::Reference { table, theta, .. } => {
                let table = self.names.table(reference, table)?;
                (table, self.target(reference, present, key, *theta, self.lineages[table].rows)?)
            }
            Generator::Parent { .. } => {
                let descent = self.descent(reference, present)?;
                (descent.parent, Target::Owner(descent.family))
            }
            other => {
                let why = format!(
                    "column {:?} is made by {}, and not by reference or parent",
                    spec.name,
                    other.word()
                );
                return Err(self.refuse(at, generator, &why));
            }
        };
        let column = self.names.column(at, table, column)?;
        let mut facts = self.facts(column)?.passed_on();
        let mut plan = Plan::Relation(Relation::Reach { target, column });
        for (key, null) in nulls.into_iter().rev() {
            plan = Plan::Optional { key, null, of: Box::new(plan) };
            facts = facts.passed_on();
        }
        Ok((plan, facts))
    }
}
