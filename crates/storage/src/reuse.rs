//! Reuse distances of pages, and the miss-ratio curve of an LRU cache, which follows from them (Mattson 1970).
//!
//! The reuse distance of an access is the number of other pages accessed since the last access to its page. A cache of
//! `c` pages hits exactly the accesses of a distance below `c`, so one pass gives the miss ratios of all sizes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A page: its segment, and its number in that segment.
type Page = (u32, u64);

/// Cache sizes of a curve: four to a factor of two, up to 2⁴⁰ pages.
const SIZES_TO_AN_OCTAVE: u32 = 4;
const OCTAVES: u32 = 40;
/// Pages are told apart in so many groups, whose spread gives the standard error of a sample.
const GROUPS: usize = 32;

/// The miss ratio of an LRU cache of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MissRatio {
    /// The size of the cache, in bytes.
    pub cache_bytes: u64,
    /// The share of accesses to pages that miss, first accesses among them; 0 to 1.
    pub miss_ratio: f64,
    /// The standard error that the sampling of pages adds; 0 where all pages are counted.
    pub standard_error: f64,
}

/// The miss ratios of an LRU cache by its size.
#[derive(Clone, Debug, PartialEq)]
pub struct MissRatioCurve {
    /// Ascending by size; beyond the last, the miss ratio stays that of the last.
    pub points: Vec<MissRatio>,
    /// Accesses to pages, sampled or not.
    pub accesses: u64,
    /// Those that were counted.
    pub sampled: u64,
    /// The number of different pages; of a sample, an estimate.
    pub pages: f64,
}

/// Counts reuse distances, access by access.
///
/// At a rate below 1 only the pages whose hash is below it are counted, and their distances are scaled (SHARDS, Waldspurger
/// et al. 2015, with the adjustment for the expected number of accesses).
#[derive(Debug)]
pub struct ReuseDistances {
    page_bytes: u64,
    rate: f64,
    /// A page whose hash is above it is not counted.
    threshold: u64,
    sizes: Vec<u64>,
    seen: Seen,
    /// By the place of the smallest size that hits, and by group.
    hits: Vec<[u64; GROUPS]>,
    counted: [u64; GROUPS],
    accesses: u64,
}

impl ReuseDistances {
    /// Begins to count, with pages of `page_bytes` (at least 1) and a share of the pages, `rate` (above 0, at most 1).
    #[must_use]
    pub fn new(page_bytes: u32, rate: f64) -> Self {
        let rate = rate.clamp(f64::MIN_POSITIVE, 1.0);
        let sizes = cache_sizes();
        Self {
            page_bytes: u64::from(page_bytes.max(1)),
            rate,
            // A conversion to an integer saturates, so a rate of 1 takes every hash.
            threshold: (rate * 2_f64.powi(64)) as u64,
            hits: vec![[0; GROUPS]; sizes.len()],
            sizes,
            seen: Seen::default(),
            counted: [0; GROUPS],
            accesses: 0,
        }
    }

    /// Counts a request: every page that it touches, in ascending order; none if it has no bytes.
    pub fn request(&mut self, segment: u32, offset: u64, bytes: u32) {
        if bytes == 0 {
            return;
        }
        let last = offset.saturating_add(u64::from(bytes) - 1) / self.page_bytes;
        for number in offset / self.page_bytes..=last {
            self.access((segment, number));
        }
    }

    fn access(&mut self, page: Page) {
        self.accesses += 1;
        let hash = mixed(page);
        if hash > self.threshold {
            return;
        }
        let group = hash as usize % GROUPS;
        self.counted[group] += 1;
        if let Some(distance) = self.seen.touch(page) {
            let scaled = if self.rate < 1.0 { (distance as f64 / self.rate) as u64 } else { distance };
            let place = self.sizes.partition_point(|size| *size <= scaled);
            if let Some(of_size) = self.hits.get_mut(place) {
                of_size[group] += 1;
            }
        }
    }

    /// The curve of what was counted; without points if that is nothing.
    #[must_use]
    pub fn curve(&self) -> MissRatioCurve {
        let expected = self.accesses as f64 * self.rate;
        let pages = self.seen.pages() as f64 / self.rate;
        let mut misses = self.counted;
        let mut points = Vec::new();
        for (size, hits) in self.sizes.iter().zip(&self.hits) {
            misses.iter_mut().zip(hits).for_each(|(of_group, hits)| *of_group -= hits);
            // A sample cannot tell smaller caches apart than one of a single page that it counts.
            if expected > 0.0 && *size as f64 * self.rate >= 1.0 {
                points.push(self.point(*size, &misses, expected));
            }
            if *size as f64 >= pages {
                break;
            }
        }
        let sampled = self.counted.iter().sum();
        MissRatioCurve { points, accesses: self.accesses, sampled, pages }
    }

