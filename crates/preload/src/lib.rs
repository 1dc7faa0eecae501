//! A library that a database server is started with (`LD_PRELOAD`): it stands before the C library's reads, writes and
//! syncs, and records those of the files in the data directory: when, how long, where, how much, and who. Everything else
//! passes through.
//!
//! Each process appends to a file of its own, which is mapped: a killed process loses nothing that it had written, and
//! nothing is allocated, locked or formatted on the way of a call whose descriptor is known. Where recording is not
//! possible any more it ends, and the server goes on.
//!
//! One call of the compiler makes it from this file (`crates/bindings/build.rs`).
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod callers;
mod files;
mod format;
mod recording;
mod settings;
mod system;
mod text;

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::mem::transmute;

use format::{PAYLOAD, Word, kind};
use system::{Next, errno, now, set_errno};

const ENOSYS: c_int = 38;

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    let errno = errno();
    if settings::read() {
        callers::find();
        // SAFETY: the function resets what belongs to a process and allocates nothing.
        unsafe { system::pthread_atfork(None, None, Some(forked)) };
        files::enable();
    }
    set_errno(errno);
}

extern "C" fn forked() {
    let errno = errno();
    recording::forget();
    files::reset();
    callers::reset();
    set_errno(errno);
}

/// Writes a call that was made; one that failed has done nothing, and none is recorded.
fn record(file: u32, what: u8, offset: i64, began: u64, done: isize) {
    if done < 0 {
        return;
    }
    let latency = now() - began;
    let mut payload = [0; PAYLOAD];
    payload[0..8].copy_from_slice(&began.to_ne_bytes());
    payload[8..16].copy_from_slice(&latency.to_ne_bytes());
    payload[16..24].copy_from_slice(&offset.to_ne_bytes());
    payload[24..28].copy_from_slice(&(done as u32).to_ne_bytes());
    let errno = errno();
    recording::put(&payload, Word { number: file, detail: callers::number(), kind: what });
    set_errno(errno);
}

/// Where a call that moved the position began.
fn before(fd: c_int, done: isize) -> i64 {
    // SAFETY: it only tells where the descriptor stands.
    unsafe { system::lseek64(fd, 0, system::SEEK_CUR) - done as i64 }
}

/// Says something on standard error.
fn say(text: &[u8]) {
    // SAFETY: write is of this type, and the bytes are there.
    unsafe {
        let call: unsafe extern "C" fn(c_int, *const c_void, usize) -> isize = transmute(WRITE.address());
        call(2, text.as_ptr().cast(), text.len());
    }
}

static WRITE: Next = Next::new(c"write");

/// The next library's function; returns from the function around it where there is none.
macro_rules! next {
    ($name:literal, fn($($type:ty),*) -> $result:ty) => {{
        static NEXT: Next = Next::new($name);
        let address = NEXT.address();
        if address.is_null() {
            set_errno(ENOSYS);
            return -1;
        }
        // SAFETY: the C library's function of that name is of this type.
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $result>(address) }
    }};
}

/// Functions that say where they read or write.
macro_rules! at_an_offset {
    ($($name:ident $real:literal $kind:ident ($($argument:ident: $type:ty),*) $count:ty;)*) => {$(
        /// As in the C library.
        ///
        /// # Safety
        ///
        /// As in the C library.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            fd: c_int, from: *mut c_void, count: $count, offset: i64 $(, $argument: $type)*
        ) -> isize {
            let call = next!($real, fn(c_int, *mut c_void, $count, i64 $(, $type)*) -> isize);
            let Some(file) = files::number(fd) else {
                // SAFETY: the caller's.
                return unsafe { call(fd, from, count, offset $(, $argument)*) };
            };
            let began = now();
            // SAFETY: the caller's.
            let done = unsafe { call(fd, from, count, offset $(, $argument)*) };
            let offset = if offset < 0 && done >= 0 { before(fd, done) } else { offset };
            record(file, kind::$kind, offset, began, done);
            done
        }
    )*};
}

at_an_offset! {
    pread c"pread64" READ () usize;
    pread64 c"pread64" READ () usize;
    pwrite c"pwrite64" WRITE () usize;
    pwrite64 c"pwrite64" WRITE () usize;
    preadv c"preadv64" READ () c_int;
    preadv64 c"preadv64" READ () c_int;
    pwritev c"pwritev64" WRITE () c_int;
    pwritev64 c"pwritev64" WRITE () c_int;
    preadv2 c"preadv64v2" READ (flags: c_int) c_int;
    preadv64v2 c"preadv64v2" READ (flags: c_int) c_int;
    pwritev2 c"pwritev64v2" WRITE (flags: c_int) c_int;
    pwritev64v2 c"pwritev64v2" WRITE (flags: c_int) c_int;
    // What programs that were compiled with checks of sizes call; the room is the buffer's.
    __pread_chk c"__pread64_chk" READ (room: usize) usize;
    __pread64_chk c"__pread64_chk" READ (room: usize) usize;
}

