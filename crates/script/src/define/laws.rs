//! The words of generators that have a law of their own, or choose one by their arguments.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use mlua::{Function, Lua, MultiValue, Table, Value};
use nephoscope_datagen::{Children, Generator, RowFunction};

use super::at;
use super::columns::{Arguments, Make};

/// Each word with what makes its generator.
pub(super) const WORDS: [(&str, Make); 7] = [
    ("choice", choice),
    ("distinct", |a| {
        Ok(Generator::Distinct { min: a.whole("the smallest", None)?, max: a.whole("the greatest", None)? })
    }),
    ("zipfian", |a| {
        Ok(Generator::Zipfian {
            min: a.whole("the smallest", None)?,
            max: a.whole("the greatest", None)?,
            theta: a.number("theta", None)?,
        })
    }),
    ("reference", |a| {
        Ok(Generator::Reference {
            table: a.text("the table")?,
            column: a.optional_text("the column")?,
            theta: a.number("theta", Some(0.0))?,
        })
    }),
    ("line", |a| Ok(Generator::Line { start: a.whole("the first number", Some(1.0))? })),
    ("letters", |a| {
        Ok(Generator::Letters {
            min: a.count("the shortest")?,
            max: a.count("the longest")?,
            alphabet: a.optional_text("the alphabet")?,
        })
    }),
    ("pattern", |a| Ok(Generator::Pattern(a.text("the pattern")?))),
];

fn choice(a: &mut Arguments<'_>) -> mlua::Result<Generator> {
    let values = a.list("the values")?.ok_or_else(|| a.wrong("a list of values is missing"))?;
    let values = values.into_iter().map(|value| a.literal(value)).collect::<mlua::Result<_>>()?;
    let mut weights = Vec::new();
    for weight in a.list("the weights")?.unwrap_or_default() {
        let kind = weight.type_name();
        let wrong = || a.wrong(&format!("a weight must be a number, not {kind}"));
        weights.push(super::number(&weight).ok_or_else(wrong)?);
    }
    Ok(Generator::Choice { values, weights })
}

/// `parent(table, min, max, column?)`, `parent(table, number, column?)`, `parent(table, weights, column?)` or
/// `parent(table, function, column?)`; `counting` makes a function one that counts.
pub(super) fn parent(
    a: &mut Arguments<'_>,
    counting: impl FnOnce(&Arguments<'_>, Function) -> mlua::Result<Arc<dyn RowFunction>>,
) -> mlua::Result<Generator> {
    let table = a.text("the parent table")?;
    let children = match (a.values.front(), a.values.get(1)) {
        (Some(Value::Table(weights)), _) => {
            let weights = weights.clone();
            a.next();
            Children::Weighted(weighted(a, &weights)?)
        }
        (Some(Value::Function(function)), _) => {
            let function = function.clone();
            a.next();
            Children::Function(counting(a, function)?)
        }
        (Some(_), None | Some(Value::Nil | Value::String(_))) => {
            let number = a.count("the number of children")?;
            Children::Between { min: number, max: number }
        }
        _ => Children::Between { min: a.count("the fewest children")?, max: a.count("the most children")? },
    };
    Ok(Generator::Parent { table, children, column: a.optional_text("the column")? })
}

/// Numbers of children with their weights: `{ [0] = 10, 60, 30 }` says none, one and two. In their order, for Lua's
/// tables have none.
fn weighted(a: &Arguments<'_>, table: &Table) -> mlua::Result<Vec<(u32, f64)>> {
    let mut weights = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (children, weight) = pair?;
        let number = match &children {
            Value::Integer(children) => u32::try_from(*children).ok(),
            Value::Number(children) if children.fract() == 0.0 => u32::try_from(*children as i64).ok(),
            _ => None,
        };
        let shown = children.to_string().unwrap_or_default();
        let number = number.ok_or_else(|| {
            a.wrong(&format!("a number of children must be a whole number of 0 or more, not {shown}"))
        })?;
        let kind = weight.type_name();
        let weight = super::number(&weight).ok_or_else(|| {
            a.wrong(&format!("the weight of {shown} children must be a number, not {kind}"))
        })?;
        weights.push((number, weight));
    }
    weights.sort_by_key(|(children, _)| *children);
    Ok(weights)
}

/// Has `math.random` refused once the file has run, which the cell is then set to say: a cell that `derive` computes
/// depends on its row alone. The file may keep a copy of the function, so the function itself looks.
pub(super) fn bar_math_random(lua: &Lua) -> mlua::Result<Rc<Cell<bool>>> {
    let declared = Rc::new(Cell::new(false));
    let math: Table = lua.globals().get("math")?;
    let (random, over) = (math.get::<Function>("random")?, Rc::clone(&declared));
    let barred = lua.create_function(move |lua, arguments: MultiValue| {
        if over.get() {
            let message = "math.random would make other data each time; draw with the function's second argument: \
                           derive(kind, columns, function(row, random) … random(1, 9) … end)";
            return Err(at(lua, message));
        }
        random.call::<Value>(arguments)
    })?;
    math.set("random", barred)?;
    Ok(declared)
}
