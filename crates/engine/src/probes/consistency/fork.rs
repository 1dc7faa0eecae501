//! Long forks: two readers that see two writes in opposite orders.
//!
//! In each round two sessions write a version of their own to two rows at the same time. A read of both rows that shows
//! the round's write of one and not yet that of the other says which came first. Where one read says this and another
//! one that, no order of the writes explains both, whenever they were sent: no clock takes part.

use std::collections::VecDeque;

use nephoscope_runtime::Nanos;

/// So many rounds are looked at; older ones are over.
const MOST: usize = 1024;

/// Of which order a read can tell: one statement that reads both rows at once, of both. Where the rows are read one
/// after the other, the second may have been written in between: that it is not there says something, and that it is,
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sees {
    Both,
    /// That the first row's write was before the second's.
    FirstBefore,
    SecondBefore,
}

/// On which nodes a round's writes were seen in which order: a bit a node.
#[derive(Debug)]
struct Round {
    version: i64,
    sent: Nanos,
    first: u64,
    second: u64,
}

/// The rounds of a register.
#[derive(Debug, Default)]
pub(crate) struct Rounds(VecDeque<Round>);

impl Rounds {
    pub(crate) fn begin(&mut self, version: i64, sent: Nanos) {
        self.0.push_back(Round { version, sent, first: 0, second: 0 });
        if self.0.len() > MOST {
            self.0.pop_front();
        }
    }

    /// A read on a node has seen versions of the two rows.
    pub(crate) fn saw(&mut self, node: usize, first: i64, second: i64, sees: Sees) {
        let (low, high) = (first.min(second), first.max(second));
        if low == high
            || matches!((first > second, sees), (true, Sees::SecondBefore) | (false, Sees::FirstBefore))
        {
            return;
        }
        let bit = 1_u64 << (node % 64);
        let from = self.0.partition_point(|round| round.version <= low);
        for round in self.0.range_mut(from..).take_while(|round| round.version <= high) {
            if first > second {
                round.first |= bit;
            } else {
                round.second |= bit;
            }
        }
    }

    /// Ends the rounds that were sent until a time: how many had an order on two nodes, and in how many of these it was
    /// not the same.
    pub(crate) fn take_until(&mut self, time: Nanos) -> (u64, u64) {
        let (mut checks, mut forks) = (0, 0);
        while let Some(round) = self.0.pop_front_if(|round| round.sent <= time) {
            let is_fork = round.first != 0 && round.second != 0;
            let is_check = is_fork || (round.first | round.second).count_ones() > 1;
            checks += u64::from(is_check);
            forks += u64::from(is_fork);
        }
        (checks, forks)
    }

    /// Says nothing of the rounds at hand.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn opposite_orders_on_two_nodes_are_a_fork_and_the_same_order_is_a_check() {
        let mut rounds = Rounds::default();
        (1..=4).for_each(|version| rounds.begin(version, 10 * version as Nanos));
        rounds.saw(0, 1, 0, Sees::Both);
        rounds.saw(1, 1, 0, Sees::Both);
        rounds.saw(0, 2, 1, Sees::Both);
        rounds.saw(1, 1, 2, Sees::Both);
        rounds.saw(0, 3, 2, Sees::Both);
        rounds.saw(0, 4, 4, Sees::Both);
        assert_eq!(rounds.take_until(10), (1, 0));
        assert_eq!(rounds.take_until(20), (1, 1));
        assert_eq!(rounds.take_until(Nanos::MAX), (0, 0), "one node alone can contradict nobody");
    }

    #[test]
    fn rows_that_are_read_one_after_the_other_tell_of_one_order_alone() {
        let mut rounds = Rounds::default();
        rounds.begin(1, 1);
        rounds.saw(0, 0, 1, Sees::FirstBefore);
        rounds.saw(1, 1, 0, Sees::SecondBefore);
        assert_eq!(rounds.take_until(1), (0, 0));
        rounds.begin(2, 2);
        rounds.saw(0, 2, 1, Sees::FirstBefore);
        rounds.saw(1, 1, 2, Sees::SecondBefore);
        assert_eq!(rounds.take_until(2), (1, 1));
    }

    proptest! {
        /// Whatever order the writes take effect in, and whichever prefix of it each read shows, there is no fork.
        #[test]
        fn an_order_of_all_writes_has_no_fork(
            takes_first in prop::collection::vec(any::<bool>(), 60),
            reads in prop::collection::vec((0_usize..3, 0_usize..60), 0..300),
        ) {
            let mut rounds = Rounds::default();
            (1..=60).for_each(|version| rounds.begin(version, 0));
            for (node, prefix) in reads {
                let first = takes_first[..prefix].iter().filter(|first| **first).count();
                rounds.saw(node, first as i64, (prefix - first) as i64, Sees::Both);
            }
            prop_assert_eq!(rounds.take_until(0).1, 0);
        }

        /// A fork is found wherever two reads contradict each other.
        #[test]
        fn reads_that_no_order_explains_are_a_fork(
            reads in prop::collection::vec((0_usize..3, 0_i64..8, 0_i64..8), 0..40),
        ) {
            let mut rounds = Rounds::default();
            (1..=8).for_each(|version| rounds.begin(version, 0));
            for (node, first, second) in &reads {
                rounds.saw(*node, *first, *second, Sees::Both);
            }
            // No round tells apart what lies within one: two writes of the same version.
            let contradict = reads.iter().any(|(_, p, q)| reads.iter().any(|(_, r, s)| {
                (1..=8).any(|n| *p >= n && *q < n && *s >= n && *r < n)
            }));
            prop_assert_eq!(rounds.take_until(0).1 > 0, contradict);
        }
    }
}
