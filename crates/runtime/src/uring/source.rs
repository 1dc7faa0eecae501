//! A socket of a ring: what the kernel reads and writes for it, and who waits for that.

use std::io;
use std::task::{Context, Poll, Waker};

use rustix::fd::OwnedFd;

use super::{ACCEPTABLE, RECEIVE, RECEIVED, SENT};
use crate::clock::Nanos;
use crate::reactor::store;

#[allow(clippy::struct_excessive_bools)] // They are independent facts.
pub(super) struct Source {
    pub(super) fd: OwnedFd,
    pub(super) deadline: Nanos,
    pub(super) timed_out: bool,
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
    /// Whether the kernel is to read into `inbox` (of a listening socket: waits for callers), and what came of it.
    pub(super) receiving: bool,
    pub(super) received: Option<i32>,
    pub(super) inbox: Box<[u8]>,
    /// What the kernel is sending: empty if nothing.
    pub(super) outbox: Vec<u8>,
    /// Whether something was sent since the last read: then the answer is not there yet.
    pub(super) asked: bool,
    pub(super) failed: Option<io::Error>,
    pub(super) connecting: bool,
    pub(super) connected: bool,
    /// Operations that the kernel has not ended.
    pub(super) in_flight: u8,
    /// The stream is gone.
    pub(super) closing: bool,
}

impl Source {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            deadline: Nanos::MAX,
            timed_out: false,
            reader: None,
            writer: None,
            receiving: false,
            received: None,
            inbox: vec![0; RECEIVE].into_boxed_slice(),
            outbox: Vec::new(),
            asked: false,
            failed: None,
            connecting: false,
            connected: false,
            in_flight: 0,
            closing: false,
        }
    }

    /// Waits for the end of a send.
    pub(super) fn poll_sent(&mut self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        if self.timed_out {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        store(&mut self.writer, cx);
        Poll::Pending
    }

    /// Notes how an operation has ended; `true` if it was the last one of a stream that is gone.
    pub(super) fn complete(&mut self, kind: u64, result: i32) -> bool {
        self.in_flight -= 1;
        match kind {
            RECEIVED => {
                self.receiving = false;
                self.received = Some(result);
                if let Some(waker) = &self.reader {
                    waker.wake_by_ref();
                }
            }
            ACCEPTABLE => {
                self.receiving = false;
                if let Some(waker) = self.reader.take() {
                    waker.wake();
                }
            }
            SENT => {
                if usize::try_from(result).is_ok_and(|count| count == self.outbox.len()) {
                    self.failed = None;
                } else {
                    let code = if result < 0 { -result } else { libc::EPIPE };
                    self.failed = Some(io::Error::from_raw_os_error(code));
                }
                self.outbox.clear();
                if let Some(waker) = self.writer.take() {
                    waker.wake();
                }
            }
            _ => {
                self.connected = true;
                if let Some(waker) = self.writer.take() {
                    waker.wake();
                }
            }
        }
        self.closing && self.in_flight == 0
    }
}
