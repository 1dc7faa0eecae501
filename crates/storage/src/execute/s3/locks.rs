//! Who writes an object has it for himself: what he has read is still so when he writes it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// The objects that are being written, and who waits for each.
#[derive(Default)]
pub(super) struct Locks(Mutex<HashMap<(u32, u64), Vec<Waker>>>);

/// An object that is one's own; given back when it is dropped.
pub(super) struct Lock<'a> {
    locks: &'a Locks,
    object: (u32, u64),
}

impl Locks {
    fn held(&self) -> MutexGuard<'_, HashMap<(u32, u64), Vec<Waker>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an object. Sessions of several threads may.
    pub(super) async fn take(&self, object: (u32, u64)) -> Lock<'_> {
        poll_fn(|cx| {
            let mut held = self.held();
            match held.get_mut(&object) {
                Some(waiting) => {
                    if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                        waiting.push(cx.waker().clone());
                    }
                    Poll::Pending
                }
                None => {
                    held.insert(object, Vec::new());
                    Poll::Ready(())
                }
            }
        })
        .await;
        Lock { locks: self, object }
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        let waiting = self.locks.held().remove(&self.object);
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use super::*;

    #[test]
    fn an_object_has_one_writer_at_a_time() {
        let locks = Locks::default();
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = pin!(locks.take((1, 2)));
        let Poll::Ready(lock) = first.as_mut().poll(&mut cx) else { panic!("nobody has it") };
        let mut second = pin!(locks.take((1, 2)));
        assert!(second.as_mut().poll(&mut cx).is_pending());
        assert!(pin!(locks.take((1, 3))).poll(&mut cx).is_ready());
        drop(lock);
        assert!(second.as_mut().poll(&mut cx).is_ready());
    }
}
