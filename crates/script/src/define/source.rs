//! The files of a workload, read and checked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mlua::Lua;
use nephoscope_datagen::{Dataset, Generator, TableSpec};
use nephoscope_drivers::{Capabilities, Dialect, Statement};

use super::{Patience, reading, run};
use crate::access::KeySpace;
use crate::error::ScriptError;
use crate::statements::{mentions, names, override_statements, parse_statements};
use crate::vm::{Functions, LONGEST, Vm, sandbox};
use crate::workload::{OptionValue, Schema, TableInfo, Workload};

/// The longest file of a workload, in bytes.
const LONGEST_FILE: u64 = 16 << 20;

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

    /// Runs the Lua file: what it declares, and its functions.
    pub(crate) fn run(&self, lua: &Lua, patience: Patience) -> Result<(Workload, Functions), ScriptError> {
        let draft = run(self, lua, patience)?;
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
        let (transactions, of_transactions) = draft.transactions.iter().cloned().unzip();
        let functions = Functions { transactions: of_transactions, session: draft.session.clone() };
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

impl Vm {
    /// Loads the workload into a state of its own. `keys` are the key spaces of the tables that have one, as
    /// [`Workload::key_spaces`] made them; `pipeline` lets commands without a result ride with the next.
    pub fn new(
        source: &Source,
        keys: &[(String, Arc<KeySpace>)],
        pipeline: bool,
    ) -> Result<(Self, Workload), ScriptError> {
        let lua = sandbox::state()?;
        let (workload, functions) = source.run(&lua, Patience::of(source))?;
        let vm = Self::of(lua, &workload.statements, functions, keys, pipeline)?;
        Ok((vm, workload))
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
