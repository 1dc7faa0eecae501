//! A workload: what its files say, read and checked.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mlua::{Function, Lua};
use nephoscope_datagen::{Dataset, Generator, TableSpec};
use nephoscope_drivers::{Capabilities, Dialect, Statement};

use crate::access::KeySpace;
use crate::define::{self, Patience};
use crate::error::ScriptError;
use crate::reading;
use crate::statements::{mentions, names, override_statements, parse_statements};
use crate::vm::LONGEST;

/// The longest file of a workload, in bytes.
const LONGEST_FILE: u64 = 16 << 20;

/// A value of a workload's option.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
    /// A truth value.
    Boolean(bool),
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Boolean(value) => write!(f, "{value}"),
        }
    }
}

/// What an option may be.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionKind {
    /// One of these texts.
    Choice(Vec<String>),
    /// Any text.
    Text,
    /// Any number.
    Number,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
}

impl OptionKind {
    pub(crate) fn holds(&self, value: &OptionValue) -> bool {
        match (self, value) {
            (Self::Choice(texts), OptionValue::Text(text)) => texts.contains(text),
            (Self::Text, OptionValue::Text(_))
            | (Self::Number, OptionValue::Number(_))
            | (Self::Boolean, OptionValue::Boolean(_)) => true,
            (Self::Integer, OptionValue::Number(number)) => number.fract() == 0.0,
            _ => false,
        }
    }
}

impl fmt::Display for OptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Choice(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
                write!(f, "one of {}", texts.join(", "))
            }
            Self::Text => f.write_str("a text"),
            Self::Number => f.write_str("a number"),
            Self::Integer => f.write_str("a whole number"),
            Self::Boolean => f.write_str("true or false"),
        }
    }
}

/// An option that a study can set under `[workload.options]`.
#[derive(Clone, Debug)]
pub struct OptionSpec {
    /// Its name.
    pub name: String,
    /// What it may be.
    pub kind: OptionKind,
    /// What it is if the study says nothing.
    pub default: OptionValue,
    /// What it is in this run.
    pub value: OptionValue,
    /// What it does.
    pub help: String,
}

/// A transaction of the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its name.
    pub name: String,
    /// It only reads, so it may run on a read-only endpoint.
    pub read_only: bool,
    /// What it does.
    pub help: String,
}

/// Shares of transactions under a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Its name.
    pub name: String,
    /// Transactions and their weights, in the order in which the transactions were declared; weights of 0 are
    /// left out.
    pub weights: Vec<(String, f64)>,
}

/// When an invariant holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Always, also after a run.
    Always,
    /// As long as no run has changed the data.
    Loaded,
}

/// A condition on the data: a statement that returns the rows which break it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invariant {
    /// The statement's name.
    pub statement: String,
    /// What must hold.
    pub help: String,
    /// When it holds.
    pub when: When,
}

/// The SQL that makes and removes the tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// Makes the tables, without keys and indexes.
    pub create: String,
    /// Adds keys and indexes once the rows are there.
    pub keys: String,
    /// Removes the tables, whether they are there or not.
    pub drop: String,
}

/// A table as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// Its name.
    pub name: String,
    /// Its rows at the workload's scale.
    pub rows: u64,
    /// Its stored columns, each with the word of its generator.
    pub columns: Vec<(String, &'static str)>,
    /// Where its keys begin, if its first column is a serial number.
    pub first_key: Option<i64>,
}

/// What a workload's files say.
#[derive(Debug)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// Its options, with the values of this run.
    pub options: Vec<OptionSpec>,
    /// How its rows are made.
    pub dataset: Dataset,
    /// Its tables as people see them, in the same order.
    pub tables: Vec<TableInfo>,
    /// Its transactions, in the order of the functions.
    pub transactions: Vec<Transaction>,
    /// Its mixes.
    pub mixes: Vec<Mix>,
    /// Its invariants.
    pub invariants: Vec<Invariant>,
    /// The statements that transactions call: all but the invariants'.
    pub statements: Vec<Statement>,
    /// The invariants' statements.
    pub checks: Vec<Statement>,
    /// Its schema.
    pub schema: Schema,
}

