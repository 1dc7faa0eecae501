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
//! * Lua's own libraries for coroutines and debugging are not open, so a workload cannot yield by itself and
//!   cannot reach an upvalue.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use mlua::Lua;
use mlua::ffi::{self, lua_State};
use nephoscope_drivers::{Command, Params, Reply, Rows, Want};
use nephoscope_runtime::clock;

use crate::access::{Access, KeySpace, Picker};
use crate::error::ScriptError;
use crate::random::Random;
use crate::workload::{Source, Workload};
use crate::{api, sandbox};

/// What a transaction wants next.
#[derive(Debug)]
pub enum Step {
    /// A command is to be sent. Its parameters are in [`Script::params`].
    Call {
        /// What to send.
        command: Command,
        /// Whether its rows are wanted.
        want: Want,
        /// Whether to send now and wait for the reply; else the command rides with the next that waits.
        flush: bool,
    },
    /// The function has returned.
    Done {
        /// The workload rolled back by its own decision.
        aborted: bool,
    },
    /// The function failed: an error of the workload, with file, line and traceback.
    Failed(ScriptError),
}

/// How a reply is given to Lua.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Nothing.
    Nothing,
    /// The number of rows.
    Affected,
    /// The first row, or nil.
    One,
    /// A list of all rows.
    List,
}

/// A call that a C function has left for the engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) command: Command,
    pub(crate) want: Want,
    pub(crate) flush: bool,
    pub(crate) shape: Shape,
}

/// The state of one session that the C functions reach.
pub(crate) struct Context {
    /// The session's number within its tenant, counted from 1.
    pub(crate) session: u64,
    /// Its place in `Shared::contexts`.
    slot: usize,
    /// The number of the transaction; rows of earlier ones are refused.
    pub(crate) transaction: u64,
    pub(crate) attempt: u32,
    pub(crate) params: Params,
    pub(crate) rows: Rows,
    pub(crate) random: Random,
    /// The generator as it was when the transaction began, for its retries.
    random_at_start: Random,
    pub(crate) call: Option<Call>,
    pub(crate) aborted: bool,
    /// Wall-clock seconds since 1970 as the transaction sees them, once it has looked.
    pub(crate) now: Option<f64>,
    /// What to add to the tallies when the transaction has committed.
    pub(crate) tallies: Vec<(usize, f64)>,
    /// Keys that will be there when the transaction has committed: table and key.
    pub(crate) arrivals: Vec<(usize, i64)>,
    /// The registry's reference to the list of row objects of this session, and how many it holds and uses.
    row_pool: c_int,
    pooled: usize,
    used: usize,
}

/// What the C functions of one state share.
pub(crate) struct Shared {
    pub(crate) current: Cell<*mut Context>,
    contexts: RefCell<Vec<*const Context>>,
    pub(crate) statements: RefCell<api::Names>,
    pub(crate) tally_names: RefCell<Vec<String>>,
    pub(crate) tables: Vec<(String, Arc<KeySpace>)>,
    pub(crate) pickers: RefCell<Vec<Picker>>,
    pub(crate) pipeline: bool,
    transactions_begun: Cell<u64>,
}

impl Shared {
    /// The session whose row it is, if that session still runs the transaction that read it.
    pub(crate) fn context_of(&self, row: &RowObject) -> Option<&Context> {
        let context = *self.contexts.borrow().get(row.slot)?;
        if context.is_null() {
            return None;
        }
        // SAFETY: scripts replace their pointer by null when they are dropped, and the box does not move.
        let context = unsafe { &*context };
        (context.transaction == row.transaction).then_some(context)
    }
}

/// What a row in Lua points at. The objects are used again by later transactions of the session.
#[repr(C)]
pub(crate) struct RowObject {
    slot: usize,
    transaction: u64,
    pub(crate) result: u32,
    pub(crate) row: u32,
}

/// The Lua state and what its functions share. Dropped in this order.
struct Core {
    state: *mut lua_State,
    /// References into the registry: the workload's functions, `tx`, `pick`, the metatable of rows.
    functions: Vec<c_int>,
    tx: c_int,
    pick: c_int,
    row_metatable: c_int,
    lua: Lua,
    shared: Box<Shared>,
}

/// One thread's Lua state with a workload loaded.
#[derive(Clone)]
pub struct Vm(Rc<Core>);

