//! Simulated time, for tests: a clock that stands still until it is moved, so that what happens does not depend on the
//! machine.
//!
//! It is the thread's own, so other threads stay with the real time. The product is built without it (the feature
//! `simulated-time`): there reading the clock is one call of the vDSO and nothing else.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::clock::{Nanos, SECOND};

thread_local! {
    static NOW: Cell<Option<Nanos>> = const { Cell::new(None) };
}

/// What the present thread's clocks say, if its time is simulated.
pub(crate) fn now() -> Option<Nanos> {
    NOW.get()
}

/// For as long as it lives, the clocks of its thread say what it says: the monotonic clock and the wall clock alike,
/// and no processor time passes.
pub struct Simulation {
    of_its_thread: PhantomData<*const ()>,
}

impl Simulation {
    /// Where simulated runs begin: long after 0, as a machine's clock does.
    pub const BEGINNING: Nanos = 1_000_000 * SECOND;

    /// Lets time stand still at a point.
    ///
    /// # Panics
    /// If this thread's time is simulated already.
    #[must_use]
    pub fn begin(at: Nanos) -> Self {
        assert_eq!(NOW.replace(Some(at)), None, "a thread has one simulated time");
        Self { of_its_thread: PhantomData }
    }

    /// Moves on to a point in time; time never goes back.
    pub fn advance(&self, to: Nanos) {
        NOW.set(NOW.get().max(Some(to)));
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        NOW.set(None);
    }
}
