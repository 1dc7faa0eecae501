//! Zipf's law.

use rand_core::Rng;
use rand_distr::{Distribution as _, Zipf};

/// The greatest skew.
pub const MAX_THETA: f64 = 10.0;

/// Ranks from 0, the i-th with a probability proportional to 1 / (i + 1)^theta.
#[derive(Clone, Copy, Debug)]
pub struct Ranks {
    last: u64,
    law: Zipf<f64>,
}

impl Ranks {
    /// The law of so many ranks, of which there is one at least; `theta` is from 0 (each is as likely) to
    /// [`MAX_THETA`]: otherwise says what is wrong.
    pub fn new(ranks: u64, theta: f64) -> Result<Self, String> {
        if !(0.0..=MAX_THETA).contains(&theta) {
            return Err(format!("theta {theta} is not from 0 to {MAX_THETA}"));
        }
        let law = Zipf::new(ranks.max(1) as f64, theta).map_err(|error| error.to_string())?;
        Ok(Self { last: ranks.saturating_sub(1), law })
    }

    /// A rank.
    #[inline]
    pub fn draw(&self, random: &mut impl Rng) -> u64 {
        (self.law.sample(random) as u64 - 1).min(self.last)
    }
}
