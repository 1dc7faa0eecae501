//! The file of records of this process: mapped once, grown in steps, written by all threads without a lock.
// A mapping begins at a page; the places in a header and in a slot are multiples of what is stored there.
#![allow(clippy::cast_ptr_alignment)]

use core::ffi::{c_int, c_void};
use core::fmt::Write as _;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::format::{
    HEADER, HEADER_ERROR, HEADER_LOST, HEADER_PROCESS, HEADER_TIME, MAGIC, PAYLOAD, SLOT, Word,
};
use crate::settings;
use crate::system::{self, close, errno, open};
use crate::text::Text;

/// Address space for one file: it costs nothing until it is written to. The first that can be had is taken.
const SPACES: [usize; 3] = [1 << 36, 1 << 32, 1 << 28];
const FIRST_STEP: u64 = 64 << 10;
const STEP: u64 = 1 << 20;
const NAMES_TRIED: u32 = 100;

/// Nothing has been recorded since the process began.
const NEW: u32 = 0;
/// Records are written.
const ON: u32 = 1;
/// No more records are written.
const ENDED: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(NEW);
static BASE: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static SPACE: AtomicUsize = AtomicUsize::new(0);
/// The next free slot.
static NEXT: AtomicU64 = AtomicU64::new(0);
/// Bytes of the file that the file system has given.
static GIVEN: AtomicU64 = AtomicU64::new(0);
static MADE: AtomicU64 = AtomicU64::new(0);
static TRIED: AtomicU32 = AtomicU32::new(0);
/// Held while the file is made or grown.
static LOCK: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Its address is the thread's name in the lock.
    static THREAD: u8 = const { 0 };
}

struct Locked;

impl Locked {
    /// Waits for the lock; None if this thread has it, which a signal has interrupted then.
    fn new() -> Option<Self> {
        let ourselves = THREAD.with(|thread| &raw const *thread as usize);
        while let Err(owner) = LOCK.compare_exchange(0, ourselves, Ordering::Acquire, Ordering::Relaxed) {
            if owner == ourselves {
                return None;
            }
            // SAFETY: it takes nothing.
            unsafe { system::sched_yield() };
        }
        Some(Self)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        LOCK.store(0, Ordering::Release);
    }
}

/// Forgets the parent's file: the child makes one of its own when it has something to record.
pub(crate) fn forget() {
    let base = BASE.swap(null_mut(), Ordering::Relaxed);
    if !base.is_null() {
        // SAFETY: it was mapped with this size, and no other thread is left after a fork.
        unsafe { system::munmap(base.cast(), SPACE.load(Ordering::Relaxed)) };
    }
    NEXT.store(0, Ordering::Relaxed);
    GIVEN.store(0, Ordering::Relaxed);
    TRIED.store(0, Ordering::Relaxed);
    LOCK.store(0, Ordering::Relaxed);
    STATE.store(NEW, Ordering::Release);
}

/// Whether there is, or may be, a file to write records to.
pub(crate) fn is_on() -> bool {
    match STATE.load(Ordering::Acquire) {
        ON => true,
        NEW => begin(),
        _ => {
            count_lost();
            false
        }
    }
}

/// Writes a slot. Its last word is written when all else is there.
pub(crate) fn put(payload: &[u8; PAYLOAD], word: Word) {
    let slot = NEXT.fetch_add(1, Ordering::Relaxed);
    let at = HEADER as u64 + slot * SLOT as u64;
    if at + SLOT as u64 > GIVEN.load(Ordering::Acquire) && !grow(at + SLOT as u64) {
        count_lost();
        return;
    }
    // SAFETY: the slot is mapped, the file system has given its bytes, and the number is no other thread's.
    unsafe {
        let place = BASE.load(Ordering::Relaxed).add(at as usize);
        core::ptr::copy_nonoverlapping(payload.as_ptr(), place, PAYLOAD);
        (*place.add(PAYLOAD).cast::<AtomicU64>()).store(word.packed(), Ordering::Release);
    }
}

fn begin() -> bool {
    let Some(_locked) = Locked::new() else { return false };
    if STATE.load(Ordering::Acquire) != NEW {
        return STATE.load(Ordering::Acquire) == ON;
    }
    MADE.store(system::now(), Ordering::Relaxed);
    let result = make().and_then(map);
    match result {
        Ok(()) => STATE.store(ON, Ordering::Release),
        Err(error) => {
            STATE.store(ENDED, Ordering::Release);
            tell(error);
        }
    }
    result.is_ok()
}

fn path() -> Text {
    let mut path = Text::new();
    path.push(settings::folder());
    // Two processes of one number are told apart by the time; what cannot be told apart, by the try.
    let (made, tried) = (MADE.load(Ordering::Relaxed), TRIED.load(Ordering::Relaxed));
    // SAFETY: it takes nothing.
    let _ = write!(path, "/{}-{made:x}-{tried}.io", unsafe { system::getpid() });
    path.end();
    path
}

