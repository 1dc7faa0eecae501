//! The Lua state that workload files run in: no files, no processes, no foreign functions, no clock of its own.

use std::ffi::{c_int, c_void};

use mlua::ffi::{self, lua_State};
use mlua::{Lua, LuaOptions, StdLib, Value};

use crate::error::ScriptError;
use crate::vm::api;

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

/// A message in which Lua says that there is no memory, with the limit.
pub(crate) fn with_limit(message: &str) -> String {
    let limit = format!("not enough memory: the workload's values take more than {} MiB", MEMORY >> 20);
    message.replace("not enough memory", &limit)
}

/// `LUAJIT_MODE_WRAPCFUNC | LUAJIT_MODE_ON` of `luajit.h`.
const WRAP_FUNCTIONS: c_int = 0x10 | 0x100;

unsafe extern "C-unwind" {
    /// LuaJIT has it, `mlua` does not name it.
    fn luaJIT_setmode(l: *mut lua_State, at: c_int, mode: c_int) -> c_int;
}

/// Calls a C function and gives its number of results in a whole register.
///
/// Lua says that the number is an `int`, but LuaJIT's assembler reads 64 bits of it (`vm_x64.dasc`, `BC_FUNCC`), and the
/// calling convention leaves the upper half undefined: what it holds depends on how a compiler moves values. Workloads
/// crashed at one level of optimisation and not at another.
unsafe extern "C-unwind" fn whole_register(l: *mut lua_State, function: ffi::lua_CFunction) -> i64 {
    // SAFETY: LuaJIT calls this in place of the function, with what the function wants.
    i64::from(unsafe { function(l) })
}

/// Has every C function of a state called through [`whole_register`], `mlua`'s own included.
fn widen_results(lua: &Lua) -> mlua::Result<()> {
    let mut done = 0;
    let wrapper = whole_register as *mut c_void;
    // SAFETY: the stack has room for a value, and is left as it was. The wrapper lives as long as the process.
    unsafe {
        lua.exec_raw::<()>((), |l| {
            ffi::lua_pushlightuserdata(l, wrapper);
            done = luaJIT_setmode(l, -1, WRAP_FUNCTIONS);
            ffi::lua_pop(l, 1);
        })?;
    }
    if done == 1 { Ok(()) } else { Err(mlua::Error::runtime("LuaJIT cannot wrap C functions")) }
}

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
        widen_results(&lua)?;
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
        // Called as Lua's own functions are, which no list of calls shows.
        let pairs: Value = lua.load(include_str!("pairs.lua")).set_name("=[C]").eval()?;
        globals.set("pairs", pairs)?;
        // SAFETY: the stack is left as it was.
        unsafe {
            lua.exec_raw::<()>((), |l| {
                api::add_hash(l);
                api::refuse_unknown_globals(l);
            })?;
        };
        Ok(lua)
    };
    build().map_err(|error| ScriptError::plain(error.to_string()))
}

/// `print` goes to the log, where the author of a workload finds it with `--verbose`.
fn print(lua: &Lua, values: mlua::MultiValue) -> mlua::Result<()> {
    let mut words = Vec::new();
    for value in values {
        // A whole number beyond 2^53 is an object, and says its digits.
        let word = match &value {
            Value::UserData(_) => Some(value.to_string()?).filter(|word| !word.starts_with("userdata")),
            _ => lua.coerce_string(value.clone())?.map(|word| word.to_string_lossy()),
        };
        words.push(word.unwrap_or_else(|| value.type_name().to_owned()));
    }
    tracing::info!(target: "workload", "{}", words.join("\t"));
    Ok(())
}

/// Ends the declaring: from now on the workload's functions cannot make global variables.
pub(crate) fn close(lua: &Lua) -> mlua::Result<()> {
    // SAFETY: the stack is left as it was.
    unsafe { lua.exec_raw((), |l| api::forbid_new_globals(l)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_has_one_order_in_every_state() {
        let walk = r#"
            local seen, of = {}, { 5, 6, x = 1, [-1.5] = 2, [true] = 3, [false] = 4, y = 7, [10] = 8, longer_name = 9 }
            for key, value in pairs(of) do
              seen[#seen + 1] = tostring(key) .. "=" .. value
              if key == 2 then of.x = nil end
            end
            local empty = true
            for _ in pairs({}) do empty = false end
            for key in pairs({ [print] = 1 }) do assert(key == print) end
            local fine, message = pcall(function() for _ in pairs(nil) do end end)
            assert(empty and not fine, "no table")
            return table.concat(seen, " ") .. " " .. message:match("bad argument.*")"#;
        for _ in 0..4 {
            let walked: String = state().unwrap().load(walk).eval().unwrap();
            let expected = "false=4 true=3 -1.5=2 1=5 2=6 10=8 longer_name=9 y=7 bad argument #1 to 'pairs' (table expected, got nil)";
            assert_eq!(walked, expected);
        }
    }

    /// Gives one result, and rubbish in the upper half of its register, as the calling convention allows.
    unsafe extern "C-unwind" fn careless(l: *mut lua_State) -> u64 {
        // SAFETY: called by Lua, which leaves room for a result.
        unsafe { ffi::lua_pushnumber(l, 7.0) };
        0xdead_beef_0000_0001
    }

    #[test]
    fn the_upper_half_of_a_result_does_not_matter() {
        let lua = state().unwrap();
        // SAFETY: what the caller does not read of the register is no part of the result.
        let function = unsafe {
            std::mem::transmute::<unsafe extern "C-unwind" fn(*mut lua_State) -> u64, ffi::lua_CFunction>(
                careless,
            )
        };
        // SAFETY: the function is called with nothing and gives a number.
        let seven: f64 = unsafe {
            lua.exec_raw((), |l| {
                ffi::lua_pushcclosure(l, function, 0);
                ffi::lua_call(l, 0, 1);
            })
        }
        .unwrap();
        assert_eq!(seven, 7.0);
    }
}
