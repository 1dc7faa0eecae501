//! Who makes a call: the kind of process of `PostgreSQL`, the kind of session or the thread of `MariaDB`, else the
//! thread's name. What the words mean is the reader's to know.

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::files::name;
use crate::format::kind::CALLER;
use crate::system::{prctl, symbol};

/// `PostgreSQL`: the variable with the number of this process's kind.
static BACKEND_TYPE: AtomicPtr<c_int> = AtomicPtr::new(null_mut());
/// `PostgreSQL`: gives the words for such a number.
static BACKEND_WORDS: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// `PostgreSQL`: the variable with the address of what a background worker was registered as.
static WORKER: AtomicPtr<*const c_char> = AtomicPtr::new(null_mut());
/// `MariaDB`: gives the session that this thread works for.
static SESSION: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// `MariaDB`: whether a session is one of a replica.
static IS_REPLICA: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// `MariaDB`: whether a session has a client.
static IS_CONNECTED: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// A worker's name has so many bytes, and its type follows it.
const WORKER_TYPE: usize = 96;
const PR_GET_NAME: c_int = 16;

/// Which of the first 64 callers have been named in this process's file.
static NAMED: AtomicU64 = AtomicU64::new(0);
/// The number of the next thread that is named.
static NEXT: AtomicU32 = AtomicU32::new(FIRST_THREAD);
/// Counts forks, so that what threads have kept is forgotten.
static GENERATION: AtomicU32 = AtomicU32::new(1);

const CLIENT: u16 = 1;
const REPLICA: u16 = 2;
const INNER: u16 = 3;
/// Threads beyond the last number.
const MANY: u16 = 63;
const FIRST_THREAD: u32 = 64;

thread_local! {
    /// The generation, the session and the caller that this thread had last.
    static LAST: Cell<(u32, usize, u16)> = const { Cell::new((0, 0, 0)) };
}

/// Finds what the server tells of itself.
pub(crate) fn find() {
    let words = symbol(c"GetBackendTypeDesc");
    if !words.is_null() {
        BACKEND_WORDS.store(words, Ordering::Relaxed);
        WORKER.store(symbol(c"MyBgworkerEntry").cast(), Ordering::Relaxed);
        BACKEND_TYPE.store(symbol(c"MyBackendType").cast(), Ordering::Relaxed);
    }
    SESSION.store(symbol(c"_current_thd"), Ordering::Relaxed);
    IS_REPLICA.store(symbol(c"thd_is_slave"), Ordering::Relaxed);
    IS_CONNECTED.store(symbol(c"thd_is_connected"), Ordering::Relaxed);
}

/// As after a fork: nobody has been named in this process's file.
pub(crate) fn reset() {
    NAMED.store(0, Ordering::Relaxed);
    NEXT.store(FIRST_THREAD, Ordering::Relaxed);
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// The caller's number; its words are in this process's file.
pub(crate) fn number() -> u16 {
    let backend = BACKEND_TYPE.load(Ordering::Relaxed);
    if backend.is_null() {
        return of_thread();
    }
    // SAFETY: PostgreSQL's own variable; its process has one thread.
    let number = unsafe { *backend } as u16 & 63;
    if NAMED.load(Ordering::Relaxed) & (1 << number) == 0 {
        named_once(number, backend_words(number));
    }
    number
}

fn backend_words(number: u16) -> &'static [u8] {
    // SAFETY: PostgreSQL's function takes the number of a kind and returns a constant text.
    let words = unsafe {
        let call: unsafe extern "C" fn(c_int) -> *const c_char =
            transmute(BACKEND_WORDS.load(Ordering::Relaxed));
        CStr::from_ptr(call(c_int::from(number))).to_bytes()
    };
    let worker = WORKER.load(Ordering::Relaxed);
    if words != b"background worker" || worker.is_null() {
        return words;
    }
    // SAFETY: the variable is null or points to two texts of that size, each ending with a zero.
    unsafe { if (*worker).is_null() { words } else { CStr::from_ptr((*worker).add(WORKER_TYPE)).to_bytes() } }
}

/// Writes a caller's words before anybody can take them for written; two threads may write the same ones.
fn named_once(number: u16, words: &[u8]) {
    if NAMED.load(Ordering::Acquire) & (1 << number) == 0 {
        name(CALLER, u32::from(number), words);
        NAMED.fetch_or(1 << number, Ordering::Release);
    }
}

fn of_thread() -> u16 {
    let session = session();
    let generation = GENERATION.load(Ordering::Relaxed);
    let (last_generation, last_session, last) = LAST.get();
    if (last_generation, last_session) == (generation, session as usize) {
        return last;
    }
    let number = if session.is_null() { of_name() } else { of_session(session) };
    LAST.set((generation, session as usize, number));
    number
}

fn session() -> *mut c_void {
    let found = SESSION.load(Ordering::Relaxed);
    if found.is_null() {
        return null_mut();
    }
    // SAFETY: MariaDB's function takes nothing and returns an address or null.
    unsafe {
        let call: unsafe extern "C" fn() -> *mut c_void = transmute(found);
        call()
    }
}

fn of_session(session: *mut c_void) -> u16 {
    let (number, words): (u16, &[u8]) = if asks(&IS_REPLICA, session) {
        (REPLICA, b"replication")
    } else if asks(&IS_CONNECTED, session) {
        (CLIENT, b"connection")
    } else {
        (INNER, b"inner session")
    };
    named_once(number, words);
    number
}

fn asks(function: &AtomicPtr<c_void>, session: *mut c_void) -> bool {
    let found = function.load(Ordering::Relaxed);
    if found.is_null() {
        return false;
    }
    // SAFETY: MariaDB's function takes this thread's session and returns a bool or an int: its lowest byte tells.
    unsafe {
        let call: unsafe extern "C" fn(*mut c_void) -> u8 = transmute(found);
        call(session) != 0
    }
}

fn of_name() -> u16 {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let Ok(number) = u16::try_from(number) else {
        named_once(MANY, b"unknown");
        return MANY;
    };
    let mut words = [0_u8; 17];
    // SAFETY: the kernel writes 16 bytes at most, the last of them a zero.
    unsafe { prctl(PR_GET_NAME, words.as_mut_ptr()) };
    let words = CStr::from_bytes_until_nul(&words).map_or(&b"unknown"[..], CStr::to_bytes);
    name(CALLER, u32::from(number), if words.is_empty() { b"unknown" } else { words });
    number
}
