//! Waiting for sockets and timers by io_uring: what many sessions send and receive costs one system call together.
//!
//! A session's request is queued, and so is the read of its answer; both reach the kernel when the runtime has
//! nothing else to do, with those of all other sessions. The kernel reads and writes buffers that belong to the
//! table of sources, never to a stream: a stream may be dropped at any time, its source stays until the kernel has
//! let go of it.

use std::io;
use std::mem;
use std::task::{Context, Poll, Waker};

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::sockopt::socket_error;
use rustix::net::{SocketFlags, accept_with};
use slab::Slab;

use crate::buffer::Inbox;
use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::reactor::{DEADLINE_RESOLUTION, Key, store};

const ENTRIES: u32 = 1024;
/// More answers than this are read in two pieces.
const RECEIVE: usize = 8192;
/// A socket that is not full takes as much as this at once.
const SHORT: usize = 16 * 1024;
/// `IORING_RECVSEND_POLL_FIRST`: do not try to read at once what cannot be there yet.
const POLL_FIRST: u16 = 1;
/// How long the end waits for the kernel to let go of buffers.
const PATIENCE: u32 = 100;

/// What an operation was, in the upper half of its user data; the lower half is its source.
const RECEIVED: u64 = 0;
const SENT: u64 = 1;
const CONNECTED: u64 = 2;
const BELL: u64 = 3;
const CANCELLED: u64 = 4;
const ACCEPTABLE: u64 = 5;

fn tag(kind: u64, slot: usize) -> u64 {
    kind << 32 | slot as u64
}

#[allow(clippy::struct_excessive_bools)] // They are independent facts.
struct Source {
    fd: OwnedFd,
    deadline: Nanos,
    timed_out: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// Whether the kernel is to read into `inbox` (of a listening socket: waits for callers), and what came of it.
    receiving: bool,
    received: Option<i32>,
    inbox: Box<[u8]>,
    /// What the kernel is sending: empty if nothing.
    outbox: Vec<u8>,
    /// Whether something was sent since the last read: then the answer is not there yet.
    asked: bool,
    failed: Option<io::Error>,
    connecting: bool,
    connected: bool,
    /// Operations that the kernel has not ended.
    in_flight: u8,
    /// The stream is gone.
    closing: bool,
}

pub(crate) struct Uring {
    ring: IoUring,
    bell: i32,
    sources: Slab<Source>,
    next_scan: Nanos,
    rung: bool,
    bell_is_watched: bool,
}

