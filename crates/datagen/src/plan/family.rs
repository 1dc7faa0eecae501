//! Parents and children: which rows of one table belong to a row of another.

use std::ops::Range;
use std::sync::Arc;

use super::counted::Counted;
use super::shares::{BLOCK, Shares};
use crate::random::{Key, Span};
use crate::spec::Children;

/// How the rows of a table are shared among the rows of its parent.
///
/// Parents are taken in pairs. The first of a pair has a random number of children, the second what is
/// missing to `min + max`, so each pair has equally many, and any child's pair is a division away. Where numbers of
/// children have weights, parents are taken in blocks in the same way; where a function gives them, they are kept.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    parents: u64,
    counts: Span,
    /// `min + max`: the children of a pair of parents.
    pair: u64,
    key: Key,
    shares: Option<Arc<Shares>>,
    counted: Option<Arc<Counted>>,
}

/// The parent of a row, and the row's index among its siblings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Owner {
    pub(crate) parent: u64,
    /// The parent's first child.
    pub(crate) first: u64,
    /// How many children the parent has.
    pub(crate) children: u64,
}

impl Family {
    /// An error says what is wrong with the numbers of children.
    pub(crate) fn new(parents: u64, children: &Children, key: Key) -> Result<Self, String> {
        let (mut shares, mut counted) = (None, None);
        let (min, max) = match children {
            Children::Between { min, max } if min > max => {
                return Err(format!("min {min} is greater than max {max}"));
            }
            Children::Between { min, max } => (*min, *max),
            Children::Weighted(weights) => {
                shares = Some(Arc::new(Shares::new(weights, key.inner().draws(0))?));
                (0, 0)
            }
            Children::Function(function) => {
                counted = Some(Arc::new(Counted::of(parents, &**function, key.inner())?));
                (0, 0)
            }
        };
        let counts = Span::new(i64::from(min), i64::from(max));
        Ok(Self { parents, counts, pair: u64::from(min) + u64::from(max), key, shares, counted })
    }

    /// How many children there are; nothing if they are more than 64 bits can count.
    pub(crate) fn rows(&self) -> Option<u64> {
        if let Some(counted) = &self.counted {
            return Some(counted.rows());
        }
        if let Some(shares) = &self.shares {
            let (blocks, rest) = (self.parents / BLOCK, self.parents % BLOCK);
            return blocks
                .checked_mul(shares.total())?
                .checked_add(shares.of_first(rest, self.start(blocks)));
        }
        (self.parents / 2).checked_mul(self.pair)?.checked_add(self.parents % 2 * (self.pair / 2))
    }

    /// The most children of a parent that are possible by what was said, and that there are where a function says it.
    pub(crate) fn most(&self, children: &Children) -> u32 {
        match (children, &self.counted) {
            (Children::Between { max, .. }, _) => *max,
            (Children::Weighted(weights), _) => {
                let possible = weights.iter().filter(|(_, weight)| *weight > 0.0);
                possible.map(|(children, _)| *children).max().unwrap_or(0)
            }
            (Children::Function(_), counted) => counted.as_ref().map_or(0, |counted| counted.most()),
        }
    }

    /// How many children the first of a pair of parents has.
    #[inline]
    fn split(&self, pair: u64) -> u64 {
        self.counts.draw(&mut self.key.draws(pair)) as u64
    }

    /// Where in the order of its shares a block of parents begins.
    #[inline]
    fn start(&self, block: u64) -> u64 {
        self.key.draws(block).below(BLOCK)
    }

    /// The children of a parent.
    #[inline]
    pub(crate) fn children(&self, parent: u64) -> Range<u64> {
        if let Some(counted) = &self.counted {
            return counted.children(parent);
        }
        if let Some(shares) = &self.shares {
            let (block, index) = (parent / BLOCK, parent % BLOCK);
            let (first, start) = (block * shares.total(), self.start(block));
            return first + shares.of_first(index, start)..first + shares.of_first(index + 1, start);
        }
        let pair = parent / 2;
        let first = pair * self.pair;
        if parent + 1 == self.parents && parent.is_multiple_of(2) {
            return first..first + self.pair / 2;
        }
        let split = first + self.split(pair);
        if parent.is_multiple_of(2) { first..split } else { split..first + self.pair }
    }

    /// The parent of a child, which must be one of [`Self::rows`].
    #[inline]
    pub(crate) fn owner(&self, child: u64) -> Owner {
        if let Some(counted) = &self.counted {
            let parent = counted.owner(child);
            let children = counted.children(parent);
            return Owner { parent, first: children.start, children: children.end - children.start };
        }
        if let Some(shares) = &self.shares {
            let (block, index) = (child / shares.total().max(1), child % shares.total().max(1));
            let parent = block * BLOCK + shares.owner(index, self.start(block));
            let children = self.children(parent);
            return Owner { parent, first: children.start, children: children.end - children.start };
        }
        // Where no pair has children there is no child to ask for; the one is against dividing by zero.
        let pair = child / self.pair.max(1);
        let even = self.children(2 * pair);
        let (parent, children) = if child < even.end {
            (2 * pair, even)
        } else {
            (2 * pair + 1, even.end..(pair + 1) * self.pair)
        };
        Owner { parent, first: children.start, children: children.end - children.start }
    }
}

