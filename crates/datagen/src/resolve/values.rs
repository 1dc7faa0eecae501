//! Generators that name no other column.

use super::{Facts, Resolved};
use crate::decimal::MAX_SCALE;
use crate::instant;
use crate::kind::Kind;
use crate::pattern::write_pattern;
use crate::plan::{Plan, Simple, Text};
use crate::random::{Chance, Key, Ranks, Span, Weights};
use crate::spec::{Generator, Literal};

/// The greatest length of a text or of bytes.
const MAX_LENGTH: u32 = 1 << 24;
/// The most characters that letters are drawn from.
const MAX_ALPHABET: usize = 256;

/// The plan of a generator that names no other column, in a table of so many rows; nothing for the others.
pub(super) fn simple(generator: &Generator, key: Key, rows: u64) -> Result<Option<Resolved>, String> {
    Ok(Some(match generator {
        Generator::Null => (Plan::Simple(Simple::Null), Facts::new(Kind::Null)),
        Generator::Serial { start } => {
            let last = start.checked_add_unsigned(rows.saturating_sub(1));
            let last =
                last.ok_or_else(|| format!("the last of {rows} rows from {start} does not fit 64 bits"))?;
            (Plan::Simple(Simple::Serial(*start)), Facts::new(Kind::Integer).within(*start, last))
        }
        Generator::Constant(literal) => {
            let facts = match literal {
                Literal::Integer(value) => Facts::new(Kind::Integer).within(*value, *value),
                other => Facts::new(literal_kind(other)),
            };
            (Plan::Constant(literal.clone()), facts)
        }
        Generator::Integer { min, max } => (
            Plan::Simple(Simple::Integer(key, span(*min, *max)?)),
            Facts::new(Kind::Integer).within(*min, *max),
        ),
        Generator::Zipfian { min, max, theta } => {
            let ranks = Ranks::new(integers(*min, *max)?, *theta)?;
            let facts = Facts::new(Kind::Integer).within(*min, *max);
            (Plan::Simple(Simple::Zipfian(key, *min, ranks)), facts)
        }
        Generator::Decimal { min, max, scale } => {
            if *scale > MAX_SCALE {
                return Err(format!("scale {scale} is more than {MAX_SCALE}"));
            }
            let facts = Facts::new(Kind::Decimal(*scale)).within(*min, *max);
            (Plan::Simple(Simple::Decimal(key, span(*min, *max)?, *scale)), facts)
        }
        Generator::Float { min, max } => (float(key, *min, *max)?, Facts::new(Kind::Float)),
        Generator::Boolean { probability } => {
            (Plan::Simple(Simple::Boolean(key, chance(*probability)?)), Facts::new(Kind::Boolean))
        }
        Generator::Choice { values, weights } => choice(key, values, weights)?,
        Generator::Uuid => (Plan::Simple(Simple::Uuid(key)), Facts::new(Kind::Uuid)),
        Generator::Bytes { min, max } => (Plan::Bytes(key, lengths(*min, *max)?), Facts::new(Kind::Bytes)),
        Generator::Date { from, to } => {
            let span = ordered(instant::date(from)?.into(), instant::date(to)?.into(), from, to)?;
            (Plan::Simple(Simple::Date(key, span)), Facts::new(Kind::Date))
        }
        Generator::Timestamp { from, to } => {
            let span = ordered(instant::timestamp(from)?, instant::timestamp(to)?, from, to)?;
            (Plan::Simple(Simple::Timestamp(key, span)), Facts::new(Kind::Timestamp))
        }
        other => return Ok(text(other)?.map(|text| (Plan::Text(key, text), Facts::new(Kind::Text)))),
    }))
}

