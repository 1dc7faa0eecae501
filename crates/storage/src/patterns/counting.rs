//! Counting what patterns are learned from.

use std::collections::{BTreeMap, HashMap};

use super::bins::{BINS, bin};
use super::memory::{KINDS, Memory};
use crate::Operation;
use crate::reuse::Seen;

/// What was counted of the reads or the writes of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Requests outside runs that went to a page seen before, by the bin of their distance and, within, the page's kind.
    pub again: Vec<u64>,
    /// Requests outside runs that went to a new page, by the bin of the number of pages seen: their distance is at least
    /// that.
    pub first: Vec<u64>,
    /// Requests by the nature of the page before (as in a law's `run`), and by whether they go on behind it.
    pub runs: [[u64; 2]; 4],
}

impl Default for Counted {
    fn default() -> Self {
        Self { again: vec![0; BINS * KINDS], first: vec![0; BINS], runs: [[0; 2]; 4] }
    }
}

/// A segment while a run's requests are counted.
#[derive(Debug, Default)]
struct State {
    seen: Seen,
    memory: HashMap<u64, Memory>,
    last: Option<Last>,
}

/// The last request of a segment.
#[derive(Clone, Copy, Debug)]
struct Last {
    page: u64,
    /// The page behind it.
    next: u64,
    /// The place in a law's `run` that says whether the next one goes on.
    nature: usize,
}

/// Counts where requests begin inside their segments, run by run.
#[derive(Debug)]
pub struct PatternCounts {
    page_bytes: u64,
    states: BTreeMap<u32, State>,
    /// By segment: its reads and its writes, and the last page at which one began.
    counted: BTreeMap<u32, ([Counted; 2], u64)>,
}

impl PatternCounts {
    /// Begins to count, with pages of so many bytes (0 counts as 1).
    #[must_use]
    pub fn new(page_bytes: u32) -> Self {
        Self { page_bytes: u64::from(page_bytes.max(1)), states: BTreeMap::new(), counted: BTreeMap::new() }
    }

    /// Forgets which pages were seen: what follows is another run.
    pub fn next_run(&mut self) {
        self.states.clear();
    }

    /// Counts a request, if it reads or writes; requests come in the order of their times.
    pub fn request(&mut self, segment: u32, offset: u64, bytes: u32, operation: Operation) {
        if !matches!(operation, Operation::Read | Operation::Write) {
            return;
        }
        let page = offset / self.page_bytes;
        let state = self.states.entry(segment).or_default();
        let (both, largest) = self.counted.entry(segment).or_default();
        *largest = page.max(*largest);
        let counted = &mut both[operation as usize];
        let pages = state.seen.pages() as u64;
        let found = state.seen.touch((0, page));
        // A segment's first request cannot go on, which says nothing of the others.
        let goes_on = state.last.is_some_and(|last| last.next == page);
        if let Some(last) = state.last {
            counted.runs[last.nature][usize::from(goes_on)] += 1;
            state.memory.entry(last.page).or_default().goes_on(goes_on);
        }
        let memory = state.memory.entry(page).or_default();
        if !goes_on {
            match found {
                Some(distance) => counted.again[bin(distance) * KINDS + usize::from(memory.kind())] += 1,
                None => counted.first[bin(pages)] += 1,
            }
        }
        let next =
            offset.saturating_add(u64::from(bytes)).div_ceil(self.page_bytes).max(page.saturating_add(1));
        state.last = Some(Last { page, next, nature: memory.access(goes_on, found) });
    }

    /// What was counted: the segment, the last page at which a request began, and its reads and its writes.
    pub fn segments(&self) -> impl Iterator<Item = (u32, u64, &[Counted; 2])> {
        self.counted.iter().map(|(segment, (both, largest))| (*segment, *largest, both))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_distances_are_counted() {
        use Operation::{Read, Sync, Write};
        let mut counts = PatternCounts::new(8192);
        // 5 is new, 6 and 7 go on, 5 comes again with two pages between; the write goes to the page read before it.
        let requests = [(5, 1, Read), (6, 2, Read), (8, 1, Read), (0, 0, Sync), (5, 1, Read), (5, 1, Write)];
        for (page, pages, operation) in requests {
            counts.request(4, page * 8192, pages * 8192, operation);
        }
        counts.next_run();
        counts.request(4, 5 * 8192, 8192, Read);
        let found: Vec<_> = counts.segments().collect();
        let (segment, largest, [reads, writes]) = found[0];
        assert_eq!((found.len(), segment, largest), (1, 4, 8));
        assert_eq!((reads.first[0], reads.first.iter().sum::<u64>()), (2, 2));
        // 5 was a new page the last time.
        assert_eq!((reads.again[2 * KINDS + 1], reads.again.iter().sum::<u64>()), (1, 1));
        assert_eq!(reads.runs, [[0, 1], [1, 1], [0, 0], [0, 0]]);
        // Now 5 is one that was come to from near, and was gone on from before.
        assert_eq!((writes.again[2], writes.runs), (1, [[0, 0], [0, 0], [0, 0], [1, 0]]));
    }

    #[test]
    fn the_ends_of_numbers_do_not_overflow() {
        let mut counts = PatternCounts::new(0);
        (0..2).for_each(|_| counts.request(u32::MAX, u64::MAX, u32::MAX, Operation::Read));
        assert_eq!(counts.segments().next().map(|found| found.1), Some(u64::MAX));
    }
}
