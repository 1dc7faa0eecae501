//! The law of a delay.

use nephoscope_runtime::Nanos;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// How long bytes are delayed. Each piece that arrives draws its own delay, and never overtakes the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "law", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Law {
    /// Always the same.
    Constant {
        /// How long; `ms` in JSON.
        #[serde(rename = "ms", with = "milliseconds")]
        time: Nanos,
    },
    /// Uniform between two bounds.
    Uniform {
        /// The shortest; `low_ms` in JSON.
        #[serde(rename = "low_ms", with = "milliseconds")]
        low: Nanos,
        /// The longest; `high_ms` in JSON.
        #[serde(rename = "high_ms", with = "milliseconds")]
        high: Nanos,
    },
    /// Exponential.
    Exponential {
        /// The mean; `ms` in JSON.
        #[serde(rename = "ms", with = "milliseconds")]
        mean: Nanos,
    },
}

impl Law {
    /// Draws a delay.
    pub(crate) fn draw(self, random: &mut Random) -> Nanos {
        match self {
            Self::Constant { time } => time,
            Self::Uniform { low, high } => low + (random.unit() * (high - low) as f64) as Nanos,
            Self::Exponential { mean } => (-(1.0 - random.unit()).ln() * mean as f64) as Nanos,
        }
    }

    /// What is wrong with it, if something is.
    pub(crate) fn check(self) -> Result<(), String> {
        match self {
            Self::Uniform { low, high } if low > high => Err(format!(
                "a uniform delay's low_ms must not be more than its high_ms: {} is more than {}",
                milliseconds::of(low),
                milliseconds::of(high)
            )),
            _ => Ok(()),
        }
    }
}

/// Random numbers of one direction of one connection.
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn new(seed: u64, connection: u64, direction: u64) -> Self {
        let mixed = seed ^ (connection << 1 | direction).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// A number in [0, 1).
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Times in JSON: milliseconds, 0 to an hour.
mod milliseconds {
    use nephoscope_runtime::Nanos;
    use nephoscope_runtime::clock::MILLISECOND;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    const LONGEST: f64 = 3_600_000.0;

    pub(super) fn of(time: Nanos) -> f64 {
        time as f64 / MILLISECOND as f64
    }

    #[allow(clippy::trivially_copy_pass_by_ref)] // As serde calls it.
    pub(super) fn serialize<S: Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(of(*time))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Nanos, D::Error> {
        let time = f64::deserialize(deserializer)?;
        if !(0.0..=LONGEST).contains(&time) {
            return Err(D::Error::custom(format!("a delay is 0 to {LONGEST} milliseconds, not {time}")));
        }
        Ok((time * MILLISECOND as f64).round() as Nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_runtime::clock::MILLISECOND;

    fn draws(law: Law, random: &mut Random) -> Vec<Nanos> {
        (0..20_000).map(|_| law.draw(random)).collect()
    }

    fn mean(times: &[Nanos]) -> f64 {
        times.iter().sum::<Nanos>() as f64 / times.len() as f64 / MILLISECOND as f64
    }

    #[test]
    fn draws_follow_their_law() {
        let random = &mut Random::new(1, 1, 0);
        let constant = draws(Law::Constant { time: 5 }, random);
        assert!(constant.iter().all(|time| *time == 5));
        let uniform = draws(Law::Uniform { low: 2 * MILLISECOND, high: 6 * MILLISECOND }, random);
        assert!(uniform.iter().all(|time| (2 * MILLISECOND..=6 * MILLISECOND).contains(time)));
        assert!((mean(&uniform) - 4.0).abs() < 0.05, "{}", mean(&uniform));
        let exponential = draws(Law::Exponential { mean: 3 * MILLISECOND }, random);
        assert!((mean(&exponential) - 3.0).abs() < 0.15, "{}", mean(&exponential));
        let beyond = exponential.iter().filter(|time| **time > 9 * MILLISECOND).count() as f64 / 20_000.0;
        assert!((beyond - (-3.0_f64).exp()).abs() < 0.01, "{beyond}");
    }

    #[test]
    fn a_seed_and_a_connection_give_the_same_delays_again_and_others_differ() {
        let law = Law::Exponential { mean: MILLISECOND };
        let first = draws(law, &mut Random::new(7, 3, 1));
        assert_eq!(first, draws(law, &mut Random::new(7, 3, 1)));
        for other in [(8, 3, 1), (7, 4, 1), (7, 3, 0)] {
            assert_ne!(first, draws(law, &mut Random::new(other.0, other.1, other.2)), "{other:?}");
        }
    }
}
