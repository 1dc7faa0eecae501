//! What a transaction function can call: the C functions behind [`tx`], [`pick`] and the fields of [`rows`].
//!
//! See [`crate::vm`] for what keeps the pointers here valid. Every function follows one pattern: the work is done
//! in a function that returns a `Result`, so that nothing is left to drop when [`raise`] leaves by a Lua error.

use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::atomic::Ordering;

use mlua::ffi::{self, lua_State};

use crate::vm::{Context, Ending, Shared};

mod failure;
mod globals;
mod hash;
mod integer;
mod laws;
mod lists;
mod loaded;
mod names;
mod observe;
mod pick;
mod query;
mod rows;
mod sysbench;
mod tx;
mod values;
mod verbs;

pub(crate) use failure::{at_call, error_message, interruption};
pub(crate) use globals::{forbid_new_globals, refuse_unknown_globals};
pub(crate) use hash::add_hash;
pub(crate) use integer::{Integers, make_integers, push_whole};
pub(crate) use lists::Lists;
pub(crate) use names::{Names, make_names};
pub(crate) use pick::{PICK_HELPERS, push_pick, replace_math_random};
pub(crate) use query::{Queries, Seen, make_queries};
pub(crate) use rows::{push_row_metatable, push_value};
pub(crate) use sysbench::set_sysbench;
pub(crate) use tx::push_tx;
pub(crate) use verbs::{Verbs, make_verbs};

/// An error for the workload's author, without its place in the file.
type Message = String;

/// How many results a C function has. LuaJIT reads more than that: see [`crate::vm::sandbox::state`].
pub(crate) type Results = c_int;

type Function = ffi::lua_CFunction;

/// Does the part of a C function that needs nothing of Lua but to read its stack. A panic on the way becomes an error
/// that ends the run, whatever the workload catches: LuaJIT would end the process with it.
///
/// Nothing in `work` may raise an error of Lua, which cannot be caught here.
#[inline]
fn sheltered<T>(shared: &Shared, work: impl FnOnce() -> Result<T, Message>) -> Result<T, Message> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        let message = format!("an internal error of nephoscope, not of the workload: {words}");
        shared.panicked.set(Some(message.clone()));
        Err(message)
    })
}

/// Ends a C function: with its number of results, or by a Lua error that says where the workload called it.
#[inline]
unsafe fn finish(l: *mut lua_State, outcome: Result<c_int, Message>) -> Results {
    match outcome {
        Ok(results) => results,
        Err(message) => {
            // SAFETY: `l` is running a C function, which has room for these values. The message is copied and
            // dropped before the error leaves this function.
            unsafe {
                ffi::luaL_where(l, 1);
                ffi::lua_pushlstring(l, message.as_ptr().cast(), message.len());
                drop(message);
                ffi::lua_concat(l, 2);
                raise(l)
            }
        }
    }
}

/// Raises the error on top of the stack.
unsafe fn raise(l: *mut lua_State) -> ! {
    // SAFETY: the caller has nothing left to drop.
    unsafe { ffi::lua_error(l) }
}

/// The text at an index of the stack; `None` where there is none. Numbers are left alone.
#[inline]
unsafe fn text<'a>(l: *mut lua_State, at: c_int) -> Option<&'a [u8]> {
    let mut length = 0;
    // SAFETY: Lua keeps the text while it is on the stack, and no caller keeps it longer.
    unsafe {
        if ffi::lua_type(l, at) != ffi::LUA_TSTRING {
            return None;
        }
        let start = ffi::lua_tolstring(l, at, &raw mut length);
        (!start.is_null()).then(|| slice::from_raw_parts(start.cast(), length))
    }
}

#[inline]
unsafe fn shared<'a>(l: *mut lua_State) -> &'a Shared {
    let running = Shared::of_running();
    // SAFETY: the first upvalue of every function made here is the pointer to `Shared`, which outlives the state; while a
    // coroutine runs, no other state's functions are called on its thread.
    unsafe {
        if running.is_null() {
            &*ffi::lua_touserdata(l, ffi::lua_upvalueindex(1)).cast::<Shared>()
        } else {
            &*running
        }
    }
}

/// Why a call is refused where no session runs.
#[cold]
fn outside(shared: &Shared) -> Message {
    // SAFETY: it points at the context of a script that is at work, or is null.
    let skipped = unsafe { shared.describing.load(Ordering::Relaxed).as_ref() };
    if skipped.is_some_and(|context| context.ending == Ending::Skipped) {
        return "tx:skip() has ended the transaction; write return tx:skip()".to_owned();
    }
    "this can be called only from within a transaction".to_owned()
}

