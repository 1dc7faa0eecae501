//! The script side of one session: its coroutine, resumed step by step.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use mlua::ffi::{self, lua_State};
use nephoscope_drivers::{Command, Error, Params, Reply, ResultIndex, Rows, Statement, Want};
use nephoscope_histories::Transaction;

use super::{Call, Context, Core, Ending, MADE, RowObject, Shape, pulse};
use crate::error::ScriptError;
use crate::vm::api;

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
    /// As [`Step::Call`], of the statement in [`Script::query`], which may have to be made known to the connection first.
    Query {
        /// Whether its rows are wanted.
        want: Want,
        /// Whether to send now and wait for the reply.
        flush: bool,
    },
    /// The replies to everything that has left are waited for.
    Flush,
    /// The function has returned.
    Done {
        /// The workload rolled back by its own decision.
        aborted: bool,
    },
    /// The transaction has nothing to do, and has asked for nothing: another is to run in its place.
    Skipped,
    /// The function failed: an error of the workload, with file, line and traceback.
    Failed(ScriptError),
}

/// At the bottom of the coroutine's stack stay `tx`, `pick` and what the session's own function has returned, with which
/// transactions are called, and behind them the transactions' functions.
pub(super) const BOTTOM: c_int = 3;

/// The script side of one session: runs transactions as steps.
pub struct Script {
    pub(super) coroutine: *mut lua_State,
    reference: c_int,
    /// The registry's reference to what the session's own function has returned.
    pub(super) own: c_int,
    /// The session's own function is still to be run.
    pub(super) to_set_up: bool,
    pub(super) context: Box<Context>,
    pub(super) core: Rc<Core>,
}

impl Script {
    /// A session of a state: see [`super::Vm::script`].
    pub(super) fn new(core: &Rc<Core>, seed: u64, session: u64) -> Result<Script, ScriptError> {
        let mut context = Box::new(Context::new(seed, session));
        {
            let mut contexts = core.shared.contexts.borrow_mut();
            context.slot = contexts.iter().position(|context| context.is_null()).unwrap_or(contexts.len());
            if context.slot == contexts.len() {
                contexts.push(ptr::null());
            }
            contexts[context.slot] = &raw const *context;
        }
        let mut script = Script {
            coroutine: ptr::null_mut(),
            reference: ffi::LUA_NOREF,
            own: ffi::LUA_NOREF,
            to_set_up: core.session.is_some(),
            context,
            core: Rc::clone(core),
        };
        let mut pool = 0;
        // SAFETY: the table that is made is taken off by making the reference.
        let made: mlua::Result<()> = unsafe {
            core.lua.exec_raw((), |l| {
                ffi::lua_createtable(l, 4, 0);
                pool = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
            })
        };
        made.map_err(|error| ScriptError::plain(error.to_string()))?;
        script.context.row_pool = pool;
        script.new_coroutine();
        Ok(script)
    }

    /// Begins a transaction, by its index in [`Workload::transactions`].
    #[inline]
    pub fn begin(&mut self, transaction: usize) -> Step {
        self.context.random_at_start.clone_from(&self.context.random);
        self.context.picks.forget();
        self.context.attempt = 0;
        self.start(transaction)
    }

    /// Begins the same transaction again, with the same random numbers and the same picks.
    pub fn retry(&mut self, transaction: usize) -> Step {
        self.context.random.clone_from(&self.context.random_at_start);
        self.context.picks.repeat();
        self.start(transaction)
    }

    #[inline]
    fn start(&mut self, transaction: usize) -> Step {
        self.clear(transaction);
        if transaction >= self.core.functions.len() {
            return Step::Failed(ScriptError::plain(format!("there is no transaction number {transaction}")));
        }
        // SAFETY: the coroutine is alive (the registry refers to it), has room for a function and three arguments, and
        // its stack begins with those and with the functions.
        let arguments = unsafe {
            let l = self.coroutine;
            ffi::lua_pushvalue(l, BOTTOM + 1 + transaction as c_int);
            ffi::lua_pushvalue(l, 1);
            ffi::lua_pushvalue(l, 2);
            if self.core.session.is_some() {
                ffi::lua_pushvalue(l, BOTTOM);
                3
            } else {
                2
            }
        };
        self.step::<true>(arguments)
    }

