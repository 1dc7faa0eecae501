//! The words that declare a workload: `workload`, `option`, `table`, `transaction`, `session`, `mix`, `invariant`, `needs`, `has`.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mlua::chunk::ChunkMode;
use mlua::{Error, Function, HookTriggers, Lua, Table, Value, VmState};
use nephoscope_datagen::TableSpec;
use nephoscope_runtime::{Nanos, clock};

use crate::error::ScriptError;
use crate::vm::sandbox;
use crate::workload::{Invariant, Mix, OptionSpec, OptionValue, Transaction};

pub(crate) mod columns;
pub(crate) mod reading;
mod settings;
mod source;
mod words;

pub use source::Source;

/// What the Lua file has declared so far.
#[derive(Default)]
pub(crate) struct Draft {
    file: String,
    scale: f64,
    given: Vec<(String, OptionValue)>,
    /// The file has run: nothing can be declared any more.
    closed: bool,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) options: Vec<OptionSpec>,
    pub(crate) tables: Vec<TableSpec>,
    pub(crate) transactions: Vec<(Transaction, Function)>,
    /// What each session runs once.
    pub(crate) session: Option<Function>,
    pub(crate) mixes: Vec<Mix>,
    pub(crate) invariants: Vec<Invariant>,
    /// The statements that the file has asked for.
    pub(crate) asked: Vec<String>,
    /// The names of those that there are.
    statements: Vec<String>,
    dialect: &'static str,
    /// What a workload may need, and whether the system has it.
    capabilities: Vec<(&'static str, bool)>,
}

impl Draft {
    /// An error about the file as a whole.
    pub(crate) fn error(&self, message: &str) -> ScriptError {
        ScriptError::new(&self.file, 0, message)
    }
}

/// How often is looked whether the file has run for too long, in instructions: some may take their time.
const LOOK: u32 = 1000;

/// How long a file may run.
pub(crate) struct Patience {
    /// Processor time.
    pub(crate) limit: Duration,
    /// Ends it before that.
    pub(crate) stop: Arc<AtomicBool>,
}

impl Patience {
    /// As long as the source says.
    pub(crate) fn of(source: &Source) -> Self {
        Self { limit: source.limit, stop: Arc::default() }
    }
}

/// Ends the file when its time is over. An error could be caught by the file's own `pcall` and a loop go on, so from
/// then on every instruction raises it, until nothing of the file is left.
fn watch(lua: &Lua, patience: Patience, over: &Rc<RefCell<Option<Error>>>) -> mlua::Result<()> {
    let Patience { limit, stop } = patience;
    let (end, over) = (clock::thread_cpu() + limit.as_nanos() as u64, Rc::clone(over));
    lua.set_hook(HookTriggers::new().every_nth_instruction(LOOK), move |lua, _| {
        if clock::thread_cpu() < end && !stop.load(Ordering::Relaxed) {
            return Ok(VmState::Continue);
        }
        let error = condemn(lua, "the file", limit);
        over.replace(Some(error.clone()));
        Err(error)
    })
}

/// From now on every instruction raises the error that is returned.
fn condemn(lua: &Lua, what: &str, limit: Duration) -> Error {
    let seconds = limit.as_secs_f64();
    let error = at(lua, &format!("{what} has run for {seconds} s without an end; is this a loop?"));
    let again = error.clone();
    match lua.set_hook(HookTriggers::new().every_nth_instruction(1), move |_, _| Err(again.clone())) {
        Ok(()) => error,
        Err(error) => error,
    }
}

/// Ends a function of the file that computes cells when one call has gone on for too long. To be told where a call
/// begins: by setting what is returned to none.
pub(crate) fn watch_calls(lua: &Lua, limit: Duration) -> mlua::Result<Rc<Cell<Option<Nanos>>>> {
    let since = Rc::new(Cell::new(None));
    let met = Rc::clone(&since);
    // Seldom: a call has some hundred instructions, and none of them should pay for this.
    lua.set_hook(HookTriggers::new().every_nth_instruction(100 * LOOK), move |lua, _| {
        let now = clock::thread_cpu();
        let since = met.get().unwrap_or(now);
        met.set(Some(since));
        if now - since < limit.as_nanos() as u64 {
            return Ok(VmState::Continue);
        }
        Err(condemn(lua, "the function of a column", limit))
    })?;
    Ok(since)
}

