//! The words that declare a workload: `workload`, and what it gives (see [`WORDS`]).

use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mlua::{Error, Function, HookTriggers, Lua, MultiValue, Table, Value, VmState};
use nephoscope_datagen::TableSpec;
use nephoscope_drivers::Statement;
use nephoscope_runtime::{Nanos, clock};

use crate::error::ScriptError;
use crate::statements::mentions;
use crate::sysbench;
use crate::vm::sandbox;
use crate::workload::{Invariant, Mix, OptionSpec, Schema, Transaction};

mod checks;
pub(crate) mod columns;
mod files;
mod laws;
mod loading;
mod mixes;
pub(crate) mod reading;
mod reuse;
mod settings;
mod source;
mod sql;
mod verbs;
mod words;

pub use source::Source;

/// What the Lua file has declared so far.
#[derive(Default)]
pub(crate) struct Draft {
    /// The file, and all that is needed to run another.
    of: Option<reuse::Chunk>,
    /// Something is declared beside the name and the description.
    begun: bool,
    /// The file has run: nothing can be declared any more.
    closed: bool,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) options: Vec<OptionSpec>,
    pub(crate) tables: Vec<TableSpec>,
    /// Those of them that have a key.
    keyed: Vec<verbs::Keyed>,
    pub(crate) transactions: Vec<(Transaction, Function)>,
    /// What each session runs once.
    pub(crate) session: Option<Function>,
    pub(crate) mixes: Vec<Mix>,
    pub(crate) invariants: Vec<Invariant>,
    pub(crate) load: Option<loading::LoadFunction>,
    /// The statements that the file has asked for.
    pub(crate) asked: Vec<String>,
    /// Statements and schema of the folder's files, and what the Lua file has added to them.
    statements: Vec<Statement>,
    schema: Schema,
    /// What the workload was given by the one that it extends, and may declare anew.
    base: reuse::Base,
    /// Statements that only other dialects have, each with theirs.
    pub(crate) elsewhere: BTreeMap<String, Vec<String>>,
    /// The Lua that has run.
    texts: Vec<Arc<str>>,
    /// What a script of sysbench needs beside its functions, where the workload is one.
    pub(crate) sysbench: Option<sysbench::Lent>,
}

impl Draft {
    /// An error about the file as a whole.
    pub(crate) fn error(&self, message: &str) -> ScriptError {
        let file = self.of.as_ref().map(|chunk| chunk.layer.lua_name()).unwrap_or_default();
        ScriptError::new(&file, 0, message)
    }

