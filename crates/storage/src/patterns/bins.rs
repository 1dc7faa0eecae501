//! Distances in bins: each of its own below 16, then eight to a factor of two.

const EXACT: u64 = 16;
const TO_AN_OCTAVE: u64 = 8;

/// How many bins there are; distances from 2³² on fall into the last.
pub const BINS: usize = 16 + 28 * 8;

/// The bin of a distance.
#[must_use]
pub(super) fn bin(distance: u64) -> usize {
    if distance < EXACT {
        return distance as usize;
    }
    let octave = u64::from(distance.ilog2());
    let part = (distance >> (octave - 3)) % TO_AN_OCTAVE;
    ((EXACT + (octave - 4) * TO_AN_OCTAVE + part) as usize).min(BINS - 1)
}

/// The smallest distance of a bin, and how many it has.
#[must_use]
pub(crate) fn of_bin(bin: usize) -> (u32, u32) {
    let bin = bin as u64;
    if bin < EXACT {
        return (bin as u32, 1);
    }
    let (octave, part) = ((bin - EXACT) / TO_AN_OCTAVE + 4, (bin - EXACT) % TO_AN_OCTAVE);
    (((TO_AN_OCTAVE + part) << (octave - 3)) as u32, 1 << (octave - 3))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_distance_lies_in_its_bin(distance in prop_oneof![0..5000_u64, 0..u64::from(u32::MAX)]) {
            let (first, count) = of_bin(bin(distance));
            prop_assert!((u64::from(first)..u64::from(first) + u64::from(count)).contains(&distance));
        }
    }

    #[test]
    fn bins_follow_each_other() {
        let ends = (0..BINS).map(of_bin).map(|(first, count)| u64::from(first) + u64::from(count));
        assert!(ends.zip(1..BINS).all(|(end, next)| end == u64::from(of_bin(next).0)));
        assert_eq!(bin(u64::MAX), BINS - 1);
    }
}
