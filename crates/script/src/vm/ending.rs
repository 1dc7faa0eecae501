//! Functions that end otherwise than a transaction does that has run statements: one that had nothing to do, the one that
//! a session runs once, before its first transaction, and the one that loads a part of the data.

use mlua::ffi;

use super::Ending;
use super::pulse::Running;
use super::script::{BOTTOM, Script, Step};
use crate::error::ScriptError;

const NOTHING_DONE: &str = "the function returned without a statement, and is no transaction then; where there is nothing \
                            to do it says so: return tx:skip()";
const SKIPPED_LATE: &str = "tx:skip() was called behind a statement, and what has run counts; tx:rollback() ends a \
                            transaction that has begun";

impl Script {
    /// Whether the session's own function is still to be run: before its first transaction.
    #[inline]
    #[must_use]
    pub fn is_to_set_up(&self) -> bool {
        self.to_set_up
    }

    /// Begins the session's own function, or begins it again: with the same random numbers and the same picks. It is
    /// run as a transaction is, and its first result is the third argument of every transaction from then on.
    pub fn set_up(&mut self) -> Step {
        let Some(function) = self.core.session else { return Step::Done { aborted: false } };
        self.context.random.clone_from(&self.context.random_at_start);
        self.context.picks.repeat();
        self.clear(Running::NO_TRANSACTION);
        self.context.ending = Ending::SetUp;
        // SAFETY: the coroutine is alive, has room for a function and two arguments, and its stack begins with those.
        unsafe {
            let l = self.coroutine;
            ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, function.into());
            ffi::lua_pushvalue(l, 1);
            ffi::lua_pushvalue(l, 2);
        }
        self.step::<true>(2)
    }

    /// Begins a part of the workload's `w:load`, which are counted from 1.
    pub fn begin_part(&mut self, part: u32, parts: u32) -> Step {
        let Some(function) = self.core.load else { return Step::Done { aborted: false } };
        self.clear(Running::NO_TRANSACTION);
        self.context.ending = Ending::Part;
        // SAFETY: as in `set_up`; there is room for two arguments more.
        unsafe {
            let l = self.coroutine;
            ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, function.into());
            ffi::lua_pushvalue(l, 1);
            ffi::lua_pushnumber(l, part.into());
            ffi::lua_pushnumber(l, parts.into());
            ffi::lua_pushvalue(l, 2);
        }
        self.step::<true>(4)
    }

    /// Whether the session has something to do at the end of the run.
    #[must_use]
    pub fn has_end(&self) -> bool {
        self.core.done.is_some()
    }

    /// Begins what the session does at the end of the run, as a part of a load is begun.
    pub fn wind_up(&mut self) -> Step {
        let Some(function) = self.core.done else { return Step::Done { aborted: false } };
        self.clear(Running::NO_TRANSACTION);
        self.context.ending = Ending::Part;
        // SAFETY: as in `begin_part`.
        unsafe {
            let l = self.coroutine;
            ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, function.into());
            for argument in 1..=BOTTOM {
                ffi::lua_pushvalue(l, argument);
            }
        }
        self.step::<true>(BOTTOM)
    }

    /// A function has returned that has run no statement, or has called `tx:skip()`, or is the session's own, or loads.
    #[cold]
    pub(super) fn ended(&mut self, has_run_nothing: bool) -> Step {
        match self.context.ending {
            Ending::SetUp => {
                self.keep();
                return Step::Done { aborted: false };
            }
            Ending::Part => {
                self.context.ending = Ending::Usual;
                self.rewind();
                return Step::Done { aborted: self.context.aborted };
            }
            Ending::Skipped if has_run_nothing => {
                self.end_skip();
                self.rewind();
                return Step::Skipped;
            }
            Ending::Usual if has_run_nothing && self.core.may_rest => {
                self.rewind();
                return Step::Done { aborted: self.context.aborted };
            }
            Ending::Skipped | Ending::Usual => {}
        }
        let why = if self.context.ending == Ending::Skipped { SKIPPED_LATE } else { NOTHING_DONE };
        self.abandon();
        Step::Failed(ScriptError::plain(why))
    }

    /// Keeps what the session's own function has returned.
    fn keep(&mut self) {
        self.context.ending = Ending::Usual;
        self.to_set_up = false;
        let (l, old) = (self.coroutine, self.own);
        let bottom = BOTTOM + self.core.functions.len() as i32;
        // SAFETY: the coroutine is alive and has room; the reference takes the value off, and the old one is the
        // script's own.
        self.own = self.core.unlimited(|| unsafe {
            ffi::lua_settop(l, bottom + 1);
            ffi::lua_pushvalue(l, -1);
            ffi::lua_replace(l, BOTTOM);
            ffi::luaL_unref(l, ffi::LUA_REGISTRYINDEX, old);
            ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX)
        });
    }
}
