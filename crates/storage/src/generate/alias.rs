//! The alias method (Walker 1977; Vose 1991): a draw from any discrete distribution in constant time.

use super::random::place;

/// A place and where to go from it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The place itself is taken where the random bits are below this, out of 2³².
    threshold: u32,
    /// The place that is taken otherwise.
    alias: u32,
}

/// A discrete distribution. Probabilities are kept to 2⁻³².
#[derive(Clone, Debug)]
pub(super) struct Alias(Vec<Entry>);

impl Alias {
    /// A distribution over the places of `weights`, which need not add up to 1. `None` if no weight is above 0, one is
    /// negative or not finite, or there are more than 2³².
    pub(super) fn new(weights: &[f64]) -> Option<Self> {
        let count = u32::try_from(weights.len()).ok()?;
        let sum: f64 = weights.iter().sum();
        if !(sum > 0.0 && sum.is_finite()) || weights.iter().any(|weight| *weight < 0.0) {
            return None;
        }
        let mut left: Vec<f64> = weights.iter().map(|weight| weight / sum * f64::from(count)).collect();
        let mut entries: Vec<Entry> = (0..count).map(|alias| Entry { threshold: u32::MAX, alias }).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|at| left[*at] < 1.0);
        while let (Some(&below), Some(&above)) = (small.last(), large.last()) {
            small.pop();
            entries[below] = Entry { threshold: (left[below] * TWO_TO_32) as u32, alias: above as u32 };
            left[above] -= 1.0 - left[below];
            if left[above] < 1.0 {
                large.pop();
                small.push(above);
            }
        }
        // Rounding leaves some that are full but for it; a place of weight 0 is never one of them.
        let full = weights.iter().position(|weight| *weight > 0.0).unwrap_or(0) as u32;
        for at in small.into_iter().filter(|at| weights[*at] == 0.0) {
            entries[at] = Entry { threshold: 0, alias: full };
        }
        Some(Self(entries))
    }

    /// Draws a place: `first` chooses the entry, `second` between its two places.
    #[inline]
    pub(super) fn draw(&self, first: u32, second: u32) -> usize {
        let at = place(first, self.0.len() as u32);
        let entry = self.0[at as usize];
        // An entry that is its own alias is taken whatever the bits.
        if second < entry.threshold { at as usize } else { entry.alias as usize }
    }
}

const TWO_TO_32: f64 = 4_294_967_296.0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::random::{Purpose, Random};
    use super::*;

    /// The probability of each place as the table has it.
    fn probabilities(alias: &Alias) -> Vec<f64> {
        let mut found = vec![0.0; alias.0.len()];
        for (at, entry) in alias.0.iter().enumerate() {
            let own = f64::from(entry.threshold) / TWO_TO_32;
            found[at] += own / alias.0.len() as f64;
            found[entry.alias as usize] += (1.0 - own) / alias.0.len() as f64;
        }
        found
    }

    proptest! {
        #[test]
        fn the_table_has_the_distribution(weights in prop::collection::vec(prop_oneof![Just(0.0), 0.0..1e6_f64], 1..200)) {
            let sum: f64 = weights.iter().sum();
            prop_assume!(sum > 0.0);
            let alias = Alias::new(&weights).unwrap();
            for (found, weight) in probabilities(&alias).iter().zip(&weights) {
                prop_assert!((found - weight / sum).abs() < 1e-8);
            }
            let mut random = Random::new(1, 0, Purpose::Cells);
            for _ in 0..1000 {
                let (first, second) = random.pair();
                prop_assert!(weights[alias.draw(first, second)] > 0.0);
            }
        }
    }

    #[test]
    fn what_is_no_distribution_is_none() {
        for weights in
            [&[][..], &[0.0], &[1.0, -0.5], &[f64::NAN], &[f64::INFINITY, 1.0], &[f64::MAX, f64::MAX]]
        {
            assert!(Alias::new(weights).is_none(), "{weights:?}");
        }
    }
}
