//! Counts of what consistency probes have checked, by slices of time: few rows, however many reads there are.

use std::collections::BTreeMap;

use nephoscope_runtime::clock::{MICROSECOND, MILLISECOND};
use nephoscope_runtime::{Nanos, clock};

use crate::probes::sample::{Check, Count, Journal};

/// Bins of the time since a write: so many to a decade, from the finest time on.
const BINS_A_DECADE: f64 = 8.0;
const FINEST: Nanos = 10 * MICROSECOND;
/// What lies beyond 100 s is in the last bin.
const LAST_BIN: u32 = 57;
/// Versions behind are counted one by one up to here, and beyond by powers of two.
const EXACT: u64 = 16;

/// The bin of a time since a write; the first one ends at [`FINEST`].
fn bin(since: Nanos) -> u32 {
    if since < FINEST {
        return 0;
    }
    // A time at an edge belongs to the bin that begins there, whatever the logarithm's last digit says.
    let place = BINS_A_DECADE * (since as f64 / FINEST as f64).log10();
    ((place + 1e-11) as u32 + 1).min(LAST_BIN)
}

/// Where a bin begins, in milliseconds.
fn begins_ms(bin: u32) -> f64 {
    if bin == 0 {
        return 0.0;
    }
    let finest = FINEST as f64 / MILLISECOND as f64;
    let edge = finest * 10_f64.powf(f64::from(bin - 1) / BINS_A_DECADE);
    (edge * 1e9).round() / 1e9
}

/// By how many versions a read is said to be behind: exact up to [`EXACT`], else the power of two below.
fn rounded(behind: u64) -> u32 {
    if behind <= EXACT { behind as u32 } else { 1 << behind.min(1 << 30).ilog2() }
}

type Key = (Check, Option<usize>, u32);

/// The counts of the present slice.
pub(crate) struct Tally {
    started: Nanos,
    counts: BTreeMap<Key, (u64, u64)>,
}

impl Default for Tally {
    fn default() -> Self {
        Self { started: clock::now(), counts: BTreeMap::new() }
    }
}

impl Tally {
    fn put(&mut self, key: Key, trials: u64, hits: u64) {
        let count = self.counts.entry(key).or_default();
        *count = (count.0 + trials, count.1 + hits);
    }

    /// A check, and whether it hit.
    pub(crate) fn add(&mut self, check: Check, node: Option<usize>, hit: bool) {
        self.put((check, node, 0), 1, hit.into());
    }

    /// Several checks.
    pub(crate) fn add_all(&mut self, check: Check, trials: u64, hits: u64) {
        if trials > 0 {
            self.put((check, None, 0), trials, hits);
        }
    }

    /// A check some time after a write.
    pub(crate) fn add_since(&mut self, check: Check, node: usize, since: Nanos, hit: bool) {
        self.put((check, Some(node), bin(since)), 1, hit.into());
    }

    /// A read that was so many versions behind.
    pub(crate) fn add_behind(&mut self, node: usize, behind: u64) {
        self.put((Check::Behind, Some(node), rounded(behind)), 1, 1);
    }

    /// Ends the slice, and begins the next one.
    pub(crate) fn hand_over(&mut self, journal: &Journal) {
        let (start, end) = (self.started, clock::now());
        self.started = end;
        for ((check, endpoint, place), (trials, hits)) in std::mem::take(&mut self.counts) {
            let place = match check {
                Check::Stale | Check::Missed => Some(begins_ms(place)),
                Check::Behind => Some(place.into()),
                _ => None,
            };
            journal.count(Count { start, end, endpoint, check, place, trials, hits });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_lies_in_the_bin_that_begins_before_it() {
        assert_eq!((bin(0), bin(FINEST - 1), bin(FINEST)), (0, 0, 1));
        for number in 1..LAST_BIN {
            let edge = (begins_ms(number) * MILLISECOND as f64).round() as Nanos;
            assert_eq!((bin(edge + 1), bin(edge.saturating_sub(2))), (number, number - 1), "{edge}");
        }
        assert_eq!((begins_ms(9), begins_ms(17), begins_ms(LAST_BIN)), (0.1, 1.0, 100_000.0));
        assert_eq!(bin(Nanos::MAX), LAST_BIN);
    }

    #[test]
    fn versions_behind_are_exact_where_they_are_few() {
        assert_eq!([0, 1, 16, 17, 31, 32, u64::MAX].map(rounded), [0, 1, 16, 16, 16, 32, 1 << 30]);
    }
}