    fn point(&self, size: u64, misses: &[u64; GROUPS], expected: f64) -> MissRatio {
        let all = misses.iter().sum::<u64>() as f64;
        let mean = all / GROUPS as f64;
        let squares: f64 = misses.iter().map(|of_group| (*of_group as f64 - mean).powi(2)).sum();
        let of_groups = (squares * GROUPS as f64 / (GROUPS as f64 - 1.0)).sqrt();
        MissRatio {
            cache_bytes: size.saturating_mul(self.page_bytes),
            miss_ratio: (all / expected).min(1.0),
            // Of a finite number of pages, the share that is counted adds no error.
            standard_error: of_groups / expected * (1.0 - self.rate).sqrt(),
        }
    }
}

fn cache_sizes() -> Vec<u64> {
    let steps = 0..=SIZES_TO_AN_OCTAVE * OCTAVES;
    let mut sizes: Vec<u64> =
        steps.map(|step| (f64::from(step) / f64::from(SIZES_TO_AN_OCTAVE)).exp2().round() as u64).collect();
    sizes.dedup();
    sizes
}

/// The pages that were seen, in the order of their last accesses.
#[derive(Debug)]
pub(crate) struct Seen {
    last: HashMap<Page, usize, BuildHasherDefault<Mixed>>,
    recency: Recency,
}

impl Default for Seen {
    fn default() -> Self {
        Self { last: HashMap::default(), recency: Recency::of(0) }
    }
}

impl Seen {
    /// How many there are.
    pub(crate) fn pages(&self) -> usize {
        self.last.len()
    }

    /// Makes a page the most recent one; its distance, or none if it was never seen.
    pub(crate) fn touch(&mut self, page: Page) -> Option<u64> {
        if self.recency.is_full() {
            let recency = &self.recency;
            self.last.values_mut().for_each(|slot| *slot = recency.before(*slot));
            self.recency = Recency::of(self.last.len());
        }
        match self.last.entry(page) {
            std::collections::hash_map::Entry::Occupied(mut entry) => {
                let slot = *entry.get();
                if self.recency.is_newest(slot) {
                    return Some(0);
                }
                let distance = self.recency.remove(slot);
                entry.insert(self.recency.push());
                Some(distance)
            }
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(self.recency.push());
                None
            }
        }
    }
}

/// The order of the last accesses: a slot each, of which those of pages seen again since are empty.
#[derive(Debug)]
struct Recency {
    /// A bit for each slot.
    words: Vec<u64>,
    /// A Fenwick tree over the numbers of bits in the words.
    tree: Vec<u32>,
    next: usize,
    live: u64,
}

const WORD: usize = 64;
const FEWEST_WORDS: usize = 1024;

impl Recency {
    /// The first `live` slots are taken; there is room for at least as many.
    fn of(live: usize) -> Self {
        let count = (2 * live).div_ceil(WORD).max(FEWEST_WORDS);
        let mut words = vec![0; count];
        words[..live / WORD].fill(u64::MAX);
        words[live / WORD] = (1 << (live % WORD)) - 1;
        let mut tree: Vec<u32> = words.iter().map(|word: &u64| word.count_ones()).collect();
        for at in 1..=count {
            let parent = at + (at & at.wrapping_neg());
            if parent <= count {
                tree[parent - 1] += tree[at - 1];
            }
        }
        Self { words, tree, next: live, live: live as u64 }
    }

    fn is_full(&self) -> bool {
        self.next == self.words.len() * WORD
    }

    fn is_newest(&self, slot: usize) -> bool {
        slot + 1 == self.next
    }

    /// Takes the next slot.
    fn push(&mut self) -> usize {
        let slot = self.next;
        self.words[slot / WORD] |= 1 << (slot % WORD);
        self.add(slot / WORD, 1);
        self.next += 1;
        self.live += 1;
        slot
    }

    /// Empties a slot that is taken; gives the number of those taken after it.
    fn remove(&mut self, slot: usize) -> u64 {
        let after = self.live - self.before(slot) as u64 - 1;
        self.words[slot / WORD] &= !(1 << (slot % WORD));
        self.add(slot / WORD, -1);
        self.live -= 1;
        after
    }

    /// How many slots before this one are taken.
    fn before(&self, slot: usize) -> usize {
        let within = self.words[slot / WORD] & ((1 << (slot % WORD)) - 1);
        let mut at = slot / WORD;
        let mut count = within.count_ones() as usize;
        while at > 0 {
            count += self.tree[at - 1] as usize;
            at &= at - 1;
        }
        count
    }

    fn add(&mut self, word: usize, change: i32) {
        let mut at = word + 1;
        while at <= self.tree.len() {
            self.tree[at - 1] = self.tree[at - 1].wrapping_add_signed(change);
            at += at & at.wrapping_neg();
        }
    }
}

fn mixed(page: Page) -> u64 {
    let mut hasher = Mixed::default();
    hasher.write_u32(page.0);
    hasher.write_u64(page.1);
    hasher.finish()
}