fn make() -> Result<c_int, c_int> {
    for tried in 0..NAMES_TRIED {
        TRIED.store(tried, Ordering::Relaxed);
        let fd = open(path().bytes(), system::O_RDWR | system::O_CREAT | system::O_EXCL);
        if fd >= 0 {
            return Ok(fd);
        }
        if errno() != system::EEXIST {
            return Err(errno());
        }
    }
    Err(system::EEXIST)
}

fn map(fd: c_int) -> Result<(), c_int> {
    let result = give(fd, 0, FIRST_STEP).and_then(|()| map_space(fd));
    close(fd);
    let base = result?;
    // SAFETY: the first step is mapped, and nobody else knows of it yet.
    unsafe {
        core::ptr::copy_nonoverlapping(MAGIC.as_ptr(), base, MAGIC.len());
        base.add(HEADER_PROCESS).cast::<u32>().write(system::getpid() as u32);
        base.add(HEADER_TIME).cast::<u64>().write(MADE.load(Ordering::Relaxed));
    }
    BASE.store(base, Ordering::Relaxed);
    GIVEN.store(FIRST_STEP, Ordering::Release);
    Ok(())
}

fn map_space(fd: c_int) -> Result<*mut u8, c_int> {
    for space in SPACES {
        // SAFETY: a new mapping, wherever the kernel puts it. Only what the file has is touched.
        let base =
            unsafe { system::mmap64(null_mut(), space, system::PROT_READ_WRITE, system::MAP_SHARED, fd, 0) };
        if base as isize != -1 {
            SPACE.store(space, Ordering::Relaxed);
            return Ok(base.cast());
        }
    }
    Err(errno())
}

/// Has the file system give bytes of the file: a file with holes would end the server by SIGBUS on a full disk.
fn give(fd: c_int, from: u64, bytes: u64) -> Result<(), c_int> {
    // SAFETY: the descriptor is ours.
    if unsafe { system::fallocate64(fd, 0, from as i64, bytes as i64) } == 0 {
        return Ok(());
    }
    if errno() != system::EOPNOTSUPP {
        return Err(errno());
    }
    let zeros = [0; 4096];
    let pages = bytes / zeros.len() as u64;
    let all = (0..pages).all(|page| system::write_at(fd, &zeros, (from + page * zeros.len() as u64) as i64));
    if all { Ok(()) } else { Err(errno()) }
}

/// Grows the file so that it has so many bytes; false if that is not possible, which ends the recording.
fn grow(needed: u64) -> bool {
    if STATE.load(Ordering::Acquire) != ON {
        return false;
    }
    let Some(_locked) = Locked::new() else { return false };
    while STATE.load(Ordering::Acquire) == ON {
        let given = GIVEN.load(Ordering::Acquire);
        if needed <= given {
            return true;
        }
        // Short-lived processes are many: twice as large each time, until a step is a whole one.
        let step = given.min(STEP);
        match extend(given, step) {
            Ok(()) => GIVEN.store(given + step, Ordering::Release),
            Err(error) => end(error),
        }
    }
    false
}

fn extend(given: u64, step: u64) -> Result<(), c_int> {
    let space = SPACE.load(Ordering::Relaxed) as u64;
    if given + step > space {
        return Err(system::EFBIG);
    }
    // No descriptor is kept open: servers count theirs, and some close all that they do not know.
    let fd = open(path().bytes(), system::O_RDWR);
    if fd < 0 {
        return Err(errno());
    }
    let result = give(fd, given, step);
    close(fd);
    // What was written long ago need not count as this process's memory.
    if given >= 2 * STEP && given.is_multiple_of(STEP) {
        let old = (given - 2 * STEP) as usize;
        // SAFETY: shared pages of the file stay in the file; who still writes there gets them back.
        unsafe {
            system::madvise(
                BASE.load(Ordering::Relaxed).add(old).cast::<c_void>(),
                STEP as usize,
                system::MADV_DONTNEED,
            )
        };
    }
    result
}

fn end(error: c_int) {
    STATE.store(ENDED, Ordering::Release);
    // SAFETY: the header is mapped.
    unsafe {
        let place = BASE.load(Ordering::Relaxed).add(HEADER_ERROR);
        (*place.cast::<AtomicI32>()).store(error, Ordering::Relaxed);
    }
    tell(error);
}

fn count_lost() {
    let base = BASE.load(Ordering::Relaxed);
    if !base.is_null() {
        // SAFETY: the header is mapped.
        unsafe { (*base.add(HEADER_LOST).cast::<AtomicU64>()).fetch_add(1, Ordering::Relaxed) };
    }
}

/// Says on standard error, which is the server's log, that nothing more is recorded. The server goes on.
fn tell(error: c_int) {
    let mut text = Text::new();
    // SAFETY: it takes nothing.
    let pid = unsafe { system::getpid() };
    let _ =
        write!(text, "nephoscope: process {pid} records no more of its I/O: error {error} with its file in ");
    text.push(settings::folder());
    text.push(b"\n");
    crate::say(text.bytes());
}
