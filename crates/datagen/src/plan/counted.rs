//! Numbers of children that a function gives.

use std::ops::Range;

use nephoscope_drivers::{Params, Value};

use crate::function::RowFunction;
use crate::random::Key;

/// How many parents stand between two sums that are kept.
const BLOCK: usize = 64;
/// The most parents whose numbers are kept: 1 GiB of them.
const MOST: u64 = 1 << 28;

/// The number of children of each parent, as a function has given it once: 4 bytes a parent. Sums before each block of
/// parents find the children of a parent, and the parent of a child, in a few steps.
#[derive(Debug)]
pub(super) struct Counted {
    counts: Box<[u32]>,
    /// The first child of each block, and behind the last one how many children there are.
    firsts: Box<[u64]>,
}

impl Counted {
    /// Asks the function for each parent. An error says which parent it has no number for.
    pub(super) fn of(parents: u64, function: &dyn RowFunction, key: Key) -> Result<Self, String> {
        if parents > MOST {
            return Err(format!(
                "a function counts the children of {MOST} parents at most; there are {parents}"
            ));
        }
        let mut function = function.instance().map_err(|error| error.to_string())?;
        let none = Params::default();
        let count = |parent| match function.call(parent, key.draws(parent), &none) {
            Ok(Value::Int(count)) => u32::try_from(count).map_err(|_| {
                format!("the function gives row {parent} {count} children; allowed are 0 to {}", u32::MAX)
            }),
            Ok(_) => Err(format!("the function gives row {parent} no number of children")),
            Err(error) => Err(error.to_string()),
        };
        Ok(Self::new((0..parents).map(count).collect::<Result<_, _>>()?))
    }

    fn new(counts: Box<[u32]>) -> Self {
        let mut firsts = vec![0];
        let mut next = 0;
        for block in counts.chunks(BLOCK) {
            next += sum(block);
            firsts.push(next);
        }
        Self { counts, firsts: firsts.into() }
    }

    pub(super) fn rows(&self) -> u64 {
        self.firsts.last().copied().unwrap_or(0)
    }

    /// The most children of a parent.
    pub(super) fn most(&self) -> u32 {
        self.counts.iter().copied().max().unwrap_or(0)
    }

    pub(super) fn children(&self, parent: u64) -> Range<u64> {
        let parent = parent as usize;
        let block = parent / BLOCK;
        let first = self.firsts[block] + sum(&self.counts[block * BLOCK..parent]);
        first..first + u64::from(self.counts[parent])
    }

    /// The parent of a child, which must be one of [`Self::rows`].
    pub(super) fn owner(&self, child: u64) -> u64 {
        let block = self.firsts.partition_point(|first| *first <= child) - 1;
        let mut last = self.firsts[block];
        let within = self.counts[block * BLOCK..].iter().position(|count| {
            last += u64::from(*count);
            child < last
        });
        (block * BLOCK + within.unwrap_or(0)) as u64
    }
}

fn sum(counts: &[u32]) -> u64 {
    counts.iter().map(|count| u64::from(*count)).sum()
}
