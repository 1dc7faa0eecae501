//! Generators that name other columns of their row.

use nephoscope_drivers::ConfigError;

use super::{Facts, Resolved, Resolver, values};
use crate::decimal::MAX_SCALE;
use crate::kind::Kind;
use crate::plan::{Arithmetic, At, Plan, Relation, Text, micros};
use crate::random::Key;
use crate::spec::Generator;

/// The most seconds that a point in time can be after another.
const MAX_SECONDS: u64 = 100_000_000_000;

impl<'s> Resolver<'s> {
    /// The plan of a generator that names other columns of its row.
    pub(super) fn computed(
        &mut self,
        at: At,
        generator: &'s Generator,
        key: Key,
    ) -> Result<Resolved, ConfigError> {
        let (relation, facts) = match generator {
            Generator::Product { columns } => self.product(at, generator, columns)?,
            Generator::Copy { column } => {
                let column = self.same_row(at, column)?;
                (Relation::Copy(column), self.facts(column)?.passed_on())
            }
            Generator::After { column, min_seconds, max_seconds } => {
                self.after(at, generator, key, column, (*min_seconds, *max_seconds))?
            }
            Generator::Email { of } => {
                let of = of.as_ref().map(|column| self.same_row(at, column)).transpose()?;
                let cost = of.map_or(Ok(0), |column| self.text_cost(at, generator, column))?;
                (
                    Relation::Email { of, key },
                    Facts { cost: cost.saturating_add(1), ..Facts::new(Kind::Text) },
                )
            }
            Generator::Optional { probability, of } => {
                return self.optional(at, generator, key, *probability, of);
            }
            Generator::Function { inputs, kind, function } => {
                let (inputs, cost) = self.inputs(at, inputs)?;
                self.functions.push((*kind, function.clone()));
                let plan = Plan::Function { key, index: self.functions.len() - 1, inputs };
                return Ok((plan, Facts { cost, ..Facts::new(*kind) }));
            }
            other => return self.person_or_place(at, other, key),
        };
        Ok((Plan::Relation(relation), facts))
    }

    fn product(
        &mut self,
        at: At,
        generator: &Generator,
        columns: &[String],
    ) -> Result<(Relation, Facts), ConfigError> {
        if columns.is_empty() {
            return Err(self.refuse(at, generator, "names no columns"));
        }
        let mut factors = Vec::with_capacity(columns.len());
        let mut all = Vec::with_capacity(columns.len());
        for column in columns {
            let column = self.same_row(at, column)?;
            factors.push(column);
            all.push(self.number(at, generator, column)?);
        }
        let kind = product_kind(&all).map_err(|why| self.refuse(at, generator, &why))?;
        let mut product = Facts::new(kind).within(1, 1);
        for factor in all {
            let known = product.bounds.zip(factor.bounds).filter(|_| kind != Kind::Float);
            product.bounds = match known {
                Some((left, right)) => Some(self.fitting(at, generator, extremes(left, right))?),
                None => None,
            };
            product.cost = product.cost.saturating_add(factor.cost);
        }
        let arithmetic = Arithmetic::of(product.kind);
        Ok((Relation::Product { factors: factors.into(), arithmetic }, product))
    }

    fn after(
        &mut self,
        at: At,
        generator: &Generator,
        key: Key,
        column: &str,
        (min_seconds, max_seconds): (u64, u64),
    ) -> Result<(Relation, Facts), ConfigError> {
        let column = self.same_row(at, column)?;
        let facts = self.facts(column)?;
        let why = if !matches!(facts.kind, Kind::Date | Kind::Timestamp) {
            format!(
                "needs a date or a timestamp, but column {:?} is {}",
                self.names.column_spec(column).name,
                facts.kind
            )
        } else if max_seconds > MAX_SECONDS {
            format!("max_seconds {max_seconds} is more than {MAX_SECONDS}")
        } else if min_seconds > max_seconds {
            format!("min_seconds {min_seconds} is greater than max_seconds {max_seconds}")
        } else {
            let facts = Facts { kind: Kind::Timestamp, ..facts.passed_on() };
            return Ok((Relation::After { column, key, micros: micros(min_seconds, max_seconds) }, facts));
        };
        Err(self.refuse(at, generator, &why))
    }