/// The session that runs.
#[inline]
unsafe fn context<'a>(shared: &Shared) -> Result<&'a mut Context, Message> {
    let context = shared.current.load(Ordering::Relaxed);
    if context.is_null() {
        return Err(outside(shared));
    }
    // SAFETY: it points at the context of the script that is resuming this coroutine, and nobody else uses that
    // until the coroutine yields or ends.
    Ok(unsafe { &mut *context })
}

#[inline]
unsafe fn number(l: *mut lua_State, at: c_int, what: &str) -> Result<f64, Message> {
    // SAFETY: reading the stack.
    unsafe {
        if ffi::lua_type(l, at) == ffi::LUA_TNUMBER {
            Ok(ffi::lua_tonumber(l, at))
        } else {
            Err(format!("{what} must be a number, not {}", type_name(l, at)))
        }
    }
}

unsafe fn type_name(l: *mut lua_State, at: c_int) -> String {
    // SAFETY: Lua's type names are static texts.
    unsafe {
        match ffi::lua_type(l, at) {
            ffi::LUA_TNONE => "nothing".to_owned(),
            other => CStr::from_ptr(ffi::lua_typename(l, other)).to_string_lossy().into_owned(),
        }
    }
}

/// Refuses more values than a word takes; `most` counts the object before a colon.
#[inline]
unsafe fn at_most(l: *mut lua_State, most: c_int, word: &str, takes: &str) -> Result<(), Message> {
    // SAFETY: reading the stack.
    let given = unsafe { ffi::lua_gettop(l) };
    if given <= most { Ok(()) } else { Err(surplus(given - most, word, takes)) }
}

#[cold]
fn surplus(count: c_int, word: &str, takes: &str) -> Message {
    let values = if count == 1 { "one value" } else { &format!("{count} values") };
    format!("{word} takes {takes}; {values} too many")
}

/// Refuses, in `w:load`, a word whose effect is for transactions alone.
fn not_while_loading(context: &Context, word: &str) -> Result<(), Message> {
    if context.ending == Ending::Part {
        return Err(format!("{word} is for transactions; w:load cannot use it"));
    }
    Ok(())
}

/// The table named at an index of the stack.
unsafe fn table(l: *mut lua_State, at: c_int, shared: &Shared) -> Result<usize, Message> {
    // SAFETY: see `exec`.
    let name = unsafe { text(l, at) }.unwrap_or_default();
    shared.tables.iter().position(|(known, _)| known.as_bytes() == name).ok_or_else(|| {
        let known: Vec<&str> = shared.tables.iter().map(|(name, _)| name.as_str()).collect();
        let (name, known) = (String::from_utf8_lossy(name), known.join(", "));
        format!("no table with a serial key is called {name:?}; such tables are {known}")
    })
}

/// Puts a function into the table on top of the stack.
unsafe fn set(l: *mut lua_State, shared: *const Shared, name: &CStr, function: Function) {
    // SAFETY: a table is on top, and there is room for two values.
    unsafe {
        push_function(l, shared, function);
        ffi::lua_setfield(l, -2, name.as_ptr());
    }
}

unsafe fn push_function(l: *mut lua_State, shared: *const Shared, function: Function) {
    // SAFETY: there is room for two values.
    unsafe {
        ffi::lua_pushlightuserdata(l, shared.cast_mut().cast::<c_void>());
        ffi::lua_pushcclosure(l, function, 1);
    }
}

/// Gives the table on top of the stack a metatable whose `__index` is a function, hidden from the workload, and
/// which lets nothing be added to the table.
unsafe fn set_index(l: *mut lua_State, shared: *const Shared, index: Function) {
    // SAFETY: a table is on top, and there is room for three values.
    unsafe {
        push_metatable(l, shared, index);
        ffi::lua_setmetatable(l, -2);
    }
}

/// Pushes a metatable for [`set_index`].
unsafe fn push_metatable(l: *mut lua_State, shared: *const Shared, index: Function) {
    // SAFETY: there is room for three values.
    unsafe {
        ffi::lua_createtable(l, 0, 3);
        set(l, shared, c"__index", index);
        set(l, shared, c"__newindex", no_new_field);
        ffi::lua_pushboolean(l, 0);
        ffi::lua_setfield(l, -2, c"__metatable".as_ptr());
    }
}

/// Sessions share `tx` and `pick`, and a row is what the database said.
unsafe extern "C-unwind" fn no_new_field(l: *mut lua_State) -> Results {
    let message = "tx, pick and rows cannot be changed; keep values in local variables".to_owned();
    // SAFETY: called by Lua.
    unsafe { finish(l, Err(message)) }
}
