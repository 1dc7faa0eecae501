//! A run as its records tell it.

use std::collections::BTreeMap;
use std::sync::Arc;

use nephoscope_drivers::ErrorClass;
use nephoscope_engine::histogram::{self, WindowHistogram};
use nephoscope_engine::spec::PhaseSpec;
use nephoscope_engine::{Ending, ErrorEvent, Gap, History, Interval, Record, Series, TenantInterval, Totals};

use super::SECOND;

/// The beginning of a phase.
#[derive(Clone, Debug)]
pub struct Beginning {
    pub at: u64,
    pub number: u32,
    pub spec: Arc<PhaseSpec>,
}

/// Every record of a run.
#[derive(Debug, Default)]
pub struct Story {
    pub phases: Vec<Beginning>,
    pub intervals: Vec<Interval>,
    pub errors: Vec<ErrorEvent>,
    pub gaps: Vec<Gap>,
    pub histories: Vec<History>,
    pub ending: Option<Ending>,
}

impl Story {
    pub fn add(&mut self, record: Record) {
        match record {
            Record::Phase { at, number, spec } => self.phases.push(Beginning { at, number, spec }),
            Record::Interval(interval) => {
                let last = self.phases.last().map(|phase| phase.number);
                assert_eq!(last, Some(interval.phase), "a phase is told of before its first interval");
                self.intervals.push(*interval);
            }
            Record::Error(event) => self.errors.push(event),
            Record::Gap(gap) => self.gaps.push(gap),
            Record::History(history) => self.histories.push(*history),
            Record::End(ending) => self.ending = Some(*ending),
        }
    }

    pub fn totals(&self) -> &Totals {
        &self.ending.as_ref().unwrap().totals
    }

    pub fn failure(&self) -> Option<&str> {
        self.ending.as_ref().unwrap().failure.as_deref()
    }

    pub fn phase_names(&self) -> Vec<&str> {
        self.phases.iter().map(|phase| phase.spec.name.as_str()).collect()
    }

    /// The whole run.
    pub fn all(&self) -> View<'_> {
        View(self.intervals.iter().collect())
    }

    /// The intervals of a phase.
    pub fn phase(&self, name: &str) -> View<'_> {
        let number = self.phases.iter().find(|phase| phase.spec.name == name).unwrap().number;
        View(self.intervals.iter().filter(|interval| interval.phase == number).collect())
    }

    /// When a phase began, in seconds.
    pub fn began(&self, name: &str) -> f64 {
        self.phases.iter().find(|phase| phase.spec.name == name).unwrap().at as f64 / SECOND
    }

    /// The intervals that lie between two times in seconds.
    pub fn between(&self, start: f64, end: f64) -> View<'_> {
        self.all().between(start, end)
    }

    /// What a tally came to: surely, and perhaps.
    pub fn tally(&self, name: &str) -> (f64, f64) {
        self.totals().tallies["default"].get(name).copied().unwrap_or_default()
    }

    /// The tallies whose name begins with a word, by the rest of their name.
    pub fn tallies(&self, word: &str) -> BTreeMap<String, f64> {
        let of_tenant = self.totals().tallies["default"].iter();
        of_tenant
            .filter_map(|(name, (sure, _))| Some((name.strip_prefix(word)?.trim().to_owned(), *sure)))
            .collect()
    }
}

/// Some intervals of a run.
pub struct View<'a>(pub Vec<&'a Interval>);

impl View<'_> {
    pub fn between(&self, start: f64, end: f64) -> Self {
        let inside =
            |of: &&&Interval| of.start as f64 >= start * SECOND - 1.0 && of.end as f64 <= end * SECOND + 1.0;
        Self(self.0.iter().filter(inside).copied().collect())
    }

    pub fn seconds(&self) -> f64 {
        self.0.iter().map(|interval| (interval.end - interval.start) as f64 / SECOND).sum()
    }

    fn series(&self) -> impl Iterator<Item = &Series> {
        self.0.iter().flat_map(|interval| &interval.series)
    }

    pub fn sum(&self, of: impl Fn(&Series) -> u64) -> u64 {
        self.series().map(of).sum()
    }

    pub fn committed(&self) -> u64 {
        self.sum(|series| series.committed)
    }

    pub fn failed(&self) -> u64 {
        self.sum(|series| series.failed)
    }

    /// Committed transactions of one name.
    pub fn committed_of(&self, transaction: &str) -> u64 {
        self.sum(|series| if series.name.transaction == transaction { series.committed } else { 0 })
    }

    /// Errors of a class.
    pub fn errors(&self, class: ErrorClass) -> u64 {
        let index = ErrorClass::ALL.iter().position(|other| *other == class).unwrap();
        self.sum(|series| series.errors[index])
    }

    pub fn tps(&self) -> f64 {
        self.committed() as f64 / self.seconds()
    }

    /// The sum over intervals and tenants of what is counted.
    pub fn counted(&self, of: impl Fn(&TenantInterval) -> u64) -> u64 {
        self.0.iter().flat_map(|interval| &interval.tenants).map(of).sum()
    }

    /// The values at the ends of the intervals, all tenants together.
    pub fn gauge(&self, of: impl Fn(&TenantInterval) -> u64) -> Vec<u64> {
        self.0.iter().map(|interval| interval.tenants.iter().map(&of).sum()).collect()
    }

    pub fn latency(&self) -> WindowHistogram {
        self.merged(|series| Some(&series.latency))
    }

    pub fn service(&self) -> WindowHistogram {
        self.merged(|series| Some(&series.service))
    }

    /// Latency of failed transactions.
    pub fn failures(&self) -> WindowHistogram {
        self.merged(|series| series.failures.as_ref())
    }

    /// How long at least the latency is of what had not ended with its phase.
    pub fn censored(&self) -> WindowHistogram {
        self.merged(|series| series.censored.as_ref())
    }

    fn merged(&self, of: impl Fn(&Series) -> Option<&WindowHistogram>) -> WindowHistogram {
        let mut sum = histogram::empty();
        self.series().filter_map(of).for_each(|part| sum.add(part).unwrap());
        sum
    }

    /// The lateness of transactions that a free session waited for.
    pub fn lag(&self) -> WindowHistogram {
        let mut sum = histogram::empty();
        let parts = self.0.iter().filter_map(|interval| interval.lag.as_ref());
        parts.for_each(|part| sum.add(part).unwrap());
        sum
    }
}