    fn text_cost(&mut self, at: At, generator: &Generator, column: At) -> Result<u32, ConfigError> {
        let facts = self.facts(column)?;
        if matches!(facts.kind, Kind::Text | Kind::Any) {
            return Ok(facts.cost);
        }
        let why =
            format!("needs text, but column {:?} is {}", self.names.column_spec(column).name, facts.kind);
        Err(self.refuse(at, generator, &why))
    }

    fn optional(
        &mut self,
        at: At,
        generator: &Generator,
        key: Key,
        probability: f64,
        of: &'s Generator,
    ) -> Result<Resolved, ConfigError> {
        let null = values::chance(probability).map_err(|why| self.refuse(at, generator, &why))?;
        let (plan, facts) = self.generator(at, of, key.inner())?;
        Ok((Plan::Optional { key, null, of: Box::new(plan) }, facts.passed_on()))
    }

    fn inputs(&mut self, at: At, names: &[String]) -> Result<(Box<[At]>, u32), ConfigError> {
        let mut inputs = Vec::with_capacity(names.len());
        let mut cost = 1_u32;
        for name in names {
            let column = self.same_row(at, name)?;
            cost = cost.saturating_add(self.facts(column)?.cost);
            inputs.push(column);
        }
        Ok((inputs.into(), cost))
    }

    fn person_or_place(&mut self, at: At, generator: &Generator, key: Key) -> Result<Resolved, ConfigError> {
        let text = match generator {
            Generator::Name { gender } => {
                Text::Name(self.source(at, generator, gender.as_deref(), "gender")?)
            }
            Generator::GivenName { gender } => {
                Text::GivenName(self.source(at, generator, gender.as_deref(), "gender")?)
            }
            Generator::City { province } => {
                Text::City(self.source(at, generator, province.as_deref(), "province")?)
            }
            other => return Err(self.refuse(at, other, "is no generator that this version knows")),
        };
        Ok((Plan::Text(key, text), Facts::new(Kind::Text)))
    }

    /// The key of the gender or the province that a column of the row was made with, null or not.
    fn source(
        &self,
        at: At,
        generator: &Generator,
        column: Option<&str>,
        word: &str,
    ) -> Result<Option<Key>, ConfigError> {
        let Some(column) = column else { return Ok(None) };
        let source = self.same_row(at, column)?;
        let (mut present, mut key) = (&self.names.column_spec(source).generator, self.key(source));
        while let Generator::Optional { of, .. } = present {
            (present, key) = (of, key.inner());
        }
        if present.word() == word {
            return Ok(Some(key));
        }
        let why = format!("column {column:?} is made by {}, and not by {word}", present.word());
        Err(self.refuse(at, generator, &why))
    }
}

/// Floats make the product a float; otherwise it is exact, and the digits behind the point add up.
fn product_kind(factors: &[Facts]) -> Result<Kind, String> {
    if factors.iter().any(|factor| factor.kind == Kind::Float) {
        return Ok(Kind::Float);
    }
    let scales = factors.iter().filter_map(|factor| match factor.kind {
        Kind::Decimal(scale) => Some(usize::from(scale)),
        _ => None,
    });
    if scales.clone().next().is_none() {
        return Ok(Kind::Integer);
    }
    let scale: usize = scales.sum();
    match u8::try_from(scale) {
        Ok(scale) if scale <= MAX_SCALE => Ok(Kind::Decimal(scale)),
        _ => Err(format!("has {scale} digits behind the point, and {MAX_SCALE} are the most")),
    }
}

/// The smallest and the greatest product of numbers from two ranges.
fn extremes(left: (i64, i64), right: (i64, i64)) -> (i128, i128) {
    let product = |left: i64, right: i64| i128::from(left) * i128::from(right);
    let corners = [
        product(left.0, right.0),
        product(left.0, right.1),
        product(left.1, right.0),
        product(left.1, right.1),
    ];
    corners.into_iter().fold((i128::MAX, i128::MIN), |(min, max), corner| (min.min(corner), max.max(corner)))
}