/// Functions that read or write where the descriptor stands: `MariaDB` writes its binary log so.
macro_rules! at_the_position {
    ($($name:ident $real:literal $kind:ident ($($argument:ident: $type:ty),*) $count:ty;)*) => {$(
        /// As in the C library.
        ///
        /// # Safety
        ///
        /// As in the C library.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            fd: c_int, from: *mut c_void, count: $count $(, $argument: $type)*
        ) -> isize {
            let call = next!($real, fn(c_int, *mut c_void, $count $(, $type)*) -> isize);
            let Some(file) = files::number(fd) else {
                // SAFETY: the caller's.
                return unsafe { call(fd, from, count $(, $argument)*) };
            };
            let began = now();
            // SAFETY: the caller's.
            let done = unsafe { call(fd, from, count $(, $argument)*) };
            if done >= 0 {
                record(file, kind::$kind, before(fd, done), began, done);
            }
            done
        }
    )*};
}

at_the_position! {
    read c"read" READ () usize;
    write c"write" WRITE () usize;
    readv c"readv" READ () c_int;
    writev c"writev" WRITE () c_int;
    __read_chk c"__read_chk" READ (room: usize) usize;
}

/// Functions that make a file durable. `sync_file_range` only starts writing, and is none of them.
macro_rules! syncs {
    ($($name:ident $real:literal;)*) => {$(
        /// As in the C library.
        ///
        /// # Safety
        ///
        /// As in the C library.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int) -> c_int {
            let call = next!($real, fn(c_int) -> c_int);
            let Some(file) = files::number(fd) else {
                // SAFETY: the caller's.
                return unsafe { call(fd) };
            };
            let began = now();
            // SAFETY: the caller's.
            let done = unsafe { call(fd) };
            record(file, kind::SYNC, 0, began, done as isize);
            done
        }
    )*};
}

syncs! {
    fsync c"fsync";
    fdatasync c"fdatasync";
}

/// Functions that open a file: whatever the descriptor was before, it is something else now.
macro_rules! opens {
    ($($name:ident $real:literal ($($argument:ident: $type:ty),*);)*) => {$(
        /// As in the C library, whose last argument may be missing: it is passed on as it came.
        ///
        /// # Safety
        ///
        /// As in the C library.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            let call = next!($real, fn($($type),*) -> c_int);
            // SAFETY: the caller's.
            let fd = unsafe { call($($argument),*) };
            files::forget(fd);
            fd
        }
    )*};
}

opens! {
    open c"open64" (path: *const c_char, flags: c_int, mode: c_uint);
    open64 c"open64" (path: *const c_char, flags: c_int, mode: c_uint);
    openat c"openat64" (folder: c_int, path: *const c_char, flags: c_int, mode: c_uint);
    openat64 c"openat64" (folder: c_int, path: *const c_char, flags: c_int, mode: c_uint);
    dup2 c"dup2" (fd: c_int, to: c_int);
    dup3 c"dup3" (fd: c_int, to: c_int, flags: c_int);
}

/// As in the C library.
///
/// # Safety
///
/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    let call = next!(c"close", fn(c_int) -> c_int);
    // Before it is closed: then another thread may have the number.
    files::forget(fd);
    // SAFETY: the caller's.
    unsafe { call(fd) }
}

/// As in the C library, whose own call of `close` does not pass here.
///
/// # Safety
///
/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fclose(file: *mut c_void) -> c_int {
    let call = next!(c"fclose", fn(*mut c_void) -> c_int);
    if !file.is_null() {
        // SAFETY: the caller's file.
        files::forget(unsafe { system::fileno(file) });
    }
    // SAFETY: the caller's.
    unsafe { call(file) }
}

/// As in the C library.
///
/// # Safety
///
/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let call = next!(c"close_range", fn(c_uint, c_uint, c_int) -> c_int);
    files::forget_all();
    // SAFETY: the caller's.
    unsafe { call(first, last, flags) }
}

/// As in the C library. Files that are open may have other names after it.
///
/// # Safety
///
/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    let call = next!(c"rename", fn(*const c_char, *const c_char) -> c_int);
    // SAFETY: the caller's.
    let done = unsafe { call(from, to) };
    files::forget_all();
    done
}
