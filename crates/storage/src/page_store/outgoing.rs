//! The replies of a connection, each until its time has come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::task::Waker;

use nephoscope_runtime::Nanos;

use crate::page_store::protocol::Reply;

/// The time of what is not held back.
pub(crate) const AT_ONCE: Nanos = 0;

/// Replies that wait for their times.
#[derive(Default)]
pub(crate) struct Outgoing {
    /// When a reply is due, its place among those of one time, and its bytes.
    replies: BinaryHeap<Reverse<(Nanos, u64, Vec<u8>)>>,
    count: u64,
    bytes: usize,
    waker: Option<Waker>,
}

impl Outgoing {
    /// Adds a reply that leaves at a time, and wakes the connection's task.
    pub(crate) fn push(&mut self, due: Nanos, id: u32, reply: &Reply<'_>) {
        let mut message = Vec::new();
        reply.write(id, &mut message);
        self.bytes += message.len();
        self.count += 1;
        self.replies.push(Reverse((due, self.count, message)));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Moves what is due behind `out`; gives when the next one is.
    pub(crate) fn take_due(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<Nanos> {
        while let Some(Reverse((due, ..))) = self.replies.peek() {
            if *due > now {
                return Some(*due);
            }
            if let Some(Reverse((_, _, message))) = self.replies.pop() {
                self.bytes -= message.len();
                out.extend_from_slice(&message);
            }
        }
        None
    }

    /// The bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Who is woken by the next reply.
    pub(crate) fn wakes(&mut self, waker: &Waker) {
        if !self.waker.as_ref().is_some_and(|old| old.will_wake(waker)) {
            self.waker = Some(waker.clone());
        }
    }
}
