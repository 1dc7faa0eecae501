//! Maps of numbers: a hash for those, and a map that is a list while it is short.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The finaliser of `SplitMix64`: every bit of a number reaches every bit of its hash.
#[derive(Default)]
pub(crate) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mut mixed = (self.0 ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = mixed ^ (mixed >> 31);
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }
}

pub(crate) type Numbers<K, V> = HashMap<K, V, BuildHasherDefault<Mixed>>;

/// So many entries are searched one after the other: half of a cache line's worth of hashing.
const SHORT: usize = 32;

/// What is known of some of a key's values.
#[derive(Debug)]
pub(crate) struct Few<T> {
    entries: Vec<(u64, T)>,
    places: Option<Box<Numbers<u64, u32>>>,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), places: None }
    }
}

impl<T: Copy> Few<T> {
    fn place(&self, value: u64) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(&value).map(|place| *place as usize),
            None => self.entries.iter().position(|entry| entry.0 == value),
        }
    }

    pub(crate) fn get(&self, value: u64) -> Option<T> {
        self.place(value).map(|place| self.entries[place].1)
    }

    /// Adds a value that is not there.
    pub(crate) fn insert(&mut self, value: u64, entry: T) {
        let place = self.entries.len() as u32;
        self.entries.push((value, entry));
        match &mut self.places {
            Some(places) => _ = places.insert(value, place),
            None if self.entries.len() > SHORT => {
                let places = self.entries.iter().enumerate().map(|(at, entry)| (entry.0, at as u32));
                self.places = Some(Box::new(places.collect()));
            }
            None => (),
        }
    }

    pub(crate) fn remove(&mut self, value: u64) -> Option<T> {
        let place = self.place(value)?;
        let (_, entry) = self.entries.swap_remove(place);
        if let Some(places) = &mut self.places {
            places.remove(&value);
            if let Some((moved, _)) = self.entries.get(place) {
                places.insert(*moved, place as u32);
            }
        }
        Some(entry)
    }

    pub(crate) fn entries(&self) -> &[(u64, T)] {
        &self.entries
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.places = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_answers_the_same_when_it_is_long() {
        for most in [8, 500] {
            let (mut few, mut model) = (Few::default(), HashMap::new());
            for step in 0..4_000_u64 {
                let value = step.wrapping_mul(7_919) % most;
                if few.get(value).is_some() {
                    assert_eq!(few.remove(value), model.remove(&value));
                } else {
                    few.insert(value, step);
                    model.insert(value, step);
                }
                let asked = (step * 31) % most;
                assert_eq!(few.get(asked), model.get(&asked).copied());
                assert_eq!(few.entries().len(), model.len());
            }
        }
    }
}
