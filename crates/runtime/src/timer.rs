//! Timers: a heap of deadlines, and the future that waits for one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use slab::Slab;

use crate::clock::{self, Nanos};
use crate::executor::Runtime;

/// Deadlines in the order in which they fall due.
#[derive(Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    waiting: Slab<(u64, Option<Waker>)>,
    issued: u64,
}

impl Timers {
    fn add(&mut self, deadline: Nanos) -> (u64, usize) {
        self.issued += 1;
        let slot = self.waiting.insert((self.issued, None));
        self.heap.push(Reverse((deadline, self.issued, slot)));
        (self.issued, slot)
    }

    fn is_waiting(&self, ticket: u64, slot: usize) -> bool {
        self.waiting.get(slot).is_some_and(|entry| entry.0 == ticket)
    }

    fn cancel(&mut self, ticket: u64, slot: usize) {
        if self.is_waiting(ticket, slot) {
            self.waiting.remove(slot);
        }
        // The heap forgets cancelled deadlines as they fall due. Were most of them cancelled (time limits that
        // are never reached), they would pile up, so then it is swept.
        if self.heap.len() > 64 && self.heap.len() > 4 * self.waiting.len() {
            let waiting = &self.waiting;
            self.heap.retain(|Reverse((_, ticket, slot))| {
                waiting.get(*slot).is_some_and(|entry| entry.0 == *ticket)
            });
        }
    }

    /// The next deadline that somebody waits for.
    pub(crate) fn next(&mut self) -> Option<Nanos> {
        while let Some(&Reverse((deadline, ticket, slot))) = self.heap.peek() {
            if self.is_waiting(ticket, slot) {
                return Some(deadline);
            }
            self.heap.pop();
        }
        None
    }

    /// Wakes whoever waits for what is due.
    pub(crate) fn fire(&mut self, now: Nanos) {
        while self.next().is_some_and(|deadline| deadline <= now) {
            if let Some(Reverse((_, _, slot))) = self.heap.pop()
                && let Some(waker) = self.waiting.remove(slot).1
            {
                waker.wake();
            }
        }
    }
}

/// Completes at a deadline. Made by [`Runtime::sleep_until`].
pub struct Sleep {
    runtime: Runtime,
    deadline: Nanos,
    entry: Option<(u64, usize)>,
}

impl Sleep {
    pub(crate) fn new(runtime: Runtime, deadline: Nanos) -> Self {
        Self { runtime, deadline, entry: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut timers = this.runtime.timers();
        let (ticket, slot) = match this.entry {
            Some(entry) => entry,
            None if this.deadline <= clock::now() => return Poll::Ready(()),
            None => *this.entry.insert(timers.add(this.deadline)),
        };
        if !timers.is_waiting(ticket, slot) {
            return Poll::Ready(());
        }
        let waker = &mut timers.waiting[slot].1;
        if !waker.as_ref().is_some_and(|old| old.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some((ticket, slot)) = self.entry {
            self.runtime.timers().cancel(ticket, slot);
        }
    }
}