/// Runs the Lua file of a source and gives what it declares.
pub(crate) fn run(source: &Source, lua: &Lua, patience: Patience) -> Result<Draft, ScriptError> {
    let draft = Rc::new(RefCell::new(Draft {
        file: source.lua_name.clone(),
        scale: source.scale,
        given: source.options.clone().into_iter().collect(),
        statements: source.statements.iter().map(|statement| statement.name().to_owned()).collect(),
        dialect: source.dialect,
        capabilities: source.capabilities.needed().to_vec(),
        ..Draft::default()
    }));
    let execute = || -> mlua::Result<()> {
        let globals = lua.globals();
        columns::install(lua, source)?;
        let handle = Rc::clone(&draft);
        let begin = move |lua: &Lua, name: Value| {
            let name = named(lua, &name, "a workload's name")?;
            let mut draft = open(lua, &handle)?;
            if !draft.name.is_empty() {
                return Err(at(lua, "a file declares one workload, and this is the second"));
            }
            draft.name = name;
            drop(draft);
            builder(lua, &handle)
        };
        globals.set("workload", lua.create_function(begin)?)?;
        let over = Rc::new(RefCell::new(None));
        watch(lua, patience, &over)?;
        let ran =
            lua.load(&source.lua).set_name(format!("@{}", source.lua_name)).set_mode(ChunkMode::Text).exec();
        lua.remove_hook();
        // Said first, and not what the file has made of it.
        over.take().map_or(ran, Err)?;
        sandbox::close(lua)
    };
    execute().map_err(|error| located(source, describe(&error)))?;
    let draft = draft.replace(Draft { closed: true, ..Draft::default() });
    if draft.name.is_empty() {
        return Err(
            draft.error("the file declares no workload; it should begin with local w = workload \"name\"")
        );
    }
    if let Some((name, _)) =
        draft.given.iter().find(|(name, _)| !draft.options.iter().any(|o| o.name == *name))
    {
        let known: Vec<&str> = draft.options.iter().map(|option| option.name.as_str()).collect();
        let known = if known.is_empty() {
            "it has none".to_owned()
        } else {
            format!("they are {}", known.join(", "))
        };
        return Err(ScriptError::plain(format!(
            "workload.options: {} has no option {name:?}; {known}",
            draft.name
        )));
    }
    Ok(draft)
}

/// An error of the file: Lua says where, unless the error is an object of the workload's own.
fn located(source: &Source, message: String) -> ScriptError {
    if message.starts_with(&source.lua_name) || message.starts_with("workload.options") {
        return ScriptError::plain(message);
    }
    let message = match &*message {
        "nil" => "an error without a message",
        object if object.starts_with("table: 0x") => "an error that is a table; let it be a text",
        binary if binary.contains("binary chunk") => {
            "this is compiled code; a workload is Lua as it is written"
        }
        other => other,
    };
    ScriptError::new(&source.lua_name, 0, message)
}

/// The declarations, as long as the file runs.
fn open<'a>(lua: &Lua, draft: &'a RefCell<Draft>) -> mlua::Result<RefMut<'a, Draft>> {
    let draft = draft.borrow_mut();
    if draft.closed {
        return Err(at(lua, "a workload is declared by the file itself, not by a transaction"));
    }
    Ok(draft)
}

/// The innermost message of an error: mlua wraps what a callback raised.
pub(crate) fn describe(error: &Error) -> String {
    let first = |message: &str| message.split("\nstack traceback:").next().unwrap_or_default().to_owned();
    match error {
        Error::CallbackError { cause, .. } | Error::WithContext { cause, .. } => describe(cause),
        Error::RuntimeError(message) | Error::SyntaxError { message, .. } | Error::MemoryError(message) => {
            first(message)
        }
        other => first(&other.to_string()),
    }
}

/// An error at the line of the file that called.
pub(crate) fn at(lua: &Lua, message: &str) -> Error {
    for level in 0..16 {
        let place = lua.inspect_stack(level, |debug| {
            let line = debug.current_line();
            line.map(|line| format!("{}:{line}: ", debug.source().short_src.unwrap_or_default()))
        });
        match place {
            Some(Some(place)) => return Error::runtime(format!("{place}{message}")),
            Some(None) => {}
            None => break,
        }
    }
    Error::runtime(message)
}

/// A name: a text of letters, digits and underscores that does not begin with a digit.
fn named(lua: &Lua, value: &Value, what: &str) -> mlua::Result<String> {
    let Value::String(text) = value else {
        return Err(at(lua, &format!("{what} must be a text, not {}", value.type_name())));
    };
    let text = text.to_string_lossy();
    let word = text.chars().all(|next| next.is_ascii_alphanumeric() || next == '_' || next == '-');
    if !word || text.is_empty() || text.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(at(
            lua,
            &format!("{what} must be one word of letters, digits, - and _; {text:?} is not"),
        ));
    }
    Ok(text)
}

