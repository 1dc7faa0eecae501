//! What the fuzz targets share.

use std::alloc::{GlobalAlloc, Layout, System};

/// No input of a few kilobytes is worth more memory in one piece.
const MOST: usize = 32 << 20;

/// The system's allocator, which ends the process where a length that somebody claims becomes memory.
pub struct Bounded;

fn check(size: usize) {
    if size > MOST {
        eprintln!("an allocation of {size} bytes");
        std::process::abort();
    }
}

// SAFETY: every call is the system allocator's own.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check(size);
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}
