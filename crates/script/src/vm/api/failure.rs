//! What a failed transaction says: the error, whatever object it is, and the calls that led to it.

use std::ffi::{CStr, c_int};
use std::time::Duration;

use mlua::ffi::{self, lua_State};

use super::{Results, text, type_name};
use crate::vm::sandbox;

/// How many fields of an error that is a table are shown.
const FIELDS: usize = 8;
/// How many calls are shown.
const CALLS: usize = 6;

/// The message of a failed coroutine, with its calls; `main` is the state that it belongs to.
pub(crate) unsafe fn error_message(l: *mut lua_State, main: *mut lua_State) -> String {
    // SAFETY: the error lies on top of the stack of a dead coroutine, which still has room; so has the main state.
    unsafe {
        let message = match text(l, -1) {
            Some(message) => explained(&String::from_utf8_lossy(message)),
            None => object(l, main),
        };
        with_calls(message, &trace(l))
    }
}

/// What is said of a function that has run for too long; `l` is where it is now.
pub(crate) unsafe fn interruption(l: *mut lua_State, what: &str, limit: Duration) -> String {
    // SAFETY: called by Lua, in a hook, which leaves room.
    let trace = unsafe { trace(l) };
    let seconds = limit.as_secs_f64();
    with_calls(format!("{what} has run for {seconds} s without an end; is this a loop?"), &trace)
}

/// An error about what a suspended coroutine has asked for, at the place where it did.
pub(crate) unsafe fn at_call(l: *mut lua_State, message: String) -> String {
    // SAFETY: a suspended coroutine has room.
    unsafe { with_calls(message, &trace(l)) }
}

unsafe fn trace(l: *mut lua_State) -> String {
    // SAFETY: the stack has room, and is left as it was.
    unsafe {
        ffi::luaL_traceback(l, l, std::ptr::null(), 0);
        let trace = text(l, -1).map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default();
        ffi::lua_settop(l, -2);
        trace
    }
}

/// A message with its place and the calls that led there.
fn with_calls(message: String, trace: &str) -> String {
    // The functions that are not the workload's tell its author nothing.
    let calls = trace.lines().skip(1).map(str::trim).filter(|line| !line.starts_with("[C]:"));
    let mut calls: Vec<&str> = calls.collect();
    // A file that was written for scripts of another tool calls into one of ours: it is the script that says where.
    let first = calls.iter().find(|call| !call.contains("_runtime.lua:")).or(calls.first());
    let place = first.and_then(|call| call.split_once(": in ")).map_or("", |(place, _)| place);
    let file = place.split(':').next().unwrap_or_default();
    let message = if message.starts_with(file) { message } else { format!("{place}: {message}") };
    if calls.len() > CALLS {
        calls.truncate(CALLS);
        calls.push("more calls");
    }
    if calls.is_empty() { message } else { format!("{message}\n  in {}", calls.join("\n  in ")) }
}

/// Lua's own words where they help nobody, in ours.
fn explained(message: &str) -> String {
    sandbox::with_limit(message).replace(
        "attempt to yield across C-call boundary",
        "tx cannot be called from within a function that table.sort, string.gsub or a metatable calls",
    )
}

/// An error that is no text: what its metatable makes of it, or else its fields. Both are done under protection,
/// for they can fail in their turn.
unsafe fn object(l: *mut lua_State, main: *mut lua_State) -> String {
    // SAFETY: the value moves to the main state, whose stack is left as it was.
    unsafe {
        let kind = type_name(l, -1);
        let top = ffi::lua_gettop(main);
        ffi::lua_pushcclosure(main, describe, 0);
        ffi::lua_pushvalue(l, -1);
        ffi::lua_xmove(l, main, 1);
        let described = ffi::lua_pcall(main, 1, 1, 0) == ffi::LUA_OK;
        let words =
            text(main, -1).filter(|_| described).map(|words| String::from_utf8_lossy(words).into_owned());
        ffi::lua_settop(main, top);
        let words = words.unwrap_or_default();
        let words = words.split("\nstack traceback:").next().unwrap_or_default();
        match ffi::lua_type(l, -1) {
            ffi::LUA_TNIL => "an error without a message".to_owned(),
            // What a word that declares has to say, mlua wraps.
            ffi::LUA_TUSERDATA => words.strip_prefix("runtime error: ").unwrap_or(words).to_owned(),
            _ if words.is_empty() => format!("an error that is a {kind}"),
            _ => format!("an error that is a {kind}: {words}"),
        }
    }
}

/// Describes its argument as a text.
unsafe extern "C-unwind" fn describe(l: *mut lua_State) -> Results {
    // SAFETY: called by Lua with one value.
    unsafe {
        if ffi::lua_type(l, 1) == ffi::LUA_TTABLE && ffi::luaL_getmetafield(l, 1, c"__tostring".as_ptr()) == 0
        {
            let words = fields(l);
            ffi::lua_pushlstring(l, words.as_ptr().cast(), words.len());
        } else {
            ffi::lua_settop(l, 1);
            ffi::luaL_tolstring(l, 1, std::ptr::null_mut());
        }
        1
    }
}

/// The fields of the table at index 1, in an order that is always the same.
unsafe fn fields(l: *mut lua_State) -> String {
    let mut fields = Vec::new();
    // SAFETY: walking the table; each key is left on the stack for the next step, as lua_next wants it.
    unsafe {
        ffi::lua_pushnil(l);
        while ffi::lua_next(l, 1) != 0 {
            fields.push(format!("{} = {}", plain(l, -2), plain(l, -1)));
            ffi::lua_settop(l, 2);
        }
    }
    fields.sort();
    let more = fields.len() > FIELDS;
    fields.truncate(FIELDS);
    format!("{{ {}{} }}", fields.join(", "), if more { ", …" } else { "" })
}

unsafe fn plain(l: *mut lua_State, at: c_int) -> String {
    // SAFETY: reading the stack.
    unsafe {
        match ffi::lua_type(l, at) {
            ffi::LUA_TSTRING => text(l, at).map(String::from_utf8_lossy).unwrap_or_default().into_owned(),
            ffi::LUA_TNUMBER => ffi::lua_tonumber(l, at).to_string(),
            ffi::LUA_TBOOLEAN => (ffi::lua_toboolean(l, at) != 0).to_string(),
            other => CStr::from_ptr(ffi::lua_typename(l, other)).to_string_lossy().into_owned(),
        }
    }
}