fn text(lua: &Lua, value: &Value, what: &str) -> mlua::Result<String> {
    match value {
        Value::String(text) => Ok(text.to_string_lossy()),
        Value::Nil => Ok(String::new()),
        other => Err(at(lua, &format!("{what} must be a text, not {}", other.type_name()))),
    }
}

/// Takes the keys of a table of settings; whatever is left is not allowed.
struct Keys<'a> {
    lua: &'a Lua,
    table: Table,
    what: String,
    /// How many values without a name come first.
    unnamed: usize,
    allowed: &'static [&'static str],
}

impl Keys<'_> {
    fn check(&self) -> mlua::Result<()> {
        for pair in self.table.pairs::<Value, Value>() {
            let (key, _) = pair?;
            let known = matches!(&key, Value::String(key) if self.allowed.contains(&&*key.to_string_lossy()));
            let unnamed = key.as_usize().is_some_and(|index| (1..=self.unnamed).contains(&index));
            if !known && !unnamed {
                let key = key.to_string().unwrap_or_default();
                let allowed = self.allowed.join(", ");
                return Err(at(
                    self.lua,
                    &format!("{}: {key:?} is not allowed; allowed are {allowed}", self.what),
                ));
            }
        }
        Ok(())
    }
}

/// What `workload "name"` returns: a table of the words that declare. It is no userdata: see [`crate::vm::api::Results`].
fn builder(lua: &Lua, draft: &Rc<RefCell<Draft>>) -> mlua::Result<Table> {
    let words = lua.create_table()?;
    let add = |word: &'static str, declare: Declare| -> mlua::Result<()> {
        let (draft, words_again) = (Rc::clone(draft), words.clone());
        let function = lua.create_function(move |lua, (this, one, two, three, four): Five| {
            if this != Value::Table(words_again.clone()) {
                return Err(at(lua, &format!("{word} is called with a colon: w:{word}(…)")));
            }
            drop(open(lua, &draft)?);
            declare(lua, &draft, [one, two, three, four])
        })?;
        words.set(word, function)
    };
    add("describe", |lua, draft, [description, ..]| {
        draft.borrow_mut().description = text(lua, &description, "a description")?;
        Ok(Value::Nil)
    })?;
    add("option", |lua, draft, [name, kind, default, help]| {
        words::option(lua, &mut draft.borrow_mut(), &name, &kind, &default, &help)
    })?;
    add("table", |lua, draft, [name, spec, ..]| {
        // A function for the rows may run while the table is read: the declarations are not held then.
        let scale = draft.borrow().scale;
        let table = words::table(lua, scale, &name, &spec)?;
        let mut draft = draft.borrow_mut();
        if draft.tables.iter().any(|other| other.name == table.name) {
            return Err(at(lua, &format!("the table {} is declared twice", table.name)));
        }
        draft.tables.push(table);
        Ok(Value::Nil)
    })?;
    add("transaction", |lua, draft, [name, second, third, _]| {
        words::transaction(lua, &mut draft.borrow_mut(), &name, second, third).map(|()| Value::Nil)
    })?;
    add("session", |lua, draft, [function, ..]| {
        words::session(lua, &mut draft.borrow_mut(), function).map(|()| Value::Nil)
    })?;
    add("mix", |lua, draft, [name, weights, ..]| {
        words::mix(lua, &mut draft.borrow_mut(), &name, &weights).map(|()| Value::Nil)
    })?;
    add("invariant", |lua, draft, [statement, second, third, _]| {
        words::invariant(lua, &mut draft.borrow_mut(), &statement, second, third).map(|()| Value::Nil)
    })?;
    add("needs", |lua, draft, [capability, ..]| {
        words::needs(lua, &draft.borrow(), &capability).map(|()| Value::Nil)
    })?;
    add("has", |lua, draft, [statement, ..]| {
        words::has(lua, &mut draft.borrow_mut(), &statement).map(Value::Boolean)
    })?;
    let metatable = lua.create_table()?;
    metatable.set("__metatable", false)?;
    let unknown = lua.create_function(|lua, (_, word): (Value, Value)| -> mlua::Result<Value> {
        let word = word.to_string().unwrap_or_default();
        let words = "describe, option, table, transaction, session, mix, invariant, needs, has";
        Err(at(lua, &format!("a workload has no word {word}; it has {words}")))
    })?;
    metatable.set("__index", unknown)?;
    words.set_metatable(Some(metatable))?;
    Ok(words)
}

type Five = (Value, Value, Value, Value, Value);
type Declare = fn(&Lua, &RefCell<Draft>, [Value; 4]) -> mlua::Result<Value>;
