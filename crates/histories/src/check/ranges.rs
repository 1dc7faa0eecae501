//! A set of numbers that come mostly in order: ranges of them.

use std::collections::BTreeMap;

/// Ranges by where they begin; each has its last number.
#[derive(Debug, Default)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.0.range(..=number).next_back().is_some_and(|(_, last)| *last >= number)
    }

    pub(crate) fn insert(&mut self, number: u64) {
        if self.contains(number) {
            return;
        }
        let (mut first, mut last) = (number, number);
        if let Some((before, end)) = self.0.range(..number).next_back()
            && *end + 1 == number
        {
            first = *before;
        }
        if let Some(after) = number.checked_add(1)
            && let Some(end) = self.0.remove(&after)
        {
            last = end;
        }
        self.0.insert(first, last);
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_become_one_range() {
        let mut ranges = Ranges::default();
        for number in [5, 7, u64::MAX, 0, 6, u64::MAX - 1, 5] {
            ranges.insert(number);
        }
        assert_eq!(ranges.count(), 3);
        for (number, inside) in [(0, true), (1, false), (4, false), (5, true), (7, true), (8, false)] {
            assert_eq!(ranges.contains(number), inside);
        }
        assert!(ranges.contains(u64::MAX) && !ranges.contains(u64::MAX - 2));
    }
}
