//! What a simulated database stores: the tables of probes, and nothing else. Every endpoint of the same name shares
//! them; a replica sees each change a planted time after its commit.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nephoscope_runtime::Nanos;
use rand_core::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::contract::dialect::Dialect;
use crate::contract::probe_tables::POLL_ROWS;
use crate::contract::statement::Statement;
use crate::contract::value::{Params, Value};
use crate::sim::plan::{Law, Window};

/// So many markers are kept at the most; the oldest go first.
const MARKERS: usize = 10_000;
/// So many versions of a marker are kept at the most; the older half goes first.
const VERSIONS: usize = 20_000;

/// The statements of probes, which the simulated database understands; any other is an echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Understood {
    Write,
    Insert,
    Update,
    Delete,
    Stock,
    Poll,
}

impl Understood {
    pub(crate) fn of(statement: &Statement) -> Option<Self> {
        let probes = &Dialect::NONE.probes;
        let known = [
            (probes.write, Self::Write),
            (probes.insert, Self::Insert),
            (probes.update, Self::Update),
            (probes.delete, Self::Delete),
            (probes.stock, Self::Stock),
            (probes.poll, Self::Poll),
        ];
        let text = statement.text();
        known.into_iter().find(|(sql, _)| *sql == text).map(|(_, understood)| understood)
    }
}

/// A parameter by its name; 0 where it is missing.
pub(crate) fn parameter(statement: &Statement, params: &Params, name: &str) -> i64 {
    let place = statement.params().iter().position(|known| known == name);
    match place.and_then(|place| params.iter().nth(place)) {
        Some(Value::Int(value)) => value,
        _ => 0,
    }
}

/// How a replica comes to see changes: the law of its lag, the seed of what is drawn from it, and when it applies none.
pub(crate) struct View<'a> {
    pub(crate) lag: Option<&'a Law>,
    pub(crate) seed: u64,
    /// Relative to `start`, in the order in which they begin.
    pub(crate) stalls: &'a [Window],
    /// On the monotonic clock.
    pub(crate) start: Nanos,
}

impl View<'_> {
    /// When a change is visible; always the same for the same change.
    fn sees(&self, version: &Version) -> Nanos {
        let lag = self.lag.map_or(0, |law| {
            law.draw(&mut Xoshiro256PlusPlus::seed_from_u64(self.seed ^ version.change.rotate_left(32)))
        });
        let applied = version.at + lag;
        self.stalls.iter().fold(applied, |applied, stall| {
            if stall.contains(applied.saturating_sub(self.start)) { self.start + stall.end } else { applied }
        })
    }
}

/// What a marker was from a time on.
struct Version {
    /// The number of the change.
    change: u64,
    at: Nanos,
    number: Option<i64>,
}

#[derive(Default)]
struct Tables {
    written: BTreeSet<(i64, i64)>,
    markers: BTreeMap<i64, Vec<Version>>,
    changes: u64,
}

#[derive(Default)]
pub(crate) struct Data(Mutex<Tables>);

impl Data {
    /// The data of a name, which stays for as long as this process: whoever looks for it later finds what was stored.
    /// Without a name it is one's own.
    pub(crate) fn of(name: &str) -> Arc<Self> {
        static ALL: Mutex<BTreeMap<String, Arc<Data>>> = Mutex::new(BTreeMap::new());
        if name.is_empty() {
            return Arc::default();
        }
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(name.to_owned()).or_default())
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn empty(&self) {
        let tables = &mut *self.tables();
        tables.written.clear();
        tables.markers.clear();
    }

    pub(crate) fn write(&self, probe: i64, number: i64) {
        self.tables().written.insert((probe, number));
    }

    pub(crate) fn written(&self) -> Vec<(i64, i64)> {
        self.tables().written.iter().copied().collect()
    }

    /// Sets a marker, or deletes it, by a commit at a time that may still be to come.
    pub(crate) fn mark(&self, id: i64, number: Option<i64>, at: Nanos) {
        let tables = &mut *self.tables();
        tables.changes += 1;
        let version = Version { change: tables.changes, at, number };
        let versions = tables.markers.entry(id).or_default();
        versions.push(version);
        if versions.len() > VERSIONS {
            versions.drain(..VERSIONS / 2);
        }
        if tables.markers.len() > MARKERS {
            let oldest = tables.markers.keys().copied().find(|id| *id != 0);
            oldest.and_then(|id| tables.markers.remove(&id));
        }
    }

