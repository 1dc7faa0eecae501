//! What a run says, added up and checked as it comes.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use hdrhistogram::Histogram;
use nephoscope_drivers::ErrorClass;
use nephoscope_engine::histogram::WindowHistogram;
use nephoscope_engine::{Interval, LoadSpec, Record, Series, Totals, json};

use crate::arrivals::Due;
use crate::support::{Story, check};

/// Sums of a series over the run.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    pub committed: u64,
    pub aborted: u64,
    pub failed: u64,
    pub retries: u64,
    pub errors: [u64; ErrorClass::ALL.len()],
    /// Times that the histograms hold of what has ended.
    pub timed: u64,
    /// Transactions that had waited for a session and not ended when their phase did.
    pub late: u64,
}

impl Sums {
    fn add(&mut self, series: &Series) {
        self.committed += series.committed;
        self.aborted += series.aborted;
        self.failed += series.failed;
        self.retries += series.retries;
        let len = |of: &Option<WindowHistogram>| of.as_ref().map_or(0, WindowHistogram::len);
        self.timed += series.latency.len() + len(&series.failures);
        self.late += len(&series.censored) - series.unstarted;
        for (sum, count) in self.errors.iter_mut().zip(series.errors) {
            *sum += count;
        }
    }

    pub fn ended(&self) -> u64 {
        self.committed + self.aborted + self.failed
    }

    pub fn errors(&self) -> u64 {
        self.errors.iter().sum()
    }

    fn errors_of(&self, wanted: impl Fn(ErrorClass) -> bool) -> u64 {
        ErrorClass::ALL
            .into_iter()
            .zip(self.errors)
            .filter(|(class, _)| wanted(*class))
            .map(|(_, count)| count)
            .sum()
    }
}

/// The name of a series: tenant, role, transaction.
pub type Name = (String, &'static str, String);

/// The whole of a run.
pub struct Ledger {
    pub due: Due,
    pub sums: BTreeMap<Name, Sums>,
    pub story: Story,
    /// Of every byte that the run has given out.
    hasher: DefaultHasher,
    pub arrivals: u64,
}

impl Ledger {
    pub fn new(spec: &LoadSpec) -> Self {
        Self {
            due: Due::new(spec),
            sums: BTreeMap::new(),
            story: Story::default(),
            hasher: DefaultHasher::new(),
            arrivals: 0,
        }
    }

    pub fn add(&mut self, mut record: Record) {
        if let Record::End(ending) = &mut record {
            // Lua's garbage is collected when its addresses will have it.
            ending.totals.script_memory = 0;
        }
        json::record(&record).to_string().hash(&mut self.hasher);
        match &mut record {
            Record::Phase { at, spec, .. } if spec.name == "drain" => self.due.end(*at),
            Record::Interval(interval) => self.add_interval(interval),
            Record::End(_) => assert!(self.story.ending.is_none(), "a run ends once"),
            _ => {}
        }
        self.story.add(record);
    }

    fn add_interval(&mut self, interval: &mut Interval) {
        check::interval(interval);
        let due = self.due.until(interval.end);
        let recorded: Vec<u64> = interval.tenants.iter().map(|tenant| tenant.arrivals).collect();
        assert_eq!(recorded, due, "arrivals in {}–{} are those that were due", interval.start, interval.end);
        self.arrivals += due.iter().sum::<u64>();
        for series in &mut interval.series {
            let name = (series.name.tenant.clone(), series.name.role.name(), series.name.transaction.clone());
            self.sums.entry(name).or_default().add(series);
            // A long run has more of them than memory.
            series.latency = Histogram::new_with_bounds(1, 2, 0).unwrap();
            series.service = series.latency.clone();
            (series.failures, series.censored) = (None, None);
        }
        interval.lag = None;
    }

    /// Transactions that have ended, as far as the run has told of them.
    pub fn ended(&self) -> u64 {
        self.sums.values().map(Sums::ended).sum()
    }

    /// What two runs of the same seed have in common: everything.
    pub fn fingerprint(&self) -> u64 {
        self.hasher.finish()
    }

    /// Checks the whole when the run has ended.
    pub fn check(&self, spec: &LoadSpec) {
        check::course(&self.story, spec);
        assert_eq!(self.story.failure(), None);
        let totals = self.story.totals();
        self.identity(totals);
        self.errors(spec, totals);
        if !self.due.ever_closed {
            check::arrivals(&self.story);
        }
    }

    /// Of every series: what was started has ended in one way, or is in flight.
    fn identity(&self, totals: &Totals) {
        for (name, started, in_flight) in &totals.by_series {
            let key = (name.tenant.clone(), name.role.name(), name.transaction.clone());
            let sums = self.sums.get(&key).cloned().unwrap_or_default();
            let Sums { committed, aborted, failed, .. } = sums;
            assert_eq!(
                *started,
                committed + aborted + failed + in_flight,
                "{key:?}: {started} started, {committed} committed, {aborted} aborted, {failed} failed, {in_flight} in flight"
            );
        }
        // Whoever is late in a phase has no latency in a later one.
        for (key, sums) in &self.sums {
            let carried = sums.committed + sums.failed - sums.timed;
            assert!(carried <= sums.late, "{key:?}: {carried} without a latency, {} late", sums.late);
            let rest = totals.in_flight + sums.aborted;
            assert!(sums.late <= carried + rest, "{key:?}: {} late, {carried} without a latency", sums.late);
        }
        assert_eq!(totals.started, totals.by_series.iter().map(|(_, started, _)| started).sum::<u64>());
    }

    /// Each attempt that came to nothing has met one error, and only some classes are tried again.
    fn errors(&self, spec: &LoadSpec, totals: &Totals) {
        for (name, started, in_flight) in &totals.by_series {
            let key = (name.tenant.clone(), name.role.name(), name.transaction.clone());
            let sums = self.sums.get(&key).cloned().unwrap_or_default();
            assert!(sums.ended() > 0 || started == in_flight);
            let known = sums.retries + sums.failed;
            let of_in_flight = in_flight * u64::from(spec.retry.attempts);
            let errors = sums.errors();
            assert!(
                (known..=known + of_in_flight).contains(&errors),
                "{key:?}: {errors} errors, {} retries, {} failed, {in_flight} in flight",
                sums.retries,
                sums.failed
            );
            let may_retry = sums.errors_of(|class| spec.retry.classes.contains(class));
            assert!(sums.retries <= may_retry, "{key:?}: {} retries of {may_retry}", sums.retries);
            assert!(spec.retry.attempts > 1 || sums.retries == 0);
        }
        let open = |class| {
            matches!(
                class,
                ErrorClass::ConnectionLost | ErrorClass::ShuttingDown | ErrorClass::StatementTimeout
            )
        };
        let unanswered: u64 = self.sums.values().map(|sums| sums.errors_of(open)).sum();
        assert!(totals.uncertain <= unanswered + totals.in_flight, "{} uncertain", totals.uncertain);
        // What may have committed is not run again: it has failed, or the run has ended.
        let failed: u64 = self.sums.values().map(|sums| sums.failed).sum();
        assert!(
            totals.uncertain <= failed + totals.in_flight,
            "{} uncertain, {failed} failed",
            totals.uncertain
        );
    }
}
