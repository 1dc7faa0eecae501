//! `tx`: statements and the borders of a transaction, tallies, and what a transaction knows of itself.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use mlua::ffi::{self, lua_State};
use nephoscope_drivers::{Command, Value, Want};

use super::integer::{as_value, object, whole};
use super::names::listed;
use super::{
    Function, Message, Results, at_most, context, finish, number, set, set_index, shared, sheltered, surplus,
    table, text, type_name,
};
use crate::vm::{Call, Context, Ending, Shape, Shared, wall_seconds};

/// Leaves a call for the engine and yields.
unsafe fn yield_call(l: *mut lua_State, context: &mut Context, call: Call) -> c_int {
    context.call = Some(call);
    // SAFETY: a C function may return what lua_yield returns; nothing is passed.
    unsafe { ffi::lua_yield(l, 0) }
}

/// `tx:exec(name, …)` and its kin: reads the statement's name and parameters.
#[inline]
unsafe fn statement(l: *mut lua_State, shape: Shape) -> Result<c_int, Message> {
    // SAFETY: as the helpers say.
    unsafe {
        let shared = shared(l);
        let context = context(shared)?;
        let index = sheltered(shared, || parameters(l, shared, context))?;
        let counts = matches!(shape, Shape::Nothing | Shape::Affected);
        let want = if counts { Want::Count } else { Want::Rows };
        let flush = shape != Shape::Nothing || !shared.pipeline;
        Ok(yield_call(l, context, Call { command: Command::Execute(index), want, flush, shape }))
    }
}

/// Takes a statement's parameters from the stack; gives its index.
#[inline]
unsafe fn parameters(l: *mut lua_State, shared: &Shared, context: &mut Context) -> Result<usize, Message> {
    // SAFETY: reading the stack.
    unsafe {
        let Some(name) = text(l, 2) else {
            return Err(format!(
                "the name of a statement is expected, not {}; write tx:exec(\"name\", …), with a colon",
                type_name(l, 2)
            ));
        };
        let (index, wanted) = {
            let mut names = shared.statements.borrow_mut();
            let index = names.find(name)?;
            (index, names.params(index).len())
        };
        context.params.clear();
        let top = ffi::lua_gettop(l);
        if top == 3 && ffi::lua_type(l, 3) == ffi::LUA_TTABLE {
            named_parameters(l, shared, context, index, name)?;
        } else {
            for at in 3..=top {
                let value = parameter(l, shared, at).map_err(|kind| unfit(at - 2, name, &kind))?;
                context.params.push(value);
            }
            if context.params.len() != wanted {
                return Err(wrong_count(shared, index, name, context.params.len()));
            }
        }
        Ok(index)
    }
}

#[cold]
fn wrong_count(shared: &Shared, statement: usize, name: &[u8], given: usize) -> Message {
    let names = shared.statements.borrow();
    let (name, params) = (String::from_utf8_lossy(name), names.params(statement));
    match params.len() {
        0 => format!("{name} takes no parameters; {given} are given"),
        1 => format!("{name} takes 1 parameter ({}); {given} are given", listed(params)),
        count => format!("{name} takes {count} parameters ({}); {given} are given", listed(params)),
    }
}

#[cold]
fn unfit(param: impl std::fmt::Display, statement: &[u8], kind: &str) -> Message {
    let statement = String::from_utf8_lossy(statement);
    format!("parameter {param} of {statement} is a {kind}; allowed are numbers, texts, booleans and tx.null")
}

