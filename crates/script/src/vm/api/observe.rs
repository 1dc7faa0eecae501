//! `tx:observe(kind, …)`: what a transaction does and sees, for a history that a checker reads.

use std::ffi::c_int;

use mlua::ffi::{self, lua_State};
use nephoscope_histories::{Operation, Transaction};

use super::integer::whole;
use super::{
    Message, Results, at_most, context, finish, not_while_loading, shared, sheltered, text, type_name,
};
use crate::vm::{Ending, Shared};

const KINDS: &str = "append, list, write, read, add, count, transfer, balances";

pub(super) unsafe extern "C-unwind" fn observe(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: called by Lua, as the helpers say.
        unsafe {
            let shared = shared(l);
            let context = context(shared)?;
            not_while_loading(context, "tx:observe")?;
            if context.ending == Ending::SetUp {
                return Err(
                    "tx:observe() is for transactions; what a session's own function does is in no history"
                        .to_owned(),
                );
            }
            sheltered(shared, || operation(l, shared, &mut context.observed))?;
            Ok(0)
        }
    }
    // SAFETY: called by Lua.
    unsafe { finish(l, body(l)) }
}

unsafe fn operation(l: *mut lua_State, shared: &Shared, to: &mut Transaction) -> Result<(), Message> {
    // SAFETY: reading the stack.
    unsafe {
        let kind = text(l, 2).unwrap_or_default();
        let takes = match kind {
            b"transfer" => (5, "\"transfer\", an account that pays, one that is paid, and an amount"),
            b"balances" => (3, "\"balances\" and a list of all balances"),
            _ => (4, "a kind, a key and a value"),
        };
        at_most(l, takes.0, "tx:observe", takes.1)?;
        let key = || unsigned(l, shared, 3, "the key");
        let value = || unsigned(l, shared, 4, "the value");
        let made = match kind {
            b"append" => Operation::Append { key: key()?, value: value()? },
            b"write" => Operation::Write { key: key()?, value: value()? },
            b"read" => {
                let is_none =
                    matches!(ffi::lua_type(l, 4), ffi::LUA_TNIL | ffi::LUA_TNONE | ffi::LUA_TLIGHTUSERDATA);
                Operation::Read { key: key()?, value: if is_none { None } else { Some(value()?) } }
            }
            b"add" => Operation::Add { key: key()?, amount: signed(l, shared, 4, "the amount")? },
            b"count" => Operation::Count { key: key()?, value: signed(l, shared, 4, "the count")? },
            b"transfer" => {
                let to = unsigned(l, shared, 4, "the account that is paid")?;
                Operation::Transfer { from: key()?, to, amount: signed(l, shared, 5, "the amount")? }
            }
            b"list" => {
                let (key, first) = (key()?, to.elements.len() as u32);
                let length = elements(l, shared, 4, |element| u64::try_from(element).ok(), &mut to.elements)?;
                Operation::List { key, first, length }
            }
            b"balances" => {
                let first = to.elements.len() as u32;
                let wide = |element| i64::try_from(element).ok().map(i64::cast_unsigned);
                let length = elements(l, shared, 3, wide, &mut to.elements)?;
                Operation::Balances { first, length }
            }
            other => {
                let given = String::from_utf8_lossy(other);
                return Err(format!("tx:observe: {given:?} is no kind; allowed are {KINDS}"));
            }
        };
        to.operations.push(made);
        Ok(())
    }
}

unsafe fn unsigned(l: *mut lua_State, shared: &Shared, at: c_int, what: &str) -> Result<u64, Message> {
    // SAFETY: reading the stack.
    unsafe {
        let found = whole(l, shared, at).and_then(|number| u64::try_from(number).ok());
        found.ok_or_else(|| unfit(l, at, what, "a whole number of 0 or more"))
    }
}

unsafe fn signed(l: *mut lua_State, shared: &Shared, at: c_int, what: &str) -> Result<i64, Message> {
    // SAFETY: reading the stack.
    unsafe {
        let found = whole(l, shared, at).and_then(|number| i64::try_from(number).ok());
        found.ok_or_else(|| unfit(l, at, what, "a whole number"))
    }
}

#[cold]
unsafe fn unfit(l: *mut lua_State, at: c_int, what: &str, wanted: &str) -> Message {
    // SAFETY: reading the stack; a number is not changed by it.
    let given = unsafe {
        match ffi::lua_type(l, at) {
            ffi::LUA_TNUMBER => ffi::lua_tonumber(l, at).to_string(),
            _ => type_name(l, at),
        }
    };
    format!("tx:observe: {what} must be {wanted}, not {given}")
}

/// The elements of a list, which is a table, nil for an empty one, or the text of one: whole numbers with commas or
/// blanks between them.
unsafe fn elements(
    l: *mut lua_State,
    shared: &Shared,
    at: c_int,
    fit: impl Fn(i128) -> Option<u64>,
    to: &mut Vec<u64>,
) -> Result<u32, Message> {
    const WANTED: &str = "a list of whole numbers, or the text of one";
    let before = to.len();
    // SAFETY: reading the stack; a C function has room for one value more.
    unsafe {
        match ffi::lua_type(l, at) {
            ffi::LUA_TNIL | ffi::LUA_TNONE | ffi::LUA_TLIGHTUSERDATA => {}
            ffi::LUA_TTABLE => {
                for place in 1..=ffi::lua_objlen(l, at) {
                    ffi::lua_rawgeti(l, at, place as ffi::lua_Integer);
                    let element = whole(l, shared, -1).and_then(&fit);
                    ffi::lua_settop(l, -2);
                    to.push(
                        element.ok_or_else(|| format!("tx:observe: element {place} is none of {WANTED}"))?,
                    );
                }
            }
            ffi::LUA_TSTRING => {
                let words = std::str::from_utf8(text(l, at).unwrap_or_default()).unwrap_or("?");
                for word in words.split([',', ' ']).filter(|word| !word.is_empty()) {
                    let element = word.parse::<i128>().ok().and_then(&fit);
                    to.push(element.ok_or_else(|| format!("tx:observe: {word:?} is none of {WANTED}"))?);
                }
            }
            _ => return Err(unfit(l, at, "what was seen", WANTED)),
        }
    }
    Ok((to.len() - before) as u32)
}
