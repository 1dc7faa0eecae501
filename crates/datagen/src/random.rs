//! Random draws that are a pure function of what they are for.
//!
//! A cell of a table needs no state: its draw number `k` is `mix(key + row·ROW_STEP + k·DRAW_STEP)`, all
//! modulo 2⁶⁴, where `key` is a hash of the seed and of the names of the table and the column. Along the rows
//! this is the `SplitMix64` generator (Steele, Lea, Flood: *Fast Splittable Pseudorandom Number Generators*,
//! OOPSLA 2014) started at the column's key; [`mix`] is its finalizer (Stafford's variant 13), in which every
//! bit of the input changes each bit of the output with a chance of about one half. So a draw costs two
//! multiplications, and any cell can be computed by any thread, in any order.
//!
//! `DRAW_STEP` was checked against `ROW_STEP`: the draws of one cell meet no draw of another row of the
//! column as long as the cell makes fewer than 2²² draws and the column has fewer than 2³⁹ rows.

mod ranks;
mod shuffle;

use std::convert::Infallible;

use rand_core::TryRng;

pub use self::ranks::{MAX_THETA, Ranks};
pub use self::shuffle::Shuffle;

/// The step from row to row: 2⁶⁴ divided by the golden ratio, as in `SplitMix64`.
const ROW_STEP: u64 = 0x9E37_79B9_7F4A_7C15;
/// The step from draw to draw within a cell.
const DRAW_STEP: u64 = 0xD1B5_4A32_D192_ED03;

/// Spreads every bit of a number over all bits of the result; no two numbers give the same result.
const fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// The whole part and the 64-bit fraction of `bits / 2^64 * size`.
#[inline]
fn scale(bits: u64, size: u64) -> (u64, u64) {
    let product = u128::from(bits) * u128::from(size);
    ((product >> 64) as u64, product as u64)
}

/// What all draws of one column start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// The key of a column. It depends on the names only, so that columns and tables can be added, removed
    /// and moved without changing the values of the others.
    #[must_use]
    pub fn new(seed: u64, table: &str, column: &str) -> Self {
        let mut hash = mix(seed.wrapping_add(ROW_STEP));
        for name in [table, column] {
            for chunk in name.as_bytes().chunks(8) {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                hash = mix(hash ^ u64::from_le_bytes(word)).wrapping_add(ROW_STEP);
            }
            // The length tells "ab" and "c" from "a" and "bc", and a name from one with zero bytes behind it.
            hash = mix(hash ^ name.len() as u64).wrapping_add(DRAW_STEP);
        }
        Self(mix(hash))
    }

    /// The key of a generator inside this one's generator.
    #[must_use]
    pub fn inner(self) -> Self {
        Self(mix(self.0 ^ DRAW_STEP))
    }

    /// The draws of one row's cell.
    #[inline]
    #[must_use]
    pub fn draws(self, row: u64) -> Draws {
        Draws(self.0.wrapping_add(row.wrapping_mul(ROW_STEP)))
    }
}

/// The random draws of one cell, as many as it needs.
#[derive(Clone, Copy, Debug)]
pub struct Draws(u64);

impl Draws {
    /// The next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let bits = mix(self.0);
        self.0 = self.0.wrapping_add(DRAW_STEP);
        bits
    }

    /// A number from 0 to `size - 1`, each as likely (to within `size / 2^64`); 0 if `size` is 0.
    #[inline]
    pub fn below(&mut self, size: u64) -> u64 {
        scale(self.bits(), size).0
    }

    /// An integer from `min` to `max`, both included, each as likely; `min` if `max` is smaller.
    #[inline]
    pub fn between(&mut self, min: i64, max: i64) -> i64 {
        Span::new(min, max.max(min)).draw(self)
    }

    /// A number from 0 (included) to 1 (excluded), a multiple of 2⁻⁵³.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// One of some things, each as likely. The slice must not be empty.
    #[inline]
    pub(crate) fn pick<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(things.len() as u64) as usize]
    }

    /// `count` symbols, each one of `base` (at most 256), handed over as numbers from 0.
    #[inline]
    pub(crate) fn symbols(&mut self, base: u64, count: u64, mut take: impl FnMut(u8)) {
        // Eight symbols of 26 use at most 38 of the 64 bits, four of 256 use 32: what the others are drawn from stays
        // uniform.
        let batch = if base <= 26 { 8 } else { 4 };
        let mut left = count;
        while left > 0 {
            let mut bits = self.bits();
            for _ in 0..left.min(batch) {
                let (symbol, rest) = scale(bits, base);
                bits = rest;
                take(symbol as u8);
            }
            left = left.saturating_sub(batch);
        }
    }

    /// What draws one symbol after another, each one of as many as it is told (at most 26).
    pub(crate) fn symbol(&mut self) -> impl FnMut(u64) -> u64 {
        let (mut bits, mut left) = (0, 0);
        move |base| {
            if left == 0 {
                (bits, left) = (self.bits(), 8);
            }
            left -= 1;
            let (symbol, rest) = scale(bits, base);
            bits = rest;
            symbol
        }
    }
}

