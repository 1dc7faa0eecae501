//! Scripts of sysbench, unmodified: `w:sysbench "script"`.
//!
//! What a script finds is Lua (`api.lua`), on top of the words that any workload has: options, a transaction `event`, the
//! session's own function. This file lends it what Lua alone cannot do: a file's code with global variables of its own, the
//! types of the options that a command line gives, and the functions that draw.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, MultiValue, Table, Value};

use crate::define::{Draft, at, named, open};
use crate::workload::OptionValue;

mod laws;

pub(crate) use laws::{LAWS, Law, Laws, write_template};

const API: &str = include_str!("api.lua");

/// What a script needs beside its functions.
#[derive(Clone)]
pub(crate) struct Lent {
    /// The table of the functions that draw, which are put there when a state has sessions.
    pub(crate) native: Table,
    pub(crate) laws: Laws,
    /// What each session does at the end of the run.
    pub(crate) done: Option<Function>,
    /// Options whose values a command line gives as texts.
    pub(crate) typed: BTreeMap<String, OptionValue>,
    /// How many unique numbers were drawn, over all threads.
    pub(crate) unique: Arc<AtomicU64>,
}

/// The word `sysbench` of what `workload "name"` returns.
pub(crate) fn word(lua: &Lua, draft: &Rc<RefCell<Draft>>, words: &Table) -> mlua::Result<Function> {
    let (draft, words) = (Rc::clone(draft), words.clone());
    lua.create_function(move |lua, mut given: MultiValue| {
        if given.pop_front() != Some(Value::Table(words.clone())) {
            return Err(at(lua, "sysbench is called with a colon: w:sysbench(…)"));
        }
        let script = named(lua, &given.pop_front().unwrap_or(Value::Nil), "w:sysbench: the script")?;
        if !given.is_empty() {
            return Err(at(lua, "w:sysbench takes 1 argument: the script's name without .lua"));
        }
        declare(lua, &draft, &words, &script)
    })
}

fn declare(lua: &Lua, draft: &Rc<RefCell<Draft>>, words: &Table, script: &str) -> mlua::Result<()> {
    let (native, lent) = (lua.create_table()?, lua.create_table()?);
    {
        let mut draft = open(lua, draft)?;
        if draft.sysbench.is_some() || !draft.transactions.is_empty() {
            return Err(at(lua, "w:sysbench declares all of a workload: it comes once, and alone"));
        }
        let unique = draft.unique();
        draft.sysbench = Some(Lent {
            native: native.clone(),
            laws: Laws::DEFAULT,
            done: None,
            typed: BTreeMap::new(),
            unique,
        });
    }
    lent.set("w", words)?;
    lent.set("native", native)?;
    lent.set("script", script)?;
    lent.set("load", load(lua, draft)?)?;
    lent.set("typed", typed(lua, draft)?)?;
    let handle = Rc::clone(draft);
    let laws = lua.create_function(move |lua, options: Table| {
        let laws = read_laws(lua, &options)?;
        handle.borrow_mut().sysbench.iter_mut().for_each(|lent| lent.laws = laws);
        Ok(())
    })?;
    lent.set("laws", laws)?;
    let handle = Rc::clone(draft);
    let done = lua.create_function(move |_, function: Function| {
        handle.borrow_mut().sysbench.iter_mut().for_each(|lent| lent.done = Some(function.clone()));
        Ok(())
    })?;
    lent.set("done", done)?;
    lua.load(API).set_name("@sysbench.lua").set_mode(ChunkMode::Text).call(lent)
}

/// `load(name, globals)`: the code of a file beside the script, whose global variables are in a table; or nil, and why there
/// is none.
fn load(lua: &Lua, draft: &Rc<RefCell<Draft>>) -> mlua::Result<Function> {
    let chunk = draft.borrow().chunk(lua)?.clone();
    lua.create_function(move |lua, (name, globals): (Value, Table)| {
        let wrong = |why: String| Ok((None, Some(format!("require {why}"))));
        let Value::String(name) = &name else {
            return wrong(format!("takes a text, not {}", name.type_name()));
        };
        let name = name.to_string_lossy().replace('/', ".");
        if name.starts_with('.') || name.contains("..") {
            return wrong(format!("{name:?}: a file beside the script is named without .lua"));
        }
        let file = format!("{name}.lua");
        let text = match chunk.source.library.required(&chunk.layer, &file) {
            Ok(text) => text,
            Err(error) => return wrong(format!("{name:?}: {file}: {error}")),
        };
        let code = lua.load(&*text).set_name(format!("@{file}")).set_mode(ChunkMode::Text);
        Ok((Some(code.set_environment(globals).into_function()?), None))
    })
}

/// `typed(option, kind)`: what a command line says of an option is a text; makes it a value of its kind, where it can be.
fn typed(lua: &Lua, draft: &Rc<RefCell<Draft>>) -> mlua::Result<Function> {
    let draft = Rc::clone(draft);
    lua.create_function(move |lua, (option, kind): (String, String)| {
        let mut draft = draft.borrow_mut();
        let given = draft.chunk(lua)?.source.options.get(&option).cloned();
        if let (Some(value), Some(lent)) = (given, &mut draft.sysbench) {
            lent.typed.insert(option, of_kind(value, &kind));
        }
        Ok(())
    })
}

fn of_kind(value: OptionValue, kind: &str) -> OptionValue {
    match (kind, &value) {
        ("number", OptionValue::Text(text)) => text.parse().map_or(value, OptionValue::Number),
        ("boolean", OptionValue::Text(text)) => match text.as_str() {
            "on" | "true" | "1" | "" => OptionValue::Boolean(true),
            "off" | "false" | "0" => OptionValue::Boolean(false),
            _ => value,
        },
        ("boolean", OptionValue::Number(number)) if matches!(*number, 0.0 | 1.0) => {
            OptionValue::Boolean(*number != 0.0)
        }
        ("text", OptionValue::Number(number)) => OptionValue::Text(number.to_string()),
        ("text", OptionValue::Boolean(whether)) => OptionValue::Text(whether.to_string()),
        _ => value,
    }
}

/// The laws by the options of the run.
fn read_laws(lua: &Lua, options: &Table) -> mlua::Result<Laws> {
    let wrong = |name: &str, what: &str| at(lua, &format!("workload.options: {name} {what}"));
    let number = |name: &str, least: f64, most: f64| {
        let value: f64 = options.get(name)?;
        let fits = (least..=most).contains(&value);
        if fits {
            Ok(value)
        } else {
            Err(wrong(name, &format!("is {value}; it must be from {least} to {most}")))
        }
    };
    let law: String = options.get("rand_type")?;
    let Ok(default) = law.parse() else {
        let known: Vec<&str> = LAWS.iter().map(|(name, _)| *name).collect();
        return Err(wrong("rand_type", &format!("is {law:?}; laws are {}", known.join(", "))));
    };
    Ok(Laws {
        default,
        iterations: number("rand_spec_iter", 1.0, 10_000.0)? as u32,
        special: number("rand_spec_pct", 0.0, 100.0)? / 100.0,
        drawn: number("rand_spec_res", 0.0, 100.0)? / 100.0,
        pareto: number("rand_pareto_h", 1e-6, 1.0 - 1e-6)?,
        theta: number("rand_zipfian_exp", 0.0, nephoscope_datagen::MAX_THETA)?,
    })
}
