//! Waiting for sockets and timers by epoll and timerfd.

use std::io;
use std::task::{Context, Poll, Waker};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use slab::Slab;

use crate::buffer::Inbox;
use crate::clock::{Nanos, SECOND};
use crate::reactor::{DEADLINE_RESOLUTION, Key, store};

const EVENTFD: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const EVENTS: usize = 256;

#[allow(clippy::struct_excessive_bools)] // They are four independent facts.
struct Source {
    fd: OwnedFd,
    generation: u32,
    readable: bool,
    writable: bool,
    /// The peer has closed or reset: reading will not block any more, and no further event will say so.
    hung_up: bool,
    deadline: Nanos,
    timed_out: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Source {
    fn wake(&mut self) {
        for waker in [self.reader.take(), self.writer.take()].into_iter().flatten() {
            waker.wake();
        }
    }
}

pub(crate) struct Epoll {
    set: OwnedFd,
    timer: OwnedFd,
    events: Vec<epoll::Event>,
    sources: Slab<Source>,
    generations: u32,
    /// What the timerfd is set to; `Nanos::MAX` where it is not set.
    armed: Nanos,
    next_scan: Nanos,
    signalled: bool,
}

fn timespec(time: Nanos) -> Timespec {
    Timespec { tv_sec: (time / SECOND) as i64, tv_nsec: (time % SECOND) as i64 }
}

impl Epoll {
    pub(crate) fn new(eventfd: &OwnedFd) -> io::Result<Self> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&set, eventfd, epoll::EventData::new_u64(EVENTFD), edge)?;
        epoll::add(&set, &timer, epoll::EventData::new_u64(TIMER), edge)?;
        Ok(Self {
            set,
            timer,
            events: Vec::with_capacity(EVENTS),
            sources: Slab::new(),
            generations: 0,
            armed: Nanos::MAX,
            next_scan: 0,
            signalled: false,
        })
    }

    /// Whether another thread has signalled since the last call.
    pub(crate) fn take_signal(&mut self) -> bool {
        std::mem::take(&mut self.signalled)
    }

    pub(crate) fn register(&mut self, fd: OwnedFd) -> io::Result<Key> {
        self.generations = self.generations.wrapping_add(1);
        let entry = self.sources.vacant_entry();
        let key = Key { slot: entry.key(), generation: self.generations };
        // Registered once, for both directions and by edges: no system call changes it afterwards.
        epoll::add(
            &self.set,
            &fd,
            epoll::EventData::new_u64(u64::from(key.generation) << 32 | key.slot as u64),
            epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET,
        )?;
        entry.insert(Source {
            fd,
            generation: key.generation,
            readable: false,
            writable: false,
            hung_up: false,
            deadline: Nanos::MAX,
            timed_out: false,
            reader: None,
            writer: None,
        });
        Ok(key)
    }

    pub(crate) fn deregister(&mut self, key: Key) {
        // Closing the descriptor takes it out of the epoll set: nobody else holds a copy.
        self.sources.try_remove(key.slot);
    }

    pub(crate) fn set_deadline(&mut self, key: Key, deadline: Nanos) {
        let source = &mut self.sources[key.slot];
        source.deadline = deadline;
        source.timed_out = false;
    }

    pub(crate) fn descriptor(&self, key: Key) -> &OwnedFd {
        &self.sources[key.slot].fd
    }

    /// Takes a connection from a listening socket.
    pub(crate) fn poll_accept(&mut self, key: Key, cx: &Context<'_>) -> Poll<io::Result<OwnedFd>> {
        let source = &mut self.sources[key.slot];
        while source.readable {
            match accept_with(&source.fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(fd) => return Poll::Ready(Ok(fd)),
                // A caller that has gone again is none.
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => source.readable = false,
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        store(&mut source.reader, cx);
        Poll::Pending
    }

    /// The error of a connect that has ended, if it failed.
    pub(crate) fn take_error(&self, key: Key) -> io::Result<()> {
        Ok(socket_error(&self.sources[key.slot].fd)??)
    }

    /// Completes when the socket can be written to: how a connect ends.
    pub(crate) fn poll_writable(&mut self, key: Key, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let source = &mut self.sources[key.slot];
        if source.timed_out {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if source.writable || source.hung_up {
            return Poll::Ready(Ok(()));
        }
        store(&mut source.writer, cx);
        Poll::Pending
    }

    /// Sends what it can of `out` and removes it from there; complete when all is sent.
    pub(crate) fn poll_send(
        &mut self,
        key: Key,
        cx: &Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<io::Result<()>> {
        let source = &mut self.sources[key.slot];
        let mut sent = 0;
        let result = loop {
            if sent == out.len() {
                out.clear();
                return Poll::Ready(Ok(()));
            }
            if source.timed_out {
                break Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            match send(&source.fd, &out[sent..], SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    source.writable = false;
                    store(&mut source.writer, cx);
                    break Poll::Pending;
                }
                Err(error) => break Poll::Ready(Err(error.into())),
            }
        };
        out.drain(..sent);
        result
    }

    /// Reads once. Completes with the number of bytes, 0 at the end of the stream.
    pub(crate) fn poll_recv(
        &mut self,
        key: Key,
        cx: &Context<'_>,
        inbox: &mut Inbox,
    ) -> Poll<io::Result<usize>> {
        let source = &mut self.sources[key.slot];
        while source.readable {
            let room = inbox.room();
            let size = room.len();
            match recv(&source.fd, room, RecvFlags::empty()) {
                Ok((_, count)) => {
                    // A short read has emptied the socket, so the next byte raises an edge. After a hang-up no
                    // edge will come.
                    source.readable = count == size || source.hung_up;
                    inbox.filled(count);
                    return Poll::Ready(Ok(count));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => source.readable = false,
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        if source.timed_out {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        store(&mut source.reader, cx);
        Poll::Pending
    }

    /// Looks for events and wakes who waits for them. Blocks only if `idle`, and then until `next` at the latest.
    pub(crate) fn turn(&mut self, now: Nanos, idle: bool, next: Option<Nanos>) {
        if now >= self.next_scan {
            self.scan(now);
        }
        let timeout = if idle {
            self.arm(next.unwrap_or(Nanos::MAX));
            (!self.sources.is_empty()).then(|| timespec(DEADLINE_RESOLUTION))
        } else {
            Some(timespec(0))
        };
        self.events.clear();
        // An interrupted wait is an empty one.
        let _ = epoll::wait(self.set.as_fd(), spare_capacity(&mut self.events), timeout.as_ref());
        for event in &self.events {
            let data = event.data.u64();
            match data {
                EVENTFD => self.signalled = true,
                TIMER => self.armed = Nanos::MAX,
                _ => {
                    let generation = (data >> 32) as u32;
                    let Some(source) = self.sources.get_mut((data & 0xffff_ffff) as usize) else { continue };
                    if source.generation == generation {
                        let flags = event.flags;
                        let ended =
                            epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
                        source.hung_up |= flags.intersects(ended);
                        if flags.intersects(epoll::EventFlags::IN) || source.hung_up {
                            source.readable = true;
                            if let Some(waker) = &source.reader {
                                waker.wake_by_ref();
                            }
                        }
                        if flags.intersects(epoll::EventFlags::OUT) || source.hung_up {
                            source.writable = true;
                            if let Some(waker) = source.writer.take() {
                                waker.wake();
                            }
                        }
                    }
                }
            }
        }
    }

    /// Sets the timerfd to `deadline`, if it is not set to that already.
    fn arm(&mut self, deadline: Nanos) {
        if deadline == self.armed {
            return;
        }
        self.armed = deadline;
        let it_value = if deadline == Nanos::MAX { timespec(0) } else { timespec(deadline.max(1)) };
        let time = Itimerspec { it_interval: timespec(0), it_value };
        // It fails only for a wrong descriptor or time, and these are neither.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &time);
    }

    fn scan(&mut self, now: Nanos) {
        self.next_scan = now + DEADLINE_RESOLUTION;
        for (_, source) in &mut self.sources {
            if source.deadline <= now && !source.timed_out {
                source.timed_out = true;
                source.wake();
            }
        }
    }
}