impl Vm {
    /// Loads the workload into a state of its own. `keys` are the key spaces of the tables that have one, as
    /// [`Workload::key_spaces`] made them; `pipeline` lets commands without a result ride with the next.
    pub fn new(
        source: &Source,
        keys: &[(String, Arc<KeySpace>)],
        pipeline: bool,
    ) -> Result<(Self, Workload), ScriptError> {
        let lua = sandbox::state()?;
        let (workload, functions) = source.run(&lua)?;
        let shared = Box::new(Shared {
            current: Cell::new(ptr::null_mut()),
            contexts: RefCell::default(),
            statements: RefCell::new(api::Names::new(&workload.statements)),
            tally_names: RefCell::default(),
            tables: keys.to_vec(),
            pickers: RefCell::new(keys.iter().map(|_| Picker::new()).collect()),
            pipeline,
            transactions_begun: Cell::new(0),
        });
        let pointer: *const Shared = &raw const *shared;
        let mut state = ptr::null_mut();
        let (mut tx, mut pick, mut row_metatable) = (0, 0, 0);
        // SAFETY: `api` leaves one value for each reference, and `pointer` stays valid as `Core` says.
        let built: mlua::Result<()> = unsafe {
            lua.exec_raw((), |l| {
                state = l;
                api::push_tx(l, pointer);
                tx = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
                api::push_pick(l, pointer);
                pick = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
                api::push_row_metatable(l, pointer);
                row_metatable = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
                api::replace_math_random(l, pointer);
            })
        };
        built.map_err(|error| ScriptError::plain(error.to_string()))?;
        let mut references = Vec::new();
        for function in functions {
            // SAFETY: the function that was pushed is taken off by making the reference.
            let kept: mlua::Result<()> = unsafe {
                lua.exec_raw(function, |l| references.push(ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX)))
            };
            kept.map_err(|error| ScriptError::plain(error.to_string()))?;
        }
        let core = Core { state, functions: references, tx, pick, row_metatable, lua, shared };
        Ok((Self(Rc::new(core)), workload))
    }

    /// A session: its coroutine, its random numbers, its parameters and rows.
    pub fn script(&self, seed: u64, session: u64) -> Result<Script, ScriptError> {
        let shared = &self.0.shared;
        let mut context = Box::new(Context {
            session,
            slot: 0,
            transaction: 0,
            attempt: 0,
            params: Params::default(),
            rows: Rows::default(),
            random: Random::new(seed, session),
            random_at_start: Random::new(seed, session),
            call: None,
            aborted: false,
            now: None,
            tallies: Vec::with_capacity(8),
            arrivals: Vec::with_capacity(8),
            row_pool: 0,
            pooled: 0,
            used: 0,
        });
        {
            let mut contexts = shared.contexts.borrow_mut();
            context.slot = contexts.iter().position(|context| context.is_null()).unwrap_or(contexts.len());
            if context.slot == contexts.len() {
                contexts.push(ptr::null());
            }
            contexts[context.slot] = &raw const *context;
        }
        let mut script =
            Script { coroutine: ptr::null_mut(), reference: 0, context, core: Rc::clone(&self.0) };
        let mut pool = 0;
        // SAFETY: the table that is made is taken off by making the reference.
        let made: mlua::Result<()> = unsafe {
            self.0.lua.exec_raw((), |l| {
                ffi::lua_createtable(l, 4, 0);
                pool = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
            })
        };
        made.map_err(|error| ScriptError::plain(error.to_string()))?;
        script.context.row_pool = pool;
        script.new_coroutine();
        Ok(script)
    }

    /// Changes how `pick` chooses keys, from the next pick on.
    pub fn set_access(&self, access: Access) {
        for picker in &mut *self.0.shared.pickers.borrow_mut() {
            picker.set_access(access);
        }
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

/// The script side of one session: runs transactions as steps.
pub struct Script {
    coroutine: *mut lua_State,
    reference: c_int,
    context: Box<Context>,
    core: Rc<Core>,
}

impl Script {
    /// Begins a transaction, by its place in [`Workload::transactions`].
    #[inline]
    pub fn begin(&mut self, transaction: usize) -> Step {
        self.context.random_at_start.clone_from(&self.context.random);
        self.context.attempt = 0;
        self.start(transaction)
    }

    /// Begins the same transaction again, with the same random numbers.
    pub fn retry(&mut self, transaction: usize) -> Step {
        self.context.random.clone_from(&self.context.random_at_start);
        self.start(transaction)
    }

    #[inline]
    fn start(&mut self, transaction: usize) -> Step {
        let context = &mut *self.context;
        let begun = self.core.shared.transactions_begun.get() + 1;
        self.core.shared.transactions_begun.set(begun);
        context.transaction = begun;
        context.attempt += 1;
        context.rows.clear();
        context.aborted = false;
        context.now = None;
        context.tallies.clear();
        context.arrivals.clear();
        context.used = 0;
        let Some(function) = self.core.functions.get(transaction) else {
            return Step::Failed(ScriptError::plain(format!("there is no transaction number {transaction}")));
        };
        // SAFETY: the coroutine is alive (the registry refers to it) and has room for a function and two arguments.
        unsafe {
            let l = self.coroutine;
            ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, (*function).into());
            ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, self.core.tx.into());
            ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, self.core.pick.into());
        }
        self.step(2)
    }

    /// Goes on with the reply to the call that the last step asked for.
    #[inline]
    pub fn resume(&mut self, reply: Reply) -> Step {
        let shape = self.context.call.take().map_or(Shape::Nothing, |call| call.shape);
        let arguments = match shape {
            Shape::Nothing => 0,
            Shape::Affected => {
                // SAFETY: the coroutine is alive and a yielded coroutine has room for an argument.
                unsafe { ffi::lua_pushnumber(self.coroutine, reply.affected as f64) };
                1
            }
            Shape::One => {
                match reply.result.filter(|result| self.context.rows.count(*result) > 0) {
                    Some(result) => self.push_row(result.number(), 0),
                    // SAFETY: as above.
                    None => unsafe { ffi::lua_pushnil(self.coroutine) },
                }
                1
            }
            Shape::List => {
                self.push_list(reply);
                1
            }
        };
        self.step(arguments)
    }

    /// Gives up the present transaction: its function will not be resumed.
    pub fn abandon(&mut self) {
        self.context.call = None;
        self.context.tallies.clear();
        self.context.arrivals.clear();
        self.new_coroutine();
    }

    /// The parameters of the call that the last step asked for.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.context.params
    }

    /// Where the rows of the present transaction go.
    pub fn rows(&mut self) -> &mut Rows {
        &mut self.context.rows
    }

    /// What the transaction, now committed, adds to the tallies (places in [`Vm::tally_names`]); also makes known
    /// the keys that have arrived with it.
    pub fn take_tallies(&mut self) -> std::vec::Drain<'_, (usize, f64)> {
        for (table, key) in self.context.arrivals.drain(..) {
            self.core.shared.tables[table].1.arrived(key);
        }
        self.context.tallies.drain(..)
    }

    #[inline]
    fn step(&mut self, arguments: c_int) -> Step {
        let shared = &self.core.shared;
        shared.current.set(&raw mut *self.context);
        // SAFETY: the coroutine is alive and its stack holds the function or is yielded, and the arguments.
        let status = unsafe { ffi::lua_resume_(self.coroutine, arguments) };
        shared.current.set(ptr::null_mut());
        match status {
            ffi::LUA_YIELD => match self.context.call {
                Some(Call { command, want, flush, .. }) => Step::Call { command, want, flush },
                None => Step::Failed(ScriptError::plain("the transaction stopped without a call")),
            },
            ffi::LUA_OK => {
                // SAFETY: the coroutine is alive; what the function returned is not wanted.
                unsafe { ffi::lua_settop(self.coroutine, 0) };
                Step::Done { aborted: self.context.aborted }
            }
            _ => {
                // SAFETY: a failed coroutine has its error on top of its stack.
                let message = unsafe { api::error_message(self.coroutine) };
                self.abandon();
                Step::Failed(ScriptError::plain(message))
            }
        }
    }

    fn new_coroutine(&mut self) {
        // SAFETY: the main state is alive; the thread that is made is taken off its stack by making the reference,
        // and the reference to the old one, if any, is the script's own.
        unsafe {
            let main = self.core.state;
            if self.reference != 0 {
                ffi::luaL_unref(main, ffi::LUA_REGISTRYINDEX, self.reference);
            }
            self.coroutine = ffi::lua_newthread(main);
            self.reference = ffi::luaL_ref(main, ffi::LUA_REGISTRYINDEX);
        }
    }

    /// Pushes the object for a row, one that an earlier transaction used if there is one.
    #[inline]
    fn push_row(&mut self, result: u32, row: u32) {
        let (l, context) = (self.coroutine, &mut *self.context);
        // SAFETY: the coroutine is alive and yielded, which leaves room for four values; the pool holds objects
        // made here, of the size of a RowObject.
        unsafe {
            ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, context.row_pool.into());
            if context.used == context.pooled {
                ffi::lua_newuserdata(l, size_of::<RowObject>());
                ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, self.core.row_metatable.into());
                ffi::lua_setmetatable(l, -2);
                context.pooled += 1;
                ffi::lua_rawseti(l, -2, context.pooled as ffi::lua_Integer);
            }
            context.used += 1;
            ffi::lua_rawgeti(l, -1, context.used as ffi::lua_Integer);
            ffi::lua_replace(l, -2);
            let object: *mut c_void = ffi::lua_touserdata(l, -1);
            object.cast::<RowObject>().write(RowObject {
                slot: context.slot,
                transaction: context.transaction,
                result,
                row,
            });
        }
    }

    fn push_list(&mut self, reply: Reply) {
        let count = reply.result.map_or(0, |result| self.context.rows.count(result));
        // SAFETY: as in `push_row`.
        unsafe { ffi::lua_createtable(self.coroutine, count as c_int, 0) };
        let Some(result) = reply.result else { return };
        for row in 0..count {
            self.push_row(result.number(), row as u32);
            // SAFETY: the list lies below the row.
            unsafe { ffi::lua_rawseti(self.coroutine, -2, row as ffi::lua_Integer + 1) };
        }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.core.shared.contexts.borrow_mut()[self.context.slot] = ptr::null();
        // SAFETY: the main state is alive and the references are the script's own.
        unsafe {
            ffi::luaL_unref(self.core.state, ffi::LUA_REGISTRYINDEX, self.context.row_pool);
            ffi::luaL_unref(self.core.state, ffi::LUA_REGISTRYINDEX, self.reference);
        }
    }
}

/// The wall clock as a script sees it: seconds since 1970, to the microsecond.
pub(crate) fn wall_seconds() -> f64 {
    (clock::wall() / 1000) as f64 / 1e6
}
