//! How late the machine is with what should be on time: others may be at work on it while a test measures time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// By how much sleeps were too long while something was done, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lateness {
    pub mean: f64,
    pub p99: f64,
    pub longest: f64,
}

impl Lateness {
    /// What a single time may have too much: it has a few wake-ups in it.
    pub fn slack(&self) -> f64 {
        0.01 + 3.0 * self.p99
    }

    /// What the mean of many times may have too much.
    pub fn mean_slack(&self) -> f64 {
        0.003 + 3.0 * self.mean
    }
}

/// Does something, and watches how late the machine is meanwhile.
pub fn watched<T>(something: impl FnOnce() -> T) -> (T, Lateness) {
    const STEP: Duration = Duration::from_millis(5);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut late = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                thread::sleep(STEP);
                late.push(begun.elapsed().saturating_sub(STEP).as_secs_f64());
            }
            late.sort_by(f64::total_cmp);
            let mean = late.iter().sum::<f64>() / late.len().max(1) as f64;
            let p99 = late.get(late.len() * 99 / 100).copied().unwrap_or_default();
            Lateness { mean, p99, longest: late.last().copied().unwrap_or_default() }
        });
        // The watch ends with the run even if that panics.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(something));
        over.store(true, Ordering::Relaxed);
        let late = watch.join().unwrap();
        match result {
            Ok(result) => (result, late),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