impl Uring {
    /// Fails where the kernel is too old (before 6.1) or forbids io_uring.
    pub(crate) fn new(bell: &OwnedFd) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(4 * ENTRIES)
            .dontfork()
            .build(ENTRIES)?;
        let bell = bell.as_raw_fd();
        let sources = Slab::new();
        Ok(Self { ring, bell, sources, next_scan: 0, rung: false, bell_is_watched: false })
    }

    pub(crate) fn take_bell(&mut self) -> bool {
        mem::take(&mut self.rung)
    }

    pub(crate) fn register(&mut self, fd: OwnedFd) -> Key {
        let slot = self.sources.insert(Source {
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
        });
        // A slot is used again only after the kernel has let go of it, so it needs no generation.
        Key { slot, generation: 0 }
    }

    /// What was queued is still sent if the socket has room; whatever waits is called off.
    pub(crate) fn deregister(&mut self, key: Key) {
        let source = &mut self.sources[key.slot];
        source.closing = true;
        source.reader = None;
        source.writer = None;
        source.deadline = Nanos::MAX;
        if source.in_flight == 0 {
            self.sources.remove(key.slot);
            return;
        }
        let all = CancelBuilder::fd(Fd(source.fd.as_raw_fd())).all();
        let cancel = opcode::AsyncCancel2::new(all).build();
        // SAFETY: it refers to no memory, and the descriptor is open until its operations have ended.
        unsafe { push(&mut self.ring, &cancel.user_data(tag(CANCELLED, 0))) };
    }

    pub(crate) fn set_deadline(&mut self, key: Key, deadline: Nanos) {
        let source = &mut self.sources[key.slot];
        source.deadline = deadline;
        source.timed_out = false;
    }

    pub(crate) fn descriptor(&self, key: Key) -> &OwnedFd {
        &self.sources[key.slot].fd
    }

    /// Takes a connection from a listening socket; the ring only waits for one to be there.
    pub(crate) fn poll_accept(&mut self, key: Key, cx: &Context<'_>) -> Poll<io::Result<OwnedFd>> {
        let source = &mut self.sources[key.slot];
        loop {
            // Without `NONBLOCK`: see `take_error`.
            match accept_with(&source.fd, SocketFlags::CLOEXEC) {
                Ok(fd) => return Poll::Ready(Ok(fd)),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        store(&mut source.reader, cx);
        if !mem::replace(&mut source.receiving, true) {
            source.in_flight += 1;
            let readable = rustix::event::PollFlags::IN.bits();
            let poll = opcode::PollAdd::new(Fd(source.fd.as_raw_fd()), u32::from(readable)).build();
            // SAFETY: it refers to no memory, and the descriptor is open until the operation has ended.
            unsafe { push(&mut self.ring, &poll.user_data(tag(ACCEPTABLE, key.slot))) };
        }
        Poll::Pending
    }

    /// Completes when everything that was handed over is with the kernel, or could not be.
    pub(crate) fn poll_all_sent(&mut self, key: Key, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let source = &mut self.sources[key.slot];
        match source.failed.take() {
            Some(error) => Poll::Ready(Err(error)),
            None if source.outbox.is_empty() => Poll::Ready(Ok(())),
            None => source.poll_sent(cx),
        }
    }

    /// The error of a connect that has ended, if it failed.
    pub(crate) fn take_error(&self, key: Key) -> io::Result<()> {
        let fd = &self.sources[key.slot].fd;
        socket_error(fd)??;
        // io_uring waits for a socket that would block, and would not for one that says it must not.
        Ok(ioctl_fionbio(fd, false)?)
    }

    pub(crate) fn poll_writable(&mut self, key: Key, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let source = &mut self.sources[key.slot];
        if source.timed_out {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if source.connected {
            return Poll::Ready(Ok(()));
        }
        store(&mut source.writer, cx);
        if !mem::replace(&mut source.connecting, true) {
            source.in_flight += 1;
            let writable = rustix::event::PollFlags::OUT.bits();
            let poll = opcode::PollAdd::new(Fd(source.fd.as_raw_fd()), u32::from(writable)).build();
            // SAFETY: it refers to no memory, and the descriptor is open until the operation has ended.
            unsafe { push(&mut self.ring, &poll.user_data(tag(CONNECTED, key.slot))) };
        }
        Poll::Pending
    }

    /// Takes `out` and has it sent. If it is short, as requests are, that is all: it will find room, and if the
    /// connection is broken the answer's absence says so. Else it is complete when it is sent.
    pub(crate) fn poll_send(
        &mut self,
        key: Key,
        cx: &Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<io::Result<()>> {
        let source = &mut self.sources[key.slot];
        if let Some(error) = source.failed.take() {
            return Poll::Ready(Err(error));
        }
        if !source.outbox.is_empty() && (source.outbox.len() > SHORT || !out.is_empty()) {
            return source.poll_sent(cx);
        }
        if out.is_empty() {
            return Poll::Ready(Ok(()));
        }
        mem::swap(&mut source.outbox, out);
        source.in_flight += 1;
        source.asked = true;
        let fd = Fd(source.fd.as_raw_fd());
        let send = opcode::Send::new(fd, source.outbox.as_ptr(), source.outbox.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build();
        // SAFETY: the outbox is neither changed nor freed before the operation has ended, nor is the descriptor
        // closed: `complete` and `drop` see to that.
        unsafe { push(&mut self.ring, &send.user_data(tag(SENT, key.slot))) };
        if source.outbox.len() > SHORT { source.poll_sent(cx) } else { Poll::Ready(Ok(())) }
    }

    /// Reads once. Completes with the number of bytes, 0 at the end of the stream.
    pub(crate) fn poll_recv(
        &mut self,
        key: Key,
        cx: &Context<'_>,
        inbox: &mut Inbox,
    ) -> Poll<io::Result<usize>> {
        let source = &mut self.sources[key.slot];
        if let Some(result) = source.received.take() {
            return Poll::Ready(match usize::try_from(result) {
                Ok(count) => {
                    inbox.extend(&source.inbox[..count]);
                    Ok(count)
                }
                Err(_) => Err(io::Error::from_raw_os_error(-result)),
            });
        }
        if source.timed_out {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        store(&mut source.reader, cx);
        if !mem::replace(&mut source.receiving, true) {
            source.in_flight += 1;
            let fd = Fd(source.fd.as_raw_fd());
            let receive = opcode::Recv::new(fd, source.inbox.as_mut_ptr(), RECEIVE as u32)
                .ioprio(if mem::take(&mut source.asked) { POLL_FIRST } else { 0 })
                .build();
            // SAFETY: the inbox is neither looked at nor freed before the operation has ended, nor is the
            // descriptor closed: `complete` and `drop` see to that.
            unsafe { push(&mut self.ring, &receive.user_data(tag(RECEIVED, key.slot))) };
        }
        Poll::Pending
    }

    /// Hands over what was queued and wakes whose operations have ended. Blocks only if `idle`, and then until `next`
    /// at the latest.
    pub(crate) fn turn(&mut self, now: Nanos, idle: bool, next: Option<Nanos>) {
        if now >= self.next_scan {
            self.scan(now);
        }
        self.watch_bell();
        // An error is that of an interrupted or ended wait, or of a kernel that is busy: the next turn asks again.
        if idle {
            let scan = if self.sources.is_empty() { Nanos::MAX } else { now + DEADLINE_RESOLUTION };
            let until = next.unwrap_or(Nanos::MAX).min(scan);
            if until == Nanos::MAX {
                let _ = self.ring.submitter().submit_and_wait(1);
            } else {
                let length = timespec(until.saturating_sub(now));
                let _ = self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&length));
            }
        } else {
            let queue = self.ring.submission();
            let something_to_do = !queue.is_empty() || queue.taskrun() || queue.cq_overflow();
            drop(queue);
            if something_to_do {
                let _ = self.ring.submitter().submit_and_wait(0);
            }
        }
        self.collect();
    }

    /// Hands over what was queued.
    pub(crate) fn hand_over(&mut self) {
        // An error is that of a kernel that is busy: the next turn asks again.
        let _ = self.ring.submitter().submit();
    }

    /// Deals with the operations that have ended.
    fn collect(&mut self) {
        let Self { ring, sources, rung, bell_is_watched, .. } = self;
        for event in ring.completion() {
            let (kind, slot) = (event.user_data() >> 32, (event.user_data() & 0xffff_ffff) as usize);
            match kind {
                CANCELLED => {}
                BELL => {
                    *rung = true;
                    *bell_is_watched = cqueue::more(event.flags());
                }
                _ => {
                    if sources[slot].complete(kind, event.result()) {
                        sources.remove(slot);
                    }
                }
            }
        }
    }

    fn watch_bell(&mut self) {
        if mem::replace(&mut self.bell_is_watched, true) {
            return;
        }
        let readable = rustix::event::PollFlags::IN.bits();
        let poll = opcode::PollAdd::new(Fd(self.bell), u32::from(readable)).multi(true).build();
        // SAFETY: it refers to no memory, and the runtime holds the bell for longer than this.
        unsafe { push(&mut self.ring, &poll.user_data(tag(BELL, 0))) };
    }

    fn scan(&mut self, now: Nanos) {
        self.next_scan = now + DEADLINE_RESOLUTION;
        for (_, source) in &mut self.sources {
            if source.deadline <= now && !source.timed_out {
                source.timed_out = true;
                for waker in [source.reader.take(), source.writer.take()].into_iter().flatten() {
                    waker.wake();
                }
            }
        }
    }
}

impl Source {
    /// Waits for the end of a send.
    fn poll_sent(&mut self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        if self.timed_out {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        store(&mut self.writer, cx);
        Poll::Pending
    }

    /// Notes how an operation has ended; `true` if it was the last one of a stream that is gone.
    fn complete(&mut self, kind: u64, result: i32) -> bool {
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

impl Drop for Uring {
    /// Calls off what the kernel has not ended, and keeps the buffers of what it will not let go of.
    fn drop(&mut self) {
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::any().all()).build();
        // SAFETY: it refers to no memory.
        unsafe { push(&mut self.ring, &cancel.user_data(tag(CANCELLED, 0))) };
        let length = timespec(MILLISECOND);
        for _ in 0..PATIENCE {
            if self.sources.iter().all(|(_, source)| source.in_flight == 0) {
                return;
            }
            let _ = self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&length));
            self.collect();
        }
        for source in mem::take(&mut self.sources) {
            mem::forget(source);
        }
    }
}

fn timespec(time: Nanos) -> Timespec {
    Timespec::new().sec(time / SECOND).nsec((time % SECOND) as u32)
}

/// Queues an operation; if the queue is full, what is in it goes to the kernel first.
///
/// # Safety
/// What the operation refers to must be valid until it has ended.
unsafe fn push(ring: &mut IoUring, entry: &squeue::Entry) {
    loop {
        // SAFETY: the caller's.
        if unsafe { ring.submission().push(entry) }.is_ok() {
            return;
        }
        let _ = ring.submitter().submit();
    }
}