    /// Forgets the function that ran before.
    #[inline]
    pub(super) fn clear(&mut self, index: usize) {
        let context = &mut *self.context;
        let begun = self.core.shared.transactions_begun.get() + 1;
        self.core.shared.transactions_begun.set(begun);
        context.transaction = begun;
        context.index = index;
        context.attempt += 1;
        context.rows.clear();
        context.call = None;
        (context.sent, context.received) = (0, 0);
        let shared = &self.core.shared;
        context.pipelines = shared.pipeline || shared.pipelined.get(index).copied().unwrap_or(false);
        context.aborted = false;
        context.within = false;
        context.now = None;
        context.tallies.clear();
        context.arrivals.clear();
        context.observed.operations.clear();
        context.observed.elements.clear();
        context.used = 0;
    }

    /// Goes on with the reply to the call that the last step asked for.
    #[inline]
    pub fn resume(&mut self, reply: Reply) -> Step {
        let call = self.context.call.take();
        let shape = call.map_or(Shape::Nothing, |call| call.shape);
        let arguments = match shape {
            Shape::Nothing | Shape::Kept => 0,
            Shape::Affected => {
                // SAFETY: the coroutine is alive and a yielded coroutine has room for an argument.
                unsafe { ffi::lua_pushnumber(self.coroutine, reply.affected as f64) };
                1
            }
            Shape::Key => match self.push_key(&reply, call) {
                Ok(()) => 1,
                Err(error) => return self.refused(error),
            },
            Shape::One => {
                match reply.result.filter(|result| self.context.rows.count(*result) > 0) {
                    Some(result) => self.push_row(result.number(), 0),
                    // SAFETY: as above.
                    None => unsafe { ffi::lua_pushnil(self.coroutine) },
                }
                1
            }
            Shape::List => {
                self.push_list(reply.result);
                1
            }
            Shape::Results => {
                self.push_results(reply);
                1
            }
            Shape::Answers => match self.push_answers() {
                Ok(answers) => answers,
                Err(error) => return self.refused(error),
            },
        };
        self.step::<false>(arguments)
    }

    /// Gives up the present transaction: its function will not be resumed.
    pub fn abandon(&mut self) {
        self.context.call = None;
        self.end_skip();
        self.context.tallies.clear();
        self.context.arrivals.clear();
        self.new_coroutine();
    }

    /// Whoever runs next has skipped nothing.
    pub(super) fn end_skip(&mut self) {
        self.context.ending = Ending::Usual;
        self.core.shared.describing.store(ptr::null_mut(), Ordering::Relaxed);
    }