/// A hash of two numbers, in which every bit depends on all of theirs (the finisher of `SplitMix64`).
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        let mut z = (self.0.rotate_left(31) ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = z ^ (z >> 31);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: u32 = 8192;

    /// The share of accesses that an LRU list of so many pages misses.
    fn simulated(accesses: &[Page], size: usize) -> f64 {
        let mut list: Vec<Page> = Vec::new();
        let mut misses = 0;
        for page in accesses {
            match list.iter().position(|known| known == page) {
                Some(at) => drop(list.remove(at)),
                None => misses += 1,
            }
            list.insert(0, *page);
            list.truncate(size);
        }
        f64::from(misses) / accesses.len() as f64
    }

    fn counted(accesses: &[Page], rate: f64) -> MissRatioCurve {
        let mut distances = ReuseDistances::new(PAGE, rate);
        for (segment, number) in accesses {
            distances.request(*segment, number * u64::from(PAGE), PAGE);
        }
        distances.curve()
    }

    fn at(curve: &MissRatioCurve, pages: u64) -> MissRatio {
        let bytes = pages * u64::from(PAGE);
        *curve.points.iter().rfind(|point| point.cache_bytes <= bytes).unwrap()
    }

    /// Pages drawn by the inverse of the distribution P(page < n) = (n / pages)^share.
    fn skewed(pages: u64, accesses: u64, share: f64) -> Vec<Page> {
        let uniform = |n: u64| mixed((7, n)) as f64 / 2_f64.powi(64);
        (0..accesses).map(|n| (0, (uniform(n).powf(1.0 / share) * pages as f64) as u64)).collect()
    }

    proptest! {
        #[test]
        fn the_curve_is_that_of_an_lru_list(accesses in prop::collection::vec((0_u32..3, 0_u64..40), 1..400)) {
            let curve = counted(&accesses, 1.0);
            for point in &curve.points {
                let size = (point.cache_bytes / u64::from(PAGE)) as usize;
                prop_assert!((point.miss_ratio - simulated(&accesses, size)).abs() < 1e-12, "{size}");
                prop_assert_eq!(point.standard_error, 0.0);
            }
            let mut pages = accesses.clone();
            pages.sort_unstable();
            pages.dedup();
            prop_assert_eq!(curve.pages, pages.len() as f64);
        }

        #[test]
        fn nothing_panics(
            requests in prop::collection::vec((any::<u32>(), any::<u64>(), 0_u32..100_000), 0..50),
            page in any::<u32>(),
            rate in any::<f64>(),
        ) {
            let mut distances = ReuseDistances::new(page.max(512), rate);
            for (segment, offset, bytes) in requests {
                distances.request(segment, offset, bytes);
            }
            let points = distances.curve().points;
            prop_assert!(points.iter().all(|point| (0.0..=1.0).contains(&point.miss_ratio)));
            prop_assert!(points.is_sorted_by(|one, next| one.miss_ratio >= next.miss_ratio));
        }
    }

    #[test]
    fn a_cyclic_scan_misses_until_all_of_it_fits() {
        // Long enough for the slots to be numbered anew several times.
        let accesses: Vec<Page> = (0..400_000).map(|n| (0, n % 4096)).collect();
        let curve = counted(&accesses, 1.0);
        assert_eq!(at(&curve, 4095).miss_ratio, 1.0);
        assert_eq!(at(&curve, 4096).miss_ratio, 4096.0 / 400_000.0);
        assert_eq!((curve.pages, curve.accesses, curve.sampled), (4096.0, 400_000, 400_000));
    }

    #[test]
    fn a_request_touches_each_of_its_pages() {
        let mut distances = ReuseDistances::new(4096, 1.0);
        distances.request(1, 4095, 2);
        distances.request(1, 0, 0);
        distances.request(2, 0, 8192);
        assert_eq!((distances.curve().accesses, distances.curve().pages), (4, 4.0));
    }

    #[test]
    fn a_sample_is_near_the_truth_by_its_own_standard_error() {
        let accesses = skewed(1 << 16, 1_000_000, 0.4);
        let (exact, sampled) = (counted(&accesses, 1.0), counted(&accesses, 0.05));
        assert!(sampled.sampled < 100_000, "{}", sampled.sampled);
        assert!((sampled.pages / exact.pages - 1.0).abs() < 0.1, "{} {}", sampled.pages, exact.pages);
        for point in &sampled.points {
            let truth = at(&exact, point.cache_bytes / u64::from(PAGE)).miss_ratio;
            assert!(point.standard_error < 0.05);
            assert!(
                (point.miss_ratio - truth).abs() < 4.0 * point.standard_error + 0.005,
                "{point:?} {truth}"
            );
        }
    }

    #[test]
    fn without_an_access_there_is_no_point() {
        assert!(counted(&[], 1.0).points.is_empty());
    }
}
