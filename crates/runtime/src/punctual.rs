//! Waking on time: a wait ends a little before its timer is due, and the rest is spent awake.
//!
//! Between the moment at which a timer is due and the moment at which the thread that waits for it runs lie an
//! interrupt, a wake and a switch: tens of microseconds, the more so on a virtual processor that was asleep. A load
//! whose arrivals are to start on time learns how long that takes here and now, and waits for that much less. What it
//! is awake too early costs processor time, so there is a budget for it.

use crate::clock::{MICROSECOND, MILLISECOND, Nanos};

/// No wait ends earlier before its timer than this.
const LONGEST: Nanos = 150 * MICROSECOND;
/// The lead grows by the first when a wait ended too late in spite of it and shrinks by the second when not, which
/// leaves one wait of 21 too late: the lead is the 95th percentile of what waits take.
const STEPS: (Nanos, Nanos) = (2_000, 100);
/// At most one part in this many of the time is spent awake too early.
const SHARE: u64 = 10;
/// What may be saved up of that.
const SAVINGS: Nanos = 10 * MILLISECOND;

/// How a runtime's loop is to wait for its next timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all: it is nearly due.
    Awake,
    /// Until then.
    Until(Nanos),
}

/// Learns how late waits end.
#[derive(Debug)]
pub(crate) struct Punctual {
    /// Whether anything is to be spent on being on time.
    pub(crate) wanted: bool,
    lead: Nanos,
    /// Time that may be spent awake, as of the last turn.
    budget: Nanos,
    last: Nanos,
    /// What the wait in the last turn was.
    waited: Option<Wait>,
}

impl Punctual {
    pub(crate) fn new(now: Nanos) -> Self {
        Self { wanted: true, lead: 0, budget: SAVINGS, last: now, waited: None }
    }

    /// A turn begins: learns from the wait in the last one, and pays for it.
    pub(crate) fn begin(&mut self, now: Nanos) {
        let passed = now.saturating_sub(self.last);
        self.last = now;
        self.budget = (self.budget + passed / SHARE).min(SAVINGS);
        match self.waited.take() {
            Some(Wait::Awake) => self.budget = self.budget.saturating_sub(passed),
            // A wait that was ended by a socket before its time says nothing.
            Some(Wait::Until(until)) if now >= until => self.learn(now - until),
            _ => {}
        }
    }

    fn learn(&mut self, late: Nanos) {
        if late > self.lead {
            self.lead = (self.lead + STEPS.0).min(LONGEST);
        } else {
            self.lead = self.lead.saturating_sub(STEPS.1);
        }
    }

    /// How to wait for a timer that is due at `next`.
    pub(crate) fn wait(&mut self, now: Nanos, next: Nanos) -> Wait {
        let lead = if self.wanted && self.budget > LONGEST { self.lead } else { 0 };
        let until = next.saturating_sub(lead);
        let wait = if now >= until { Wait::Awake } else { Wait::Until(until) };
        self.waited = Some(wait);
        wait
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Waits for timers whose waits end late by what `late` says; gives the time awake, the time that passed, and how
    /// late each was.
    fn lived(late: &[Nanos], period: Nanos) -> (Nanos, Nanos, Vec<Nanos>) {
        let (mut now, mut awake, mut found) = (0, 0, Vec::new());
        let mut punctual = Punctual::new(now);
        for (timer, late) in (1..).map(|number| number * period).zip(late) {
            let timer = timer.max(now);
            while now < timer {
                punctual.begin(now);
                match punctual.wait(now, timer) {
                    Wait::Awake => {
                        awake += 500;
                        now += 500;
                    }
                    Wait::Until(until) => now = until + late,
                }
            }
            found.push(now - timer);
        }
        (awake, now, found)
    }

    #[test]
    fn what_is_always_equally_late_comes_to_be_on_time() {
        let (awake, passed, late) = lived(&[40_000; 2000], 500_000);
        assert!(late[100..].iter().filter(|late| **late > 2_000).count() < 190, "{late:?}");
        assert!(awake < passed / 100, "{awake} of {passed}");
    }

    #[test]
    fn one_hiccup_changes_next_to_nothing() {
        let mut planted = vec![5_000; 300];
        planted[100] = 5_000_000;
        let (awake, _, late) = lived(&planted, 500_000);
        assert!(late[150..].iter().all(|late| *late <= 5_000));
        assert!(awake < 300 * 10_000, "{awake}");
    }

    #[test]
    fn where_it_is_not_wanted_nothing_is_spent_on_it() {
        let mut punctual = Punctual { wanted: false, lead: 50_000, ..Punctual::new(0) };
        assert_eq!(punctual.wait(10, 40_000), Wait::Until(40_000));
        punctual.wanted = true;
        assert_eq!(punctual.wait(10, 40_000), Wait::Awake);
    }

    #[test]
    fn a_timer_that_is_due_is_not_waited_for() {
        assert_eq!(Punctual::new(5).wait(10, 10), Wait::Awake);
        assert_eq!(Punctual::new(5).wait(10, 7), Wait::Awake);
    }

    proptest! {
        #[test]
        fn no_more_than_its_share_is_spent_awake(
            late in proptest::collection::vec(0_u64..1_000_000, 1..400),
            period in 1_000_u64..2_000_000,
        ) {
            let (awake, passed, _) = lived(&late, period);
            prop_assert!(awake <= passed / SHARE + SAVINGS + LONGEST, "{} of {}", awake, passed);
        }

        #[test]
        fn no_timer_is_fired_earlier_than_it_is_due_nor_later_than_without(
            late in proptest::collection::vec(0_u64..1_000_000, 1..400),
        ) {
            let (_, _, found) = lived(&late, 2_000_000);
            for (late, found) in late.iter().zip(found) {
                prop_assert!(found <= *late + 500, "{} after {}", found, late);
            }
        }
    }
}
