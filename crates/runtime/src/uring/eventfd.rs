//! How a ring hears of other threads.

use std::mem;

use io_uring::opcode;
use io_uring::types::Fd;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::BorrowedFd;

use super::source::{EVENTFD, tag};
use super::{Uring, push};
use crate::clock::{Nanos, SECOND};

impl Uring {
    pub(super) fn watch_eventfd(&mut self) {
        if mem::replace(&mut self.eventfd_is_watched, true) {
            return;
        }
        let readable = PollFlags::IN.bits();
        let poll = opcode::PollAdd::new(Fd(self.eventfd), u32::from(readable)).multi(true).build();
        // SAFETY: it refers to no memory, and the runtime holds the eventfd for longer than this.
        unsafe { push(&mut self.ring, &mut self.waiting, &poll.user_data(tag(EVENTFD, 0))) };
    }

    /// The wait of a turn without the ring: timers and other threads' messages still come.
    pub(super) fn wait_for_eventfd(&mut self, now: Nanos, idle: bool, next: Option<Nanos>) {
        let until = next.map_or(now + SECOND, |next| next.min(now + SECOND));
        let length = if idle { until.saturating_sub(now) } else { 0 };
        // SAFETY: the runtime holds the eventfd for longer than this.
        let eventfd = unsafe { BorrowedFd::borrow_raw(self.eventfd) };
        let mut eventfd = [PollFd::new(&eventfd, PollFlags::IN)];
        let length = rustix::event::Timespec {
            tv_sec: (length / SECOND) as i64,
            tv_nsec: (length % SECOND) as rustix::ffi::c_long,
        };
        self.signalled |= matches!(poll(&mut eventfd, Some(&length)), Ok(1..));
    }
}
