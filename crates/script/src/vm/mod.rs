//! A thread's Lua state, and the coroutine of each session in it.
//!
//! Workload functions are called hundreds of thousands of times a second, so what they call (`tx`, `pick`, the
//! fields of a row) is written against Lua's own C interface: arguments go from the Lua stack straight into the
//! parameters of a statement, and nothing is allocated for a transaction once a session is in its stride.
//!
//! The rules that the unsafe code here rests on:
//! * [`Shared`] lives in a box that [`Core`] owns beside the state, so the pointer that the C functions hold as
//!   their upvalue is valid as long as they can be called.
//! * [`Context`] lives in a box that its [`Script`] owns; `Shared::current` points at it only while `Script`
//!   resumes the coroutine, and `Shared::contexts` forgets it when the script is dropped.
//! * A C function that raises a Lua error has no value left to drop when it does so: the message is pushed first.
//! * A panic must not reach LuaJIT, which would end the process; an error of Lua must not reach `catch_unwind`, which
//!   would do the same. So what C functions compute is done by `api::sheltered`, apart from what they push.
//! * What may need memory is done where Lua can raise an error: by `exec_raw`, in a coroutine that is resumed, or
//!   else in `Core::unlimited`. An error of Lua unwinds the C functions here, as a panic would.
//! * Lua's own libraries for coroutines and debugging are not open, so a workload cannot yield by itself and
//!   cannot reach an upvalue.

use std::ffi::c_int;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use mlua::ffi::{self, lua_State};
use mlua::{Function, Lua, Value};
use nephoscope_drivers::{Isolation, Lexer};

use crate::access::{Access, KeySpace};
use crate::error::ScriptError;
use crate::sysbench::Lent;
use crate::workload::Workload;

pub(crate) mod api;
mod context;
mod ending;
mod key;
pub(crate) mod loaded;
mod pulse;
pub(crate) mod sandbox;
mod script;

pub(crate) use context::{Call, Context, Ending, MADE, RowObject, Shape, Shared, Way, wall_seconds};
pub use pulse::{LONGEST, Running, Watch};
pub use script::{Script, Step};

/// The functions of a workload.
pub(crate) struct Functions {
    /// In the order of the transactions.
    pub(crate) transactions: Vec<Function>,
    /// What each session runs once.
    pub(crate) session: Option<Function>,
    /// What loads that columns cannot say.
    pub(crate) load: Option<Function>,
    /// What a script of sysbench needs beside them.
    pub(crate) sysbench: Option<Lent>,
}

/// The Lua state and what its functions share. Dropped in this order.
struct Core {
    state: *mut lua_State,
    /// References into the registry: the workload's functions, `tx`, `pick`, the metatable of rows.
    functions: Vec<c_int>,
    session: Option<c_int>,
    load: Option<c_int>,
    /// What each session does at the end of the run.
    done: Option<c_int>,
    /// Whether a function may end without a statement: an event of sysbench that only adds to a bulk insert.
    may_rest: bool,
    tx: c_int,
    pick: c_int,
    row_metatable: c_int,
    lua: Lua,
    shared: Box<Shared>,
}

impl Core {
    /// Does what may need memory and is not protected against an error: without the limit, that is.
    fn unlimited<R>(&self, act: impl FnOnce() -> R) -> R {
        let limit = self.lua.set_memory_limit(0);
        let result = act();
        if let Ok(limit) = limit {
            let _ = self.lua.set_memory_limit(limit);
        }
        result
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.shared.pulse.ends();
    }
}

/// A transaction's function with a `tx` of its own: one whose `begin` says the level. The others pay nothing for it.
fn isolated(
    lua: &Lua,
    shared: *const Shared,
    function: &Function,
    level: Isolation,
) -> mlua::Result<Function> {
    const WITH_TX: &str = "local run, tx = ... return function(_, ...) return run(tx, ...) end";
    // SAFETY: one value is pushed, and the pointer stays valid as `Core` says.
    let tx: Value = unsafe { lua.exec_raw((), |l| api::push_tx(l, shared, Some(level)))? };
    lua.load(WITH_TX).set_name("=tx").call((function, tx))
}

/// The functions of the transactions, those with an isolation level as [`isolated`].
fn with_levels(
    lua: &Lua,
    shared: *const Shared,
    functions: Vec<Function>,
    workload: &Workload,
) -> Result<Vec<Function>, ScriptError> {
    let all = functions.into_iter().zip(&workload.transactions).map(|(function, of)| match of.isolation {
        Some(level) => isolated(lua, shared, &function, level),
        None => Ok(function),
    });
    all.collect::<mlua::Result<_>>().map_err(|error| ScriptError::plain(error.to_string()))
}

