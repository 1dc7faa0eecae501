//! Parents and children: which rows of one table belong to a row of another.

use std::ops::Range;

use crate::random::{Key, Span};

/// How the rows of a table are shared among the rows of its parent.
///
/// Parents are taken in pairs. The first of a pair has a random number of children, the second what is
/// missing to `min + max`, so each pair has equally many, and any child's pair is a division away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    parents: u64,
    counts: Span,
    /// `min + max`: the children of a pair of parents.
    pair: u64,
    key: Key,
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
    /// `min` must not be greater than `max`.
    pub(crate) fn new(parents: u64, min: u32, max: u32, key: Key) -> Self {
        let counts = Span::new(i64::from(min), i64::from(max));
        Self { parents, counts, pair: u64::from(min) + u64::from(max), key }
    }

    /// How many children there are; nothing if they are more than 64 bits can count.
    pub(crate) fn rows(&self) -> Option<u64> {
        (self.parents / 2).checked_mul(self.pair)?.checked_add(self.parents % 2 * (self.pair / 2))
    }

    /// How many children the first of a pair of parents has.
    #[inline]
    fn split(&self, pair: u64) -> u64 {
        self.counts.draw(&mut self.key.draws(pair)) as u64
    }

    /// The children of a parent.
    #[inline]
    pub(crate) fn children(&self, parent: u64) -> Range<u64> {
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn children_tile_the_table_and_know_their_parents(
            parents in 0_u64..40, min in 0_u32..5, more in 0_u32..20, seed: u64,
        ) {
            let max = min + more;
            let family = Family::new(parents, min, max, Key::new(seed, "lines", "order"));
            let mut next = 0;
            for parent in 0..parents {
                let children = family.children(parent);
                prop_assert_eq!(children.start, next);
                let count = children.end - children.start;
                prop_assert!((u64::from(min)..=u64::from(max)).contains(&count));
                for child in children.clone() {
                    let owner = family.owner(child);
                    prop_assert_eq!((owner.parent, owner.first, owner.children), (parent, children.start, count));
                    prop_assert_eq!(owner.index(child), Some(child - children.start));
                }
                next = children.end;
            }
            prop_assert_eq!(family.rows(), Some(next));
            let half = parents * u64::from(min + max);
            prop_assert_eq!(next, half / 2, "exactly the mean, rounded down");
        }
    }

    #[test]
    fn too_many_children_are_not_counted() {
        assert_eq!(Family::new(u64::MAX, 1, 19, Key::new(0, "", "")).rows(), None);
        assert_eq!(Family::new(1 << 40, 1, 19, Key::new(0, "", "")).rows(), Some(10 << 40));
    }
}
