//! A counter: what it may be while it is read, from the additions that had ended and those that had begun.

use super::nodes::{Found, Scene};
use crate::finding::{Anomaly, Order, Party, Why};
use crate::history::Outcome;

#[derive(Debug, Default)]
pub(crate) struct Counter {
    /// The least and the most that was added before any read that is to come.
    base: (i64, i64),
    /// Up to here additions are in the base.
    folded: u64,
    /// When it began and ended, how much, and whether that is certain.
    adds: Vec<(u64, u64, i64, bool)>,
    reads: Vec<(Party, i64)>,
}

impl Counter {
    pub(crate) fn add(&mut self, scene: &mut Scene, party: &Party, amount: i64, outcome: Outcome) {
        if outcome != Outcome::Aborted {
            scene.late += u64::from(party.begin < self.folded);
            self.adds.push((party.begin, party.end, amount, outcome == Outcome::Committed));
        }
    }

    pub(crate) fn read(&mut self, scene: &mut Scene, party: Party, value: i64) {
        scene.late += u64::from(party.begin < self.folded);
        self.reads.push((party, value));
    }

    /// Judges the reads that ended before `cutoff`, whose additions have all come, and folds the additions that every
    /// later read sees.
    pub(crate) fn settle(&mut self, found: &mut Found, key: u64, cutoff: u64) {
        let mut due: Vec<(Party, i64)> = Vec::new();
        self.reads.retain(|read| {
            let is_due = read.0.end < cutoff;
            due.extend(is_due.then_some(*read));
            !is_due
        });
        if !due.is_empty() {
            self.judge(found, key, &due);
        }
        let earliest = self.reads.iter().map(|read| read.0.begin).min().unwrap_or(u64::MAX);
        let until = earliest.min(cutoff);
        self.folded = self.folded.max(until);
        let (base, folded) = (&mut self.base, self.folded);
        self.adds.retain(|(begin, end, amount, certain)| {
            // Of an addition whose outcome is unknown every later read may see all or nothing.
            let fold = if *certain { *end < folded } else { *begin < folded };
            if fold {
                base.0 = base.0.saturating_add(if *certain { *amount } else { 0.min(*amount) });
                base.1 = base.1.saturating_add(if *certain { *amount } else { 0.max(*amount) });
            }
            !fold
        });
    }

    fn judge(&self, found: &mut Found, key: u64, due: &[(Party, i64)]) {
        let certain = |sign: i64| {
            let ended = self.adds.iter().filter(|add| add.3 && add.2.signum() == sign);
            Sums::new(ended.map(|add| (add.1, add.2)))
        };
        let possible = |sign: i64| {
            let begun = self.adds.iter().filter(|add| add.2.signum() == sign);
            Sums::new(begun.map(|add| (add.0, add.2)))
        };
        let (up, down, up_to, down_to) = (certain(1), certain(-1), possible(1), possible(-1));
        for (party, read) in due {
            let until = party.end.saturating_add(1);
            let least =
                self.base.0.saturating_add(up.before(party.begin)).saturating_add(down_to.before(until));
            let most =
                self.base.1.saturating_add(down.before(party.begin)).saturating_add(up_to.before(until));
            if !(least..=most).contains(read) {
                let why = Why::Bounds { key, read: *read, least, most };
                found.add(Anomaly::Counter, Order::RealTime, vec![*party], vec![why]);
            }
        }
    }
}

/// Sums of all that comes before a time.
struct Sums(Vec<(u64, i64)>);

impl Sums {
    fn new(given: impl Iterator<Item = (u64, i64)>) -> Self {
        let mut sums: Vec<_> = given.collect();
        sums.sort_unstable_by_key(|it| it.0);
        let mut sum = 0_i64;
        for entry in &mut sums {
            sum = sum.saturating_add(entry.1);
            entry.1 = sum;
        }
        Self(sums)
    }

    fn before(&self, time: u64) -> i64 {
        let until = self.0.partition_point(|entry| entry.0 < time);
        until.checked_sub(1).map_or(0, |at| self.0[at].1)
    }
}
