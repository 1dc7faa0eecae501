//! The laws by which sysbench draws numbers, as its documentation names them (`--rand-type`), with the details as its
//! draws show them: the tests of the laws compare with what the formulas here give.

use std::str::FromStr;

use nephoscope_datagen::Ranks;

use crate::random::Random;

/// How numbers are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Law {
    /// Each alike.
    Uniform,
    /// The mean of several uniform numbers.
    Gaussian,
    /// A few numbers in the middle often, the others by a mean of uniform numbers.
    Special,
    /// The first ones most often: a share `h` of the draws goes to a share `1 - h` of the numbers, over and over.
    Pareto,
    /// The i-th in proportion to 1/iᶿ.
    Zipfian,
}

/// The names of the laws, as `--rand-type` takes them.
pub(crate) const LAWS: [(&str, Law); 5] = [
    ("special", Law::Special),
    ("uniform", Law::Uniform),
    ("gaussian", Law::Gaussian),
    ("pareto", Law::Pareto),
    ("zipfian", Law::Zipfian),
];

impl FromStr for Law {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        LAWS.iter().find(|(known, _)| *known == name).map(|(_, law)| *law).ok_or(())
    }
}

/// The laws with their parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Laws {
    /// The one that `sysbench.rand.default` draws by: `--rand-type`.
    pub(crate) default: Law,
    /// Uniform numbers in a mean: `--rand-spec-iter`.
    pub(crate) iterations: u32,
    /// The share of the numbers that is special, 0 to 1: `--rand-spec-pct`.
    pub(crate) special: f64,
    /// The share of the draws that is special, 0 to 1: `--rand-spec-res`.
    pub(crate) drawn: f64,
    /// `--rand-pareto-h`, between 0 and 1.
    pub(crate) pareto: f64,
    /// `--rand-zipfian-exp`, 0 to [`nephoscope_datagen::MAX_THETA`].
    pub(crate) theta: f64,
}

impl Laws {
    /// Those of sysbench's defaults.
    pub(crate) const DEFAULT: Self =
        Self { default: Law::Special, iterations: 12, special: 0.01, drawn: 0.75, pareto: 0.2, theta: 0.8 };

    /// A number from `low` to `high`, both included; `low` where `high` is less.
    #[inline]
    pub(crate) fn draw(&self, law: Law, low: i64, high: i64, random: &mut Random) -> i64 {
        if high <= low {
            return low;
        }
        let last = high.wrapping_sub(low) as f64;
        let count = last + 1.0;
        let offset = match law {
            Law::Uniform => return random.between(low, high),
            Law::Gaussian => self.mean(random) * count,
            Law::Special => {
                let uniform = random.uniform();
                if uniform < 1.0 - self.drawn {
                    self.mean(random) * last
                } else {
                    // The same number says where: the lower part of the band is left to the other draws.
                    let band = last * self.special + 1.0;
                    (count - band) / 2.0 + uniform * band
                }
            }
            Law::Pareto => count * random.uniform().powf(self.pareto.ln() / (1.0 - self.pareto).ln()),
            Law::Zipfian => {
                let ranks = Ranks::new(count as u64, self.theta).ok();
                ranks.map_or(0.0, |ranks| ranks.draw(random.source()) as f64)
            }
        };
        low.wrapping_add(offset.min(last) as i64)
    }

    #[inline]
    fn mean(&self, random: &mut Random) -> f64 {
        (0..self.iterations).map(|_| random.uniform()).sum::<f64>() / f64::from(self.iterations)
    }
}

