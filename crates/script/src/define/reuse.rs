//! Lua of other files: `require "loader"` runs one of the workload's own folder, `w:extends "tpcc"` declares another
//! workload first.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use mlua::chunk::ChunkMode;
use mlua::{Error, Function, Lua, MultiValue, Value};
use nephoscope_drivers::Statement;

use super::files::Layer;
use super::{Draft, Source, at, builder, named, open, within};
use crate::statements::override_statements;
use crate::workload::Schema;

/// The Lua file of a folder, and all that is needed to run it.
#[derive(Clone)]
pub(crate) struct Chunk {
    pub(crate) layer: Arc<Layer>,
    pub(crate) source: Arc<Source>,
    /// The folder, and those of the workloads that extend it.
    line: Vec<PathBuf>,
}

impl Chunk {
    /// The workload's own file.
    pub(super) fn own(source: &Source) -> Self {
        let layer = Arc::clone(&source.own);
        Self {
            line: vec![layer.folder.canonicalize().unwrap_or_default()],
            layer,
            source: Arc::new(source.clone()),
        }
    }

    /// The file of the workload that this one extends.
    fn base(mut self, layer: Arc<Layer>) -> Self {
        self.line.push(layer.folder.clone());
        self.layer = layer;
        self
    }
}

/// What a workload was given by the one that it extends: names are taken out as the workload declares them anew.
#[derive(Default)]
pub(super) struct Base {
    pub(super) transactions: BTreeSet<String>,
    pub(super) mixes: BTreeSet<String>,
    pub(super) invariants: BTreeSet<String>,
    pub(super) load: bool,
    /// The session's own function.
    pub(super) session: bool,
    statements: Vec<Statement>,
    schema: Schema,
}

impl Draft {
    fn of(chunk: Chunk) -> Self {
        Self {
            statements: chunk.layer.statements.clone(),
            schema: chunk.layer.schema.clone(),
            elsewhere: chunk.layer.elsewhere.clone(),
            texts: vec![Arc::clone(&chunk.layer.lua)],
            of: Some(chunk),
            ..Self::default()
        }
    }

    /// The file that declares.
    pub(crate) fn chunk(&self, lua: &Lua) -> mlua::Result<&Chunk> {
        self.of.as_ref().ok_or_else(|| at(lua, "the file has run"))
    }

    /// The counter of unique numbers that all threads share.
    pub(crate) fn unique(&self) -> Arc<AtomicU64> {
        self.of.as_ref().map(|chunk| Arc::clone(&chunk.source.library.unique)).unwrap_or_default()
    }

    /// The statements and the schema, those of an extended workload included.
    pub(crate) fn sql(&self) -> (Vec<Statement>, Schema) {
        let mut statements = self.base.statements.clone();
        override_statements(&mut statements, self.statements.clone(), "");
        (statements, self.schema.clone().upon(&self.base.schema))
    }

    /// Whether there is a statement of a name, here or in the extended workload.
    pub(super) fn has(&self, name: &str) -> bool {
        self.statements.iter().chain(&self.base.statements).any(|known| known.name() == name)
    }

    /// Begins with what another workload declares.
    fn inherit(&mut self, base: Self) {
        let (statements, schema) = base.sql();
        if self.description.is_empty() {
            self.description = base.description;
        }
        self.base = Base {
            transactions: base.transactions.iter().map(|(transaction, _)| transaction.name.clone()).collect(),
            mixes: base.mixes.iter().map(|mix| mix.name.clone()).collect(),
            invariants: base.invariants.iter().map(|invariant| invariant.statement.clone()).collect(),
            load: base.load.is_some(),
            session: base.session.is_some(),
            statements,
            schema,
        };
        self.options = base.options;
        self.tables = base.tables;
        self.keyed = base.keyed;
        self.transactions = base.transactions;
        self.mixes = base.mixes;
        self.session = base.session;
        self.invariants = base.invariants;
        self.load = base.load;
        self.asked = base.asked;
        for (name, dialects) in base.elsewhere {
            self.elsewhere.entry(name).or_insert(dialects);
        }
        self.texts.extend(base.texts);
    }

    /// Refuses statements that only the dialect's file has, and that nothing uses.
    fn check_strays(&self) -> mlua::Result<()> {
        let strays = self.of.iter().flat_map(|chunk| &chunk.layer.strays);
        for stray in strays {
            let in_base = |name: &str| self.base.statements.iter().any(|known| known.name() == name);
            stray
                .check(|name| in_base(name) || self.mentions(name))
                .map_err(|error| Error::runtime(error.to_string()))?;
        }
        Ok(())
    }
}

/// Runs a file: what it declares, and what it returns.
fn run(lua: &Lua, chunk: Chunk) -> mlua::Result<(Draft, Value)> {
    const WORDS: [&str; 2] = ["workload", "require"];
    let layer = Arc::clone(&chunk.layer);
    let draft = Rc::new(RefCell::new(Draft::of(chunk)));
    let globals = lua.globals();
    let outer = WORDS.map(|word| globals.raw_get::<Value>(word).unwrap_or(Value::Nil));
    for (word, function) in WORDS.into_iter().zip([workload(lua, &draft)?, require(lua, &draft)?]) {
        globals.set(word, function)?;
    }
    let ran = execute(lua, &layer.lua, &layer.lua_name());
    for (word, function) in WORDS.into_iter().zip(outer).filter(|(_, function)| !function.is_nil()) {
        globals.raw_set(word, function)?;
    }
    let value = ran?;
    let draft = draft.replace(Draft { closed: true, ..Draft::default() });
    if draft.name.is_empty() {
        let message = "the file declares no workload; it should begin with local w = workload \"name\"";
        return Err(Error::runtime(draft.error(message).to_string()));
    }
    draft.check_strays()?;
    Ok((draft, value))
}

