//! Buffers that the kernel takes one of when something arrives: no socket that waits binds one.

use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// As the kernel knows them.
pub(super) const GROUP: u16 = 0;
/// A power of two. Where more answers than this come at once, the rest are read when these have been.
const COUNT: u16 = 256;
/// More of one answer than this is read in two pieces.
const SIZE: usize = 8192;
/// From one buffer to the next: a line more, as beginnings whole pages apart would drive each other out of the cache.
const STRIDE: usize = SIZE + 64;

/// The list of free buffers that the kernel reads; it begins a page.
#[repr(C, align(4096))]
struct Free([u128; COUNT as usize]);

pub(super) struct Buffers {
    free: Box<Free>,
    bytes: Box<[u8]>,
    /// How many were ever put into the list.
    given: u16,
}

impl Buffers {
    /// Makes the buffers known to a ring.
    ///
    /// # Safety
    /// They must be there until the ring is gone.
    pub(super) unsafe fn register(submitter: &Submitter<'_>) -> io::Result<Self> {
        let bytes = vec![0; usize::from(COUNT) * STRIDE].into_boxed_slice();
        let mut buffers = Self { free: Box::new(Free([0; COUNT as usize])), bytes, given: 0 };
        let list = (&raw mut *buffers.free) as u64;
        // SAFETY: the list begins a page, has room for so many, and outlives the ring: the caller's.
        unsafe { submitter.register_buf_ring_with_flags(list, COUNT, GROUP, 0)? };
        (0..COUNT).for_each(|number| buffers.give(number));
        Ok(buffers)
    }

    /// What the kernel has written into a buffer.
    pub(super) fn filled(&self, number: u16, count: usize) -> &[u8] {
        let start = usize::from(number) * STRIDE;
        &self.bytes[start..start + count]
    }

    /// Lets the kernel have a buffer (again).
    pub(super) fn give(&mut self, number: u16) {
        let list = (&raw mut *self.free).cast::<BufRingEntry>();
        // SAFETY: the index lies in the list, and its entry was taken by the kernel or never set; the count of entries
        // lies in a part of the first that no entry uses, and is published after the entry is whole.
        unsafe {
            let entry = &mut *list.add(usize::from(self.given % COUNT));
            entry.set_addr(self.bytes.as_mut_ptr().add(usize::from(number) * STRIDE) as u64);
            entry.set_len(SIZE as u32);
            entry.set_bid(number);
            self.given = self.given.wrapping_add(1);
            let published = AtomicU16::from_ptr(BufRingEntry::tail(list).cast_mut());
            published.store(self.given, Ordering::Release);
        }
    }
}
