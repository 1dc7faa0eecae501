//! The course of one seed's run, from its beginning to its end.

use std::sync::Arc;
use std::time::Duration;

use nephoscope_drivers::{Driver, Settings};
use nephoscope_engine::spec::PhaseSpec;
use nephoscope_engine::{LoadSpec, Simulation};

use crate::draw::{Draw, SESSIONS, rest, roll_call};
use crate::ledger::Ledger;

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;

/// What a run has come to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    pub started: u64,
    pub failed: u64,
    pub errors: u64,
    pub uncertain: u64,
    pub in_flight: u64,
    pub arrivals: u64,
    pub changes: u64,
    pub simulated: u64,
    pub fingerprint: u64,
}

impl Outcome {
    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.started += other.started;
        self.failed += other.failed;
        self.errors += other.errors;
        self.uncertain += other.uncertain;
        self.in_flight += other.in_flight;
        self.arrivals += other.arrivals;
        self.changes += other.changes;
        self.simulated += other.simulated;
        self.fingerprint ^= other.fingerprint;
    }
}

struct Course {
    spec: LoadSpec,
    simulation: Simulation,
    ledger: Ledger,
    draw: Draw,
    /// The databases, each once: their counters live as long as these do.
    databases: Vec<Arc<dyn Driver>>,
    changes: u64,
    tasks: usize,
}

/// Runs a seed's load until so many transactions have ended, and then to its end; checks everything.
pub fn run(seed: u64, transactions: u64) -> Outcome {
    // At some four transactions a millisecond the faults come while there is load.
    let horizon = transactions as f64 / 4_000.0;
    let mut draw = Draw::new(seed);
    let spec = draw.spec(seed, horizon);
    let mut course = Course::start(spec, draw);
    course.under_load(transactions, (horizon * 20.0) as u64 + 60);
    // Half of the runs end in the midst of it all.
    if course.draw.chance(0.5) {
        course.call_the_roll((horizon * 1e9) as u64);
    }
    course.end()
}

impl Course {
    fn start(spec: LoadSpec, draw: Draw) -> Self {
        let simulation = Simulation::start(&spec).unwrap();
        let urls = spec.tenants.iter().flat_map(|tenant| tenant.rw.iter().chain(&tenant.ro));
        let open = |url: &String| nephoscope_drivers::open(url, &Settings::default()).unwrap();
        let databases = urls.map(open).collect();
        let ledger = Ledger::new(&spec);
        Self { spec, simulation, ledger, draw, databases, changes: 0, tasks: 0 }
    }

    /// Lets time pass and takes what the run has to say.
    fn advance(&mut self, time: u64) {
        self.simulation.advance(time);
        while let Some(record) = self.simulation.run().next(Duration::ZERO) {
            self.ledger.add(record);
        }
    }

    fn elapsed(&self) -> u64 {
        self.simulation.run().elapsed()
    }

    /// Changes the load by chance until so many transactions have ended.
    fn under_load(&mut self, transactions: u64, seconds: u64) {
        while self.ledger.ended() < transactions && self.elapsed() < seconds * SECOND {
            let step = self.draw.between(1.0, 200.0);
            self.advance((step * MILLISECOND as f64) as u64);
            // Sessions do not go while the run lasts.
            let tasks = self.simulation.tasks();
            assert!(tasks >= self.tasks, "{tasks} tasks, and there were {}", self.tasks);
            self.tasks = tasks;
            if self.draw.chance(0.5) {
                let number = 100 + self.changes;
                let phase = self.draw.phase(number, false);
                let later = if self.draw.chance(0.3) { self.draw.below(300 * MILLISECOND) } else { 0 };
                let is_phase = self.draw.chance(0.5);
                self.change(&phase, is_phase, self.elapsed() + later);
            }
        }
        assert!(self.ledger.ended() > 0, "a load without a transaction tells nothing");
    }

    fn change(&mut self, phase: &PhaseSpec, is_phase: bool, at: u64) {
        let at = self.simulation.run().change_at(phase.clone(), is_phase, at).unwrap();
        self.ledger.due.change(at, phase);
        self.changes += 1;
    }

    /// When the faults are over, every session must still be there.
    fn call_the_roll(&mut self, faults_end: u64) {
        self.change(&rest(), true, 0);
        self.advance((faults_end + SECOND / 2).saturating_sub(self.elapsed()));
        self.change(&roll_call(), true, 0);
        self.advance(3 * SECOND);
    }

    fn end(mut self) -> Outcome {
        let called = self.ledger.story.phases.iter().any(|phase| phase.spec.name == "roll call");
        self.simulation.run().stop();
        self.advance(self.spec.drain_timeout_ms * MILLISECOND + SECOND / 10);
        assert!(self.ledger.story.ending.is_some(), "the run has ended when the time to drain is over");
        assert!(self.simulation.run().next(Duration::ZERO).is_none(), "nothing comes after the end");
        self.ledger.check(&self.spec);
        if called {
            self.all_are_there();
        }
        self.databases_agree();
        self.outcome()
    }

    fn all_are_there(&self) {
        for (tenant, tallies) in &self.ledger.story.totals().tallies {
            for session in 1..=SESSIONS {
                let name = format!("here {session}");
                assert!(tallies.contains_key(&name), "{tenant}: session {session} is missing");
            }
        }
    }

    /// What committed is what the databases have committed, but for what nobody can know.
    fn databases_agree(&self) {
        let totals = self.ledger.story.totals();
        let tallies = totals.tallies.values().filter_map(|of_tenant| of_tenant.get("commits"));
        let (surely, perhaps) = tallies.fold((0, 0), |sum, of| (sum.0 + of.0 as u64, sum.1 + of.1 as u64));
        // What only reads is not uncertain, but the databases count it.
        let reads = self.ledger.sums.iter().filter(|((_, _, transaction), _)| transaction == "read");
        let unheard: u64 = reads.map(|(_, sums)| sums.errors()).sum();
        let in_flight = totals.in_flight;
        let count = |driver: &Arc<dyn Driver>| -> u64 {
            let table = driver.admin().unwrap().query("").unwrap();
            table.rows[0][0].as_deref().unwrap().parse().unwrap()
        };
        let stored: u64 = self.databases.iter().map(count).sum();
        assert!(
            (surely..=surely + perhaps + unheard + in_flight).contains(&stored),
            "{stored} commits are stored; {surely} were told, {perhaps} are uncertain, {unheard} reads have failed"
        );
    }

    fn outcome(&self) -> Outcome {
        let totals = self.ledger.story.totals();
        Outcome {
            started: totals.started,
            failed: self.ledger.sums.values().map(|sums| sums.failed).sum(),
            errors: self.ledger.sums.values().map(crate::ledger::Sums::errors).sum(),
            uncertain: totals.uncertain,
            in_flight: totals.in_flight,
            arrivals: self.ledger.arrivals,
            changes: self.changes,
            simulated: self.elapsed(),
            fingerprint: self.ledger.fingerprint(),
        }
    }
}