    /// Whether the Lua that has run has a name as a text of its own.
    pub(crate) fn mentions(&self, name: &str) -> bool {
        self.texts.iter().any(|text| mentions(text, name))
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
    let execute = || -> mlua::Result<Draft> {
        columns::install(lua, source)?;
        let over = Rc::new(RefCell::new(None));
        watch(lua, patience, &over)?;
        let ran = reuse::declare(lua, reuse::Chunk::own(source));
        lua.remove_hook();
        // Said first, and not what the file has made of it.
        let draft = over.take().map_or(ran, Err)?;
        sandbox::close(lua)?;
        Ok(draft)
    };
    let draft = execute().map_err(|error| located(source, describe(&error)))?;
    if let Some((name, _)) =
        source.options.iter().find(|(name, _)| !draft.options.iter().any(|o| o.name == **name))
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
    let place = message.split(':').next().unwrap_or_default();
    let file = place.rsplit_once('.').filter(|_| !place.contains(' '));
    let has_place = file.is_some_and(|(_, extension)| matches!(extension, "lua" | "sql"));
    if has_place || message.starts_with("workload.options") {
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
pub(crate) fn open<'a>(lua: &Lua, draft: &'a RefCell<Draft>) -> mlua::Result<RefMut<'a, Draft>> {
    let draft = draft.borrow_mut();
    if draft.closed {
        return Err(at(lua, "a workload is declared by the file itself, not by a transaction"));
    }
    Ok(draft)
}

/// The innermost message of an error: mlua wraps what a callback raised.
pub(crate) fn describe(error: &Error) -> String {
    let first = |message: &str| {
        let message = message.split("\nstack traceback:").next().unwrap_or_default();
        sandbox::with_limit(message)
    };
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
pub(crate) fn named(lua: &Lua, value: &Value, what: &str) -> mlua::Result<String> {
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

/// A number, if it is one.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// True or false, or else the default.
fn flag(lua: &Lua, value: &Value, what: &str, default: bool) -> mlua::Result<bool> {
    match value {
        Value::Nil => Ok(default),
        Value::Boolean(value) => Ok(*value),
        other => Err(at(lua, &format!("{what} must be true or false, not {}", other.type_name()))),
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

/// The arguments of a word, those that are left out as nil. More than it takes are refused.
fn within(lua: &Lua, word: &str, most: usize, given: MultiValue) -> mlua::Result<[Value; MOST]> {
    if given.len() > most {
        let arguments = if most == 1 { "1 argument" } else { &format!("{most} arguments") };
        return Err(at(lua, &format!("{word} takes {arguments} at most; {} are given", given.len())));
    }
    let mut given = given.into_iter();
    Ok(std::array::from_fn(|_| given.next().unwrap_or(Value::Nil)))
}

/// The most arguments that a word takes.
const MOST: usize = 5;

type Declare = fn(&Lua, &RefCell<Draft>, [Value; MOST]) -> mlua::Result<Value>;

/// The words of a workload, with how many arguments each takes.
const WORDS: [(&str, usize, Declare); 14] = [
    ("describe", 1, |lua, draft, [description, ..]| {
        draft.borrow_mut().description = text(lua, &description, "a description")?;
        Ok(Value::Nil)
    }),
    ("option", 5, |lua, draft, given| words::option(lua, &mut draft.borrow_mut(), given)),
    ("table", 2, |lua, draft, [name, spec, ..]| {
        // A function for the rows may run while the table is read: the declarations are not held then.
        let scale = draft.borrow().chunk(lua)?.source.scale;
        let (table, keyed) = words::table(lua, scale, &name, &spec)?;
        let mut draft = draft.borrow_mut();
        if draft.tables.iter().any(|other| other.name == table.name) {
            return Err(at(lua, &format!("the table {} is declared twice", table.name)));
        }
        draft.tables.push(table);
        draft.keyed.extend(keyed);
        Ok(Value::Nil)
    }),
    ("transaction", 3, |lua, draft, [name, second, third, ..]| {
        words::transaction(lua, &mut draft.borrow_mut(), &name, second, third).map(|()| Value::Nil)
    }),
    ("session", 1, |lua, draft, [function, ..]| {
        words::session(lua, &mut draft.borrow_mut(), function).map(|()| Value::Nil)
    }),
    ("load", 2, |lua, draft, [first, second, ..]| {
        loading::load(lua, &mut draft.borrow_mut(), first, second).map(|()| Value::Nil)
    }),
    ("mix", 3, |lua, draft, [name, weights, settings, ..]| {
        mixes::mix(lua, &mut draft.borrow_mut(), &name, &weights, &settings).map(|()| Value::Nil)
    }),
    ("invariant", 3, |lua, draft, [statement, second, third, ..]| {
        words::invariant(lua, &mut draft.borrow_mut(), &statement, second, third).map(|()| Value::Nil)
    }),
    ("needs", 1, |lua, draft, [capability, ..]| {
        words::needs(lua, &draft.borrow(), &capability).map(|()| Value::Nil)
    }),
    ("can", 1, |lua, draft, [capability, ..]| {
        words::can(lua, &draft.borrow(), &capability).map(Value::Boolean)
    }),
    ("has", 1, |lua, draft, [statement, ..]| {
        sql::has(lua, &mut draft.borrow_mut(), &statement).map(Value::Boolean)
    }),
    ("statement", 2, |lua, draft, [name, text, ..]| {
        sql::statement(lua, &mut draft.borrow_mut(), &name, &text).map(|()| Value::Nil)
    }),
    ("schema", 2, |lua, draft, [section, text, ..]| {
        sql::schema(lua, &mut draft.borrow_mut(), &section, &text).map(|()| Value::Nil)
    }),
    ("extends", 1, |lua, draft, [name, ..]| reuse::extends(lua, draft, &name)),
];

/// What `workload "name"` returns: a table of the words that declare. It is no userdata: see [`crate::vm::api::Results`].
fn builder(lua: &Lua, draft: &Rc<RefCell<Draft>>) -> mlua::Result<Table> {
    let words = lua.create_table()?;
    for (word, most, declare) in WORDS {
        let (draft, words_again) = (Rc::clone(draft), words.clone());
        let function = lua.create_function(move |lua, mut given: MultiValue| {
            if given.pop_front() != Some(Value::Table(words_again.clone())) {
                return Err(at(lua, &format!("{word} is called with a colon: w:{word}(…)")));
            }
            open(lua, &draft)?.begun |= !["describe", "extends"].contains(&word);
            let given = within(lua, &format!("w:{word}"), most, given)?;
            declare(lua, &draft, given)
        })?;
        words.set(word, function)?;
    }
    words.set("sysbench", sysbench::word(lua, draft, &words)?)?;
    let source = Arc::clone(&draft.borrow().chunk(lua)?.source);
    words.set("scale", source.scale)?;
    words.set("dialect", source.dialect.name)?;
    let metatable = lua.create_table()?;
    metatable.set("__metatable", false)?;
    let unknown = lua.create_function(|lua, (_, word): (Value, Value)| -> mlua::Result<Value> {
        let word = word.to_string().unwrap_or_default();
        let words = WORDS.map(|(word, ..)| word).join(", ");
        Err(at(lua, &format!("a workload has no word {word}; it has {words}, sysbench, scale, dialect")))
    })?;
    metatable.set("__index", unknown)?;
    words.set_metatable(Some(metatable))?;
    Ok(words)
}
