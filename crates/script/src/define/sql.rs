//! SQL beside its use: `w:statement`, `w:schema`, `w:has`.

use mlua::{Lua, Value};

use super::{Draft, at, named};
use crate::statements::named_statement;
use crate::workload::joined;

/// SQL as a text of the Lua file.
fn sql(lua: &Lua, value: &Value, what: &str) -> mlua::Result<String> {
    match value {
        Value::String(text) => Ok(text.to_string_lossy()),
        other => Err(at(lua, &format!("{what}: its SQL must be a text, not {}", other.type_name()))),
    }
}

/// `w:statement(name, sql)`.
pub(super) fn statement(lua: &Lua, draft: &mut Draft, name: &Value, text: &Value) -> mlua::Result<()> {
    let name = named(lua, name, "a statement's name")?;
    let text = sql(lua, text, &format!("statement {name}"))?;
    if draft.statements.iter().any(|other| other.name() == name) {
        let in_files = draft.chunk(lua)?.layer.statements.iter().any(|other| other.name() == name);
        let message = if in_files {
            format!("the statement {name} is in statements.sql as well; it may be there or here, not in both")
        } else {
            format!("the statement {name} is declared twice")
        };
        return Err(at(lua, &message));
    }
    let lines: Vec<&str> = text.lines().collect();
    let read = named_statement(&name, &lines, draft.chunk(lua)?.source.dialect.lexer);
    draft.statements.push(read.map_err(|(_, message)| at(lua, &message))?);
    Ok(())
}

/// `w:schema(section, sql)`: the SQL comes behind what the section has already been given.
pub(super) fn schema(lua: &Lua, draft: &mut Draft, section: &Value, text: &Value) -> mlua::Result<()> {
    let name = named(lua, section, "a section of the schema")?;
    let text = sql(lua, text, &format!("schema {name}"))?;
    let chunk = draft.chunk(lua)?;
    let Some(in_files) = chunk.layer.schema.clone().section(&name).map(|sql| !sql.is_empty()) else {
        let message =
            format!("the section {name:?} is not known; sections are create, keys, drop and prewarm");
        return Err(at(lua, &message));
    };
    if in_files {
        let message =
            format!("the section {name} is in schema.sql as well; it may be there or here, not in both");
        return Err(at(lua, &message));
    }
    let lines: Vec<&str> = text.lines().collect();
    let read = named_statement(&name, &lines, chunk.source.dialect.lexer);
    let read = read.map_err(|(_, message)| {
        at(
            lua,
            &message.replacen("the statement", "the section", 1).replacen("has no SQL", "is given no SQL", 1),
        )
    })?;
    if let Some(place) = draft.schema.section(&name) {
        *place = joined(place, &read.text());
    }
    Ok(())
}

/// `w:has(statement)`: whether the system's dialect has the statement.
pub(super) fn has(lua: &Lua, draft: &mut Draft, statement: &Value) -> mlua::Result<bool> {
    let name = named(lua, statement, "a statement's name")?;
    let is_there = draft.has(&name);
    draft.asked.push(name);
    Ok(is_there)
}