    /// The parameters of the call that the last step asked for.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.context.params
    }

    /// The statement that the last step asked for, where it was made while the workload runs.
    pub fn query(&self) -> Result<&Rc<Statement>, Error> {
        self.context.query.as_ref().ok_or_else(|| Error::other("no statement was made"))
    }

    /// Where the rows of the present transaction go.
    pub fn rows(&mut self) -> &mut Rows {
        &mut self.context.rows
    }

    /// Whether the transaction, now committed, adds nothing to the tallies, and no keys have arrived with it.
    #[inline]
    #[must_use]
    pub fn brings_nothing(&self) -> bool {
        self.context.tallies.is_empty() && self.context.arrivals.is_empty()
    }

    /// What the transaction, now committed, adds to the tallies (indexes in [`Vm::tally_names`]); also makes known
    /// the keys that have arrived with it.
    pub fn take_tallies(&mut self) -> std::vec::Drain<'_, (usize, f64)> {
        for (table, key) in self.context.arrivals.drain(..) {
            self.core.shared.tables[table].1.arrived(key);
        }
        self.context.tallies.drain(..)
    }

    /// What the attempt has observed: its outcome and times are the caller's to say. `None` where it has not.
    #[inline]
    pub fn observed(&mut self) -> Option<&mut Transaction> {
        Some(&mut self.context.observed).filter(|observed| !observed.operations.is_empty())
    }

    /// Resumes the coroutine: for the first time in this attempt, or with a reply.
    #[inline]
    pub(super) fn step<const FIRST: bool>(&mut self, arguments: c_int) -> Step {
        let shared = &self.core.shared;
        let (coroutine, context) = (self.coroutine, &raw mut *self.context);
        // SAFETY: the coroutine is alive and its stack holds the function or is yielded, and the arguments.
        let status = shared.while_running(context, || unsafe { ffi::lua_resume_(coroutine, arguments) });
        if let Some(message) = shared.panicked.take() {
            return self.panicked(message);
        }
        match status {
            ffi::LUA_YIELD => match self.context.call {
                Some(Call { command: MADE, shape: Shape::Answers, .. }) => self.receive(),
                Some(Call { command: MADE, want, flush, .. }) => Step::Query { want, flush },
                Some(Call { command, want, flush, .. }) => Step::Call { command, want, flush },
                None => self.stopped(),
            },
            ffi::LUA_OK if FIRST || self.context.ending != Ending::Usual => self.ended(FIRST),
            ffi::LUA_OK => {
                self.rewind();
                Step::Done { aborted: self.context.aborted }
            }
            _ => self.failed(status),
        }
    }

    /// Takes from the stack what the function has returned.
    #[inline]
    pub(super) fn rewind(&self) {
        // SAFETY: the coroutine is alive.
        unsafe { ffi::lua_settop(self.coroutine, BOTTOM + self.core.functions.len() as c_int) };
    }

    /// Something has panicked below the coroutine, which may have caught the error.
    #[cold]
    fn panicked(&mut self, message: String) -> Step {
        self.abandon();
        Step::Failed(ScriptError::plain(message))
    }

    #[cold]
    fn failed(&mut self, status: c_int) -> Step {
        let (l, main, shared) = (self.coroutine, self.core.state, &self.core.shared);
        shared.describing.store(&raw mut *self.context, Ordering::Relaxed);
        // SAFETY: a failed coroutine has its error on top of its stack.
        let message = self.core.unlimited(|| unsafe { api::error_message(l, main) });
        shared.describing.store(ptr::null_mut(), Ordering::Relaxed);
        let message = pulse::end_interruption(shared, main).unwrap_or(message);
        self.abandon();
        if status == ffi::LUA_ERRMEM {
            // The next transaction does not have to suffer for what this one left.
            let _ = self.core.lua.gc_collect();
        }
        Step::Failed(ScriptError::plain(message))
    }

    /// The coroutine has stopped without a call: it had no end, and was interrupted.
    #[cold]
    fn stopped(&mut self) -> Step {
        let message = pulse::end_interruption(&self.core.shared, self.core.state);
        self.abandon();
        Step::Failed(ScriptError::plain(message.unwrap_or_default()))
    }

    fn new_coroutine(&mut self) {
        let (main, old, core) = (self.core.state, self.reference, &self.core);
        // SAFETY: the main state is alive; the thread that is made is taken off its stack by making the reference,
        // has room for what is put there, and the reference to the old one, if any, is the script's own.
        (self.coroutine, self.reference) = core.unlimited(|| unsafe {
            ffi::luaL_unref(main, ffi::LUA_REGISTRYINDEX, old);
            let coroutine = ffi::lua_newthread(main);
            ffi::lua_checkstack(coroutine, BOTTOM + core.functions.len() as c_int + ffi::LUA_MINSTACK);
            for reference in [core.tx, core.pick, self.own].iter().chain(&core.functions) {
                ffi::lua_rawgeti(coroutine, ffi::LUA_REGISTRYINDEX, (*reference).into());
            }
            (coroutine, ffi::luaL_ref(main, ffi::LUA_REGISTRYINDEX))
        });
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
                let metatable = self.core.row_metatable;
                context.pooled += 1;
                self.core.unlimited(|| add_row_object(l, metatable, context.pooled));
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

    /// Pushes a list of the lists of rows.
    fn push_results(&mut self, reply: Reply) {
        let (l, results) = (self.coroutine, reply.results());
        // SAFETY: the coroutine is alive and yielded, and has room for the list and for what `push_list` needs.
        self.core.unlimited(|| unsafe {
            ffi::lua_checkstack(l, ffi::LUA_MINSTACK);
            ffi::lua_createtable(l, results.len() as c_int, 0);
        });
        for (place, result) in results.enumerate() {
            self.push_list(Some(result));
            // SAFETY: the list of results lies below that of the rows, and has a place for it.
            unsafe { ffi::lua_rawseti(l, -2, place as ffi::lua_Integer + 1) };
        }
    }

    /// The replies that were kept are asked for: they are here, or have to be waited for.
    fn receive(&mut self) -> Step {
        let all_are_here = self.context.rows.kept().len() == self.context.sent;
        if all_are_here { self.resume(Reply::default()) } else { Step::Flush }
    }

    /// Pushes the replies that were kept and not yet given: a list of rows, or the number of rows touched.
    fn push_answers(&mut self) -> Result<c_int, String> {
        let (l, first, sent) = (self.coroutine, self.context.received, self.context.sent);
        let answers = (sent - first) as c_int;
        self.context.received = sent;
        if self.context.rows.kept().len() != sent {
            return Err("tx:receive(): a statement that was sent is several, or was not answered".to_owned());
        }
        // SAFETY: the coroutine is alive and yielded.
        self.core.unlimited(|| unsafe { ffi::lua_checkstack(l, answers + ffi::LUA_MINSTACK) });
        for place in first..sent {
            match self.context.rows.kept()[place] {
                Reply { result: Some(result), .. } => self.push_list(Some(result)),
                // SAFETY: there is room for each answer.
                Reply { affected, .. } => unsafe { ffi::lua_pushnumber(l, affected as f64) },
            }
        }
        Ok(answers)
    }

    fn push_list(&mut self, result: Option<ResultIndex>) {
        let count = result.map_or(0, |result| self.context.rows.count(result));
        let l = self.coroutine;
        // SAFETY: as in `push_row`.
        self.core.unlimited(|| unsafe { ffi::lua_createtable(l, count as c_int, 0) });
        let Some(result) = result else { return };
        for row in 0..count {
            self.push_row(result.number(), row as u32);
            // SAFETY: the list lies below the row.
            unsafe { ffi::lua_rawseti(self.coroutine, -2, row as ffi::lua_Integer + 1) };
        }
    }
}

/// Adds an object to the pool of rows, which is on top of the stack.
unsafe fn add_row_object(l: *mut lua_State, metatable: c_int, index: usize) {
    // SAFETY: the caller has room for two values above the pool.
    unsafe {
        ffi::lua_newuserdata(l, size_of::<RowObject>());
        ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, metatable.into());
        ffi::lua_setmetatable(l, -2);
        ffi::lua_rawseti(l, -2, index as ffi::lua_Integer);
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.core.shared.contexts.borrow_mut()[self.context.slot] = ptr::null();
        // SAFETY: the main state is alive and the references are the script's own.
        unsafe {
            ffi::luaL_unref(self.core.state, ffi::LUA_REGISTRYINDEX, self.context.row_pool);
            ffi::luaL_unref(self.core.state, ffi::LUA_REGISTRYINDEX, self.own);
            ffi::luaL_unref(self.core.state, ffi::LUA_REGISTRYINDEX, self.reference);
        }
    }
}
