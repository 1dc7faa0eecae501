//! A whole run on one thread in simulated time, for tests: as fast as the processor goes, and the same each time.
//!
//! The run is the product's own. Only what the operating system does is missing: its workers take turns on the thread
//! of the test instead of having threads of their own, and time moves to the next timer when nobody has anything left
//! to do. So it suits drivers that wait for nothing but timers (`sim`, `noop`).

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use nephoscope_runtime::clock::{self, MILLISECOND};
use nephoscope_runtime::{Nanos, Simulation as Clock};

use crate::error::EngineError;
use crate::run::{Prepared, Run, prepare};
use crate::spec::LoadSpec;
use crate::worker::{Worker, WorkerSetup};

/// A run in simulated time. Nothing happens but in [`Simulation::advance`].
pub struct Simulation {
    run: Run,
    workers: Workers,
    clock: Clock,
}

impl Simulation {
    /// As [`Run::start`].
    ///
    /// # Panics
    /// If this thread simulates time already.
    pub fn start(spec: &LoadSpec) -> Result<Self, EngineError> {
        let clock = Clock::begin(Clock::BEGINNING);
        let (mut prepared, setups) = prepare(spec, &mut || false)?;
        let mut workers = Workers::new(setups)?;
        get_ready(&mut prepared, &mut workers, &clock)?;
        Ok(Self { run: prepared.begin(), workers, clock })
    }

    /// The run: to be changed, stopped, and read without a time to wait.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// How many tasks its workers have: one for each session, and one for each tenant's arrivals.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.workers.0.iter().map(|hand| hand.worker.runtime().tasks()).sum()
    }

    /// Lets the run go on for some time, or to its end.
    pub fn advance(&mut self, time: Nanos) {
        self.workers.work_until(clock::now() + time, &self.clock);
    }
}

fn get_ready(prepared: &mut Prepared, workers: &mut Workers, clock: &Clock) -> Result<(), EngineError> {
    while !prepared.is_ready()? {
        workers.work_until(clock::now() + MILLISECOND, clock);
    }
    Ok(())
}

/// A worker in the place of its thread.
struct Hand {
    worker: Worker,
    life: Pin<Box<dyn Future<Output = Result<bool, EngineError>>>>,
    ended: bool,
}

struct Workers(Vec<Hand>);

impl Workers {
    fn new(setups: Vec<WorkerSetup>) -> Result<Self, EngineError> {
        let hand = |setup| {
            let worker = Worker::new(setup)?;
            let of_life = worker.clone();
            Ok(Hand { worker, life: Box::pin(async move { of_life.life().await }), ended: false })
        };
        Ok(Self(setups.into_iter().map(hand).collect::<Result<_, EngineError>>()?))
    }

    /// Each does what it can, and then time moves on to where the first of them has something to do.
    fn work_until(&mut self, until: Nanos, clock: &Clock) {
        // Messages may have come for any of them.
        self.0.iter_mut().for_each(Hand::work);
        loop {
            let next = self.0.iter().filter_map(Hand::next).min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            clock.advance(next);
            self.0.iter_mut().filter(|hand| hand.next() == Some(next)).for_each(Hand::work);
        }
        clock.advance(until);
    }
}

impl Hand {
    fn work(&mut self) {
        if !self.ended
            && let Poll::Ready(life) = self.worker.runtime().run_until_idle(self.life.as_mut())
        {
            self.ended = true;
            self.worker.end(life);
        }
    }

    fn next(&self) -> Option<Nanos> {
        if self.ended { None } else { self.worker.runtime().next_timer() }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        // Its sessions hold the worker, and it holds them.
        self.worker.runtime().shut_down();
    }
}
