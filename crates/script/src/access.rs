//! Which keys transactions touch: the access distribution, and the key space of a table.

use std::sync::atomic::{AtomicU64, Ordering};

use nephoscope_datagen::{Ranks, Shuffle};

use crate::random::Random;

/// How keys are picked, always over all the data (`CloudyBench`, II-B: uniform and latest).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Access {
    /// Every key alike.
    #[default]
    Uniform,
    /// The `k` newest keys alike; the window moves as rows arrive.
    Latest {
        /// How many keys.
        k: u64,
    },
    /// The i-th most popular key with a probability proportional to 1/i^theta.
    Zipfian {
        /// The skew; 0 is uniform, 0.99 is YCSB's.
        theta: f64,
    },
    /// The i-th newest key with a probability proportional to 1/i^theta: YCSB's "latest".
    LatestZipfian {
        /// The skew.
        theta: f64,
    },
    /// A share of the keys gets a share of the accesses.
    Hotspot {
        /// The share of keys that is hot, 0–1.
        keys: f64,
        /// The share of accesses that goes to them, 0–1.
        accesses: f64,
    },
}

/// A counter that threads share, with cache lines of its own: what lies beside it is read by every thread, and would be
/// fetched anew after each change. Two lines, for processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Shared(AtomicU64);

/// The keys of one table, shared by all sessions of a tenant. Keys are consecutive whole numbers.
#[derive(Debug)]
pub struct KeySpace {
    /// The key of the first row.
    first: i64,
    /// How many rows were loaded.
    loaded: u64,
    /// The newest key that a transaction has said to be there.
    newest: Shared,
    /// How many keys were handed out by [`KeySpace::once`].
    handed_out: Shared,
    /// How many keys were made by [`KeySpace::new_key`].
    made: Shared,
    /// Spreads popular keys over the table.
    shuffle: Shuffle,
}

impl KeySpace {
    /// A table of `loaded` rows whose keys begin with `first`; `handed_out` keys of it are used up already, and `made`
    /// new ones were made.
    #[must_use]
    pub fn new(first: i64, loaded: u64, handed_out: u64, made: u64) -> Self {
        Self {
            first,
            loaded,
            newest: Shared(AtomicU64::new(loaded)),
            handed_out: Shared(AtomicU64::new(handed_out)),
            made: Shared(AtomicU64::new(made)),
            shuffle: Shuffle::new(loaded),
        }
    }

    /// How many rows there are, those that arrived included.
    #[inline]
    fn rows(&self) -> u64 {
        self.newest.0.load(Ordering::Relaxed)
    }

    /// A row with this key has arrived.
    pub fn arrived(&self, key: i64) {
        // Looked at first: most keys come out of turn, and a look leaves the line with every thread.
        if let Ok(row) = u64::try_from(key.wrapping_sub(self.first))
            && row >= self.rows()
        {
            self.newest.0.fetch_max(row + 1, Ordering::Relaxed);
        }
    }

    /// A key that was never handed out before, in an order that looks random; `None` when every loaded row has
    /// had its turn.
    pub fn once(&self) -> Option<i64> {
        let turn = self.handed_out.0.fetch_add(1, Ordering::Relaxed);
        (turn < self.loaded).then(|| self.first + self.shuffle.place(turn) as i64)
    }

    /// The key behind the last one, which nobody was given before.
    pub fn new_key(&self) -> i64 {
        let made = self.made.0.fetch_add(1, Ordering::Relaxed);
        self.first.wrapping_add_unsigned(self.loaded).wrapping_add_unsigned(made)
    }

    /// How many keys were made.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made.0.load(Ordering::Relaxed)
    }

    /// How many keys were handed out once.
    #[must_use]
    pub fn handed_out(&self) -> u64 {
        self.handed_out.0.load(Ordering::Relaxed).min(self.loaded)
    }
}

/// Picks keys of one table for one thread.
pub(crate) struct Picker {
    access: Access,
    /// The law for `zipf_rows` rows, made anew when the table has grown.
    zipf: Option<Ranks>,
    zipf_rows: u64,
}

