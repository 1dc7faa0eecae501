//! What each declaring word makes of its arguments.

use std::collections::BTreeSet;

use mlua::{Error, Lua, Table, Value};
use nephoscope_datagen::{ColumnSpec, TableSpec};

use super::{Draft, Keys, at, flag, named, number, settings, text, verbs};
use crate::define::columns;
use crate::vm::api::PICK_HELPERS;
use crate::workload::{Invariant, OptionKind, OptionSpec, OptionValue, When};

fn option_value(value: &Value) -> Option<OptionValue> {
    match value {
        Value::String(text) => Some(OptionValue::Text(text.to_string_lossy())),
        Value::Boolean(value) => Some(OptionValue::Boolean(*value)),
        other => number(other).map(OptionValue::Number),
    }
}

fn choices(lua: &Lua, option: &str, list: &Table) -> mlua::Result<Vec<String>> {
    let text = |value: mlua::Result<Value>| match value? {
        Value::String(text) => Ok(text.to_string_lossy()),
        other => {
            let kind = other.type_name();
            Err(at(lua, &format!("option {option}: the list of choices must hold texts only, not {kind}")))
        }
    };
    list.sequence_values().map(text).collect()
}

/// The kind of an option.
fn kind(lua: &Lua, option: &str, kind: &Value) -> mlua::Result<OptionKind> {
    const KINDS: &str = "a list of texts, \"text\", \"number\", \"integer\" or \"boolean\"";
    let wrong = |message: &str| Err(at(lua, &format!("option {option}: {message}")));
    match kind {
        Value::Table(list) => choices(lua, option, list).map(OptionKind::Choice),
        Value::String(kind) => match &*kind.to_string_lossy() {
            "text" => Ok(OptionKind::Text),
            "number" => Ok(OptionKind::Number),
            "integer" => Ok(OptionKind::Integer),
            "boolean" => Ok(OptionKind::Boolean),
            other => wrong(&format!("the kind {other:?} is not known; allowed is {KINDS}")),
        },
        other => wrong(&format!("a kind is expected ({KINDS}), not {}", other.type_name())),
    }
}

/// Whether the data depends on an option: it does, unless its settings say `data = false`.
fn is_of_data(lua: &Lua, option: &str, settings: &Value) -> mlua::Result<bool> {
    let what = format!("option {option}");
    let table = match settings {
        Value::Nil => return Ok(true),
        Value::Table(table) => table.clone(),
        other => {
            let message = format!(
                "{what}: settings such as {{ data = false }} are expected, not {}",
                other.type_name()
            );
            return Err(at(lua, &message));
        }
    };
    Keys { lua, table: table.clone(), what: what.clone(), unnamed: 0, allowed: &["data"] }.check()?;
    flag(lua, &table.get::<Value>("data")?, &format!("{what}: data"), true)
}

/// `w:option(name, kind, default, help, { data = false })`; gives the option's value in this run.
pub(super) fn option(lua: &Lua, draft: &mut Draft, given: [Value; 5]) -> mlua::Result<Value> {
    let [name, kind, default, help, settings] = given;
    let name = named(lua, &name, "an option's name")?;
    if draft.options.iter().any(|other| other.name == name) {
        return Err(at(lua, &format!("the option {name} is declared twice")));
    }
    let kind = self::kind(lua, &name, &kind)?;
    let wrong = |what: &str, value: &OptionValue| format!("option {name}: {what} {value}; allowed is {kind}");
    let Some(default) = option_value(&default) else {
        return Err(at(lua, &format!("option {name}: a default is expected: {kind}")));
    };
    if !kind.holds(&default) {
        return Err(at(lua, &wrong("the default is", &default)));
    }
    let typed = draft.sysbench.as_ref().and_then(|lent| lent.typed.get(&name));
    let given = typed.or(draft.chunk(lua)?.source.options.get(&name)).cloned();
    let value = given.unwrap_or_else(|| default.clone());
    if !kind.holds(&value) {
        return Err(Error::runtime(format!("workload.options: {}", wrong("the study says", &value))));
    }
    let help = text(lua, &help, "the help of an option")?;
    let data = is_of_data(lua, &name, &settings)?;
    let result = match &value {
        OptionValue::Text(text) => Value::String(lua.create_string(text)?),
        OptionValue::Number(number) => Value::Number(*number),
        OptionValue::Boolean(value) => Value::Boolean(*value),
    };
    draft.options.push(OptionSpec { name, kind, default, value, help, data });
    Ok(result)
}