impl Workload {
    /// The key spaces of the tables whose first column is a serial number; `handed_out` says how many keys of a
    /// table were used up by [`KeySpace::once`] in earlier runs.
    #[must_use]
    pub fn key_spaces(&self, handed_out: &BTreeMap<String, u64>) -> Vec<(String, Arc<KeySpace>)> {
        let spaces = self.tables.iter().filter_map(|table| {
            let used = handed_out.get(&table.name).copied().unwrap_or(0);
            Some((table.name.clone(), Arc::new(KeySpace::new(table.first_key?, table.rows, used))))
        });
        spaces.collect()
    }

    /// The mix of a name, as weights in the order of the transactions.
    #[must_use]
    pub fn mix(&self, name: &str) -> Option<&Mix> {
        self.mixes.iter().find(|mix| mix.name == name)
    }
}

/// The files of a workload and what a study says about it: all that is needed to run the Lua file, on any thread.
#[derive(Clone, Debug)]
pub struct Source {
    pub(crate) lua: String,
    pub(crate) lua_name: String,
    pub(crate) statements: Vec<Statement>,
    schema: Schema,
    pub(crate) options: BTreeMap<String, OptionValue>,
    pub(crate) scale: f64,
    pub(crate) seed: u64,
    /// How much processor time the Lua file may take.
    pub(crate) limit: Duration,
    files: Vec<PathBuf>,
    /// The dialect's name.
    pub(crate) dialect: &'static str,
    pub(crate) capabilities: Capabilities,
    /// Statements that only other dialects have, each with theirs.
    elsewhere: BTreeMap<String, Vec<String>>,
}

impl Source {
    /// Reads the workload in a folder. `dialect` chooses the files that override the common ones; `scale` is the
    /// scale factor, above 0; `seed` is that of the data.
    pub fn read(
        folder: &Path,
        options: BTreeMap<String, OptionValue>,
        scale: f64,
        seed: u64,
        dialect: &Dialect,
    ) -> Result<Self, ScriptError> {
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(ScriptError::plain(format!("workload.scale is {scale}; it must be above 0")));
        }
        let mut files = Vec::new();
        let mut read = |name: &str, required: bool| -> Result<Option<String>, ScriptError> {
            let path = folder.join(name);
            match read_text(&path) {
                Ok(text) => {
                    files.push(path);
                    Ok(Some(text))
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => Ok(None),
                Err(error) => Err(ScriptError::plain(format!("{}: {error}", path.display()))),
            }
        };
        let lua = read("workload.lua", true)?.unwrap_or_default();
        let mut named = |kind: &str, required| -> Result<Vec<Statement>, ScriptError> {
            let common = format!("{kind}.sql");
            let mut statements = match read(&common, required)? {
                Some(text) => parse_statements(&common, &text, dialect.lexer)?,
                None => Vec::new(),
            };
            let special = format!("{kind}.{}.sql", dialect.name);
            if let Some(text) = read(&special, false)? {
                let theirs = parse_statements(&special, &text, dialect.lexer)?;
                override_statements(&mut statements, theirs, &special, |name| mentions(&lua, name))?;
            }
            Ok(statements)
        };
        let statements = named("statements", true)?;
        let schema = schema(&named("schema", false)?)?;
        let elsewhere = elsewhere(folder, &statements)?;
        Ok(Self {
            lua,
            lua_name: "workload.lua".to_owned(),
            statements,
            schema,
            options,
            scale,
            seed,
            limit: LONGEST,
            files,
            dialect: dialect.name,
            capabilities: dialect.capabilities,
            elsewhere,
        })
    }

    /// Refuses a file that uses a statement of another dialect and does not ask whether it is there. What is `asked`
    /// for the file can do without.
    fn check_elsewhere(&self, asked: &[String]) -> Result<(), ScriptError> {
        for (name, dialects) in &self.elsewhere {
            if mentions(&self.lua, name) && !asked.contains(name) {
                let (dialects, here) = (dialects.join(", "), self.dialect);
                return Err(self.error(&format!(
                    "the statement {name:?} is there for {dialects} and not for {here}; w:has({name:?}) asks whether it is"
                )));
            }
        }
        Ok(())
    }

    /// Lets the Lua file have another limit than [`LONGEST`].
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The files that were read.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Runs the Lua file in a new state, on a thread of its own, and checks what it declares.
    pub fn workload(&self) -> Result<Workload, ScriptError> {
        self.workload_unless(&mut || false)
    }

    /// As [`Source::workload`]; ends with an error when `give_up`, asked ten times a second, says so.
    pub fn workload_unless(&self, give_up: &mut dyn FnMut() -> bool) -> Result<Workload, ScriptError> {
        reading::read(self, give_up)
    }

