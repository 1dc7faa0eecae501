//! A socket of a ring: what the kernel reads and writes for it, and who waits for that.

use std::io;
use std::mem;
use std::task::{Context, Poll, Waker};

use rustix::fd::OwnedFd;

use crate::buffer::Inbox;
use crate::clock::Nanos;
use crate::reactor::store;

/// What an operation was, in the upper half of its user data; the lower half is its source.
pub(super) const RECEIVED: u64 = 0;
pub(super) const SENT: u64 = 1;
pub(super) const CONNECTED: u64 = 2;
pub(super) const EVENTFD: u64 = 3;
pub(super) const CANCELLED: u64 = 4;
pub(super) const ACCEPTABLE: u64 = 5;
/// Of an operation on a file; the lower half is its number.
pub(super) const FILE: u64 = 6;

/// The user data of an operation.
pub(super) fn tag(kind: u64, slot: usize) -> u64 {
    kind << 32 | slot as u64
}

#[allow(clippy::struct_excessive_bools)] // They are independent facts.
pub(super) struct Source {
    pub(super) fd: OwnedFd,
    pub(super) deadline: Nanos,
    pub(super) timed_out: bool,
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
    /// Whether the kernel reads (of a listening socket: waits for callers).
    pub(super) receiving: bool,
    /// What has arrived.
    pub(super) inbox: Inbox,
    /// How reading has ended, behind what has arrived: 0 at the end of the stream, else the error.
    pub(super) ended: Option<i32>,
    /// What the kernel is sending: empty if nothing.
    pub(super) outbox: Vec<u8>,
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
            inbox: Inbox::default(),
            ended: None,
            outbox: Vec::new(),
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

    /// Keeps what has arrived, if somebody is there to read it.
    #[inline]
    pub(super) fn received(&mut self, bytes: &[u8]) {
        if !self.closing {
            self.inbox.extend(bytes);
            if let Some(waker) = &self.reader {
                waker.wake_by_ref();
            }
        }
    }

    /// Gives what has arrived, without a copy where nothing waits in `inbox`; tells how many bytes.
    #[inline]
    pub(super) fn give(&mut self, inbox: &mut Inbox) -> usize {
        let count = self.inbox.bytes().len();
        if count == 0 {
            return 0;
        }
        if inbox.bytes().is_empty() {
            mem::swap(inbox, &mut self.inbox);
        } else {
            inbox.extend(self.inbox.bytes());
        }
        self.inbox.clear();
        count
    }

    /// The kernel reads no more; `true` if that was the last operation of a stream that is gone.
    pub(super) fn reading_ended(&mut self, result: i32) -> bool {
        self.in_flight -= 1;
        self.receiving = false;
        // Out of buffers, or called off as too much was held: it begins anew when all is read.
        if result <= 0 && !matches!(-result, libc::ENOBUFS | libc::ECANCELED) {
            self.ended = Some(-result);
        }
        self.closing && self.in_flight == 0
    }

    /// Notes how an operation has ended; `true` if it was the last one of a stream that is gone.
    pub(super) fn complete(&mut self, kind: u64, result: i32) -> bool {
        self.in_flight -= 1;
        match kind {
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
