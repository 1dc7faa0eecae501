//! Work that several threads share, until it is done or one of them fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use nephoscope_drivers::Error;

/// The time between two reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Runs `work` on so many threads until all have ended, and gives the first error. Errors that come after it are those
/// of threads that were stopped, and say nothing new.
///
/// `stop` becomes true with the first error or panic: `work` looks at it. `report` is called on the calling thread, ten
/// times a second. A panic of a thread is passed on once all have ended.
pub fn on_threads(
    threads: u64,
    stop: &AtomicBool,
    work: &(dyn Fn() -> Result<(), Error> + Sync),
    report: &mut dyn FnMut(),
) -> Option<Error> {
    let (failed, failures) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let failed = failed.clone();
            scope.spawn(move || one(stop, work, &failed));
        }
        drop(failed);
        watch(&failures, report)
    })
}

/// One thread's part.
fn one(stop: &AtomicBool, work: &(dyn Fn() -> Result<(), Error> + Sync), failed: &Sender<Error>) {
    let stop_on_panic = StopOnPanic(stop);
    if let Err(error) = work()
        && !stop.swap(true, Ordering::Relaxed)
    {
        // Nobody listens only if the caller panicked.
        let _ = failed.send(error);
    }
    drop(stop_on_panic);
}

/// Reports progress until all threads have ended, and gives the first error.
fn watch(failures: &Receiver<Error>, report: &mut dyn FnMut()) -> Option<Error> {
    let mut first = None;
    loop {
        match failures.recv_timeout(PROGRESS_INTERVAL) {
            Ok(error) => first = first.or(Some(error)),
            Err(RecvTimeoutError::Timeout) => report(),
            Err(RecvTimeoutError::Disconnected) => return first,
        }
    }
}

/// Lets the other threads end when one of them panics.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}