/// For the laws of `rand_distr`.
impl TryRng for Draws {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.bits() >> 32) as u32)
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.bits())
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        for chunk in out.chunks_mut(8) {
            chunk.copy_from_slice(&self.bits().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

/// Integers from a smallest to a greatest one, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    min: i64,
    /// How many integers there are; 0 stands for 2⁶⁴.
    size: u64,
}

impl Span {
    /// `max` must not be smaller than `min`.
    pub(crate) fn new(min: i64, max: i64) -> Self {
        Self { min, size: (max.wrapping_sub(min) as u64).wrapping_add(1) }
    }

    #[inline]
    pub(crate) fn draw(self, draws: &mut Draws) -> i64 {
        let bits = draws.bits();
        let above = if self.size == 0 { bits } else { scale(bits, self.size).0 };
        self.min.wrapping_add(above.cast_signed())
    }
}

/// How likely something is, in units of 2⁻⁵³.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// `probability` is from 0 (never) to 1 (always).
    pub(crate) fn new(probability: f64) -> Self {
        Self((probability * (1_u64 << 53) as f64) as u64)
    }

    #[inline]
    pub(crate) fn hits(self, draws: &mut Draws) -> bool {
        draws.bits() >> 11 < self.0
    }
}

/// Draws an index by weights in constant time (Walker's alias method, built in exact integers, so that no
/// index of weight 0 is ever drawn).
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    /// For each index: below which fraction it stands for itself, and what it stands for otherwise.
    entries: Box<[(u64, u32)]>,
}

impl Weights {
    /// The weights must be finite and not negative, and one of them positive: otherwise says what is wrong.
    pub(crate) fn new(weights: &[f64]) -> Result<Self, String> {
        if let Some(bad) = weights.iter().find(|weight| !weight.is_finite() || **weight < 0.0) {
            return Err(format!("the weight {bad} is not a number from 0 up"));
        }
        let greatest = weights.iter().copied().fold(0.0, f64::max);
        if greatest == 0.0 {
            return Err("no weight is greater than 0".to_owned());
        }
        let parts = |weight: &f64| {
            let parts = (weight / greatest * (1_u64 << 32) as f64).round() as u128;
            if *weight > 0.0 { parts.max(1) } else { 0 }
        };
        Ok(Self::exact(&weights.iter().map(parts).collect::<Vec<_>>()))
    }

    /// Weights that are integers already, one of them positive and the sum below 2⁶³.
    ///
    /// Each index has room for `total` parts; who needs less gives the rest of his room to one who needs
    /// more.
    pub(crate) fn exact(parts: &[u128]) -> Self {
        let total: u128 = parts.iter().sum();
        let mut needs: Vec<u128> = parts.iter().map(|part| part * parts.len() as u128).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..needs.len()).partition(|&index| needs[index] < total);
        let mut entries: Vec<(u64, u32)> = (0..needs.len()).map(|index| (0, index as u32)).collect();
        while let (Some(giver), Some(&taker)) = (small.pop(), large.last()) {
            entries[giver] = (((needs[giver] << 64) / total) as u64, taker as u32);
            needs[taker] -= total - needs[giver];
            if needs[taker] < total {
                small.push(taker);
                large.pop();
            }
        }
        Self { entries: entries.into() }
    }

    #[inline]
    pub(crate) fn draw(&self, draws: &mut Draws) -> usize {
        let (index, fraction) = scale(draws.bits(), self.entries.len() as u64);
        let (own, other) = self.entries[index as usize];
        if fraction < own { index as usize } else { other as usize }
    }
}

#[cfg(test)]
mod tests;
