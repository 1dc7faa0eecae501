//! The histogram of one interval on one worker: a run has many of them, so its memory grows with the times that occur.

use std::iter::repeat_n;

use nephoscope_runtime::Nanos;
use nephoscope_runtime::clock::MICROSECOND;

use super::{HIGHEST, WindowHistogram};

// The steps are those of HdrHistogram with the same bounds, which is what the counts are added to.

/// Times are told apart in steps of 2^9 ns, the power of two below the lowest bound.
const UNIT: u32 = MICROSECOND.ilog2();
/// From the second power of two on, each has 2^10 steps: enough for 3 significant digits.
const STEPS: u32 = 10;
/// Times from 2^42 ns on are beyond the highest bound, and counted there.
const TOP: u32 = HIGHEST.ilog2() + 1;
/// The counts of so many steps lie together: 32 bytes.
const GROUP: usize = 16;
const GROUPS: usize = ((TOP - UNIT - STEPS + 1) as usize) << STEPS >> GROUP.ilog2();
/// For so many more groups room is made at once.
const GROWTH: usize = GROUPS / 16;

/// Counts by time, from 1 µs to 1 h to 3 significant digits. It takes 32 bytes for each 16 neighbouring steps of which
/// one has occurred, and 3 KB to find them; 56 KB if every time has occurred.
#[derive(Clone, Debug, Default)]
pub struct IntervalHistogram {
    /// By a group's number its index in `counts`, from 1 on; 0 where no time of it has occurred.
    indexes: Vec<u16>,
    /// The groups' numbers, in the order of their counts.
    numbers: Vec<u16>,
    counts: Vec<[u16; GROUP]>,
    /// Steps whose count has gone round: 65,536 more each time.
    rounds: Vec<u16>,
}

/// The number of a time's step.
#[inline]
fn step_of(time: Nanos) -> usize {
    let time = if time >> TOP == 0 { time } else { HIGHEST };
    let power = (time | 1 << (UNIT + STEPS)).ilog2() - UNIT - STEPS;
    ((power as usize) << STEPS) + (time >> (power + UNIT)) as usize
}

/// The longest time of a step.
fn longest(step: usize) -> Nanos {
    let power = (step >> STEPS).saturating_sub(1);
    ((step - (power << STEPS) + 1) as Nanos) << (power as u32 + UNIT)
}

impl IntervalHistogram {
    /// Adds a time. What lies beyond the bounds is counted at the bound.
    #[inline]
    pub fn record(&mut self, time: Nanos) {
        let step = step_of(time);
        let count = &mut self.group(step / GROUP)[step % GROUP];
        *count = count.wrapping_add(1);
        if *count == 0 {
            self.rounds.push(step as u16);
        }
    }

    /// Adds a time so many times.
    pub fn record_n(&mut self, time: Nanos, times: u64) {
        let step = step_of(time);
        let count = &mut self.group(step / GROUP)[step % GROUP];
        let sum = u64::from(*count) + times;
        *count = sum as u16;
        self.rounds.extend(repeat_n(step as u16, (sum >> u16::BITS) as usize));
    }

    #[inline]
    fn group(&mut self, number: usize) -> &mut [u16; GROUP] {
        let index = match self.indexes.get(number) {
            Some(index) if *index > 0 => usize::from(*index),
            _ => self.begin_group(number),
        };
        &mut self.counts[index - 1]
    }

    #[cold]
    fn begin_group(&mut self, number: usize) -> usize {
        self.indexes.resize(GROUPS, 0);
        if self.counts.len() == self.counts.capacity() {
            self.counts.reserve_exact(GROWTH);
            self.numbers.reserve_exact(GROWTH);
        }
        self.numbers.push(number as u16);
        self.counts.push([0; GROUP]);
        let index = self.counts.len();
        self.indexes[number] = index as u16;
        index
    }

    /// Whether it holds no time.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Forgets every time, and keeps the memory.
    pub fn reset(&mut self) {
        for number in self.numbers.drain(..) {
            self.indexes[usize::from(number)] = 0;
        }
        self.counts.clear();
        self.rounds.clear();
    }

    /// Adds what it holds to a histogram with the same bounds.
    pub fn add_to(&self, sum: &mut WindowHistogram) {
        for (number, counts) in self.numbers.iter().zip(&self.counts) {
            for (step, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                let step = usize::from(*number) * GROUP + step;
                sum.saturating_record_n(longest(step) - 1, u64::from(*count));
            }
        }
        for step in &self.rounds {
            sum.saturating_record_n(longest(usize::from(*step)) - 1, 1 << u16::BITS);
        }
    }

    /// What it holds, by itself.
    #[cfg(test)]
    pub(crate) fn whole(&self) -> WindowHistogram {
        let mut whole = super::empty();
        self.add_to(&mut whole);
        whole
    }

    /// The memory that it takes, in bytes.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        2 * (self.indexes.capacity() + self.numbers.capacity() + self.rounds.capacity())
            + size_of::<[u16; GROUP]>() * self.counts.capacity()
    }

    /// Adds all times to a window's histogram that is made where there is something to add.
    pub fn add_to_rare(&self, sum: &mut Option<WindowHistogram>) {
        if !self.is_empty() {
            self.add_to(sum.get_or_insert_with(super::empty));
        }
    }
}

#[cfg(test)]
mod tests {
    use nephoscope_runtime::clock::SECOND;
    use proptest::prelude::*;

    use super::super::{empty, record};
    use super::*;

    proptest! {
        #[test]
        fn it_counts_as_the_library_does(
            times in prop::collection::vec((0..44_u32, any::<u64>()), 1..300), repeats in 0..200_000_u64
        ) {
            let times: Vec<Nanos> = times.iter().map(|(bits, time)| time >> (63 - bits)).collect();
            let (mut own, mut whole): (_, WindowHistogram) = (IntervalHistogram::default(), empty());
            // Used before: what was forgotten leaves nothing.
            for time in &times {
                own.record(time / 3);
            }
            own.reset();
            prop_assert!(own.is_empty());
            for time in &times {
                own.record(*time);
                record(&mut whole, *time);
            }
            own.record_n(times[0], repeats);
            whole.saturating_record_n(times[0].max(1), repeats);
            prop_assert_eq!(own.whole(), whole);
        }
    }

    #[test]
    fn a_count_may_go_round() {
        let mut own = IntervalHistogram::default();
        (0..200_000).for_each(|_| own.record(MICROSECOND));
        assert_eq!((own.whole().len(), own.whole().count_at(MICROSECOND)), (200_000, 200_000));
    }

    #[test]
    fn its_memory_follows_what_occurs() {
        let mut own = IntervalHistogram::default();
        assert_eq!(own.memory(), 0);
        // From 100 µs to 10 ms, every step.
        (100..10_000).for_each(|micros| own.record(micros * MICROSECOND));
        assert!(own.memory() < 20_000, "{} bytes", own.memory());
        (0..GROUPS * GROUP).for_each(|step| own.record(longest(step) - 1));
        own.record(1_000_000 * SECOND);
        assert!(own.memory() < 56_000, "{} bytes", own.memory());
    }
}
