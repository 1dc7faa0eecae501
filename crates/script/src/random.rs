//! A session's random numbers: seeded, so that a run can be repeated.

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The generator of one session. Cloned at the start of a transaction, so that a retry draws the same numbers.
#[derive(Clone)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The generator of a stream (a session, say) of a seeded run.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        // The generator's own seeding mixes well, but sums of seed and stream would collide.
        Self(Xoshiro256PlusPlus::seed_from_u64(
            seed ^ stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        ))
    }

    /// A number in [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A whole number in `0..bound`; 0 where the bound is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // Multiply and shift: the bias is below 2^-32 for any bound below 2^32.
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A whole number between two bounds, both included.
    #[inline]
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low.wrapping_add(self.below((high.wrapping_sub(low) as u64).wrapping_add(1)) as i64)
    }

    /// A number with an exponential law of mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    /// The generator for the laws of `rand_distr`.
    pub(crate) fn source(&mut self) -> &mut Xoshiro256PlusPlus {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let draw = |seed, stream| {
            let mut random = Random::new(seed, stream);
            (0..4).map(|_| random.below(1_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7, 1), draw(7, 1));
        assert_ne!(draw(7, 1), draw(7, 2));
        assert_ne!(draw(7, 1), draw(8, 1));
        assert_ne!(draw(7, 0), draw(8, 1));
    }

    #[test]
    fn bounds_are_reached_and_kept() {
        let mut random = Random::new(1, 1);
        let drawn: Vec<i64> = (0..1000).map(|_| random.between(-2, 2)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&-2), Some(&2)));
        assert_eq!(random.between(5, 5), 5);
        assert_eq!(random.below(0), 0);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.uniform())));
    }
}