impl Picker {
    pub(crate) fn new() -> Self {
        Self { access: Access::Uniform, zipf: None, zipf_rows: 0 }
    }

    pub(crate) fn set_access(&mut self, access: Access) {
        self.access = access;
        self.zipf = None;
    }

    /// A key, or `None` where the table is empty.
    #[inline]
    pub(crate) fn pick(&mut self, keys: &KeySpace, random: &mut Random) -> Option<i64> {
        let rows = keys.rows();
        if rows == 0 {
            return None;
        }
        Some(keys.first + self.row(rows, keys.shuffle, random) as i64)
    }

    /// One of so many rows, at least one, counted from 0; `shuffle` says where the popular ones are.
    #[inline]
    pub(crate) fn row(&mut self, rows: u64, shuffle: Shuffle, random: &mut Random) -> u64 {
        match self.access {
            Access::Uniform => random.below(rows),
            Access::Latest { k } => rows - 1 - random.below(k.clamp(1, rows)),
            Access::Zipfian { theta } => shuffle.place(self.rank(rows, theta, random)),
            Access::LatestZipfian { theta } => rows - 1 - self.rank(rows, theta, random),
            Access::Hotspot { keys: share, accesses } => {
                let hot = ((share * rows as f64).ceil() as u64).clamp(1, rows);
                let rank = if hot == rows || random.uniform() < accesses {
                    random.below(hot)
                } else {
                    hot + random.below(rows - hot)
                };
                shuffle.place(rank)
            }
        }
    }

    /// A rank from 0 by Zipf's law.
    #[inline]
    fn rank(&mut self, rows: u64, theta: f64, random: &mut Random) -> u64 {
        // A law for a slightly smaller table does until it has grown by a hundredth.
        if self.zipf.is_none() || rows < self.zipf_rows || rows > self.zipf_rows + self.zipf_rows / 100 {
            self.zipf = Ranks::new(rows, theta).ok();
            self.zipf_rows = rows;
        }
        self.zipf.map_or(0, |zipf| zipf.draw(random.source())).min(rows - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(access: Access, rows: u64, draws: usize) -> Vec<u64> {
        let keys = KeySpace::new(1, rows, 0, 0);
        let (mut picker, mut random) = (Picker::new(), Random::new(7, 1));
        picker.set_access(access);
        let mut counts = vec![0; rows as usize];
        for _ in 0..draws {
            counts[picker.pick(&keys, &mut random).unwrap() as usize - 1] += 1;
        }
        counts
    }

    #[test]
    fn uniform_reaches_every_key_alike() {
        let counts = counts(Access::Uniform, 100, 200_000);
        let chi: f64 = counts.iter().map(|count| (*count as f64 - 2000.0).powi(2) / 2000.0).sum();
        assert!(chi < 150.0, "chi-square {chi} for 99 degrees of freedom");
    }

    #[test]
    fn latest_is_the_newest_and_moves() {
        let keys = KeySpace::new(1, 1000, 0, 0);
        let (mut picker, mut random) = (Picker::new(), Random::new(7, 1));
        picker.set_access(Access::Latest { k: 10 });
        let mut seen = |picker: &mut Picker| {
            let mut seen: Vec<i64> = (0..500).map(|_| picker.pick(&keys, &mut random).unwrap()).collect();
            seen.sort_unstable();
            seen.dedup();
            seen
        };
        assert_eq!(seen(&mut picker), (991..=1000).collect::<Vec<_>>());
        keys.arrived(1005);
        keys.arrived(1003);
        assert_eq!(seen(&mut picker), (996..=1005).collect::<Vec<_>>());
    }

    #[test]
    fn zipfian_follows_its_law_and_is_spread_over_the_table() {
        let mut counts = counts(Access::Zipfian { theta: 0.99 }, 1000, 400_000);
        let hottest = counts.iter().position(|count| *count == *counts.iter().max().unwrap()).unwrap();
        assert!(hottest > 0, "the most popular key is not simply the first");
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let norm: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-0.99)).sum();
        for rank in [1_u32, 2, 10] {
            let expected = 400_000.0 * f64::from(rank).powf(-0.99) / norm;
            let got = counts[rank as usize - 1] as f64;
            assert!((got / expected - 1.0).abs() < 0.1, "rank {rank}: {got} instead of {expected}");
        }
    }

