//! How another thread sees that a transaction has no end, and ends it.
//!
//! A hook that looked at the clock would cost every transaction some of its time. So there is none until another
//! thread, by a [`Watch`], finds that a transaction has run for too long. It sends a signal to the thread that
//! runs it, whose handler says which transaction it is and sets a hook as the interpreter of `lua.c` does on Ctrl-C: setting a hook is the one thing
//! that LuaJIT allows in a handler (`lj_dispatch.c`). Hooks belong to the whole state, whichever coroutine runs.
//! The hook suspends the coroutine for good. An error could be caught by the workload's own `pcall` and the loop go
//! on; a coroutine that is not resumed cannot. Only below a C function (`table.sort` that calls a comparison) LuaJIT
//! cannot suspend: there the hook raises an error, at every instruction, until such a function is left.
//!
//! The signal is SIGURG: nothing is done where nobody handles it, nobody else sends it here (these sockets have no
//! owner), and debuggers let it pass. Its handler is set when it is first needed, so a process in which nothing goes
//! wrong keeps the handlers that it has.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mlua::ffi::{self, lua_Debug, lua_State};

use super::{Ending, Shared};
use crate::vm::api;

/// How long Lua may run without an end: a workload's file, which only describes, or a transaction.
pub const LONGEST: Duration = Duration::from_secs(10);

/// How often, and a millisecond apart, the one who sends a signal looks whether it was heard.
const PATIENCE: u32 = 20;

/// The pulse of the state that is to be interrupted; the signal's handler takes it away when it has seen it.
///
/// What was ever put here is never freed: a signal may come late.
static TARGET: AtomicPtr<Pulse> = AtomicPtr::new(ptr::null_mut());

unsafe extern "C-unwind" {
    /// Whether the running coroutine can be suspended here. LuaJIT has it, `mlua` does not name it.
    fn lua_isyieldable(l: *mut lua_State) -> c_int;
}

/// What a state and those who watch it share.
pub(crate) struct Pulse {
    thread: libc::pid_t,
    /// Null once the state is gone.
    shared: AtomicPtr<Shared>,
    state: AtomicPtr<lua_State>,
    /// The transaction that the handler has found, if it was found; numbers count from 1.
    found: AtomicU64,
    index: AtomicUsize,
    /// The transaction that is to be interrupted, and the nanoseconds that it has had.
    condemned: AtomicU64,
    limit: AtomicU64,
    kept: AtomicBool,
}

impl Pulse {
    /// The pulse of a state of the calling thread.
    pub(super) fn new() -> Self {
        Self {
            // SAFETY: it only asks for a number.
            thread: unsafe { libc::gettid() },
            shared: AtomicPtr::default(),
            state: AtomicPtr::default(),
            found: AtomicU64::new(0),
            index: AtomicUsize::new(0),
            condemned: AtomicU64::new(0),
            limit: AtomicU64::new(0),
            kept: AtomicBool::new(false),
        }
    }

    pub(super) fn beats(&self, shared: &Shared, state: *mut lua_State) {
        self.state.store(state, Ordering::Relaxed);
        self.shared.store(ptr::from_ref(shared).cast_mut(), Ordering::Relaxed);
    }

    pub(super) fn ends(&self) {
        self.shared.store(ptr::null_mut(), Ordering::Relaxed);
    }
}

/// A transaction whose Lua runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its number among those that have begun in its state, further attempts included.
    pub number: u64,
    /// Which one it is, by its index in [`crate::Workload::transactions`], or [`Running::NO_TRANSACTION`].
    pub index: usize,
}

impl Running {
    /// The index of a function that is no transaction: a session's own, or that of `w:load`.
    pub const NO_TRANSACTION: usize = usize::MAX;
}

/// A state as another thread sees it.
pub struct Watch(Arc<Pulse>);

impl Watch {
    pub(super) fn new(pulse: &Arc<Pulse>) -> Self {
        Self(Arc::clone(pulse))
    }

    /// What runs; `None` if the state's thread does something else, or nothing. Asks by a signal, so this is for
    /// states that are suspected.
    #[must_use]
    pub fn running(&self) -> Option<Running> {
        self.ask(0, Duration::ZERO)
    }

    /// Interrupts a transaction, by its number, if it still runs: it fails with an error that names `limit`. Gives
    /// what runs. A transaction within a C function that does not return is found and not ended.
    #[must_use]
    pub fn interrupt(&self, number: u64, limit: Duration) -> Option<Running> {
        self.ask(number, limit)
    }

