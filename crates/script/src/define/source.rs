//! A workload's files and what a study says about it: all that is needed to run its Lua file, on any thread.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mlua::Lua;
use nephoscope_datagen::{Dataset, Generator, TableSpec};
use nephoscope_drivers::{Capabilities, Dialect, Isolation, Statement};

use super::files::{Layer, Library, Reader};
use super::{Draft, Patience, checks, reading, run};
use crate::access::KeySpace;
use crate::error::ScriptError;
use crate::vm::{Functions, LONGEST, Vm, sandbox};
use crate::workload::{OptionValue, TableInfo, Workload};

/// The files of a workload and what a study says about it: all that is needed to run the Lua file, on any thread.
#[derive(Clone, Debug)]
pub struct Source {
    /// The files of the workload's folder.
    pub(crate) own: Arc<Layer>,
    pub(crate) lua_name: String,
    /// The files that the Lua file asks for.
    pub(crate) library: Library,
    pub(crate) options: BTreeMap<String, OptionValue>,
    pub(crate) scale: f64,
    pub(crate) seed: u64,
    /// How much processor time the Lua file may take.
    pub(crate) limit: Duration,
    pub(crate) dialect: Reader,
    pub(crate) capabilities: Capabilities,
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
        let reader = Reader { name: dialect.name, lexer: dialect.lexer };
        let own = Layer::read(folder, "", reader)?;
        Ok(Self {
            lua_name: own.lua_name(),
            own: Arc::new(own),
            library: Library::default(),
            options,
            scale,
            seed,
            limit: LONGEST,
            dialect: reader,
            capabilities: dialect.capabilities,
        })
    }

    /// Refuses a file that uses a statement of another dialect and does not ask whether it is there. What it has asked
    /// for it can do without.
    fn check_elsewhere(&self, draft: &Draft, statements: &[Statement]) -> Result<(), ScriptError> {
        for (name, dialects) in &draft.elsewhere {
            let is_there = statements.iter().any(|statement| statement.name() == name);
            if !is_there && draft.mentions(name) && !draft.asked.contains(name) {
                let (dialects, here) = (dialects.join(", "), self.dialect.name);
                return Err(self.error(&format!(
                    "the statement {name:?} is there for {dialects} and not for {here}; w:has({name:?}) asks whether it is"
                )));
            }
        }
        Ok(())
    }

    /// Refuses an isolation level that the dialect does not have.
    fn check_isolation(&self, draft: &Draft) -> Result<(), ScriptError> {
        let (name, levels) = (self.dialect.name, self.capabilities.isolation);
        for (transaction, _) in &draft.transactions {
            if let Some(level) = transaction.isolation.map(Isolation::name)
                && !levels.contains(&level)
            {
                let (of, levels) = (&transaction.name, levels.join(", "));
                let message =
                    format!("transaction {of}: {name} has no isolation level {level:?}; allowed: {levels}");
                return Err(self.error(&message));
            }
        }
        Ok(())
    }

    /// Lets `w:extends` find the workloads of another folder by their names, before those beside the workload's own.
    #[must_use]
    pub fn with_packaged(mut self, folder: Option<&Path>) -> Self {
        self.library.packaged = folder.map(Path::to_owned);
        self
    }

    /// The seed of the data.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Lets the Lua file have another limit than [`LONGEST`].
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The files that were read: once the Lua file has run also those that it has asked for.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        self.library.files(&self.own)
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
        let spoken = draft.spoken(self.capabilities, self.dialect.name);
        let (statements, schema) = spoken.map_err(|message| draft.error(&message))?;
        self.check_elsewhere(&draft, &statements)?;
        checks::rows(&draft.tables, self.scale).map_err(|message| draft.error(&message))?;
        let dataset = Dataset::new(&draft.tables, self.seed).map_err(|error| draft.error(&error.0))?;
        let tables =
            draft.tables.iter().zip(dataset.tables()).map(|(spec, plan)| table_info(spec, plan.rows()));
        let tables: Vec<TableInfo> = tables.collect();
        let is_check = |statement: &Statement| {
            draft.invariants.iter().any(|invariant| invariant.statement == statement.name())
        };
        let (checks, statements): (Vec<Statement>, Vec<Statement>) =
            statements.into_iter().partition(is_check);
        let (with_lists, statements) = statements.into_iter().partition(Statement::has_lists);
        for invariant in &draft.invariants {
            if !checks.iter().any(|check| check.name() == invariant.statement) {
                return Err(draft.error(&format!(
                    "the invariant {:?} names no statement of statements.sql or w:statement",
                    invariant.statement
                )));
            }
        }
        if draft.transactions.is_empty() {
            return Err(draft.error("the workload declares no transaction"));
        }
        self.check_isolation(&draft)?;
        let (transactions, of_transactions) = draft.transactions.iter().cloned().unzip();
        let functions = Functions {
            transactions: of_transactions,
            session: draft.session.clone(),
            load: draft.load.as_ref().map(|load| load.function.clone()),
            sysbench: draft.sysbench.clone(),
        };
        let workload = Workload {
            name: draft.name.clone(),
            description: draft.description.clone(),
            options: draft.options.clone(),
            dataset: Arc::new(dataset),
            tables,
            transactions,
            load_parts: draft.load.as_ref().map(|load| load.parts),
            mixes: draft.mixes.clone(),
            invariants: draft.invariants.clone(),
            statements,
            with_lists,
            checks,
            schema,
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
        let vm = Self::of(lua, &workload, functions, keys, source.dialect.lexer, pipeline)?;
        Ok((vm, workload))
    }
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
