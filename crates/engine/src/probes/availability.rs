//! Probes of availability: one statement at a time and a fixed rate, whatever the endpoint does.
//!
//! A probe goes by a lane that is free. If all lanes wait for the endpoint, fresh connections are tried: after a network
//! that swallowed everything, only a fresh connection can tell that the endpoint is back, because whatever was sent
//! before is lost. Each of them is work for the endpoint, which a stalled server does when it goes on: fresh connections
//! must not prolong the outage that they time. So two at the most wait for an answer at the same time, whatever the
//! rate: a patient one, with the whole limit of a probe, for an endpoint that is merely slow; and a hasty one, which
//! gives up after a tenth of the time for which nothing was answered. Probes in between are missing.
//!
//! Where it is the tool that is late, probes that are due together wait for each other: none is missing for that.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use nephoscope_drivers::{ConnectionState, Error, ErrorClass, Statement, Want};
use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{self, MILLISECOND, Nanos, SECOND};

use crate::probes::lane::{Endpoint, Lane};
use crate::probes::sample::{Journal, Kind, Outcome, Sample};
use crate::probes::spec::{AvailabilitySpec, FIRST_CONNECTION};
use crate::spec::Role;
use crate::waits::within;

/// The shortest limit of a hasty connection, and how many times it is what making a connection takes when all is well.
const HASTY: (Nanos, Nanos) = (100 * MILLISECOND, 4);
/// Which share of the time without an answer a hasty connection waits.
const SHARE: Nanos = 10;
/// How long an answer is waited for that did not come in time, so that its connection can be used again: the lanes of a
/// stalled server tell at once when it goes on, without any new connection.
const LINGER: Nanos = 60 * SECOND;

/// When a probe is due. The period is counted in parts of 2⁻³² ns: a product of doubles beyond 2⁵³ ns would make
/// neighbours uneven.
pub(crate) fn due(start: Nanos, rate: f64, number: u64) -> Nanos {
    let period = (SECOND as f64 / rate * (1_u64 << 32) as f64).round() as u128;
    start + ((u128::from(number) * period) >> 32) as Nanos
}

/// A fresh connection that is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attempt {
    is_patient: bool,
    /// How long it may take.
    limit: Nanos,
}

/// Which fresh connections are tried, and for how long.
#[derive(Debug, Default)]
struct Attempts {
    has_patient: bool,
    has_hasty: bool,
    /// When the first one was tried since the endpoint last answered one.
    unanswered_since: Option<Nanos>,
    /// What making a connection has taken at the least.
    fastest: Option<Nanos>,
}

impl Attempts {
    /// The connection to try for a probe that is due now; `None` if none is to be tried.
    fn admit(&mut self, due: Nanos, limit: Nanos) -> Option<Attempt> {
        if self.has_patient && self.has_hasty {
            return None;
        }
        let unanswered = due.saturating_sub(*self.unanswered_since.get_or_insert(due));
        if !self.has_patient {
            self.has_patient = true;
            return Some(Attempt { is_patient: true, limit });
        }
        self.has_hasty = true;
        let usual = self.fastest.map_or(0, |fastest| fastest.saturating_mul(HASTY.1));
        let hasty = usual.max(HASTY.0).max(unanswered / SHARE).min(limit);
        Some(Attempt { is_patient: false, limit: hasty })
    }

    fn ended(&mut self, attempt: Attempt, was_answered: bool) {
        if attempt.is_patient {
            self.has_patient = false;
        } else {
            self.has_hasty = false;
        }
        if was_answered {
            self.unanswered_since = None;
        }
    }
}

/// The probes of one endpoint.
pub(crate) struct Prober {
    runtime: Runtime,
    endpoint: Rc<Endpoint>,
    journal: Rc<Journal>,
    statements: Arc<[Statement]>,
    role: Role,
    spec: AvailabilitySpec,
    /// The lane that was used last comes first: it is known to be well.
    free: RefCell<Vec<Lane>>,
    /// Probes on their way by a lane, and when they were sent.
    asking: RefCell<Vec<(u64, Nanos)>>,
    /// Waits for a lane.
    pacer: RefCell<Option<Waker>>,
    attempts: RefCell<Attempts>,
    in_flight: Cell<usize>,
    stopped: Cell<bool>,
}

