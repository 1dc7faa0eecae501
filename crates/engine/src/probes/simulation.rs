//! Probes in simulated time, for tests: on the thread of the test, and the same each time.

use std::pin::pin;
use std::sync::mpsc::channel;

use nephoscope_runtime::{Nanos, Runtime, Simulation as Clock};

use crate::error::EngineError;
use crate::probes::{Findings, ProbesSpec, life, prepare};

/// Lets probes go on for some time, and stops them; gives all that they have found. Their `origin_ns` becomes the beginning. Suits
/// drivers that wait for nothing but timers (`sim`).
///
/// # Panics
/// If this thread simulates time already.
pub fn simulate(spec: &ProbesSpec, time: Nanos) -> Result<Findings, EngineError> {
    let clock = Clock::begin(Clock::BEGINNING);
    let (setup, samples, stop) = prepare(&ProbesSpec { origin_ns: Clock::BEGINNING, ..spec.clone() })?;
    for driver in &setup.drivers {
        driver.run_starts(Clock::BEGINNING);
    }
    let runtime = Runtime::new().map_err(|error| EngineError::Failed(error.to_string()))?;
    let (report, reports) = channel();
    let mut whole = pin!(life(&runtime, setup, &report));
    let mut stopped = false;
    while runtime.run_until_idle(whole.as_mut()).is_pending() {
        let next = runtime.next_timer().unwrap_or(Nanos::MAX);
        if !stopped && next > Clock::BEGINNING + time {
            clock.advance(Clock::BEGINNING + time);
            stop.send(());
            stopped = true;
        } else {
            clock.advance(next);
        }
    }
    runtime.shut_down();
    reports.try_iter().collect::<Result<(), _>>()?;
    Ok(samples.try_iter().fold(Findings::default(), |mut all, found| {
        all.samples.extend(found.samples);
        all.counts.extend(found.counts);
        all
    }))
}
