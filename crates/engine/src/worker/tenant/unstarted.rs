//! Arrivals of an open load that have not started when their phase ends. They are the phase's own: counted, and in its
//! latency as at least the time for which they have waited. None of them is started in the next phase.

use nephoscope_runtime::Nanos;
use nephoscope_runtime::clock::MILLISECOND;

use super::{State, Tenant};
use crate::spec::Role;

/// What a phase leaves behind of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) series: usize,
    /// How long they have waited: their latency is at least that.
    pub(crate) waited: Nanos,
    pub(crate) count: u64,
    /// A session has started the transaction after a wait; it ends in a later phase.
    pub(crate) is_started: bool,
}

impl Tenant {
    /// A session starts an arrival that had to wait for it.
    pub(crate) fn starts_late(&self, session: usize, intended: Nanos, series: usize) {
        self.state.borrow_mut().slots[session].late = Some((intended, series));
    }

    /// The phase ends at a time on the monotonic clock: tells what it leaves behind, and forgets it.
    pub(crate) fn end_phase(&self, at: Nanos, mut tell: impl FnMut(Left)) {
        let state = &mut *self.state.borrow_mut();
        for slot in &mut state.slots {
            if let Some((intended, series)) = slot.late.take() {
                tell(Left { series, waited: at.saturating_sub(intended), count: 1, is_started: true });
            }
        }
        let State { backlog, dropped, deal, mix, routes, gauges, .. } = state;
        let mut leave = |due: Nanos, count| {
            deal.share(count, mix, |transaction, count| {
                // Where reads are spread, what no session has taken counts as one of a read-only endpoint.
                let role = routes.role(self.plan.read_only[transaction], Role::Ro);
                let series = self.plan.series[transaction][role as usize];
                tell(Left { series, waited: at.saturating_sub(due), count, is_started: false });
            });
        };
        dropped.take(&mut leave);
        while let Some(due) = backlog.pop_front_if(|due| *due < at) {
            // The interval that ends here still tells of those that wait.
            gauges.backlog += 1;
            leave(due, 1);
        }
    }
}

/// When arrivals were dropped, in a few spans of time: as many in each as came in it.
#[derive(Default)]
pub(super) struct Dropped {
    spans: Vec<Span>,
    /// How long a span may be.
    grain: Nanos,
}

struct Span {
    first: Nanos,
    last: Nanos,
    count: u64,
}

/// Spans that are kept; where there are more, two become one.
const SPANS: usize = 512;
/// Times of a span that stand for all within it.
const TIMES: u64 = 16;

impl Dropped {
    /// Has room for all that it will hold.
    pub(super) fn new() -> Self {
        Self { spans: Vec::with_capacity(SPANS), grain: 10 * MILLISECOND }
    }

    pub(super) fn add(&mut self, due: Nanos) {
        if let Some(span) = self.spans.last_mut().filter(|span| due < span.first + self.grain) {
            (span.first, span.last) = (span.first.min(due), span.last.max(due));
            span.count += 1;
            return;
        }
        if self.spans.len() == SPANS {
            self.grain *= 2;
            for pair in 0..SPANS / 2 {
                let (one, other) = (&self.spans[2 * pair], &self.spans[2 * pair + 1]);
                let (first, last) = (one.first, other.last);
                self.spans[pair] = Span { first, last, count: one.count + other.count };
            }
            self.spans.truncate(SPANS / 2);
        }
        self.spans.push(Span { first: due, last: due, count: 1 });
    }

    /// Tells of all, those of a span evenly between its first and its last, and forgets them.
    fn take(&mut self, mut tell: impl FnMut(Nanos, u64)) {
        for span in self.spans.drain(..) {
            let parts = span.count.min(TIMES);
            for part in 0..parts {
                let due = span.first + (span.last - span.first) * (2 * part + 1) / (2 * parts);
                tell(due, span.count * (part + 1) / parts - span.count * part / parts);
            }
        }
        self.grain = 10 * MILLISECOND;
    }
}

/// Shares arrivals out among the transactions of a mix by their weights: each has its part, to within one.
#[derive(Default)]
pub(super) struct Deal {
    /// What each still has to get, or has got too early.
    owed: Vec<f64>,
}

impl Deal {
    /// Shares so many out by cumulated weights, and tells how many each transaction gets.
    fn share(&mut self, count: u64, mix: &[f64], mut tell: impl FnMut(usize, u64)) {
        self.owed.resize(mix.len(), 0.0);
        let total = mix.last().copied().unwrap_or(0.0);
        let (mut before, mut left) = (0.0, count);
        for (transaction, (bound, owed)) in mix.iter().zip(&mut self.owed).enumerate() {
            *owed += count as f64 * (bound - before) / total;
            before = *bound;
            let whole = (owed.max(0.0) as u64).min(left);
            if whole > 0 {
                *owed -= whole as f64;
                left -= whole;
                tell(transaction, whole);
            }
        }
        while left > 0 {
            let most = self.owed.iter().enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other));
            let Some(transaction) = most.map(|(transaction, _)| transaction) else { return };
            self.owed[transaction] -= 1.0;
            left -= 1;
            tell(transaction, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::spec::load::cumulated;

    proptest! {
        #[test]
        fn every_transaction_gets_its_share_and_nothing_is_lost(
            weights in prop::collection::vec(0..100_u32, 1..6),
            counts in prop::collection::vec(1..1000_u64, 1..50),
        ) {
            let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
            let (mix, total) = (cumulated(&weights), weights.iter().sum::<f64>());
            prop_assume!(total > 0.0);
            let (mut deal, mut given) = (Deal::default(), vec![0; weights.len()]);
            for count in &counts {
                deal.share(*count, &mix, |transaction, count| given[transaction] += count);
            }
            let all = counts.iter().sum::<u64>();
            prop_assert_eq!(given.iter().sum::<u64>(), all);
            for (given, weight) in given.iter().zip(&weights) {
                prop_assert!((*given as f64 - all as f64 * weight / total).abs() < weights.len() as f64);
            }
        }

        #[test]
        fn dropped_arrivals_keep_their_number_and_about_their_times(
            gap in 1..20 * MILLISECOND, number in 1..5000_u64,
        ) {
            let mut dropped = Dropped::new();
            (0..number).for_each(|index| dropped.add(index * gap));
            prop_assert!(dropped.spans.capacity() == SPANS);
            let (mut count, mut sum) = (0, 0.0);
            dropped.take(|due, more| {
                count += more;
                sum += due as f64 * more as f64;
            });
            prop_assert_eq!(count, number);
            let mean = (number - 1) as f64 * gap as f64 / 2.0;
            prop_assert!((sum / number as f64 - mean).abs() <= 0.01 * mean + gap as f64);
            prop_assert!(dropped.spans.is_empty());
        }
    }
}
