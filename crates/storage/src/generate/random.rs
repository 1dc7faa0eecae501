//! Random numbers of one unit of work: a pure function of the seed, the unit and the purpose.

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A stream of random numbers.
pub(super) struct Random(Xoshiro256PlusPlus);

/// What a stream of random numbers is for: streams of two purposes are independent.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    /// Cells and sizes.
    Cells,
    /// Times.
    Times,
    /// Offsets by a pattern.
    Offsets,
    /// The order of a segment's new pages; a segment in place of a second.
    Permutation,
    /// Which bursts there are, and where they give way to the cells' operations.
    Bursts,
}

impl Random {
    /// The stream of a second for a purpose.
    pub(super) fn new(seed: u64, second: u64, purpose: Purpose) -> Self {
        let keyed = mix(mix(seed ^ STEP).wrapping_add(second)).wrapping_add(purpose as u64);
        Self(Xoshiro256PlusPlus::seed_from_u64(mix(keyed)))
    }

    /// 64 random bits.
    #[inline]
    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Two numbers of 32 random bits.
    #[inline]
    pub(super) fn pair(&mut self) -> (u32, u32) {
        let bits = self.bits();
        ((bits >> 32) as u32, bits as u32)
    }

    /// A number in (0, 1].
    pub(super) fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

/// A place below `size`, from 32 random bits; 0 if `size` is 0.
#[inline]
pub(super) fn place(bits: u32, size: u32) -> u32 {
    ((u64::from(bits) * u64::from(size)) >> 32) as u32
}

/// `SplitMix64`'s finalizer: no two numbers give the same result.
const fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}