impl Prober {
    pub(crate) fn new(
        runtime: &Runtime,
        endpoint: &Rc<Endpoint>,
        role: Role,
        spec: AvailabilitySpec,
        journal: &Rc<Journal>,
    ) -> Self {
        let dialect = endpoint.driver.dialect();
        let (name, sql) = match role {
            Role::Rw => ("write", dialect.probes.write),
            Role::Ro => ("read", dialect.probes.read),
        };
        Self {
            runtime: runtime.clone(),
            endpoint: Rc::clone(endpoint),
            journal: Rc::clone(journal),
            statements: Arc::new([Statement::read(name, sql, dialect.lexer)]),
            role,
            spec,
            free: RefCell::default(),
            asking: RefCell::default(),
            pacer: RefCell::default(),
            attempts: RefCell::default(),
            in_flight: Cell::new(0),
            stopped: Cell::new(false),
        }
    }

    /// Makes the lanes. An error is for whoever starts the probes: the endpoint cannot be used from the start.
    pub(crate) async fn get_ready(&self) -> Result<(), Error> {
        for _ in 0..self.spec.lanes {
            let lane = self.connect(clock::now() + self.spec.limit().max(FIRST_CONNECTION)).await?;
            self.free.borrow_mut().push(lane);
        }
        Ok(())
    }

    async fn connect(&self, deadline: Nanos) -> Result<Lane, Error> {
        let began = clock::now();
        let lane = Lane::connect(&*self.endpoint.driver, &self.runtime, &self.statements, deadline).await?;
        let fastest = &mut self.attempts.borrow_mut().fastest;
        let took = clock::now().saturating_sub(began);
        *fastest = Some(fastest.map_or(took, |fastest| fastest.min(took)));
        Ok(lane)
    }

    /// Sends each probe at its time.
    pub(crate) async fn pace(self: Rc<Self>, start: Nanos) {
        for number in 0.. {
            let due = due(start, self.spec.rate, number);
            self.runtime.sleep_until(due).await;
            self.await_lane().await;
            if self.stopped.get() {
                return;
            }
            self.send(number, due);
        }
    }

    /// Waits for a lane where all of them were taken only just now, because probes were late: as long as the lanes would
    /// have lasted if they had been taken one after the other. Where an outage has cost some of them, a probe does not
    /// wait for those that are left, which may be too few for the rate: it makes a lane.
    async fn await_lane(&self) {
        if self.asking.borrow().len() < self.spec.lanes {
            return;
        }
        let oldest = self.asking.borrow().iter().map(|(_, sent)| *sent).min();
        let Some(oldest) = oldest else { return };
        let lasts = (self.spec.lanes as f64 * SECOND as f64 / self.spec.rate) as Nanos;
        let freed = poll_fn(|cx| {
            if !self.free.borrow().is_empty() || self.asking.borrow().is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.pacer.replace(Some(cx.waker().clone()));
            Poll::Pending
        });
        // Whether there is a lane now is what the caller looks at.
        let _ = within(&self.runtime, oldest + lasts, freed).await;
    }

    /// No further probe is sent; those on their way go on.
    pub(crate) fn stop(&self) {
        self.stopped.set(true);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight.get() == 0
    }

    fn send(self: &Rc<Self>, number: u64, due: Nanos) {
        let free = self.free.borrow_mut().pop();
        let this = Rc::clone(self);
        if let Some(lane) = free {
            self.in_flight.set(self.in_flight.get() + 1);
            self.asking.borrow_mut().push((number, clock::now()));
            self.runtime.spawn(async move { this.ask(lane, number, due).await });
            return;
        }
        let admitted = self.attempts.borrow_mut().admit(due, self.spec.limit());
        if let Some(attempt) = admitted {
            self.in_flight.set(self.in_flight.get() + 1);
            self.runtime.spawn(async move { this.attempt(number, due, attempt).await });
        } else {
            self.add(number, due, None, Outcome::Missing);
        }
    }

    /// A probe by a lane.
    async fn ask(&self, mut lane: Lane, number: u64, due: Nanos) {
        let sent = clock::now();
        let result = self.say(&mut lane, number, sent + self.spec.limit()).await;
        self.settle(number, due, sent, &result);
        self.asking.borrow_mut().retain(|(other, _)| *other != number);
        if lane.state() == ConnectionState::Waiting {
            lane.linger(clock::now() + LINGER).await;
        }
        self.put_back(lane);
    }