    /// The first markers of some at a time, and what they are, as an endpoint sees them: so many as a poll reads. One that
    /// is read as an old one is what it was before its last change that is to be seen there.
    pub(crate) fn markers(
        &self,
        ids: RangeInclusive<i64>,
        at: Nanos,
        view: &View<'_>,
        mut is_old: impl FnMut() -> bool,
    ) -> Vec<(i64, i64)> {
        let tables = self.tables();
        let visible = |(id, versions): (&i64, &Vec<Version>)| {
            let mut seen = versions.iter().rev().filter(|version| view.sees(version) <= at);
            Some((*id, seen.nth(is_old().into())?.number?))
        };
        if ids.is_empty() {
            return Vec::new();
        }
        tables.markers.range(ids).filter_map(visible).take(POLL_ROWS).collect()
    }

    /// What a marker is at a time, as an endpoint sees it.
    pub(crate) fn marker(&self, id: i64, at: Nanos, view: &View<'_>) -> Option<i64> {
        self.markers(id..=id, at, view, || false).first().map(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: View<'_> = View { lag: None, seed: 1, stalls: &[], start: 0 };

    #[test]
    fn a_replica_sees_each_change_after_its_lag() {
        let data = Data::default();
        let law = Law::Constant(50);
        let later = View { lag: Some(&law), ..NOW };
        let stalled = View {
            stalls: &[Window { start: 50, end: 90 }, Window { start: 90, end: 95 }],
            start: 100,
            ..later
        };
        data.mark(7, Some(1), 100);
        data.mark(7, Some(2), 120);
        data.mark(7, None, 200);
        let seen = |view: &View<'_>| [99, 100, 150, 170, 249, 250].map(|at| data.marker(7, at, view));
        assert_eq!(seen(&NOW), [None, Some(1), Some(2), Some(2), None, None]);
        assert_eq!(seen(&later), [None, None, Some(1), Some(2), Some(2), None]);
        // What would be applied from 150 to 195 is applied then.
        assert_eq!([194, 195, 249].map(|at| data.marker(7, at, &stalled)), [None, Some(2), Some(2)]);
        let old = |at: Nanos| data.markers(7..=7, at, &NOW, || true);
        assert_eq!([110, 130, 200].map(old), [vec![], vec![(7, 1)], vec![(7, 2)]]);
        data.mark(9, Some(9), 100);
        assert_eq!(data.markers(0..=9, 110, &NOW, || false), [(7, 1), (9, 9)]);
        assert_eq!(data.markers(RangeInclusive::new(8, 7), 110, &NOW, || false), []);
        data.empty();
        assert_eq!(data.marker(7, 1000, &NOW), None);
    }

    #[test]
    fn of_a_marker_that_changes_often_the_newest_versions_are_kept() {
        let data = Data::default();
        (0..2 * VERSIONS as i64).for_each(|number| data.mark(1, Some(number), number as Nanos));
        assert_eq!(data.marker(1, Nanos::MAX, &NOW), Some(2 * VERSIONS as i64 - 1));
        assert_eq!(data.marker(1, 3 * VERSIONS as Nanos / 2, &NOW), Some(3 * VERSIONS as i64 / 2));
        assert!(data.tables().markers[&1].len() <= VERSIONS);
    }

    #[test]
    fn what_was_written_stays_until_it_is_emptied() {
        let data = Data::default();
        data.write(1, 5);
        data.write(0, 9);
        assert_eq!(data.written(), [(0, 9), (1, 5)]);
        data.empty();
        assert!(data.written().is_empty());
    }

    #[test]
    fn old_markers_are_forgotten_but_for_the_standing_one() {
        let data = Data::default();
        for id in 0..MARKERS as i64 + 100 {
            data.mark(id, Some(id), 1);
        }
        assert_eq!(data.marker(0, 1, &NOW), Some(0));
        assert_eq!(data.marker(1, 1, &NOW), None);
        assert_eq!(data.tables().markers.len(), MARKERS);
        assert_eq!(data.markers(5000..=9000, 1, &NOW, || false).len(), POLL_ROWS);
    }
}