    #[test]
    fn latest_zipfian_is_zipfian_in_the_distance_from_the_newest_and_moves() {
        let keys = KeySpace::new(1, 100, 0, 0);
        let (mut picker, mut random) = (Picker::new(), Random::new(7, 1));
        picker.set_access(Access::LatestZipfian { theta: 0.99 });
        for arrived in [0, 50] {
            keys.arrived(100 + arrived);
            let rows = 100 + arrived;
            let norm: f64 = (1..=rows).map(|rank| (rank as f64).powf(-0.99)).sum();
            let mut counts = vec![0.0; rows as usize];
            for _ in 0..400_000 {
                counts[(rows - picker.pick(&keys, &mut random).unwrap()) as usize] += 1.0;
            }
            let expected = |rank: usize| 400_000.0 * (rank as f64 + 1.0).powf(-0.99) / norm;
            let chi: f64 = counts
                .iter()
                .enumerate()
                .map(|(rank, count): (usize, &f64)| (count - expected(rank)).powi(2) / expected(rank))
                .sum();
            assert!(chi < rows as f64 + 6.0 * (2.0 * rows as f64).sqrt(), "chi-square {chi} of {rows} ranks");
        }
    }

    #[test]
    fn hotspot_gives_a_share_of_keys_a_share_of_accesses() {
        let mut counts = counts(Access::Hotspot { keys: 0.2, accesses: 0.8 }, 1000, 400_000);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let hot: u64 = counts[..200].iter().sum();
        assert!((hot as f64 / 400_000.0 - 0.8).abs() < 0.01, "{hot}");
        assert!(counts[999] > 0, "cold keys are touched too");
    }

    #[test]
    fn every_key_is_handed_out_once() {
        let keys = KeySpace::new(1, 1000, 10, 0);
        let mut handed: Vec<i64> = std::iter::from_fn(|| keys.once()).collect();
        assert_eq!(handed.len(), 990);
        assert_ne!(handed, (11..=1000).collect::<Vec<_>>());
        handed.sort_unstable();
        handed.dedup();
        assert_eq!(handed.len(), 990);
        assert_eq!(keys.once(), None);
        assert_eq!(keys.handed_out(), 1000);
    }

    #[test]
    fn new_keys_follow_those_that_are_there() {
        let keys = KeySpace::new(5, 10, 0, 3);
        assert_eq!([keys.new_key(), keys.new_key()], [18, 19]);
        assert_eq!(keys.made(), 5);
    }

    #[test]
    fn an_empty_table_has_no_key() {
        let keys = KeySpace::new(1, 0, 0, 0);
        assert_eq!(Picker::new().pick(&keys, &mut Random::new(1, 1)), None);
        assert_eq!(keys.once(), None);
    }

    proptest! {
        #[test]
        fn keys_stay_in_the_table(rows in 1_u64..5000, arrived in 0_u64..5000, seed in any::<u64>(), which in 0..5_usize) {
            let keys = KeySpace::new(1, rows, 0, 0);
            keys.arrived((rows + arrived) as i64);
            let access = [Access::Uniform, Access::Latest { k: 10 }, Access::Zipfian { theta: 0.8 }, Access::Hotspot { keys: 0.1, accesses: 0.9 }, Access::LatestZipfian { theta: 0.8 }][which];
            let (mut picker, mut random) = (Picker::new(), Random::new(seed, 1));
            picker.set_access(access);
            for _ in 0..100 {
                let key = picker.pick(&keys, &mut random).unwrap();
                prop_assert!((1..=(rows + arrived) as i64).contains(&key));
            }
        }
    }
}