/// `w:table(name, { rows = …, key = "name", columns = { { "name", generator }, … } })`.
pub(super) fn table(
    lua: &Lua,
    scale: f64,
    name: &Value,
    spec: &Value,
) -> mlua::Result<(TableSpec, Option<verbs::Keyed>)> {
    let name = named(lua, name, "a table's name")?;
    if PICK_HELPERS.contains(&name.as_str()) {
        return Err(at(lua, &format!("a table cannot be called {name}: pick.{name} is something else")));
    }
    let Value::Table(spec) = spec else {
        return Err(at(lua, &format!("table {name}: expected is {{ rows = …, columns = {{ … }} }}")));
    };
    Keys {
        lua,
        table: spec.clone(),
        what: format!("table {name}"),
        unnamed: 0,
        allowed: &["rows", "key", "columns"],
    }
    .check()?;
    let wrong = |message: String| at(lua, &format!("table {name}: {message}"));
    let rows = match spec.get::<Value>("rows")? {
        Value::Nil => None,
        Value::Function(rows) => {
            let given = rows.call::<Value>(scale)?;
            let kind = given.type_name();
            Some(number(&given).ok_or_else(|| wrong(format!("the function for the rows gave {kind}")))?)
        }
        given => Some(number(&given).ok_or_else(|| {
            wrong(format!("rows must be a number or a function of the scale, not {}", given.type_name()))
        })?),
    };
    if rows.is_some_and(|rows| !(0.0..9e15).contains(&rows)) {
        return Err(at(
            lua,
            &format!("table {name}: rows is {}; it must be 0 or more", rows.unwrap_or_default()),
        ));
    }
    let Value::Table(list) = spec.get::<Value>("columns")? else {
        return Err(at(lua, &format!("table {name}: columns must be a list of {{ \"name\", generator }}")));
    };
    let mut columns = Vec::new();
    for column in list.sequence_values::<Value>() {
        columns.push(self::column(lua, &name, &column?)?);
    }
    let table = TableSpec { name, rows: rows.map(|rows| rows.floor() as u64), columns };
    let keyed = verbs::key(lua, &table, &spec.get::<Value>("key")?)?;
    Ok((table, keyed))
}

fn column(lua: &Lua, table: &str, value: &Value) -> mlua::Result<ColumnSpec> {
    let wrong = || {
        at(
            lua,
            &format!(
                "table {table}: a column is {{ \"name\", generator }}, such as {{ \"o_id\", serial() }}"
            ),
        )
    };
    let Value::Table(column) = value else { return Err(wrong()) };
    Keys {
        lua,
        table: column.clone(),
        what: format!("table {table}: a column"),
        unnamed: 2,
        allowed: &["stored"],
    }
    .check()?;
    let name = named(lua, &column.get::<Value>(1)?, &format!("table {table}: a column's name"))?;
    let generator = columns::of(lua, &column.get::<Value>(2)?).ok_or_else(wrong)?;
    let stored = !matches!(column.get::<Value>("stored")?, Value::Boolean(false));
    Ok(ColumnSpec { name, generator, stored })
}

/// Reads two arguments of which the first may be left out: settings, then something else.
pub(super) fn with_settings(
    lua: &Lua,
    what: &str,
    second: Value,
    third: Value,
) -> mlua::Result<(Option<Table>, Value)> {
    match (second, third) {
        (Value::Table(settings), other) => Ok((Some(settings), other)),
        (other, Value::Nil) => Ok((None, other)),
        (first, third) => {
            let (first, kind) = (first.type_name(), third.type_name());
            Err(at(lua, &format!("{what}: a {kind} comes last; settings, {{ … }}, come before the {first}")))
        }
    }
}

/// The place of what is declared: a new one, or that of what the extended workload has under this name.
pub(super) fn place(
    lua: &Lua,
    what: &str,
    name: &str,
    found: Option<usize>,
    base: &mut BTreeSet<String>,
) -> mlua::Result<Option<usize>> {
    match found {
        Some(_) if !base.remove(name) => Err(at(lua, &format!("the {what} {name} is declared twice"))),
        found => Ok(found),
    }
}