    fn ask(&self, condemned: u64, limit: Duration) -> Option<Running> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let pulse = &*self.0;
        pulse.limit.store(limit.as_nanos() as u64, Ordering::Relaxed);
        pulse.condemned.store(condemned, Ordering::Relaxed);
        pulse.found.store(0, Ordering::Relaxed);
        if !pulse.kept.swap(true, Ordering::Relaxed) {
            std::mem::forget(Arc::clone(&self.0));
        }
        TARGET.store(ptr::from_ref(pulse).cast_mut(), Ordering::Release);
        send(pulse.thread);
        for _ in 0..PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
            if TARGET.load(Ordering::Acquire).is_null() {
                break;
            }
        }
        // Whoever hears of it later has nothing to do.
        TARGET.store(ptr::null_mut(), Ordering::Release);
        let number = pulse.found.load(Ordering::Relaxed);
        (number > 0).then(|| Running { number, index: pulse.index.load(Ordering::Relaxed) })
    }
}

/// Sends the signal to a thread of this process. If the thread is gone, another may have its number; that one then
/// finds a target that it is not.
fn send(thread: libc::pid_t) {
    // SAFETY: the handler does only what a handler may; `action` is whole. It restarts system calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = heard as extern "C" fn(c_int) as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGURG, &raw const action, ptr::null_mut());
        libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGURG);
    }
}

/// The signal's handler, on the thread that runs the state.
extern "C" fn heard(_: c_int) {
    // SAFETY: what is in TARGET is never freed. `shared` and `state` are valid if `shared` is not null: this is the
    // thread that would free them. None of this allocates, locks or fails.
    unsafe {
        let Some(pulse) = TARGET.load(Ordering::Acquire).as_ref() else { return };
        if pulse.thread != libc::gettid() {
            return;
        }
        let shared = pulse.shared.load(Ordering::Relaxed).as_ref();
        if let Some(context) = shared.and_then(|shared| shared.running().as_ref()) {
            pulse.index.store(context.index, Ordering::Relaxed);
            pulse.found.store(context.transaction, Ordering::Relaxed);
            if context.transaction == pulse.condemned.load(Ordering::Relaxed) {
                ffi::lua_sethook(pulse.state.load(Ordering::Relaxed), Some(hook), ffi::LUA_MASKCOUNT, 1);
            }
        }
        TARGET.store(ptr::null_mut(), Ordering::Release);
    }
}

/// Under its address the registry knows where `Shared` is.
static KEY: u8 = 0;

/// Lets the hook find what the state's functions share.
pub(super) unsafe fn make_known(l: *mut lua_State, shared: *const Shared) {
    // SAFETY: called with room on the stack, which is left as it was.
    unsafe {
        ffi::lua_pushlightuserdata(l, (&raw const KEY).cast_mut().cast());
        ffi::lua_pushlightuserdata(l, shared.cast_mut().cast());
        ffi::lua_rawset(l, ffi::LUA_REGISTRYINDEX);
    }
}

/// Called before each instruction, once a transaction was found to have no end.
unsafe extern "C-unwind" fn hook(l: *mut lua_State, _: *mut lua_Debug) {
    // SAFETY: called by Lua, with room on the stack. `Shared` outlives the state; the session that runs is that of
    // this coroutine. Nothing is left to drop where an error or the suspension leaves this function.
    unsafe {
        ffi::lua_pushlightuserdata(l, (&raw const KEY).cast_mut().cast());
        ffi::lua_rawget(l, ffi::LUA_REGISTRYINDEX);
        let Some(shared) = ffi::lua_touserdata(l, -1).cast::<Shared>().as_ref() else { return };
        ffi::lua_settop(l, -2);
        let pulse = &shared.pulse;
        let current = shared.running().as_mut();
        if shared.interruption.borrow().is_none() {
            let number = current.as_ref().map_or(0, |context| context.transaction);
            if number != pulse.condemned.load(Ordering::Relaxed) {
                // It has ended by itself meanwhile.
                ffi::lua_sethook(l, None, 0, 0);
                return;
            }
            let limit = Duration::from_nanos(pulse.limit.load(Ordering::Relaxed));
            let what = match current.as_ref().map(|context| context.ending) {
                Some(Ending::SetUp) => "the function of w:session",
                Some(Ending::Part) => "the function of w:load",
                _ => "the transaction",
            };
            let message = api::interruption(l, what, limit);
            shared.interruption.replace(Some(message));
        }
        if lua_isyieldable(l) != 0 {
            if let Some(context) = current {
                context.call = None;
            }
            ffi::lua_sethook(l, None, 0, 0);
            // From a hook this does not return.
            ffi::lua_yield(l, 0);
        }
        ffi::lua_pushstring(l, c"the transaction is interrupted".as_ptr());
        ffi::lua_error(l);
    }
}

/// What was said of the transaction that was interrupted, if one was; the state is as before.
pub(super) fn end_interruption(shared: &Shared, state: *mut lua_State) -> Option<String> {
    let message = shared.interruption.take();
    if message.is_some() {
        // SAFETY: the state is alive.
        unsafe { ffi::lua_sethook(state, None, 0, 0) };
    }
    message
}
