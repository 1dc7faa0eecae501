//! `w:mix`: shares of transactions, and what is to hold of a run of them.

use mlua::{Lua, Table, Value};

use super::words::{place, put};
use super::{Draft, Keys, at, flag, named, number, text};
use crate::workload::{Mix, Rate};

/// `w:mix(name, { transaction = weight, … })`, with settings such as `{ at_least = { transaction = percent } }` behind.
pub(super) fn mix(
    lua: &Lua,
    draft: &mut Draft,
    name: &Value,
    weights: &Value,
    settings: &Value,
) -> mlua::Result<()> {
    let name = named(lua, name, "a mix's name")?;
    let what = format!("mix {name}");
    let Value::Table(table) = weights else {
        return Err(at(lua, &format!("{what}: expected is {{ transaction = weight, … }}")));
    };
    let mut weights = shares(lua, draft, &what, table, "weight")?;
    weights.retain(|(_, weight)| *weight > 0.0);
    if weights.is_empty() {
        return Err(at(lua, &format!("{what}: no transaction has a weight above 0")));
    }
    let mut mix = Mix { name, weights, at_least: Vec::new(), rate: None, access: None };
    match settings {
        Value::Nil => {}
        Value::Table(settings) => demands(lua, draft, &mut mix, settings)?,
        other => {
            let kind = other.type_name();
            return Err(at(lua, &format!("{what}: settings, {{ … }}, are expected last, not {kind}")));
        }
    }
    let found = draft.mixes.iter().position(|other| other.name == mix.name);
    let place = place(lua, "mix", &mix.name, found, &mut draft.base.mixes)?;
    put(&mut draft.mixes, place, mix);
    Ok(())
}

/// Reads a number for some of the transactions. Lua's tables have no order; the transactions' own is kept.
fn shares(
    lua: &Lua,
    draft: &Draft,
    what: &str,
    table: &Table,
    word: &str,
) -> mlua::Result<Vec<(String, f64)>> {
    let mut given = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (key, share) = pair?;
        let key = key.to_string().unwrap_or_default();
        let Some(share) = number(&share).filter(|share| (0.0..1e12).contains(share)) else {
            return Err(at(lua, &format!("{what}: the {word} of {key} must be a number of 0 or more")));
        };
        given.push((key, share));
    }
    let known: Vec<&str> = draft.transactions.iter().map(|(known, _)| known.name.as_str()).collect();
    if let Some((stray, _)) = given.iter().find(|(key, _)| !known.contains(&key.as_str())) {
        let message = format!("{what}: no transaction is called {stray:?}; they are {}", known.join(", "));
        return Err(at(lua, &message));
    }
    given.sort_by_key(|(key, _)| known.iter().position(|name| name == key));
    Ok(given)
}

/// What is to hold of a run of the mix.
fn demands(lua: &Lua, draft: &Draft, mix: &mut Mix, settings: &Table) -> mlua::Result<()> {
    let what = format!("mix {}", mix.name);
    Keys {
        lua,
        table: settings.clone(),
        what: what.clone(),
        unnamed: 0,
        allowed: &["at_least", "rate", "access"],
    }
    .check()?;
    let check = |name: &str| {
        let is_there = mix.weights.iter().any(|(known, _)| known == name);
        if is_there { Ok(()) } else { Err(at(lua, &format!("{what}: {name} has no weight in it"))) }
    };
    match settings.get::<Value>("at_least")? {
        Value::Nil => {}
        Value::Table(table) => {
            let at_least = shares(lua, draft, &format!("{what}: at_least"), &table, "percentage")?;
            at_least.iter().try_for_each(|(name, _)| check(name))?;
            let sum: f64 = at_least.iter().map(|(_, percent)| percent).sum();
            if sum > 100.0 {
                return Err(at(lua, &format!("{what}: at_least: {sum} % in all; 100 % is what there is")));
            }
            mix.at_least = at_least;
        }
        other => {
            let kind = other.type_name();
            let message = format!("{what}: at_least: {{ transaction = percent, … }} is expected, not {kind}");
            return Err(at(lua, &message));
        }
    }
    mix.rate = rate(lua, &what, &settings.get::<Value>("rate")?)?;
    mix.rate.iter().try_for_each(|rate| check(&rate.transaction))?;
    let access = text(lua, &settings.get::<Value>("access")?, &format!("{what}: access"))?;
    mix.access = Some(access).filter(|access| !access.is_empty());
    Ok(())
}

/// `rate = { name = "tpmC", transaction = "new_order", per = "minute", pauses = true }`.
fn rate(lua: &Lua, what: &str, value: &Value) -> mlua::Result<Option<Rate>> {
    const PER: [&str; 3] = ["second", "minute", "hour"];
    let table = match value {
        Value::Nil => return Ok(None),
        Value::Table(table) => table,
        other => {
            let kind = other.type_name();
            let message = format!("{what}: rate: {{ name = …, transaction = … }} is expected, not {kind}");
            return Err(at(lua, &message));
        }
    };
    let what = format!("{what}: rate");
    Keys {
        lua,
        table: table.clone(),
        what: what.clone(),
        unnamed: 0,
        allowed: &["name", "transaction", "per", "pauses"],
    }
    .check()?;
    let name = named(lua, &table.get::<Value>("name")?, &format!("{what}: name"))?;
    let transaction = named(lua, &table.get::<Value>("transaction")?, &format!("{what}: transaction"))?;
    let per = text(lua, &table.get::<Value>("per")?, &format!("{what}: per"))?;
    let per = if per.is_empty() { PER[0].to_owned() } else { per };
    if !PER.contains(&per.as_str()) {
        let message = format!("{what}: per is {per:?}; allowed are second, minute and hour");
        return Err(at(lua, &message));
    }
    let pauses = flag(lua, &table.get::<Value>("pauses")?, &format!("{what}: pauses"), false)?;
    Ok(Some(Rate { name, transaction, per, pauses }))
}
