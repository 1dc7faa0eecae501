//! Whether the tool itself ran: a heartbeat beside the load.
//!
//! A process that is stopped, a machine that is suspended or has no processor to give: nothing is sent then, nothing
//! is read, and what was due is late. None of that is the database's doing, so it is told. A thread of its own beats,
//! because a worker may be held up by its work alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nephoscope_runtime::clock::{self, MILLISECOND, Nanos, SECOND};

use crate::error::EngineError;

const BEAT: Nanos = 50 * MILLISECOND;
/// What is told. Shorter ones happen on every busy machine, and stand in the schedule lag.
const NOTABLE: Nanos = SECOND;

/// A time in which the tool did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When it began, since the start of the load.
    pub at: Nanos,
    /// For how long the tool stood still while the run's clock went on.
    pub stopped: Nanos,
    /// For how long the machine was suspended, in which the run's clock stood still as well.
    pub suspended: Nanos,
}

/// The thread that beats, until this is dropped.
pub(crate) struct Heartbeat {
    gaps: Receiver<Gap>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// Begins to beat for a load that starts at `origin`.
    pub(crate) fn start(origin: Nanos) -> Result<Self, EngineError> {
        let (sender, gaps) = channel();
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let thread = thread::Builder::new()
            .name("heartbeat".to_owned())
            .spawn(move || beat(origin, &ended, &sender))
            .map_err(|error| EngineError::Failed(format!("no thread for the heartbeat: {error}")))?;
        Ok(Self { gaps, over, thread: Some(thread) })
    }

    /// The next gap, if one was noticed.
    pub(crate) fn gap(&self) -> Option<Gap> {
        self.gaps.try_recv().ok()
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It cannot panic, and there would be nothing to do about it.
            let _ = thread.join();
        }
    }
}

fn beat(origin: Nanos, over: &AtomicBool, gaps: &Sender<Gap>) {
    let mut last = Beat::now();
    while !over.load(Ordering::Relaxed) {
        thread::park_timeout(Duration::from_nanos(BEAT));
        let now = Beat::now();
        if let Some(gap) = last.gap(now, origin) {
            // The reader is gone only with the run.
            let _ = gaps.send(gap);
        }
        last = now;
    }
}

/// Two clocks at one moment: the run's, and one that goes on while the machine is suspended.
#[derive(Clone, Copy)]
struct Beat {
    run: Nanos,
    machine: Nanos,
}

impl Beat {
    fn now() -> Self {
        Self { run: clock::now(), machine: clock::since_boot() }
    }

    /// What lies between this beat and the next one, if that is more than it should be.
    fn gap(self, next: Self, origin: Nanos) -> Option<Gap> {
        let (run, machine) = (next.run.saturating_sub(self.run), next.machine.saturating_sub(self.machine));
        let stopped = run.saturating_sub(BEAT);
        let suspended = machine.saturating_sub(run);
        let at = self.run.saturating_sub(origin);
        (stopped >= NOTABLE || suspended >= NOTABLE).then_some(Gap { at, stopped, suspended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Beat = Beat { run: 10 * SECOND, machine: 50 * SECOND };

    fn gap(run: Nanos, machine: Nanos) -> Option<Gap> {
        START.gap(Beat { run: START.run + run, machine: START.machine + machine }, 8 * SECOND)
    }

    #[test]
    fn a_beat_that_is_a_little_late_is_none() {
        assert_eq!(gap(BEAT, BEAT), None);
        assert_eq!(gap(BEAT + SECOND / 2, BEAT + SECOND / 2), None);
        // The two clocks are read one after the other.
        assert_eq!(gap(BEAT, BEAT - 1), None);
    }

    #[test]
    fn a_process_that_was_stopped_and_a_machine_that_was_suspended_are_told_apart() {
        let stopped = Gap { at: 2 * SECOND, stopped: 5 * SECOND, suspended: 0 };
        assert_eq!(gap(BEAT + 5 * SECOND, BEAT + 5 * SECOND), Some(stopped));
        let suspended = Gap { at: 2 * SECOND, stopped: 0, suspended: 3600 * SECOND };
        assert_eq!(gap(BEAT, BEAT + 3600 * SECOND), Some(suspended));
    }

    #[test]
    fn it_ends_at_once() {
        let begun = clock::now();
        drop(Heartbeat::start(begun).unwrap());
        assert!(clock::now() - begun < 10 * SECOND);
    }
}