fn text(generator: &Generator) -> Result<Option<Text>, String> {
    Ok(Some(match generator {
        Generator::FamilyName => Text::FamilyName,
        Generator::Gender { female, male } => Text::Gender([female.as_str().into(), male.as_str().into()]),
        Generator::Company => Text::Company,
        Generator::Phone => Text::Phone,
        Generator::Street => Text::Street,
        Generator::Postcode => Text::Postcode,
        Generator::Province => Text::Province,
        Generator::Words { min, max } => Text::Words(lengths(*min, *max)?),
        Generator::Letters { min, max, alphabet: None } => Text::Letters(lengths(*min, *max)?),
        Generator::Letters { min, max, alphabet: Some(alphabet) } => {
            let alphabet: Box<[char]> = alphabet.chars().collect();
            if !(1..=MAX_ALPHABET).contains(&alphabet.len()) {
                let why = format!(
                    "the alphabet has {} characters; it must have 1 to {MAX_ALPHABET}",
                    alphabet.len()
                );
                return Err(why);
            }
            Text::Alphabet(lengths(*min, *max)?, alphabet)
        }
        Generator::Pattern(pattern) => {
            write_pattern(pattern.as_bytes(), |_| 0, &mut Vec::new())?;
            Text::Pattern(pattern.as_bytes().into())
        }
        Generator::Digits { count } => {
            lengths(*count, *count)?;
            Text::Digits(u64::from(*count))
        }
        _ => return Ok(None),
    }))
}

pub(super) fn chance(probability: f64) -> Result<Chance, String> {
    if (0.0..=1.0).contains(&probability) {
        Ok(Chance::new(probability))
    } else {
        Err(format!("probability {probability} is not from 0 to 1"))
    }
}

fn span(min: i64, max: i64) -> Result<Span, String> {
    if min > max {
        return Err(format!("min {min} is greater than max {max}"));
    }
    Ok(Span::new(min, max))
}

/// How many integers there are between two, both included.
pub(super) fn integers(min: i64, max: i64) -> Result<u64, String> {
    span(min, max)?;
    max.abs_diff(min).checked_add(1).ok_or_else(|| format!("{min} to {max} are too many integers"))
}

fn ordered(first: i64, last: i64, from: &str, to: &str) -> Result<Span, String> {
    if first > last {
        return Err(format!("from {from:?} is later than to {to:?}"));
    }
    Ok(Span::new(first, last))
}

fn lengths(min: u32, max: u32) -> Result<Span, String> {
    if max > MAX_LENGTH {
        return Err(format!("a length of {max} is more than {MAX_LENGTH}"));
    }
    span(min.into(), max.into())
}

fn float(key: Key, min: f64, max: f64) -> Result<Plan, String> {
    let width = max - min;
    if !width.is_finite() {
        return Err(format!("{min} to {max} is no range of finite width"));
    }
    if width < 0.0 {
        return Err(format!("min {min} is greater than max {max}"));
    }
    Ok(Plan::Simple(Simple::Float { key, min, width }))
}

fn choice(key: Key, values: &[Literal], weights: &[f64]) -> Result<Resolved, String> {
    let Some(first) = values.first() else {
        return Err("has no values".to_owned());
    };
    let kind = literal_kind(first);
    if let Some(other) = values.iter().map(literal_kind).find(|other| *other != kind) {
        return Err(format!("mixes values that are {kind} and {other}"));
    }
    if !weights.is_empty() && weights.len() != values.len() {
        return Err(format!("has {} values and {} weights", values.len(), weights.len()));
    }
    let integers = values.iter().filter_map(|value| match value {
        Literal::Integer(value) => Some(*value),
        _ => None,
    });
    let bounds = integers.clone().min().zip(integers.max());
    let weights = if weights.is_empty() { None } else { Some(Weights::new(weights)?) };
    let plan = Plan::Choice { key, weights, values: values.into() };
    Ok((plan, Facts { bounds, ..Facts::new(kind) }))
}

fn literal_kind(literal: &Literal) -> Kind {
    match literal {
        Literal::Text(_) => Kind::Text,
        Literal::Integer(_) => Kind::Integer,
        Literal::Float(_) => Kind::Float,
        Literal::Boolean(_) => Kind::Boolean,
    }
}
