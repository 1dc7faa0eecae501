//! Schedules: when transactions should start, whatever the system does.
//!
//! An open schedule is a rate over time, Λ′(t), and arrivals are the points at which its integral Λ passes certain
//! values: every whole number (and a half) for a constant rate, the points of a Poisson process of rate 1 for a
//! Poisson one. A change of rate changes the course of Λ and not its value, so no arrival is lost or doubled by any
//! sequence of changes; and each of W workers takes every W-th point, so the whole does not depend on their number.

use nephoscope_runtime::{Nanos, clock::SECOND};
use nephoscope_script::Random;

/// A level that moves in a straight line from one value to another and then stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// The level at the start.
    pub from: f64,
    /// The level at the end and from then on.
    pub to: f64,
    /// How long it moves.
    pub over: Nanos,
}

impl Ramp {
    /// A level that stays where it is.
    #[must_use]
    pub fn level(level: f64) -> Self {
        Self { from: level, to: level, over: 0 }
    }

    /// The level at a time after the start.
    #[must_use]
    pub fn at(&self, elapsed: Nanos) -> f64 {
        if elapsed >= self.over {
            return self.to;
        }
        self.from + (self.to - self.from) * (elapsed as f64 / self.over as f64)
    }

    /// Whether it still moves at a time after the start.
    #[must_use]
    pub fn moves(&self, elapsed: Nanos) -> bool {
        elapsed < self.over && self.from != self.to
    }

    /// The integral of the level, per second, over the time since the start.
    fn integral(&self, elapsed: Nanos) -> f64 {
        let moved = seconds(elapsed.min(self.over));
        let stayed = seconds(elapsed.saturating_sub(self.over));
        let mean = f64::midpoint(self.from, self.at(elapsed.min(self.over)));
        moved * mean + stayed * self.to
    }

    /// The time after the start at which the integral reaches an amount; `None` if it never does.
    fn reaches(&self, amount: f64) -> Option<Nanos> {
        if amount <= 0.0 {
            return Some(0);
        }
        let moved = if self.over > 0 { self.integral(self.over) } else { 0.0 };
        if amount > moved {
            return (self.to > 0.0).then(|| self.over + nanos((amount - moved) / self.to));
        }
        // from·t + slope/2·t² = amount, in the form that does not cancel where the slope is small.
        let slope = (self.to - self.from) / seconds(self.over);
        let root = (self.from * self.from + 2.0 * slope * amount).max(0.0).sqrt();
        Some(nanos(2.0 * amount / (self.from + root)).min(self.over))
    }
}

fn seconds(time: Nanos) -> f64 {
    time as f64 / SECOND as f64
}

fn nanos(seconds: f64) -> Nanos {
    (seconds * SECOND as f64).round() as Nanos
}

/// How arrivals lie on the course of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Evenly.
    Constant,
    /// As a Poisson process: independent of each other.
    Poisson,
}

/// The arrivals that one worker is to start.
pub struct Arrivals {
    spacing: Spacing,
    rate: Ramp,
    /// When the present course began, and the value of Λ then.
    since: Nanos,
    passed: f64,
    /// The value of Λ at which the next arrival is due.
    next: f64,
    /// How far apart this worker's points lie (the number of workers), and where the first one does.
    stride: f64,
    first: f64,
    random: Random,
}

impl Arrivals {
    /// The arrivals of worker number `worker` of `workers`, with no rate yet.
    #[must_use]
    pub fn new(worker: usize, workers: usize, random: Random) -> Self {
        // Half a step in, so that no arrival falls on the boundary of a second.
        let first = worker as f64 + 0.5;
        Self {
            spacing: Spacing::Constant,
            rate: Ramp::level(0.0),
            since: 0,
            passed: 0.0,
            next: first,
            stride: workers as f64,
            first,
            random,
        }
    }

    /// Changes the course of the rate from `at` on. Arrivals that were due before `at` stay due.
    pub fn change(&mut self, at: Nanos, rate: Ramp) {
        let at = at.max(self.since);
        self.passed = self.value(at);
        self.since = at;
        self.rate = rate;
    }

    /// Changes how the arrivals lie from `at` on; the rate keeps its course.
    pub fn respace(&mut self, at: Nanos, spacing: Spacing) {
        if std::mem::replace(&mut self.spacing, spacing) == spacing {
            return;
        }
        let passed = self.value(at.max(self.since));
        self.next = match spacing {
            // The wait for the next point of a Poisson process has no memory.
            Spacing::Poisson => passed + self.random.exponential() * self.stride,
            // Back to this worker's own points, so that the workers' arrivals lie evenly between each other.
            Spacing::Constant => {
                self.first + ((passed - self.first) / self.stride).ceil().max(0.0) * self.stride
            }
        };
    }

