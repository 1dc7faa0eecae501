//! Permutations that are computed and not kept.

use super::{Draws, mix};

/// Up to so many places a permutation is drawn place by place, which reaches every one of them as often.
const FEW: u64 = 16;

/// Permutations of `0..size` that look random: a Feistel network over the next power of four, walked until the result
/// falls inside. Numbers from `size` on stay what they are.
#[derive(Clone, Copy, Debug)]
pub struct Shuffle {
    size: u64,
    half: u32,
}

impl Shuffle {
    /// Permutations of so many numbers.
    #[must_use]
    pub fn new(size: u64) -> Self {
        let bits = 64 - size.saturating_sub(1).leading_zeros();
        Self { size, half: bits.div_ceil(2).max(1) }
    }

    /// Where a number goes in the one permutation that depends on nothing but the size. What runs have used up is
    /// counted in its order, so it never changes.
    #[inline]
    #[must_use]
    pub fn place(&self, number: u64) -> u64 {
        const ROUNDS: [u64; 3] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];
        self.walk(number, ROUNDS, |half, round| {
            let mixed = (half ^ round).wrapping_mul(round);
            (mixed ^ (mixed >> 29)) >> 7
        })
    }

    /// Where a number goes in a permutation that depends on the draws.
    #[inline]
    pub(crate) fn drawn(&self, number: u64, mut draws: Draws) -> u64 {
        if self.size <= FEW {
            return few(self.size, number, &mut draws);
        }
        // With three rounds, the places of neighbours depend on each other: the tests below find it.
        let keys = [draws.bits(), draws.bits(), draws.bits(), draws.bits()];
        self.walk(number, keys, |half, key| mix(key.wrapping_add(half)))
    }

    #[inline]
    fn walk<const N: usize>(&self, number: u64, rounds: [u64; N], mixed: impl Fn(u64, u64) -> u64) -> u64 {
        if number >= self.size {
            return number;
        }
        let mask = (1_u64 << self.half) - 1;
        let mut place = number;
        loop {
            let (mut left, mut right) = (place >> self.half, place & mask);
            for round in rounds {
                (left, right) = (right, left ^ (mixed(right, round) & mask));
            }
            place = left << self.half | right;
            if place < self.size {
                return place;
            }
        }
    }
}

/// The Fisher-Yates shuffle of up to sixteen numbers, four bits each, as far as the place that is asked for.
fn few(size: u64, number: u64, draws: &mut Draws) -> u64 {
    let mut places = 0xFEDC_BA98_7654_3210_u64;
    for place in 0..=number {
        let from = place + draws.below(size - place);
        let swapped = (places >> (4 * place) ^ places >> (4 * from)) & 15;
        places ^= swapped << (4 * place) ^ swapped << (4 * from);
    }
    places >> (4 * number) & 15
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::Key;

    proptest! {
        #[test]
        fn a_shuffle_is_a_bijection(size in 0_u64..5000, seed: u64) {
            let shuffle = Shuffle::new(size);
            let draws = Key::new(seed, "t", "c").draws(0);
            for place in [&|number| shuffle.place(number) as _, &|number| shuffle.drawn(number, draws)] as [&dyn Fn(u64) -> u64; 2] {
                let mut places: Vec<u64> = (0..size).map(place).collect();
                places.sort_unstable();
                prop_assert!(places.into_iter().eq(0..size));
            }
            prop_assert_eq!(shuffle.place(size), size);
        }
    }

    /// The chi-square of counts that should be alike.
    fn chi_square(counts: &[u32]) -> f64 {
        let mean = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        counts.iter().map(|count| (f64::from(*count) - mean).powi(2) / mean).sum()
    }

    #[test]
    fn every_place_and_every_distance_is_as_likely() {
        for size in [17_u64, 60, 100, 256] {
            let (shuffle, key) = (Shuffle::new(size), Key::new(7, "t", "c"));
            for number in [0, size / 2, size - 1] {
                let mut places = vec![0; size as usize];
                // How far the next number is behind: never 0.
                let mut distances = vec![0; size as usize - 1];
                for seed in 0..100 * size {
                    let place = shuffle.drawn(number, key.draws(seed));
                    let next = shuffle.drawn((number + 1) % size, key.draws(seed));
                    places[place as usize] += 1;
                    distances[((size + next - place) % size - 1) as usize] += 1;
                }
                let most = size as f64 + 7.0 * (2.0 * size as f64).sqrt();
                assert!(chi_square(&places) < most, "places {size}, {number}: {}", chi_square(&places));
                assert!(chi_square(&distances) < most, "distances {size}: {}", chi_square(&distances));
            }
        }
    }

    #[test]
    fn every_permutation_of_a_few_is_as_likely() {
        let mut counts = std::collections::BTreeMap::<Vec<u64>, u32>::new();
        for row in 0..24_000 {
            let draws = Key::new(7, "t", "c").draws(row);
            *counts
                .entry((0..4).map(|number| Shuffle::new(4).drawn(number, draws)).collect())
                .or_default() += 1;
        }
        let counts: Vec<u32> = counts.into_values().collect();
        assert_eq!(counts.len(), 24);
        assert!(chi_square(&counts) < 50.0, "{} for 23 degrees of freedom", chi_square(&counts));
    }
}
