//! Messages to a task from other threads.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

struct Shared<T> {
    messages: VecDeque<T>,
    reader: Option<Waker>,
    senders: usize,
}

/// The sending end; it may be cloned and sent anywhere.
pub struct Sender<T>(Arc<Mutex<Shared<T>>>);

/// The receiving end, held by one task.
pub struct Receiver<T>(Arc<Mutex<Shared<T>>>);

/// A mailbox without a bound.
#[must_use]
pub fn mailbox<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Mutex::new(Shared { messages: VecDeque::new(), reader: None, senders: 1 }));
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> Sender<T> {
    /// Leaves a message. It is lost if the receiver is gone.
    pub fn send(&self, message: T) {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.messages.push_back(message);
        if let Some(reader) = shared.reader.take() {
            reader.wake();
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.senders -= 1;
        if shared.senders == 0
            && let Some(reader) = shared.reader.take()
        {
            reader.wake();
        }
    }
}

impl<T> Receiver<T> {
    /// The next message; `None` when there is none and no sender is left.
    pub fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(message) = shared.messages.pop_front() {
            return Poll::Ready(Some(message));
        }
        if shared.senders == 0 {
            return Poll::Ready(None);
        }
        shared.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The next message, if one is there already.
    pub fn try_receive(&mut self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).messages.pop_front()
    }
}