/// Puts a declaration in its place.
pub(super) fn put<T>(list: &mut Vec<T>, place: Option<usize>, declared: T) {
    match place {
        Some(place) => list[place] = declared,
        None => list.push(declared),
    }
}

/// `w:transaction(name, function)` or `w:transaction(name, { read_only = true, help = "…" }, function)`.
pub(super) fn transaction(
    lua: &Lua,
    draft: &mut Draft,
    name: &Value,
    second: Value,
    third: Value,
) -> mlua::Result<()> {
    let name = named(lua, name, "a transaction's name")?;
    let found = draft.transactions.iter().position(|(other, _)| other.name == name);
    let place = place(lua, "transaction", &name, found, &mut draft.base.transactions)?;
    let (settings, function) = with_settings(lua, &format!("transaction {name}"), second, third)?;
    let transaction = settings::transaction(lua, name, settings)?;
    let Value::Function(function) = function else {
        let message = format!(
            "transaction {}: a function(tx, pick) is expected, not {}",
            transaction.name,
            function.type_name()
        );
        return Err(at(lua, &message));
    };
    put(&mut draft.transactions, place, (transaction, function));
    Ok(())
}

/// `w:session(function)`.
pub(super) fn session(lua: &Lua, draft: &mut Draft, function: Value) -> mlua::Result<()> {
    let Value::Function(function) = function else {
        let kind = function.type_name();
        return Err(at(lua, &format!("w:session: a function(tx, pick) is expected, not {kind}")));
    };
    let is_inherited = std::mem::take(&mut draft.base.session);
    if draft.session.replace(function).is_some() && !is_inherited {
        return Err(at(lua, "w:session is called twice; a session has one function of its own"));
    }
    Ok(())
}

/// `w:invariant(statement, help)` or `w:invariant(statement, { when = "loaded" }, help)`.
pub(super) fn invariant(
    lua: &Lua,
    draft: &mut Draft,
    statement: &Value,
    second: Value,
    third: Value,
) -> mlua::Result<()> {
    let statement = named(lua, statement, "an invariant's statement")?;
    let found = draft.invariants.iter().position(|other| other.statement == statement);
    let place = place(lua, "invariant", &statement, found, &mut draft.base.invariants)?;
    let (settings, help) = with_settings(lua, &format!("invariant {statement}"), second, third)?;
    let mut when = When::Always;
    if let Some(table) = settings {
        let what = format!("invariant {statement}");
        Keys { lua, table: table.clone(), what: what.clone(), unnamed: 0, allowed: &["when"] }.check()?;
        when = match &*text(lua, &table.get::<Value>("when")?, &format!("{what}: when"))? {
            "" | "always" => When::Always,
            "loaded" => When::Loaded,
            other => {
                let message = format!("{what}: when is {other:?}; allowed are \"always\" and \"loaded\"");
                return Err(at(lua, &message));
            }
        };
    }
    let help = text(lua, &help, "the help of an invariant")?;
    put(&mut draft.invariants, place, Invariant { statement, help, when });
    Ok(())
}

/// `w:needs(capability)`: an error where the system does not have it.
pub(super) fn needs(lua: &Lua, draft: &Draft, capability: &Value) -> mlua::Result<()> {
    if can(lua, draft, capability)? {
        return Ok(());
    }
    let wanted = named(lua, capability, "what the workload needs")?;
    let source = &draft.chunk(lua)?.source;
    let capabilities = source.capabilities.needed();
    let have = capabilities.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| *name);
    let (have, dialect) = (have.collect::<Vec<_>>().join(", "), source.dialect.name);
    let have = if have.is_empty() { "none of these".to_owned() } else { have };
    Err(at(
        lua,
        &format!(
            "the workload needs {wanted}, which systems of the dialect {dialect} do not have; they have {have}"
        ),
    ))
}

/// `w:can(capability)`: whether the system has it.
pub(super) fn can(lua: &Lua, draft: &Draft, capability: &Value) -> mlua::Result<bool> {
    let wanted = named(lua, capability, "what the workload needs")?;
    let capabilities = draft.chunk(lua)?.source.capabilities.needed();
    let found = capabilities.iter().find(|(name, _)| *name == wanted);
    found.map(|(_, is_there)| *is_there).ok_or_else(|| {
        let known = capabilities.map(|(name, _)| name).join(", ");
        at(lua, &format!("a workload cannot need {wanted:?}; it can need {known}"))
    })
}