    /// An error about the Lua file as a whole.
    pub(crate) fn error(&self, message: &str) -> ScriptError {
        ScriptError::new(&self.lua_name, 0, message)
    }

    /// Runs the Lua file: what it declares, and its transactions' functions in the same order.
    pub(crate) fn run(
        &self,
        lua: &Lua,
        patience: Patience,
    ) -> Result<(Workload, Vec<Function>), ScriptError> {
        let draft = define::run(self, lua, patience)?;
        self.check_elsewhere(&draft.asked)?;
        let dataset = Dataset::new(&draft.tables, self.seed).map_err(|error| draft.error(&error.0))?;
        let tables =
            draft.tables.iter().zip(dataset.tables()).map(|(spec, plan)| table_info(spec, plan.rows()));
        let tables: Vec<TableInfo> = tables.collect();
        let is_check = |statement: &&Statement| {
            draft.invariants.iter().any(|invariant| invariant.statement == statement.name())
        };
        let (checks, statements): (Vec<&Statement>, Vec<&Statement>) =
            self.statements.iter().partition(is_check);
        for invariant in &draft.invariants {
            if !checks.iter().any(|check| check.name() == invariant.statement) {
                return Err(draft.error(&format!(
                    "the invariant {:?} names no statement of statements.sql",
                    invariant.statement
                )));
            }
        }
        if draft.transactions.is_empty() {
            return Err(draft.error("the workload declares no transaction"));
        }
        let (transactions, functions) = draft.transactions.iter().cloned().unzip();
        let workload = Workload {
            name: draft.name.clone(),
            description: draft.description.clone(),
            options: draft.options.clone(),
            dataset,
            tables,
            transactions,
            mixes: draft.mixes.clone(),
            invariants: draft.invariants.clone(),
            statements: statements.into_iter().cloned().collect(),
            checks: checks.into_iter().cloned().collect(),
            schema: self.schema.clone(),
        };
        Ok((workload, functions))
    }
}

/// The names of statements that only other dialects have.
fn elsewhere(folder: &Path, here: &[Statement]) -> Result<BTreeMap<String, Vec<String>>, ScriptError> {
    let wrong = |path: &Path, error: io::Error| ScriptError::plain(format!("{}: {error}", path.display()));
    let mut elsewhere: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(|error| wrong(folder, error))? {
        let path = entry.map_err(|error| wrong(folder, error))?.path();
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let dialect = file.strip_prefix("statements.").and_then(|rest| rest.strip_suffix(".sql"));
        let Some(dialect) = dialect else { continue };
        let text = read_text(&path).map_err(|error| wrong(&path, error))?;
        for name in names(&text).filter(|name| !here.iter().any(|known| known.name() == *name)) {
            elsewhere.entry(name.to_owned()).or_default().push(dialect.to_owned());
        }
    }
    for dialects in elsewhere.values_mut() {
        dialects.sort();
    }
    Ok(elsewhere)
}

/// Reads a file whole: a regular one, for others may have no end.
fn read_text(path: &Path) -> io::Result<String> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    if !std::fs::metadata(path)?.is_file() {
        return Err(wrong("it is no regular file"));
    }
    let mut text = String::new();
    let read = File::open(path)?.take(LONGEST_FILE + 1).read_to_string(&mut text)?;
    if read as u64 > LONGEST_FILE {
        return Err(wrong("it is longer than 16 MiB"));
    }
    Ok(text)
}

fn table_info(spec: &TableSpec, rows: u64) -> TableInfo {
    let first_key = match spec.columns.first().map(|column| &column.generator) {
        Some(Generator::Serial { start }) => Some(*start),
        _ => None,
    };
    let stored = spec.columns.iter().filter(|column| column.stored);
    let columns = stored.map(|column| (column.name.clone(), column.generator.word())).collect();
    TableInfo { name: spec.name.clone(), rows, columns, first_key }
}

fn schema(sections: &[Statement]) -> Result<Schema, ScriptError> {
    let mut schema = Schema::default();
    for section in sections {
        let place = match section.name() {
            "create" => &mut schema.create,
            "keys" => &mut schema.keys,
            "drop" => &mut schema.drop,
            name => {
                let message =
                    format!("the section {name:?} is not known; sections are create, keys and drop");
                return Err(ScriptError::new("schema.sql", 0, &message));
            }
        };
        *place = section.text();
    }
    Ok(schema)
}
