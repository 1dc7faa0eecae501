//! Registers: rows that writers give increasing versions.
//!
//! A register has one writer, which sends a version when the one before is answered: so the order of versions is the
//! order of writes. Where the outcome of a write is unknown it may take effect later, after others; then the register
//! is given up for a new one, and nothing that the old one shows is ever called a violation.

use std::collections::VecDeque;

use nephoscope_runtime::Nanos;

/// The rows of a register: the register itself, what is written after it, and what is written by who has read it.
pub(crate) const CELLS: usize = 3;
/// So many acknowledged versions are remembered; a read that is further behind counts as so many.
const REMEMBERED: usize = 4096;

/// What is known of a register.
#[derive(Debug)]
pub(crate) struct Register {
    /// The id of its first row; the others follow.
    pub(crate) base: i64,
    /// The version that was sent last.
    version: i64,
    /// Versions and when they were acknowledged, in their order.
    acknowledged: VecDeque<(i64, Nanos)>,
    /// Which of its rows have been inserted.
    pub(crate) there: [bool; CELLS],
}

impl Register {
    pub(crate) fn new(base: i64) -> Self {
        Self { base, version: 0, acknowledged: VecDeque::new(), there: [false; CELLS] }
    }

    /// The next version to be sent: above all others.
    pub(crate) fn next(&mut self) -> i64 {
        self.version += 1;
        self.version
    }

    pub(crate) fn acknowledge(&mut self, version: i64, at: Nanos) {
        self.acknowledged.push_back((version, at));
        if self.acknowledged.len() > REMEMBERED {
            self.acknowledged.pop_front();
        }
    }

    /// The newest version that is acknowledged, and since when.
    pub(crate) fn newest(&self) -> Option<(i64, Nanos)> {
        self.acknowledged.back().copied()
    }

    /// How many versions were acknowledged that are newer than what was seen, up to the one that was expected.
    pub(crate) fn behind(&self, seen: i64, expected: i64) -> u64 {
        let until = |version: i64| self.acknowledged.partition_point(|(known, _)| *known <= version);
        (until(expected).saturating_sub(until(seen))) as u64
    }

    /// The time since the newest write that was acknowledged by then.
    pub(crate) fn age(&self, at: Nanos) -> Option<Nanos> {
        let place = self.acknowledged.partition_point(|(_, acknowledged)| *acknowledged <= at);
        place.checked_sub(1).map(|place| at - self.acknowledged[place].1)
    }

    /// Begins anew with other rows. Versions go on.
    pub(crate) fn move_to(&mut self, base: i64) {
        *self = Self { version: self.version, ..Self::new(base) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_increase_for_ever_and_those_behind_are_the_acknowledged_ones() {
        let mut register = Register::new(1);
        assert_eq!((register.newest(), register.age(5), register.behind(0, 0)), (None, None, 0));
        let versions: Vec<i64> = (0..6).map(|_| register.next()).collect();
        assert_eq!(versions, [1, 2, 3, 4, 5, 6]);
        // The third failed.
        for version in [1, 2, 4, 5] {
            register.acknowledge(version, 10 * version as Nanos);
        }
        assert_eq!(register.newest(), Some((5, 50)));
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|seen| register.behind(seen, 5)), [4, 3, 2, 2, 1, 0, 0]);
        assert_eq!(
            [9, 10, 39, 40, 99].map(|at| register.age(at)),
            [None, Some(0), Some(19), Some(0), Some(49)]
        );
        register.move_to(7);
        assert_eq!((register.base, register.newest(), register.next()), (7, None, 7));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut register = Register::new(1);
        (1..=2 * REMEMBERED as i64).for_each(|version| register.acknowledge(version, version as Nanos));
        assert_eq!(register.behind(0, i64::MAX), REMEMBERED as u64);
    }
}
