//! `w:load`: the part of the data that columns cannot say.

use mlua::{Function, Lua, Table, Value};

use super::words::with_settings;
use super::{Draft, Keys, at, number};

/// How many parts the load has unless the workload says otherwise.
const PARTS: u32 = 16;
/// The most parts.
const MOST_PARTS: u32 = 65_536;

/// The function that loads, and how many times it is called.
#[derive(Clone)]
pub(crate) struct LoadFunction {
    pub(crate) function: Function,
    pub(crate) parts: u32,
}

/// `w:load(function)` or `w:load({ parts = 16 }, function)`.
pub(super) fn load(lua: &Lua, draft: &mut Draft, first: Value, second: Value) -> mlua::Result<()> {
    if draft.load.is_some() && !std::mem::take(&mut draft.base.load) {
        return Err(at(lua, "load is declared twice; one function loads all that columns cannot say"));
    }
    let (settings, function) = with_settings(lua, "load", first, second)?;
    let parts = settings.map_or(Ok(PARTS), |table| parts(lua, table))?;
    let Value::Function(function) = function else {
        let kind = function.type_name();
        return Err(at(lua, &format!("load: a function(tx, part, parts, pick) is expected, not {kind}")));
    };
    draft.load = Some(LoadFunction { function, parts });
    Ok(())
}

fn parts(lua: &Lua, table: Table) -> mlua::Result<u32> {
    let given = table.get::<Value>("parts")?;
    Keys { lua, table, what: "load".to_owned(), unnamed: 0, allowed: &["parts"] }.check()?;
    if given.is_nil() {
        return Ok(PARTS);
    }
    let parts = number(&given).unwrap_or(0.0);
    if parts.fract() == 0.0 && (1.0..=f64::from(MOST_PARTS)).contains(&parts) {
        return Ok(parts as u32);
    }
    let shown = given.to_string().unwrap_or_default();
    Err(at(lua, &format!("load: parts must be a whole number from 1 to {MOST_PARTS}, not {shown}")))
}
