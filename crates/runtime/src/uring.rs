//! Waiting for sockets, files and timers by io_uring: what many sessions send and receive costs one system call together.
//!
//! A session's request is queued, and so is the read of its answer; both reach the kernel when the runtime has
//! nothing else to do, with those of all other sessions. A socket that is read once is read for good: the kernel puts
//! what arrives into a buffer of its choice. What it sends belongs to the table of sources, never to a stream: a stream
//! may be dropped at any time, its source stays until the kernel has let go of it.

mod buffers;
mod eventfd;
mod files;
mod source;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::mem::{self, ManuallyDrop};
use std::task::{Context, Poll};

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::event::PollFlags;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::sockopt::socket_error;
use rustix::net::{SocketFlags, accept_with};
use slab::Slab;

use crate::buffer::Inbox;
use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::reactor::{DEADLINE_RESOLUTION, Key, store};
use buffers::{Buffers, GROUP};
use files::Operation;
use source::{ACCEPTABLE, CANCELLED, CONNECTED, EVENTFD, FILE, RECEIVED, SENT, Source, tag};

const ENTRIES: u32 = 1024;
/// A socket that is not full takes as much as this at once.
const SHORT: usize = 16 * 1024;
/// Of a peer that sends faster than it is read so much is held; then its socket fills up, and it has to wait.
const HELD: usize = 256 * 1024;
/// How long the end waits for the kernel to let go of buffers.
const PATIENCE: u32 = 100;

pub(crate) struct Uring {
    ring: IoUring,
    /// What found no room in the ring's queue.
    waiting: VecDeque<squeue::Entry>,
    /// The error with which the ring has failed for good: nothing that it was given will end.
    failed: Option<Errno>,
    eventfd: i32,
    sources: Slab<Source>,
    files: Slab<Operation>,
    /// Sources that hold too much.
    full: Vec<usize>,
    /// Left behind with the sources whose operations do not end.
    buffers: ManuallyDrop<Buffers>,
    next_scan: Nanos,
    signalled: bool,
    eventfd_is_watched: bool,
}