    fn value(&self, at: Nanos) -> f64 {
        self.passed + self.rate.integral(at.saturating_sub(self.since))
    }

    /// When the next arrival is due; `None` if the rate does not lead to one.
    #[must_use]
    pub fn due(&self) -> Option<Nanos> {
        Some(self.since.saturating_add(self.rate.reaches(self.next - self.passed)?))
    }

    /// Goes on to the arrival after the next.
    pub fn advance(&mut self) {
        self.next += match self.spacing {
            Spacing::Constant => self.stride,
            Spacing::Poisson => self.random.exponential() * self.stride,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn until(arrivals: &mut Arrivals, end: Nanos) -> Vec<Nanos> {
        let mut times = Vec::new();
        while let Some(due) = arrivals.due().filter(|due| *due < end) {
            times.push(due);
            arrivals.advance();
        }
        times
    }

    fn constant(rate: f64) -> Arrivals {
        let mut arrivals = Arrivals::new(0, 1, Random::new(1, 1));
        arrivals.change(0, Ramp::level(rate));
        arrivals
    }

    #[test]
    fn a_constant_rate_has_exactly_its_number_in_every_second() {
        for rate in [1.0, 7.0, 333.0, 2000.0, 20_000.0] {
            let mut arrivals = constant(rate);
            for second in 1..=20 {
                assert_eq!(until(&mut arrivals, second * SECOND).len(), rate as usize, "rate {rate}");
            }
        }
    }

    #[test]
    fn a_ramp_passes_through_its_mean() {
        let mut arrivals = Arrivals::new(0, 1, Random::new(1, 1));
        arrivals.change(0, Ramp { from: 0.0, to: 1000.0, over: 10 * SECOND });
        assert_eq!(until(&mut arrivals, 5 * SECOND).len(), 1250);
        assert_eq!(until(&mut arrivals, 10 * SECOND).len(), 3750);
        assert_eq!(until(&mut arrivals, 11 * SECOND).len(), 1000);
        let mut down = Arrivals::new(0, 1, Random::new(1, 1));
        down.change(0, Ramp { from: 1000.0, to: 0.0, over: 10 * SECOND });
        assert_eq!(until(&mut down, 100 * SECOND).len(), 5000);
        assert_eq!(down.due(), None);
    }

    #[test]
    fn a_poisson_rate_has_the_mean_and_the_variance_of_its_law() {
        let mut arrivals = Arrivals::new(0, 1, Random::new(3, 1));
        arrivals.change(0, Ramp::level(50.0));
        arrivals.respace(0, Spacing::Poisson);
        let counts: Vec<f64> =
            (1..=2000).map(|second| until(&mut arrivals, second * SECOND).len() as f64).collect();
        let mean = counts.iter().sum::<f64>() / 2000.0;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 1999.0;
        assert!((mean - 50.0).abs() < 0.6, "mean {mean}");
        assert!((variance / mean - 1.0).abs() < 0.12, "variance {variance}");
    }

    #[test]
    fn a_change_of_spacing_keeps_the_course_of_the_rate() {
        let mut arrivals = Arrivals::new(0, 1, Random::new(3, 1));
        arrivals.change(0, Ramp { from: 0.0, to: 1000.0, over: 10 * SECOND });
        assert_eq!(until(&mut arrivals, 2 * SECOND).len(), 200);
        arrivals.respace(2 * SECOND, Spacing::Poisson);
        let poisson = until(&mut arrivals, 8 * SECOND).len() as f64;
        // The integral is 3,000; five standard deviations of its Poisson number are 274.
        assert!((poisson - 3000.0).abs() < 274.0, "{poisson}");
        arrivals.respace(8 * SECOND, Spacing::Constant);
        assert_eq!(until(&mut arrivals, 10 * SECOND).len(), 1800);
    }

    #[test]
    fn workers_arrive_evenly_between_each_other_after_a_poisson_time() {
        let mut together = Vec::new();
        for worker in 0..3 {
            let mut arrivals = Arrivals::new(worker, 3, Random::new(9, worker as u64));
            arrivals.change(0, Ramp::level(300.0));
            arrivals.respace(0, Spacing::Poisson);
            until(&mut arrivals, SECOND);
            arrivals.respace(SECOND, Spacing::Constant);
            together.extend(until(&mut arrivals, 2 * SECOND));
        }
        together.sort_unstable();
        assert_eq!(together.len(), 300);
        let gaps = together.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.into_iter().all(|gap| gap.abs_diff(SECOND / 300) <= 2));
    }

    fn ramp() -> impl Strategy<Value = Ramp> {
        (0.0..5000.0_f64, 0.0..5000.0_f64, 0..3 * SECOND, any::<bool>()).prop_map(|(from, to, over, flat)| {
            if flat { Ramp::level(from.round()) } else { Ramp { from, to, over } }
        })
    }

    proptest! {
        /// Whatever changes, the number of arrivals is the integral of the rate, and the workers' arrivals together
        /// are those of a single worker.
        #[test]
        fn no_change_loses_or_doubles_an_arrival(
            changes in prop::collection::vec((1..2 * SECOND, ramp()), 1..12),
            workers in 1..5_usize,
        ) {
            let mut all: Vec<Arrivals> =
                (0..workers).map(|worker| Arrivals::new(worker, workers, Random::new(1, 1))).collect();
            let mut alone = Arrivals::new(0, 1, Random::new(1, 1));
            let (mut now, mut total) = (0, 0.0);
            let (mut together, mut single) = (Vec::new(), Vec::new());
            for (length, ramp) in changes {
                for arrivals in all.iter_mut().chain([&mut alone]) {
                    arrivals.change(now, ramp);
                }
                total += ramp.integral(length);
                now += length;
                for arrivals in &mut all {
                    together.extend(until(arrivals, now));
                }
                single.extend(until(&mut alone, now));
            }
            prop_assert!((single.len() as f64 - total).abs() <= 1.0, "{} arrivals, integral {total}", single.len());
            prop_assert!(single.is_sorted());
            together.sort_unstable();
            prop_assert_eq!(together.len(), single.len());
            for (one, other) in together.iter().zip(&single) {
                prop_assert!(one.abs_diff(*other) <= 2, "{one} and {other}");
            }
        }

        /// Whatever changes of rate and spacing, arrivals come in their order, each while the rate is above 0 and in
        /// the number of their law, and those of a change begin with it.
        #[test]
        fn arrivals_of_any_course_keep_their_order_and_number(
            changes in prop::collection::vec((1..SECOND, ramp(), any::<bool>()), 1..12),
            workers in 1..4_usize,
            seed in any::<u64>(),
        ) {
            for worker in 0..workers {
                let mut arrivals = Arrivals::new(worker, workers, Random::new(seed, worker as u64));
                let (mut now, mut total, mut turns) = (0, 0.0, 0.0);
                let mut times = Vec::new();
                for (length, ramp, poisson) in &changes {
                    arrivals.change(now, *ramp);
                    let spacing = if *poisson { Spacing::Poisson } else { Spacing::Constant };
                    turns += f64::from(u8::from(spacing != arrivals.spacing));
                    arrivals.respace(now, spacing);
                    let of_change = until(&mut arrivals, now + length);
                    prop_assert!(of_change.first().is_none_or(|first| *first + 1 >= now));
                    prop_assert!(of_change.is_empty() || ramp.from > 0.0 || ramp.to > 0.0);
                    times.extend(of_change);
                    total += ramp.integral(*length) / workers as f64;
                    now += length;
                }
                prop_assert!(times.is_sorted());
                let off = (times.len() as f64 - total).abs();
                let bound = 7.0 * total.sqrt() + 2.0 * turns + 10.0;
                prop_assert!(off <= bound, "{} arrivals, integral {total}", times.len());
            }
        }

        #[test]
        fn the_integral_and_its_inverse_agree(ramp in ramp(), elapsed in 1..6 * SECOND) {
            let amount = ramp.integral(elapsed);
            if amount > 1e-6 && ramp.at(elapsed) > 1.0 {
                let back = ramp.reaches(amount).unwrap();
                prop_assert!((ramp.integral(back) - amount).abs() < 1e-4 * amount.max(1.0));
            }
        }

        #[test]
        fn a_change_of_rate_keeps_what_was_due(rate in 1.0..5000.0_f64, at in 0..SECOND) {
            let mut arrivals = constant(rate);
            let before = until(&mut arrivals, at);
            arrivals.change(at, Ramp::level(0.0));
            prop_assert_eq!(arrivals.due(), None);
            arrivals.change(at + SECOND, Ramp::level(rate));
            let after = until(&mut arrivals, at + 2 * SECOND);
            let expected = rate * seconds(at) + rate;
            prop_assert!(((before.len() + after.len()) as f64 - expected).abs() <= 1.0);
        }
    }
}