/// Takes a statement's parameters by their names from the table at index 3. What is missing or not known is a slip
/// of the pen, so NULL has to be written: `tx.null`.
unsafe fn named_parameters(
    l: *mut lua_State,
    shared: &Shared,
    context: &mut Context,
    statement: usize,
    name: &[u8],
) -> Result<(), Message> {
    let names = shared.statements.borrow();
    let params = names.params(statement);
    for param in params {
        // SAFETY: reading the table without its metatable; the value is copied before it leaves the stack.
        unsafe {
            let shown = param.to_string_lossy();
            if !find_field(l, param.as_bytes()) {
                return Err(lacking(l, name, &shown));
            }
            let value =
                parameter(l, shared, 5).map_err(|kind| unfit(format_args!(":{shown}"), name, &kind))?;
            context.params.push(value);
            ffi::lua_settop(l, 3);
        }
    }
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
unsafe fn lacking(l: *mut lua_State, statement: &[u8], param: &str) -> Message {
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
unsafe fn find_field(l: *mut lua_State, name: &[u8]) -> bool {
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
#[inline]
unsafe fn parameter<'a>(l: *mut lua_State, shared: &Shared, at: c_int) -> Result<Value<'a>, Message> {
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

unsafe extern "C-unwind" fn exec(l: *mut lua_State) -> Results {
    // SAFETY: called by Lua, as all functions of this kind below.
    unsafe { finish(l, statement(l, Shape::Affected)) }
}

unsafe extern "C-unwind" fn queue(l: *mut lua_State) -> Results {
    // SAFETY: see `exec`.
    unsafe { finish(l, statement(l, Shape::Nothing)) }
}

unsafe extern "C-unwind" fn key(l: *mut lua_State) -> Results {
    // SAFETY: see `exec`.
    unsafe { finish(l, statement(l, Shape::Key)) }
}

unsafe extern "C-unwind" fn one(l: *mut lua_State) -> Results {
    // SAFETY: see `exec`.
    unsafe { finish(l, statement(l, Shape::One)) }
}

unsafe extern "C-unwind" fn rows(l: *mut lua_State) -> Results {
    // SAFETY: see `exec`.
    unsafe { finish(l, statement(l, Shape::List)) }
}

unsafe extern "C-unwind" fn results(l: *mut lua_State) -> Results {
    // SAFETY: see `exec`.
    unsafe { finish(l, statement(l, Shape::Results)) }
}

unsafe fn control(l: *mut lua_State, command: Command) -> Result<c_int, Message> {
    // SAFETY: see `exec`.
    unsafe {
        let shared = shared(l);
        let context = context(shared)?;
        border(context, command, ffi::lua_gettop(l))?;
        // Those of the statement before it.
        context.params.clear();
        let flush = command != Command::Begin || !shared.pipeline;
        Ok(yield_call(l, context, Call { command, want: Want::Count, flush, shape: Shape::Nothing }))
    }
}

/// Keeps account of where the transaction begins and ends: what no server would take is refused before one is asked.
#[inline]
fn border(context: &mut Context, command: Command, values: c_int) -> Result<(), Message> {
    let begins = command == Command::Begin;
    if begins == context.within || values > 1 {
        return Err(misplaced(command, values));
    }
    context.within = begins;
    context.aborted = command == Command::Rollback;
    Ok(())
}

#[cold]
fn misplaced(command: Command, values: c_int) -> Message {
    let word = match command {
        Command::Begin => "tx:begin()",
        Command::Commit => "tx:commit()",
        _ => "tx:rollback()",
    };
    if values > 1 {
        return surplus(values - 1, word, "nothing");
    }
    match command {
        Command::Begin => format!("{word} within a transaction: tx:commit() or tx:rollback() ends it first"),
        Command::Commit => format!("{word} outside of a transaction: tx:begin() begins one"),
        _ => format!(
            "{word} outside of a transaction: tx:begin() begins one, and where nothing is to be rolled back tx:abort() \
             counts the function as aborted"
        ),
    }
}

/// `tx:abort()`: what has run outside of a transaction counts as aborted.
unsafe extern "C-unwind" fn abort(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let context = context(shared(l))?;
            at_most(l, 1, "tx:abort()", "nothing")?;
            if context.within {
                return Err("tx:abort() within a transaction: tx:rollback() ends it".to_owned());
            }
            context.aborted = true;
            Ok(0)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

unsafe extern "C-unwind" fn begin(l: *mut lua_State) -> Results {
    // SAFETY: see `exec`.
    unsafe { finish(l, control(l, Command::Begin)) }
}

unsafe extern "C-unwind" fn commit(l: *mut lua_State) -> Results {
    // SAFETY: see `exec`.
    unsafe { finish(l, control(l, Command::Commit)) }
}

unsafe extern "C-unwind" fn rollback(l: *mut lua_State) -> Results {
    // SAFETY: see `exec`.
    unsafe { finish(l, control(l, Command::Rollback)) }
}

/// `tx:skip()`: the transaction has nothing to do.
unsafe extern "C-unwind" fn skip(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        let (shared, context) = unsafe {
            let shared = shared(l);
            let context = context(shared)?;
            at_most(l, 1, "tx:skip", "nothing")?;
            (shared, context)
        };
        if context.ending == Ending::SetUp {
            return Err("tx:skip() is for transactions; a session's own function just returns".to_owned());
        }
        context.ending = Ending::Skipped;
        // From here on nothing of tx and pick can be called, which asks nothing of those that are.
        shared.describing.store(context, Ordering::Relaxed);
        shared.current.store(std::ptr::null_mut(), Ordering::Relaxed);
        Ok(0)
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// `tx:tally(name, amount)`.
unsafe extern "C-unwind" fn tally(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let shared = shared(l);
            let context = context(shared)?;
            at_most(l, 3, "tx:tally", "a name and an amount")?;
            let name = text(l, 2)
                .ok_or_else(|| format!("a tally's name must be a text, not {}", type_name(l, 2)))?;
            let amount = number(l, 3, "the amount of a tally")?;
            if !amount.is_finite() {
                let name = String::from_utf8_lossy(name);
                return Err(format!(
                    "the amount of the tally {name:?} is {amount}; it must be a finite number"
                ));
            }
            let mut names = shared.tally_names.borrow_mut();
            let index = names.iter().position(|known| known.as_bytes() == name).unwrap_or_else(|| {
                names.push(String::from_utf8_lossy(name).into_owned());
                names.len() - 1
            });
            context.tallies.push((index, amount));
            Ok(0)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// `tx:inserted(table, key)`.
unsafe extern "C-unwind" fn inserted(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let shared = shared(l);
            let context = context(shared)?;
            at_most(l, 3, "tx:inserted", "a table and a key")?;
            let table = table(l, 2, shared)?;
            let Some(key) = whole(l, shared, 3).and_then(|key| i64::try_from(key).ok()) else {
                let given = number(l, 3, "a key")?;
                return Err(format!("a key must be a whole number that Lua keeps exactly; {given} is not"));
            };
            context.arrivals.push((table, key));
            Ok(0)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// `tx.now`, `tx.session`, `tx.sessions`, `tx.attempt`: what `tx` holds beside its functions.
unsafe extern "C-unwind" fn tx_field(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let context = context(shared(l))?;
            let value = match text(l, 2) {
                Some(b"now") => *context.now.get_or_insert_with(wall_seconds),
                Some(b"session") => context.session as f64,
                Some(b"sessions") => shared(l).sessions.get() as f64,
                Some(b"attempt") => f64::from(context.attempt),
                name => {
                    let name = String::from_utf8_lossy(name.unwrap_or(b"?")).into_owned();
                    return Err(format!(
                        "tx has no {name:?}; it has begin, commit, rollback, abort, skip, exec, queue, key, one, rows, results, tally, \
                         inserted, now, null, session, sessions, attempt"
                    ));
                }
            };
            ffi::lua_pushnumber(l, value);
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// Pushes `tx`.
pub(crate) unsafe fn push_tx(l: *mut lua_State, shared: *const Shared) {
    // SAFETY: the caller has room on the stack.
    unsafe {
        ffi::lua_createtable(l, 0, 14);
        for (name, function) in [
            (c"begin", begin as Function),
            (c"commit", commit),
            (c"rollback", rollback),
            (c"abort", abort),
            (c"skip", skip),
            (c"exec", exec),
            (c"queue", queue),
            (c"key", key),
            (c"one", one),
            (c"rows", rows),
            (c"results", results),
            (c"tally", tally),
            (c"inserted", inserted),
        ] {
            set(l, shared, name, function);
        }
        ffi::lua_pushlightuserdata(l, std::ptr::null_mut());
        ffi::lua_setfield(l, -2, c"null".as_ptr());
        set_index(l, shared, tx_field);
    }
}