/// One thread's Lua state with a workload loaded.
#[derive(Clone)]
pub struct Vm(Rc<Core>);

/// Lends a script of sysbench the functions that draw; gives what its sessions do at the end.
fn lend(lua: &Lua, shared: *const Shared, lent: Lent) -> Result<Option<Function>, ScriptError> {
    // SAFETY: the table is on top of the stack, and `shared` stays valid as `Core` says.
    let set: mlua::Result<()> = unsafe {
        lua.exec_raw(lent.native, |l| {
            api::set_sysbench(l, shared);
            ffi::lua_pop(l, 1);
        })
    };
    set.map_err(|error| ScriptError::plain(error.to_string()))?;
    Ok(lent.done)
}

impl Vm {
    /// A state in which a `workload`'s file has run, and its `functions`. `keys` are the key spaces of the tables that have
    /// one; `lexer` reads the SQL that transactions make; `pipeline` lets commands without a result ride with the next.
    pub(crate) fn of(
        lua: Lua,
        workload: &Workload,
        functions: Functions,
        keys: &[(String, Arc<KeySpace>)],
        lexer: Lexer,
        pipeline: bool,
    ) -> Result<Self, ScriptError> {
        let mut shared = Box::new(Shared::new(workload, keys, lexer, pipeline));
        if let Some(lent) = &functions.sysbench {
            (shared.laws, shared.unique) = (lent.laws, Arc::clone(&lent.unique));
        }
        let pointer: *const Shared = &raw const *shared;
        let mut state = ptr::null_mut();
        let (mut tx, mut pick, mut row_metatable) = (0, 0, 0);
        // SAFETY: `api` leaves one value for each reference, and `pointer` stays valid as `Core` says.
        let built: mlua::Result<()> = unsafe {
            lua.exec_raw((), |l| {
                state = l;
                api::push_tx(l, pointer, None);
                tx = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
                api::push_pick(l, pointer);
                pick = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
                api::push_row_metatable(l, pointer);
                row_metatable = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
                api::make_integers(l, pointer);
                api::make_queries(l, pointer);
                api::make_names(l, pointer);
                api::make_verbs(l, pointer);
                api::replace_math_random(l, pointer);
                pulse::make_known(l, pointer);
            })
        };
        built.map_err(|error| ScriptError::plain(error.to_string()))?;
        let may_rest = functions.sysbench.is_some();
        let done = functions.sysbench.map_or(Ok(None), |lent| lend(&lua, pointer, lent))?;
        let transactions = with_levels(&lua, pointer, functions.transactions, workload)?;
        let keep = |function| {
            let mut reference = ffi::LUA_NOREF;
            // SAFETY: the function that was pushed is taken off by making the reference.
            let kept: mlua::Result<()> =
                unsafe { lua.exec_raw(function, |l| reference = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX)) };
            kept.map(|()| reference).map_err(|error| ScriptError::plain(error.to_string()))
        };
        let session = functions.session.map(keep).transpose()?;
        let load = functions.load.map(keep).transpose()?;
        let done = done.map(keep).transpose()?;
        let functions = transactions.into_iter().map(keep).collect::<Result<Vec<_>, _>>()?;
        let core =
            Core { state, functions, session, load, done, may_rest, tx, pick, row_metatable, lua, shared };
        core.shared.pulse.beats(&core.shared, core.state);
        Ok(Self(Rc::new(core)))
    }

    /// A session: its coroutine, its random numbers, its parameters and rows.
    pub fn script(&self, seed: u64, session: u64) -> Result<Script, ScriptError> {
        Script::new(&self.0, seed, session)
    }

    /// For another thread to see what runs, and to end it.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch::new(&self.0.shared.pulse)
    }

    /// Changes how `pick` chooses keys, from the next pick on.
    pub fn set_access(&self, access: Access) {
        for picker in &mut *self.0.shared.pickers.borrow_mut() {
            picker.set_access(access);
        }
        self.0.shared.loaded.set_access(access);
    }

    /// Says how many sessions the load has at most, over all threads: `tx.sessions`.
    pub fn set_sessions(&self, count: usize) {
        self.0.shared.sessions.set(count as u64);
    }

    /// Says in which isolation level transactions begin that declare none.
    pub fn set_isolation(&self, level: Option<Isolation>) {
        self.0.shared.isolation.set(level);
    }

    /// The names under which [`Script::take_tallies`] adds.
    #[must_use]
    pub fn tally_names(&self) -> Vec<String> {
        self.0.shared.tally_names.borrow().clone()
    }

    /// Bytes that the Lua state holds.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.0.lua.used_memory()
    }
}
