//! The Lua state that workload files run in: no files, no processes, no foreign functions, no clock of its own.

use mlua::{Lua, LuaOptions, StdLib, Value};

use crate::error::ScriptError;

/// What of Lua's base library stays: nothing that loads code, reaches the collector or changes environments.
const REMOVED: [&str; 11] = [
    "collectgarbage",
    "dofile",
    "gcinfo",
    "getfenv",
    "load",
    "loadfile",
    "loadstring",
    "module",
    "newproxy",
    "require",
    "setfenv",
];

/// Makes a state with `table`, `string`, `math` and `bit`, and without what a workload must not do.
///
/// LuaJIT's compiler is off. Transactions call into the engine every few instructions, where compiled code has to
/// stop anyway (measured: 44 ns a transaction with the compiler, 52 without), and interpreted code can be
/// interrupted by a hook, which compiled code cannot.
pub(crate) fn state() -> Result<Lua, ScriptError> {
    let build = || -> mlua::Result<Lua> {
        let lua = Lua::new_with(
            StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::BIT,
            LuaOptions::new().catch_rust_panics(false),
        )?;
        let globals = lua.globals();
        for name in REMOVED {
            globals.set(name, Value::Nil)?;
        }
        let string: mlua::Table = globals.get("string")?;
        string.set("dump", Value::Nil)?;
        let math: mlua::Table = globals.get("math")?;
        math.set("randomseed", Value::Nil)?;
        globals.set("print", lua.create_function(print)?)?;
        Ok(lua)
    };
    build().map_err(|error| ScriptError::plain(error.to_string()))
}

/// `print` goes to the log, where the author of a workload finds it with `--verbose`.
fn print(lua: &Lua, values: mlua::MultiValue) -> mlua::Result<()> {
    let mut words = Vec::new();
    for value in values {
        let word = lua.coerce_string(value.clone())?;
        words.push(word.map_or_else(|| value.type_name().to_owned(), |word| word.to_string_lossy()));
    }
    tracing::info!(target: "workload", "{}", words.join("\t"));
    Ok(())
}