    /// A probe by a connection that is made for it.
    async fn attempt(&self, number: u64, due: Nanos, attempt: Attempt) {
        let sent = clock::now();
        let deadline = sent + attempt.limit;
        let whole = async {
            let mut lane = self.connect(deadline).await?;
            self.say(&mut lane, number, deadline).await?;
            Ok(lane)
        };
        let made = within(&self.runtime, deadline, whole).await;
        // A refusal is an answer, too.
        let was_answered = made.as_ref().map_or_else(|e| e.class() != ErrorClass::StatementTimeout, |_| true);
        self.attempts.borrow_mut().ended(attempt, was_answered);
        match made {
            Ok(lane) => {
                self.settle(number, due, sent, &Ok(()));
                self.put_back(lane);
            }
            Err(error) => self.settle(number, due, sent, &Err(error)),
        }
    }

    async fn say(&self, lane: &mut Lane, number: u64, deadline: Nanos) -> Result<(), Error> {
        let (values, want) = match self.role {
            Role::Rw => (&[self.endpoint.index as i64, number as i64][..], Want::Count),
            Role::Ro => (&[][..], Want::Rows),
        };
        lane.ask(0, values, want, deadline).await.map(drop)
    }

    fn settle(&self, number: u64, due: Nanos, sent: Nanos, result: &Result<(), Error>) {
        self.in_flight.set(self.in_flight.get() - 1);
        self.add(number, due, Some(sent), result.into());
        let lost =
            |error: &Error| matches!(error.class(), ErrorClass::ConnectionLost | ErrorClass::ShuttingDown);
        if result.as_ref().is_err_and(lost) {
            // Whatever took this connection has most likely taken the others, and each would cost a probe.
            drop(self.free.take());
        }
    }

    fn put_back(&self, lane: Lane) {
        let mut free = self.free.borrow_mut();
        if lane.state() == ConnectionState::Idle && free.len() < self.spec.lanes {
            free.push(lane);
        }
        if let Some(pacer) = self.pacer.take() {
            pacer.wake();
        }
    }

    fn add(&self, number: u64, due: Nanos, sent: Option<Nanos>, outcome: Outcome) {
        let kind = if self.role == Role::Rw { Kind::Write } else { Kind::Read };
        self.journal.add(Sample {
            kind,
            endpoint: self.endpoint.index,
            number,
            time: due,
            sent,
            end: sent.map(|_| clock::now()),
            outcome,
            lower: None,
            upper: None,
            polls: 0,
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn probes_are_due_evenly_for_ever(
            start in 0..1_000_000_000_000_u64, rate in 1.0..10_000.0_f64, number in 0..100_000_000_u64,
        ) {
            let (this, next) = (due(start, rate, number), due(start, rate, number + 1));
            let period = 1e9 / rate;
            prop_assert!(((next - this) as f64 - period).abs() <= 1.5, "{} after {}", next, this);
            prop_assert!(((this - start) as f64 - number as f64 * period).abs() <= 1.0 + number as f64 * 1e-6);
            prop_assert_eq!(due(start, rate, 0), start);
        }

        #[test]
        fn two_connections_at_the_most_wait_for_an_answer_and_one_of_them_has_the_whole_limit(
            steps in proptest::collection::vec((1..40_u64, 0..4_u8), 1..400), limit in 100..2000_u64,
        ) {
            let limit = limit * MILLISECOND;
            let (mut attempts, mut now, mut waiting, mut since) = (Attempts::default(), 1, Vec::new(), None);
            for (wait, what) in steps {
                now += wait * MILLISECOND;
                if what < 2 && !waiting.is_empty() {
                    attempts.ended(waiting.remove(usize::from(what) % waiting.len()), what == 0);
                    since = since.filter(|_| what != 0);
                }
                let Some(attempt) = attempts.admit(now, limit) else {
                    prop_assert_eq!(waiting.len(), 2);
                    continue;
                };
                let unanswered = now - *since.get_or_insert(now);
                prop_assert!(attempt.is_patient != waiting.iter().any(|other: &Attempt| other.is_patient));
                prop_assert!(!attempt.is_patient || attempt.limit == limit);
                prop_assert!(attempt.limit >= (unanswered / SHARE).min(limit));
                waiting.push(attempt);
                prop_assert!(waiting.len() <= 2);
            }
        }
    }
}
