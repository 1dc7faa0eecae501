//! `tx`: statements and the borders of a transaction, tallies, and what a transaction knows of itself.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use mlua::ffi::{self, lua_State};
use nephoscope_drivers::{Command, Isolation, Want};

use super::integer::whole;
use super::observe::observe;
use super::query;
use super::values::values;
use super::verbs;
use super::{
    Function, Message, Results, at_most, context, finish, number, set, set_index, shared, sheltered, surplus,
    table, text, type_name,
};
use crate::vm::{Call, Context, Ending, MADE, Shape, Shared, wall_seconds};

/// Leaves a call for the engine and yields.
#[inline]
pub(super) unsafe fn yield_call(l: *mut lua_State, context: &mut Context, call: Call) -> c_int {
    context.call = Some(call);
    // SAFETY: a C function may return what lua_yield returns; nothing is passed.
    unsafe { ffi::lua_yield(l, 0) }
}

/// `tx:exec(name, …)` and its kin: reads the statement's name and parameters. In place of the name stands what
/// `tx:query` has given.
#[inline]
unsafe fn statement(l: *mut lua_State, shape: Shape) -> Result<c_int, Message> {
    // SAFETY: as the helpers say.
    unsafe {
        let shared = shared(l);
        let context = context(shared)?;
        let called = ffi::lua_topointer(l, 2);
        let Some(index) = shared.statements.borrow().at(called) else {
            return query::call(l, shared, context, shape, called);
        };
        by_index(l, shared, context, shape, index)
    }
}

/// Takes the values of a statement of the workload from the stack and leaves the call for the engine.
#[inline]
pub(super) unsafe fn by_index(
    l: *mut lua_State,
    shared: &Shared,
    context: &mut Context,
    shape: Shape,
    index: usize,
) -> Result<c_int, Message> {
    // SAFETY: as the helpers say.
    unsafe {
        let names = shared.statements.borrow();
        let (params, name) = (names.params(index), names.name(index).as_bytes());
        sheltered(shared, || values(l, shared, context, params, name))?;
        Ok(yield_call(l, context, Call::new(Command::Execute(index), shape, context.pipelines)))
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

/// The most answers that a transaction takes at once: each is a value on Lua's stack.
const MOST_SENT: usize = 1_000;

/// `tx:send(name, …)`: as `tx:queue`, and the reply is kept.
unsafe extern "C-unwind" fn send(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let context = context(shared(l))?;
            if context.sent - context.received == MOST_SENT {
                return Err(format!("tx:send: {MOST_SENT} answers wait already; tx:receive() takes them"));
            }
            let yielded = statement(l, Shape::Kept)?;
            self::context(shared(l))?.sent += 1;
            Ok(yielded)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// `tx:receive()`: the answers to what was sent.
unsafe extern "C-unwind" fn receive(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let context = context(shared(l))?;
            at_most(l, 1, "tx:receive()", "nothing")?;
            if context.sent == context.received {
                return Err(
                    "tx:receive() without an answer to wait for: tx:send(…) sends a statement".to_owned()
                );
            }
            Ok(yield_call(l, context, Call::new(MADE, Shape::Answers, true)))
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
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
        let flush = matches!(command, Command::Commit | Command::Rollback) || !context.pipelines;
        Ok(yield_call(l, context, Call { command, want: Want::Count, flush, shape: Shape::Nothing }))
    }
}

/// Keeps account of where the transaction begins and ends: what no server would take is refused before one is asked.
#[inline]
pub(super) fn border(context: &mut Context, command: Command, values: c_int) -> Result<(), Message> {
    let begins = matches!(command, Command::Begin | Command::BeginIn(_));
    if begins == context.within || values > 1 {
        return Err(misplaced(command, values));
    }
    context.within = begins;
    context.aborted = command == Command::Rollback;
    // Those of the statement before it.
    context.params.clear();
    Ok(())
}

#[cold]
fn misplaced(command: Command, values: c_int) -> Message {
    let word = match command {
        Command::Begin | Command::BeginIn(_) => "tx:begin()",
        Command::Commit => "tx:commit()",
        _ => "tx:rollback()",
    };
    if values > 1 {
        return surplus(values - 1, word, "nothing");
    }
    match command {
        Command::Begin | Command::BeginIn(_) => {
            format!("{word} within a transaction: tx:commit() or tx:rollback() ends it first")
        }
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
    unsafe {
        let level = shared(l).isolation.get();
        finish(l, control(l, level.map_or(Command::Begin, Command::BeginIn)))
    }
}

/// `tx:begin()` of a transaction with an isolation level of its own.
unsafe extern "C-unwind" fn begin_in(l: *mut lua_State) -> Results {
    // SAFETY: see `exec`; the second upvalue is the level's place among all.
    unsafe {
        let level = ffi::lua_tonumber(l, ffi::lua_upvalueindex(2)) as usize;
        let command = Isolation::ALL.get(level).map_or(Command::Begin, |level| Command::BeginIn(*level));
        finish(l, control(l, command))
    }
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
                        "tx has no {name:?}; it has begin, commit, rollback, abort, skip, exec, queue, send, receive, key, one, rows, \
                         results, query, read, scan, insert, update, delete, tally, inserted, observe, now, null, session, \
                         sessions, attempt"
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

/// Pushes `tx`, as transactions see it that begin in a level of their own, or in their session's.
pub(crate) unsafe fn push_tx(l: *mut lua_State, shared: *const Shared, level: Option<Isolation>) {
    // SAFETY: the caller has room on the stack.
    unsafe {
        ffi::lua_createtable(l, 0, 23);
        for (name, function) in [
            (c"begin", begin as Function),
            (c"commit", commit),
            (c"rollback", rollback),
            (c"abort", abort),
            (c"skip", skip),
            (c"exec", exec),
            (c"queue", queue),
            (c"send", send),
            (c"receive", receive),
            (c"key", key),
            (c"one", one),
            (c"rows", rows),
            (c"results", results),
            (c"query", query::query),
            (c"read", verbs::read),
            (c"scan", verbs::scan),
            (c"insert", verbs::insert),
            (c"update", verbs::update),
            (c"delete", verbs::delete),
            (c"tally", tally),
            (c"inserted", inserted),
            (c"observe", observe),
        ] {
            set(l, shared, name, function);
        }
        if let Some(level) = level {
            ffi::lua_pushlightuserdata(l, shared.cast_mut().cast());
            ffi::lua_pushnumber(l, f64::from(level as u8));
            ffi::lua_pushcclosure(l, begin_in, 2);
            ffi::lua_setfield(l, -2, c"begin".as_ptr());
        }
        ffi::lua_pushlightuserdata(l, std::ptr::null_mut());
        ffi::lua_setfield(l, -2, c"null".as_ptr());
        set_index(l, shared, tx_field);
    }
}
