//! Ending the waits of set-up connections from another thread.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::contract::error::Error;

/// Ends what set-up connections wait for: the user, or the system, wants an end. Clones are the same; one may serve
/// several connections. An interruption is final.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    has_struck: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl State {
    fn waiting(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Interrupt {
    /// Interrupts: every wait ends with an error, those to come included.
    pub fn strike(&self) {
        self.0.has_struck.store(true, Ordering::SeqCst);
        let waiting = std::mem::take(&mut *self.0.waiting());
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Whether it has struck.
    #[must_use]
    pub fn has_struck(&self) -> bool {
        self.0.has_struck.load(Ordering::SeqCst)
    }

    /// Lets a future go on until it is complete, or interrupted.
    pub(crate) async fn or<T>(&self, future: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let (mut future, mut enlisted) = (pin!(future), None);
        poll_fn(|cx| {
            // First the waker, then the look: who strikes between the two finds it.
            enlisted.get_or_insert_with(|| Enlisted::new(&self.0, cx.waker()));
            if self.has_struck() {
                return Poll::Ready(Err(Error::other("interrupted")));
            }
            future.as_mut().poll(cx)
        })
        .await
    }
}

/// A waker among those that are woken, until it is dropped.
struct Enlisted<'a>(&'a State, Waker);

impl<'a> Enlisted<'a> {
    fn new(state: &'a State, waker: &Waker) -> Self {
        state.waiting().push(waker.clone());
        Self(state, waker.clone())
    }
}

impl Drop for Enlisted<'_> {
    fn drop(&mut self) {
        self.0.waiting().retain(|waker| !waker.will_wake(&self.1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_runtime::{Runtime, clock};
    use std::time::Duration;

    #[test]
    fn waits_end_and_so_do_those_to_come() {
        let (interrupt, runtime) = (Interrupt::default(), Runtime::new().unwrap());
        assert_eq!(runtime.block_on(interrupt.or(async { Ok(7) })).unwrap(), 7);
        assert!(interrupt.0.waiting().is_empty());
        let other = interrupt.clone();
        let striker = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            other.strike();
        });
        let for_ever = async {
            runtime.sleep_until(clock::now() + 3600 * clock::SECOND).await;
            Ok(())
        };
        assert_eq!(runtime.block_on(interrupt.or(for_ever)).unwrap_err().message(), "interrupted");
        striker.join().unwrap();
        assert!(runtime.block_on(interrupt.or(async { Ok(7) })).is_err());
        assert!(interrupt.0.waiting().is_empty());
    }
}