/// Runs a file and gives what it declares.
pub(super) fn declare(lua: &Lua, chunk: Chunk) -> mlua::Result<Draft> {
    run(lua, chunk).map(|(draft, _)| draft)
}

fn execute(lua: &Lua, text: &str, name: &str) -> mlua::Result<Value> {
    lua.load(text).set_name(format!("@{name}")).set_mode(ChunkMode::Text).call(())
}

/// `workload "name"`.
fn workload(lua: &Lua, draft: &Rc<RefCell<Draft>>) -> mlua::Result<Function> {
    let handle = Rc::clone(draft);
    lua.create_function(move |lua, given: MultiValue| {
        let [name, ..] = within(lua, "workload", 1, given)?;
        let name = named(lua, &name, "a workload's name")?;
        let mut draft = open(lua, &handle)?;
        if !draft.name.is_empty() {
            return Err(at(lua, "a file declares one workload, and this is the second"));
        }
        draft.name = name;
        drop(draft);
        builder(lua, &handle)
    })
}

/// `w:extends "tpcc"`: gives what the other file returns.
pub(super) fn extends(lua: &Lua, draft: &RefCell<Draft>, name: &Value) -> mlua::Result<Value> {
    let name = named(lua, name, "the workload that is extended")?;
    if std::mem::replace(&mut draft.borrow_mut().begun, true) {
        let message = "w:extends comes once, before everything else but w:describe";
        return Err(at(lua, message));
    }
    let chunk = draft.borrow().chunk(lua)?.clone();
    let found = chunk.source.library.extended(&name, &chunk.layer, chunk.source.dialect);
    let found = found.map_err(|error| at(lua, &format!("w:extends {name:?}: {error}")))?;
    let Some(layer) = found else {
        let message = format!(
            "w:extends {name:?}: no workload of this name comes with nephoscope, and no folder of this name with a \
             workload.lua lies beside this workload's"
        );
        return Err(at(lua, &message));
    };
    if chunk.line.contains(&layer.folder) {
        return Err(at(lua, &format!("w:extends {name:?}: the workload would extend itself")));
    }
    let (base, value) = run(lua, chunk.base(layer))?;
    draft.borrow_mut().inherit(base);
    Ok(value)
}

/// `require "loader"`: the value that `loader.lua` returns, which runs once.
fn require(lua: &Lua, draft: &Rc<RefCell<Draft>>) -> mlua::Result<Function> {
    let handle = Rc::clone(draft);
    // None for a file that runs.
    let loaded: RefCell<BTreeMap<String, Option<Value>>> = RefCell::default();
    lua.create_function(move |lua, given: MultiValue| {
        let [name, ..] = within(lua, "require", 1, given)?;
        let name = module(lua, &name)?;
        let closed = handle.borrow().closed;
        if closed {
            let message = format!(
                "require {name:?}: files are read while the workload's file runs; keep the value in a local variable"
            );
            return Err(at(lua, &message));
        }
        match loaded.borrow().get(&name) {
            Some(Some(value)) => return Ok(value.clone()),
            Some(None) => return Err(at(lua, &format!("require {name:?}: {name}.lua would require itself"))),
            None => {}
        }
        let (text, file) = read(lua, &handle, &name)?;
        handle.borrow_mut().texts.push(Arc::clone(&text));
        loaded.borrow_mut().insert(name.clone(), None);
        let ran = execute(lua, &text, &file);
        let kept = ran.as_ref().ok().map(|value| Some(value.clone()));
        match kept {
            Some(value) => loaded.borrow_mut().insert(name, value),
            None => loaded.borrow_mut().remove(&name),
        };
        ran
    })
}

/// The name of a file of the workload's folder, without `.lua`.
fn module(lua: &Lua, name: &Value) -> mlua::Result<String> {
    let wrong = |given: &str| {
        let message = format!(
            "require {given}: a file of the workload's own folder is named by one word without .lua: \
             require \"loader\" runs loader.lua"
        );
        at(lua, &message)
    };
    let given = match name {
        Value::String(text) => format!("{:?}", text.to_string_lossy()),
        other => other.type_name().to_owned(),
    };
    match named(lua, name, "require") {
        Ok(name) if name != "workload" => Ok(name),
        Ok(_) => Err(at(lua, "require \"workload\": workload.lua is the file that runs")),
        Err(_) => Err(wrong(&given)),
    }
}

/// The text of a file of the workload's folder, and its name for messages.
fn read(lua: &Lua, draft: &RefCell<Draft>, name: &str) -> mlua::Result<(Arc<str>, String)> {
    let draft = draft.borrow();
    let chunk = draft.chunk(lua)?;
    let file = format!("{name}.lua");
    match chunk.source.library.required(&chunk.layer, &file) {
        Ok(text) => Ok((text, format!("{}{file}", chunk.layer.prefix))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message = format!("require {name:?}: there is no {file} in the workload's folder");
            Err(at(lua, &message))
        }
        Err(error) => Err(at(lua, &format!("require {name:?}: {file}: {error}"))),
    }
}
