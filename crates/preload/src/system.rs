//! What is called of the C library, declared by hand: the library has no dependency, so that one call of the compiler
//! makes it.

use core::ffi::{c_char, c_int, c_long, c_uint, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

#[repr(C)]
pub(crate) struct Timespec {
    seconds: i64,
    nanoseconds: c_long,
}

pub(crate) const O_RDWR: c_int = 2;
pub(crate) const O_CREAT: c_int = 0o100;
pub(crate) const O_EXCL: c_int = 0o200;
pub(crate) const O_CLOEXEC: c_int = 0o2_000_000;
pub(crate) const PROT_READ_WRITE: c_int = 1 | 2;
pub(crate) const MAP_SHARED: c_int = 1;
pub(crate) const SEEK_CUR: c_int = 1;
pub(crate) const MADV_DONTNEED: c_int = 4;
pub(crate) const EEXIST: c_int = 17;
pub(crate) const EFBIG: c_int = 27;
pub(crate) const EOPNOTSUPP: c_int = 95;
const CLOCK_MONOTONIC: c_int = 1;
const RTLD_NEXT: *mut c_void = -1_isize as *mut c_void;
const RTLD_DEFAULT: *mut c_void = null_mut();

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    pub(crate) fn fallocate64(fd: c_int, mode: c_int, offset: i64, bytes: i64) -> c_int;
    pub(crate) fn fileno(file: *mut c_void) -> c_int;
    pub(crate) fn getenv(name: *const c_char) -> *const c_char;
    pub(crate) fn getpid() -> c_int;
    pub(crate) fn lseek64(fd: c_int, offset: i64, from: c_int) -> i64;
    pub(crate) fn madvise(at: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    pub(crate) fn mmap64(
        at: *mut c_void,
        bytes: usize,
        protection: c_int,
        flags: c_int,
        fd: c_int,
        offset: i64,
    ) -> *mut c_void;
    pub(crate) fn munmap(at: *mut c_void, bytes: usize) -> c_int;
    pub(crate) fn prctl(option: c_int, ...) -> c_int;
    pub(crate) fn pthread_atfork(
        before: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
    pub(crate) fn readlink(path: *const c_char, into: *mut c_char, bytes: usize) -> isize;
    pub(crate) fn sched_yield() -> c_int;
}

/// The error number of this thread.
pub(crate) fn errno() -> c_int {
    // SAFETY: the C library gives the address of the thread's own error number.
    unsafe { *__errno_location() }
}

/// Puts the error number of this thread back.
pub(crate) fn set_errno(number: c_int) {
    // SAFETY: as above.
    unsafe { *__errno_location() = number }
}

/// Nanoseconds on `CLOCK_MONOTONIC`.
pub(crate) fn now() -> u64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the time is this function's own.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &raw mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}

/// A symbol of the program or of one of its libraries; null if there is none.
pub(crate) fn symbol(name: &core::ffi::CStr) -> *mut c_void {
    // SAFETY: the name ends with a zero.
    unsafe { dlsym(RTLD_DEFAULT, name.as_ptr()) }
}

/// A function that this library stands before. It is looked up when it is first called, because other libraries call
/// `close` before this one's constructor runs.
pub(crate) struct Next {
    name: &'static core::ffi::CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    pub(crate) const fn new(name: &'static core::ffi::CStr) -> Self {
        Self { name, found: AtomicPtr::new(null_mut()) }
    }

    /// Its address; null if the C library has no such function.
    pub(crate) fn address(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Relaxed);
        if !found.is_null() {
            return found;
        }
        // SAFETY: the name ends with a zero.
        let found = unsafe { dlsym(RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

pub(crate) static CLOSE: Next = Next::new(c"close");
pub(crate) static OPEN: Next = Next::new(c"open64");
pub(crate) static PWRITE: Next = Next::new(c"pwrite64");

/// Opens a file, past this library's own functions.
pub(crate) fn open(path: &[u8], flags: c_int) -> c_int {
    // SAFETY: open64 is of this type; its variable argument is passed as a named one on every machine that is built for.
    let call: unsafe extern "C" fn(*const c_char, c_int, c_uint) -> c_int =
        unsafe { transmute(OPEN.address()) };
    // SAFETY: the path ends with a zero, see its makers.
    unsafe { call(path.as_ptr().cast(), flags | O_CLOEXEC, 0o600) }
}

/// Closes a descriptor, likewise.
pub(crate) fn close(fd: c_int) {
    // SAFETY: close is of this type.
    let call: unsafe extern "C" fn(c_int) -> c_int = unsafe { transmute(CLOSE.address()) };
    // SAFETY: any number may be closed.
    unsafe { call(fd) };
}

/// Writes bytes, likewise; whether all of them were written.
pub(crate) fn write_at(fd: c_int, bytes: &[u8], offset: i64) -> bool {
    // SAFETY: pwrite64 is of this type.
    let call: unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize =
        unsafe { transmute(PWRITE.address()) };
    // SAFETY: the bytes are there.
    unsafe { call(fd, bytes.as_ptr().cast(), bytes.len(), offset) == bytes.len() as isize }
}
