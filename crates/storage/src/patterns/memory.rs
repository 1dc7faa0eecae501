//! What is kept of a page.

/// The kinds of pages, by how they were come to the last time: in a run, as a new one, and at four classes of distances.
pub const KINDS: usize = 6;

const IN_RUN: u8 = 0;
const NEW: u8 = 1;
const GONE_ON: u8 = 8;
const ACCESSED: u8 = 16;

/// What is kept of a page; of one that was never accessed, the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory(u8);

impl Memory {
    pub(crate) const fn is_accessed(self) -> bool {
        self.0 & ACCESSED != 0
    }

    /// Below [`KINDS`].
    pub(crate) const fn kind(self) -> u8 {
        self.0 % GONE_ON
    }

    /// Keeps whether the next request of the segment went on behind the page.
    pub(crate) fn goes_on(&mut self, goes_on: bool) {
        self.0 = self.0 & !GONE_ON | if goes_on { GONE_ON } else { 0 };
    }

    /// Keeps how the page was come to: in a run, or at a distance, or as a new one. Gives the place in a law's `run` that
    /// says how likely the next request goes on.
    pub(crate) fn access(&mut self, in_run: bool, distance: Option<u64>) -> usize {
        let kind = match (in_run, distance) {
            (true, _) => IN_RUN,
            (false, None) => NEW,
            (false, Some(..8)) => 2,
            (false, Some(..64)) => 3,
            (false, Some(..512)) => 4,
            (false, Some(_)) => 5,
        };
        let next =
            if self.is_accessed() { 2 + usize::from(self.0 & GONE_ON != 0) } else { usize::from(in_run) };
        self.0 = self.0 & GONE_ON | ACCESSED | kind;
        next
    }
}
