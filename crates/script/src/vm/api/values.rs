//! The values of a statement's parameters, taken from the stack: one after another, or by their names.

use std::ffi::c_int;

use mlua::ffi::{self, lua_State};
use nephoscope_drivers::Value;

use super::integer::{as_value, object};
use super::names::listed;
use super::{Message, text, type_name};
use crate::vm::{Context, Shared};

/// Takes the values of a statement's parameters from the stack, from the third value on.
#[expect(
    clippy::inline_always,
    reason = "it is in the path of every statement, and called from elsewhere, too"
)]
#[inline(always)]
pub(super) unsafe fn values(
    l: *mut lua_State,
    shared: &Shared,
    context: &mut Context,
    params: &[String],
    name: &[u8],
) -> Result<(), Message> {
    context.params.clear();
    // SAFETY: reading the stack.
    unsafe {
        let top = ffi::lua_gettop(l);
        if top == 3 && ffi::lua_type(l, 3) == ffi::LUA_TTABLE {
            return named_parameters(l, shared, context, params, name);
        }
        for at in 3..=top {
            let value = parameter(l, shared, at).map_err(|kind| unfit(at - 2, name, &kind))?;
            context.params.push(value);
        }
    }
    if context.params.len() == params.len() {
        return Ok(());
    }
    Err(wrong_count(params, name, context.params.len()))
}

#[cold]
pub(super) fn wrong_count(params: &[String], name: &[u8], given: usize) -> Message {
    let name = String::from_utf8_lossy(name);
    match params.len() {
        0 => format!("{name} takes no parameters; {given} are given"),
        1 => format!("{name} takes 1 parameter ({}); {given} are given", listed(params)),
        count => format!("{name} takes {count} parameters ({}); {given} are given", listed(params)),
    }
}

#[cold]
pub(super) fn unfit(param: impl std::fmt::Display, statement: &[u8], kind: &str) -> Message {
    let statement = String::from_utf8_lossy(statement);
    format!("parameter {param} of {statement} is a {kind}; allowed are numbers, texts, booleans and tx.null")
}

/// Takes a statement's parameters by their names from the table at index 3. What is missing or not known is a slip
/// of the pen, so NULL has to be written: `tx.null`.
unsafe fn named_parameters(
    l: *mut lua_State,
    shared: &Shared,
    context: &mut Context,
    params: &[String],
    name: &[u8],
) -> Result<(), Message> {
    for param in params {
        // SAFETY: reading the table without its metatable; the value is copied before it leaves the stack.
        unsafe {
            if !find_field(l, param.as_bytes()) {
                return Err(lacking(l, name, param));
            }
            let value =
                parameter(l, shared, 5).map_err(|kind| unfit(format_args!(":{param}"), name, &kind))?;
            context.params.push(value);
            ffi::lua_settop(l, 3);
        }
    }
    // SAFETY: the table is at its place.
    unsafe { nothing_else(l, params, name) }
}

/// Refuses names in the table at index 3 that are no parameters.
pub(super) unsafe fn nothing_else(l: *mut lua_State, params: &[String], name: &[u8]) -> Result<(), Message> {
    // SAFETY: walking the table; each key is left on the stack for the next step, as lua_next wants it.
    unsafe {
        ffi::lua_pushnil(l);
        while ffi::lua_next(l, 3) != 0 {
            ffi::lua_settop(l, 4);
            let key = text(l, 4).unwrap_or(b"?");
            if !params.iter().any(|param| param.as_bytes() == key) {
                let (name, key) = (String::from_utf8_lossy(name), String::from_utf8_lossy(key));
                return Err(format!("{name} has no parameter :{key}; it has {}", listed(params)));
            }
        }
    }
    Ok(())
}

/// What is said of a table without one of the parameters.
#[cold]
pub(super) unsafe fn lacking(l: *mut lua_State, statement: &[u8], param: &str) -> Message {
    let name = String::from_utf8_lossy(statement);
    // SAFETY: reading the stack.
    if unsafe { ffi::lua_objlen(l, 3) } > 0 {
        return format!(
            "{name} is given a list; values come one after another, ({name:?}, 1, 2), or by name, ({name:?}, {{ {param} = 1 }})"
        );
    }
    format!("{name} lacks its parameter :{param}; NULL is written {param} = tx.null")
}

/// Finds a field of the table at index 3, and leaves its key and value at 4 and 5. To push the key would be quicker, and
/// could run out of memory, which is an error of Lua's.
pub(super) unsafe fn find_field(l: *mut lua_State, name: &[u8]) -> bool {
    // SAFETY: walking the table; each key is left on the stack for the next step, as lua_next wants it.
    unsafe {
        ffi::lua_pushnil(l);
        while ffi::lua_next(l, 3) != 0 {
            if text(l, 4) == Some(name) {
                return true;
            }
            ffi::lua_settop(l, 4);
        }
    }
    false
}

/// The value at an index of the stack, or the name of its type if no parameter can have it.
#[expect(clippy::inline_always, reason = "as above")]
#[inline(always)]
pub(super) unsafe fn parameter<'a>(
    l: *mut lua_State,
    shared: &Shared,
    at: c_int,
) -> Result<Value<'a>, Message> {
    // SAFETY: reading the stack; a text is copied by the caller before the stack changes.
    unsafe {
        Ok(match ffi::lua_type(l, at) {
            ffi::LUA_TNUMBER => {
                let number = ffi::lua_tonumber(l, at);
                let whole = number as i64;
                // Whole numbers up to 2^53 are exact in Lua, and are meant as whole numbers.
                if whole as f64 == number && whole.unsigned_abs() <= 1 << 53 {
                    Value::Int(whole)
                } else {
                    Value::Float(number)
                }
            }
            ffi::LUA_TSTRING => Value::Text(text(l, at).unwrap_or_default()),
            // A light pointer is tx.null: a workload has no other.
            ffi::LUA_TNIL | ffi::LUA_TLIGHTUSERDATA => Value::Null,
            ffi::LUA_TBOOLEAN => Value::Bool(ffi::lua_toboolean(l, at) != 0),
            _ => object(l, shared, at).and_then(as_value).ok_or_else(|| type_name(l, at))?,
        })
    }
}