impl Uring {
    /// Fails where the kernel is too old (before 6.1) or forbids io_uring.
    pub(crate) fn new(eventfd: &OwnedFd) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(4 * ENTRIES)
            .dontfork()
            .build(ENTRIES)?;
        // SAFETY: `drop` leaves them where the kernel may still write into them.
        let buffers = ManuallyDrop::new(unsafe { Buffers::register(&ring.submitter())? });
        let eventfd = eventfd.as_raw_fd();
        let sources = Slab::new();
        let waiting = VecDeque::new();
        Ok(Self {
            ring,
            waiting,
            failed: None,
            eventfd,
            sources,
            files: Slab::new(),
            full: Vec::new(),
            buffers,
            next_scan: 0,
            signalled: false,
            eventfd_is_watched: false,
        })
    }

    /// Why nothing can be sent or received any more, if it cannot.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        let failed = self.failed?;
        Some(io::Error::other(format!("io_uring failed: {}", io::Error::from(failed))))
    }

    pub(crate) fn take_signal(&mut self) -> bool {
        mem::take(&mut self.signalled)
    }

    pub(crate) fn register(&mut self, fd: OwnedFd) -> Key {
        let slot = self.sources.insert(Source::new(fd));
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
        unsafe { push(&mut self.ring, &mut self.waiting, &cancel.user_data(tag(CANCELLED, 0))) };
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
        if let Some(error) = self.failure() {
            return Poll::Ready(Err(error));
        }
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
            let readable = PollFlags::IN.bits();
            let poll = opcode::PollAdd::new(Fd(source.fd.as_raw_fd()), u32::from(readable)).build();
            // SAFETY: it refers to no memory, and the descriptor is open until the operation has ended.
            unsafe { push(&mut self.ring, &mut self.waiting, &poll.user_data(tag(ACCEPTABLE, key.slot))) };
        }
        Poll::Pending
    }

    /// Completes when everything that was handed over is with the kernel, or could not be.
    pub(crate) fn poll_all_sent(&mut self, key: Key, cx: &Context<'_>) -> Poll<io::Result<()>> {
        if let Some(error) = self.failure() {
            return Poll::Ready(Err(error));
        }
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
        if let Some(error) = self.failure() {
            return Poll::Ready(Err(error));
        }
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
            let writable = PollFlags::OUT.bits();
            let poll = opcode::PollAdd::new(Fd(source.fd.as_raw_fd()), u32::from(writable)).build();
            // SAFETY: it refers to no memory, and the descriptor is open until the operation has ended.
            unsafe { push(&mut self.ring, &mut self.waiting, &poll.user_data(tag(CONNECTED, key.slot))) };
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
        if let Some(error) = self.failure() {
            return Poll::Ready(Err(error));
        }
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
        let fd = Fd(source.fd.as_raw_fd());
        let send = opcode::Send::new(fd, source.outbox.as_ptr(), source.outbox.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build();
        // SAFETY: the outbox is neither changed nor freed before the operation has ended, nor is the descriptor
        // closed: `complete` and `drop` see to that.
        unsafe { push(&mut self.ring, &mut self.waiting, &send.user_data(tag(SENT, key.slot))) };
        if source.outbox.len() > SHORT { source.poll_sent(cx) } else { Poll::Ready(Ok(())) }
    }

    /// Gives what has been read. Completes with the number of bytes, 0 at the end of the stream.
    pub(crate) fn poll_recv(
        &mut self,
        key: Key,
        cx: &Context<'_>,
        inbox: &mut Inbox,
    ) -> Poll<io::Result<usize>> {
        if let Some(error) = self.failure() {
            return Poll::Ready(Err(error));
        }
        let source = &mut self.sources[key.slot];
        let count = source.give(inbox);
        if count > 0 {
            return Poll::Ready(Ok(count));
        }
        if let Some(code) = source.ended.take() {
            return Poll::Ready(if code == 0 { Ok(0) } else { Err(io::Error::from_raw_os_error(code)) });
        }
        if source.timed_out {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        store(&mut source.reader, cx);
        if !mem::replace(&mut source.receiving, true) {
            source.in_flight += 1;
            let receive = opcode::RecvMulti::new(Fd(source.fd.as_raw_fd()), GROUP).build();
            // SAFETY: the buffers are there as long as the ring, and the descriptor is not closed before the operation
            // has ended: `complete` and `drop` see to that.
            unsafe { push(&mut self.ring, &mut self.waiting, &receive.user_data(tag(RECEIVED, key.slot))) };
        }
        Poll::Pending
    }

    /// Hands over what was queued and wakes whose operations have ended. Blocks only if `idle`, and then until `next`
    /// at the latest.
    pub(crate) fn turn(&mut self, now: Nanos, idle: bool, next: Option<Nanos>) {
        if now >= self.next_scan {
            self.scan(now);
        }
        self.watch_eventfd();
        if self.failed.is_some() {
            self.wait_for_eventfd(now, idle, next);
            return;
        }
        // What does not fit in now does when this has been handed over.
        let idle = self.refill() && idle;
        let submitted = if idle {
            let scan = if self.sources.is_empty() { Nanos::MAX } else { now + DEADLINE_RESOLUTION };
            let until = next.unwrap_or(Nanos::MAX).min(scan);
            if until == Nanos::MAX {
                self.ring.submitter().submit_and_wait(1)
            } else {
                let length = timespec(until.saturating_sub(now));
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&length))
            }
        } else {
            let queue = self.ring.submission();
            let something_to_do = !queue.is_empty() || queue.taskrun() || queue.cq_overflow();
            drop(queue);
            if something_to_do { self.ring.submitter().submit_and_wait(0) } else { Ok(0) }
        };
        self.note(submitted);
        self.collect();
    }

    /// Hands over what was queued.
    pub(crate) fn hand_over(&mut self) {
        self.refill();
        let submitted = self.ring.submitter().submit();
        self.note(submitted);
    }

    /// Puts what waits into the ring's queue; says whether all of it has found room.
    fn refill(&mut self) -> bool {
        while let Some(entry) = self.waiting.front() {
            // SAFETY: who queued it has seen to that.
            if unsafe { self.ring.submission().push(entry) }.is_err() {
                return false;
            }
            self.waiting.pop_front();
        }
        true
    }

    /// Takes note of how a submission went. After an error that passes the next turn asks again; any other is the end
    /// of the ring, and whoever waits for it is told.
    fn note(&mut self, submitted: io::Result<usize>) {
        let Some(error) = submitted.err().and_then(|error| Errno::from_io_error(&error)) else { return };
        // An interrupted or ended wait, a kernel that is busy.
        if matches!(error, Errno::INTR | Errno::TIME | Errno::AGAIN | Errno::BUSY) {
            return;
        }
        self.failed = Some(error);
        for (_, source) in &mut self.sources {
            for waker in [source.reader.take(), source.writer.take()].into_iter().flatten() {
                waker.wake();
            }
        }
        self.wake_files();
    }

    /// Deals with the operations that have ended, and with what has arrived.
    fn collect(&mut self) {
        let Self { ring, sources, files, buffers, full, signalled, eventfd_is_watched, .. } = self;
        for event in ring.completion() {
            let (kind, slot) = (event.user_data() >> 32, (event.user_data() & 0xffff_ffff) as usize);
            match kind {
                CANCELLED => {}
                FILE => {
                    if files::ended(&mut files[slot], event.result()) {
                        files.remove(slot);
                    }
                }
                EVENTFD => {
                    *signalled = true;
                    *eventfd_is_watched = cqueue::more(event.flags());
                }
                RECEIVED => {
                    let (source, goes_on) = (&mut sources[slot], cqueue::more(event.flags()));
                    let buffer = cqueue::buffer_select(event.flags());
                    let count = usize::try_from(event.result()).unwrap_or(0);
                    source.received(buffer.map_or(&[], |number| buffers.filled(number, count)));
                    if let Some(number) = buffer {
                        buffers.give(number);
                    }
                    if goes_on && source.inbox.bytes().len() > HELD && full.last() != Some(&slot) {
                        full.push(slot);
                    } else if !goes_on && source.reading_ended(event.result()) {
                        sources.remove(slot);
                    }
                }
                _ => {
                    if sources[slot].complete(kind, event.result()) {
                        sources.remove(slot);
                    }
                }
            }
        }
        while let Some(slot) = self.full.pop() {
            let cancel = opcode::AsyncCancel::new(tag(RECEIVED, slot)).build().user_data(tag(CANCELLED, 0));
            // SAFETY: it refers to no memory.
            unsafe { push(&mut self.ring, &mut self.waiting, &cancel) };
        }
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

impl Drop for Uring {
    /// Calls off what the kernel has not ended, and keeps the buffers of what it will not let go of.
    fn drop(&mut self) {
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::any().all()).build();
        // SAFETY: it refers to no memory.
        unsafe { push(&mut self.ring, &mut self.waiting, &cancel.user_data(tag(CANCELLED, 0))) };
        let length = timespec(MILLISECOND);
        for _ in 0..PATIENCE {
            let left = self.files.iter().any(|(_, operation)| operation.is_going_on());
            if !left && self.sources.iter().all(|(_, source)| source.in_flight == 0) {
                // SAFETY: once, and nobody uses them any more.
                unsafe { ManuallyDrop::drop(&mut self.buffers) };
                return;
            }
            if self.failed.is_some() {
                break;
            }
            self.refill();
            let submitted = self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&length));
            self.note(submitted);
            self.collect();
        }
        for source in mem::take(&mut self.sources) {
            mem::forget(source);
        }
        mem::forget(mem::take(&mut self.files));
    }
}

fn timespec(time: Nanos) -> Timespec {
    Timespec::new().sec(time / SECOND).nsec((time % SECOND) as u32)
}

/// Queues an operation; if the queue is full, it waits for the next turn.
///
/// # Safety
/// What the operation refers to must be valid until it has ended.
unsafe fn push(ring: &mut IoUring, waiting: &mut VecDeque<squeue::Entry>, entry: &squeue::Entry) {
    // SAFETY: the caller's.
    if !waiting.is_empty() || unsafe { ring.submission().push(entry) }.is_err() {
        waiting.push_back(entry.clone());
    }
}
