//! Tables with a key, whose rows `tx:read` and its kin reach: a statement for each verb.

use mlua::{Lua, Value};
use nephoscope_datagen::TableSpec;
use nephoscope_drivers::{Action, Capabilities, Statement};

use super::{Draft, at, named};
use crate::statements::verb_statement;
use crate::workload::Schema;

/// A table with a key.
#[derive(Clone, Debug)]
pub(crate) struct Keyed {
    table: String,
    key: String,
    /// The stored columns without the key.
    fields: Vec<String>,
}

/// `key = "…"` of a table, if it has one: its first stored column, as rows are loaded by it.
pub(super) fn key(lua: &Lua, table: &TableSpec, given: &Value) -> mlua::Result<Option<Keyed>> {
    if given.is_nil() {
        return Ok(None);
    }
    let key = named(lua, given, &format!("table {}: its key", table.name))?;
    let mut stored = table.columns.iter().filter(|column| column.stored).map(|column| column.name.clone());
    let first = stored.next();
    if first.as_ref() != Some(&key) {
        let (name, first) = (&table.name, first.unwrap_or_default());
        let message =
            format!("table {name}: the key is {key:?}; it must be the first stored column, {first:?}");
        return Err(at(lua, &message));
    }
    let fields: Vec<String> = stored.collect();
    if fields.is_empty() {
        return Err(at(lua, &format!("table {}: no column is stored beside the key", table.name)));
    }
    Ok(Some(Keyed { table: table.name.clone(), key, fields }))
}

impl Keyed {
    /// A verb for all fields, and one for each field where one alone can be read or written.
    fn statements(&self) -> impl Iterator<Item = Statement> {
        let each = |action| matches!(action, Action::Read | Action::Update) && self.fields.len() > 1;
        Action::ALL.into_iter().flat_map(move |action| {
            let single = self.fields.iter().filter(move |_| each(action)).map(std::slice::from_ref);
            [self.fields.as_slice()]
                .into_iter()
                .chain(single)
                .map(move |fields| self.statement(action, fields))
        })
    }

    fn statement(&self, action: Action, fields: &[String]) -> Statement {
        verb_statement(action, &self.table, &self.key, fields, fields.len() == self.fields.len())
    }
}

impl Draft {
    /// The statements and the schema, and the verbs of the tables that have a key. A system without SQL has the verbs
    /// alone, and statements of its own language where it has one, beside the invariants, which cannot be checked there.
    /// The error says what the workload does in SQL.
    pub(super) fn spoken(&self, of: Capabilities, dialect: &str) -> Result<(Vec<Statement>, Schema), String> {
        let (mut statements, mut schema) = self.sql();
        if !of.sql {
            let without_key = |table: &&TableSpec| !self.keyed.iter().any(|keyed| keyed.table == table.name);
            if let Some(table) = self.tables.iter().find(without_key) {
                let name = &table.name;
                return Err(format!(
                    "table {name:?}: {dialect} has no SQL, and keeps only tables with a key: key = \"…\""
                ));
            }
            let is_check = |name: &str| self.invariants.iter().any(|invariant| invariant.statement == name);
            let used = |one: &&Statement| !is_check(one.name()) && self.mentions(one.name());
            if let Some(statement) = statements.iter().find(used).filter(|_| !of.own_statements) {
                let name = statement.name();
                return Err(format!(
                    "the statement {name:?} is SQL, which {dialect} does not have; w:can \"sql\" tells whether a system has"
                ));
            }
            statements.retain(|one| is_check(one.name()) || (of.own_statements && used(&one)));
            schema = Schema::default();
        }
        statements.extend(self.keyed.iter().flat_map(Keyed::statements));
        Ok((statements, schema))
    }
}