/// Writes a template with a digit in the place of each `#` and a letter a to z in that of each `@`.
pub(crate) fn write_template(template: &[u8], random: &mut Random, out: &mut Vec<u8>) {
    out.extend(template.iter().map(|byte| match byte {
        b'#' => b'0' + random.below(10) as u8,
        b'@' => b'a' + random.below(26) as u8,
        other => *other,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: f64 = 400_000.0;

    /// The distribution of the mean of `n` uniform numbers (Irwin and Hall).
    fn mean_below(n: u32, x: f64) -> f64 {
        let (scaled, mut sum, mut choose) = (x.clamp(0.0, 1.0) * f64::from(n), 0.0, 1.0);
        for k in 0..=(scaled as u32).min(n) {
            let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
            sum += sign * choose * (scaled - f64::from(k)).powi(n as i32);
            choose *= f64::from(n - k) / f64::from(k + 1);
        }
        sum / (1..=n).map(f64::from).product::<f64>()
    }

    /// Compares draws from `low` to `high` with a distribution function of the numbers from `low` on.
    fn follows(laws: &Laws, law: Law, low: i64, high: i64, below: impl Fn(f64) -> f64) {
        let mut random = Random::new(7, 3);
        let mut counts = vec![0.0; (high - low + 1) as usize];
        for _ in 0..DRAWS as u32 {
            counts[(laws.draw(law, low, high, &mut random) - low) as usize] += 1.0;
        }
        let (mut chi, mut cells, mut rare) = (0.0, 0.0, (0.0, 0.0));
        for (place, count) in counts.iter().enumerate() {
            let expected = DRAWS * (below(place as f64 + 1.0) - below(place as f64));
            if expected < 5.0 {
                rare = (rare.0 + count, rare.1 + expected);
                continue;
            }
            chi += (count - expected) * (count - expected) / expected;
            cells += 1.0;
        }
        let far = 6.0 * f64::sqrt(2.0 * cells);
        assert!(chi < cells + far, "{law:?}: chi-square {chi} of {cells} numbers");
        assert!((rare.0 - rare.1).abs() < 6.0 * (rare.1 + 5.0).sqrt(), "{law:?}: rare ones {rare:?}");
    }

    #[test]
    fn each_law_gives_its_frequencies() {
        let laws = Laws::DEFAULT;
        for (low, high) in [(1, 1000), (5, 77), (1, 7), (-3, 3)] {
            let count = (high - low + 1) as f64;
            follows(&laws, Law::Uniform, low, high, |x| x / count);
            follows(&laws, Law::Gaussian, low, high, |x| mean_below(12, x / count));
            let power = (1.0 - laws.pareto).ln() / laws.pareto.ln();
            follows(&laws, Law::Pareto, low, high, |x| (x / count).powf(power));
            let norm: f64 = (1..=count as u32).map(|rank| f64::from(rank).powf(-0.8)).sum();
            follows(&laws, Law::Zipfian, low, high, |x| {
                (1..=x as u32).map(|rank| f64::from(rank).powf(-0.8)).sum::<f64>() / norm
            });
        }
    }

    #[test]
    fn the_special_law_has_its_band_in_the_middle() {
        for (special, drawn, iterations) in [(0.01, 0.75, 12), (0.1, 0.5, 3), (0.5, 0.99, 12), (1.0, 1.0, 1)]
        {
            let laws = Laws { iterations, special, drawn, ..Laws::DEFAULT };
            for (low, high) in [(1, 1000), (5, 77), (1, 7)] {
                let (last, count) = ((high - low) as f64, (high - low + 1) as f64);
                let band = last * special + 1.0;
                let (from, to) = ((count - band) / 2.0 + (1.0 - drawn) * band, f64::midpoint(count, band));
                follows(&laws, Law::Special, low, high, |x| {
                    (1.0 - drawn) * mean_below(iterations, x / last)
                        + drawn * ((x - from) / (to - from)).clamp(0.0, 1.0)
                });
            }
        }
    }

    #[test]
    fn bounds_are_kept() {
        let (laws, mut random) = (Laws::DEFAULT, Random::new(1, 1));
        for (_, law) in LAWS {
            assert_eq!(laws.draw(law, 5, 5, &mut random), 5);
            assert_eq!(laws.draw(law, 5, 4, &mut random), 5);
        }
    }

    #[test]
    fn templates_have_digits_and_letters() {
        let (mut random, mut out) = (Random::new(1, 1), Vec::new());
        write_template(b"##-@@x", &mut random, &mut out);
        assert!(out[..2].iter().all(u8::is_ascii_digit) && out[3..5].iter().all(u8::is_ascii_lowercase));
        assert_eq!((out[2], out[5]), (b'-', b'x'));
    }
}