impl Owner {
    /// The child's number among the parent's children, counted from 0; nothing if it is not one of them.
    #[inline]
    pub(crate) fn index(&self, child: u64) -> Option<u64> {
        let index = child.wrapping_sub(self.first);
        (index < self.children).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use nephoscope_drivers::{Error, Params, Value};
    use proptest::prelude::*;

    use super::*;
    use crate::function::{CellFunction, RowFunction};
    use crate::random::Draws;

    /// The numbers of children of all parents, which tile the table.
    fn counts(family: &Family) -> Result<Vec<u64>, TestCaseError> {
        let (mut counts, mut next) = (Vec::new(), 0);
        for parent in 0..family.parents {
            let children = family.children(parent);
            prop_assert_eq!(children.start, next);
            let count = children.end - children.start;
            for child in children.clone() {
                let owner = family.owner(child);
                prop_assert_eq!((owner.parent, owner.first, owner.children), (parent, children.start, count));
                prop_assert_eq!(owner.index(child), Some(child - children.start));
            }
            next = children.end;
            counts.push(count);
        }
        prop_assert_eq!(family.rows(), Some(next));
        Ok(counts)
    }

    proptest! {
        #[test]
        fn children_tile_the_table_and_know_their_parents(
            parents in 0_u64..40, min in 0_u32..5, more in 0_u32..20, seed: u64,
        ) {
            let max = min + more;
            let family = Family::new(parents, &Children::Between { min, max }, Key::new(seed, "lines", "order"));
            let counts = counts(&family.unwrap())?;
            prop_assert!(counts.iter().all(|count| (u64::from(min)..=u64::from(max)).contains(count)));
            let half = parents * u64::from(min + max);
            prop_assert_eq!(counts.iter().sum::<u64>(), half / 2, "exactly the mean, rounded down");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn numbers_of_children_keep_to_their_weights_in_each_block(
            weights in prop::collection::btree_map(0_u32..9, 0.0..5.0, 1..5), more in 0..BLOCK, seed: u64,
        ) {
            let weights: Vec<(u32, f64)> = weights.into_iter().chain([(12, 0.0001)]).collect();
            let whole: f64 = weights.iter().map(|(_, weight)| weight).sum();
            let family = Family::new(2 * BLOCK + more, &Children::Weighted(weights.clone()), Key::new(seed, "lines", "order"));
            let counts = counts(&family.unwrap())?;
            for block in counts.chunks_exact(BLOCK as usize) {
                for (children, weight) in &weights {
                    let share = block.iter().filter(|count| **count == u64::from(*children)).count() as f64;
                    prop_assert!((share - weight / whole * BLOCK as f64).abs() <= 2.0, "{children}: {share}");
                    prop_assert_eq!(share > 0.0, *weight > 0.0);
                }
            }
            prop_assert!(counts.iter().all(|count| weights.iter().any(|(children, _)| u64::from(*children) == *count)));
        }
    }

    /// A function that gives numbers from a list.
    #[derive(Debug)]
    struct Listed(Arc<[i64]>);

    impl RowFunction for Listed {
        fn instance(&self) -> Result<Box<dyn CellFunction>, Error> {
            Ok(Box::new(Self(Arc::clone(&self.0))))
        }
    }

    impl CellFunction for Listed {
        fn call(&mut self, row: u64, _draws: Draws, _inputs: &Params) -> Result<Value<'_>, Error> {
            Ok(Value::Int(self.0[row as usize]))
        }
    }

    fn listed(numbers: Vec<i64>) -> Result<Family, String> {
        let parents = numbers.len() as u64;
        let children = Children::Function(Arc::new(Listed(numbers.into())));
        Family::new(parents, &children, Key::new(1, "lines", "order"))
    }

    proptest! {
        #[test]
        fn numbers_of_children_are_those_that_a_function_gives(
            numbers in prop::collection::vec(prop_oneof![Just(0_i64), 0_i64..4, 0_i64..200], 0..300),
        ) {
            let family = listed(numbers.clone()).unwrap();
            let counts = counts(&family)?;
            prop_assert!(counts.iter().copied().eq(numbers.iter().map(|number| *number as u64)));
        }
    }

    #[test]
    fn a_function_gives_numbers_that_can_be_counted() {
        for number in [-1, 1 << 32] {
            let refused = listed(vec![1, number]).unwrap_err();
            assert_eq!(
                refused,
                format!("the function gives row 1 {number} children; allowed are 0 to 4294967295")
            );
        }
    }

    #[test]
    fn too_many_children_are_not_counted() {
        let rows = |parents, children| Family::new(parents, &children, Key::new(0, "", "")).unwrap().rows();
        let (few, weighted) = (Children::Between { min: 1, max: 19 }, Children::Weighted(vec![(10, 1.0)]));
        assert_eq!(rows(u64::MAX, few.clone()), None);
        assert_eq!(rows(1 << 40, few), Some(10 << 40));
        assert_eq!(rows(u64::MAX, weighted.clone()), None);
        assert_eq!(rows(1 << 40, weighted), Some(10 << 40));
        assert_eq!(rows(100, Children::Weighted(vec![(0, 1.0)])), Some(0));
    }
}
