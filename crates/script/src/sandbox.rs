//! The Lua state that workload files run in: no files, no processes, no foreign functions, no clock of its own.

use mlua::{Lua, LuaOptions, StdLib, Value};

use crate::api;
use crate::error::ScriptError;

/// What stays of Lua's base library, and the libraries that are open: nothing that reads files, loads code, makes
/// coroutines (a session is one, and only the engine may resume it), reaches the collector or changes environments.
const KEPT: [&str; 25] = [
    "_G",
    "_VERSION",
    "assert",
    "bit",
    "error",
    "getmetatable",
    "ipairs",
    "math",
    "next",
    "pairs",
    "pcall",
    "print",
    "rawequal",
    "rawget",
    "rawlen",
    "rawset",
    "select",
    "setmetatable",
    "string",
    "table",
    "tonumber",
    "tostring",
    "type",
    "unpack",
    "xpcall",
];

/// The most bytes that the values of one state may take: a workload's lists and texts, not the rows it reads.
///
/// Where it is reached, Lua raises an error; calls of Lua's C interface that nothing protects lift it meanwhile.
pub(crate) const MEMORY: usize = 256 << 20;

/// Makes a state with `table`, `string`, `math` and `bit`, and without what a workload must not do.
///
/// LuaJIT's compiler is off. Transactions call into the engine every few instructions, where compiled code has to
/// stop anyway (measured: 44 ns a transaction with the compiler, 52 without), and interpreted code can be
/// interrupted by a hook, which compiled code cannot.
pub(crate) fn state() -> Result<Lua, ScriptError> {
    let build = || -> mlua::Result<Lua> {
        let lua = Lua::new_with(
            StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::BIT,
            // The other way round mlua puts a pcall of its own in place of Lua's, which statements cannot yield through.
            LuaOptions::new().catch_rust_panics(true),
        )?;
        lua.set_memory_limit(MEMORY)?;
        let globals = lua.globals();
        let names = globals.pairs::<String, Value>().map(|pair| pair.map(|(name, _)| name));
        for name in names.collect::<mlua::Result<Vec<_>>>()? {
            if !KEPT.contains(&name.as_str()) {
                globals.set(name, Value::Nil)?;
            }
        }
        let string: mlua::Table = globals.get("string")?;
        string.set("dump", Value::Nil)?;
        let math: mlua::Table = globals.get("math")?;
        math.set("randomseed", Value::Nil)?;
        globals.set("print", lua.create_function(print)?)?;
        // SAFETY: the stack is left as it was.
        unsafe { lua.exec_raw::<()>((), |l| api::refuse_unknown_globals(l))? };
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

/// Ends the declaring: from now on the workload's functions cannot make global variables.
pub(crate) fn close(lua: &Lua) -> mlua::Result<()> {
    // SAFETY: the stack is left as it was.
    unsafe { lua.exec_raw((), |l| api::forbid_new_globals(l)) }
}
