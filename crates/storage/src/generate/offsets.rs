//! Offsets by learned patterns. Requests are taken in their order, because each depends on those before it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::Rows;
use super::alias::Alias;
use super::plan::{Plan, PlanError};
use super::random::{Purpose, Random, place};
use super::stack::Stack;
use crate::patterns::{BINS, KINDS, Law, Located, Memory, of_bin};

/// Offsets by learned patterns.
#[derive(Debug)]
pub(super) struct Offsets {
    seed: u64,
    page_bytes: u64,
    segment_bytes: u64,
    laws: Vec<Ready>,
    segments: Vec<Segment>,
    /// By number of a segment its place in `segments`.
    places: HashMap<u32, usize, BuildHasherDefault<Spread>>,
}

/// A law made ready for drawing.
#[derive(Debug)]
struct Ready {
    /// Out of 2³².
    run: [u64; 4],
    /// `None` where nothing but runs was seen: the page is a new one.
    distances: Option<Alias>,
    /// The bin and the kind of page of each place in the distribution.
    places: Vec<(usize, u8)>,
}

/// The last request of a segment.
#[derive(Clone, Copy, Debug)]
struct Last {
    page: u32,
    /// The page behind it.
    next: u64,
    /// The place in a law's `run` that says how likely the next one goes on.
    nature: usize,
}

#[derive(Debug)]
struct Segment {
    laws: [usize; 2],
    pages: u32,
    stack: Stack,
    memory: Vec<Memory>,
    /// New pages are taken in the order of a permutation: the number of its next, its first page and its step.
    next: u32,
    first: u32,
    step: u32,
    last: Option<Last>,
}

impl Offsets {
    pub(super) fn new(plan: &Plan) -> Result<Self, PlanError> {
        let (patterns, page_bytes) = (&plan.patterns, u64::from(plan.page_bytes));
        let laws =
            patterns.laws.iter().map(Ready::new).collect::<Option<Vec<_>>>().ok_or(PlanError::Pattern)?;
        let mut segments = Vec::with_capacity(patterns.segments.len());
        let mut places = HashMap::default();
        for located in &patterns.segments {
            let fits = u64::from(located.pages).saturating_mul(page_bytes) <= plan.segment_bytes;
            if located.pages == 0 || !fits || located.laws.iter().any(|law| *law >= laws.len()) {
                return Err(PlanError::Pattern);
            }
            places.insert(located.segment, segments.len());
            segments.push(Segment::new(*located, plan.seed));
        }
        Ok(Self { seed: plan.seed, page_bytes, segment_bytes: plan.segment_bytes, laws, segments, places })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Gives the requests of a second new offsets, where something is known of their segments.
    pub(super) fn fill(&mut self, second: u64, rows: &mut Rows<'_>) {
        let mut random = Random::new(self.seed, second, Purpose::Offsets);
        for (at, offset) in rows.offset.iter_mut().enumerate() {
            let Some(place) = self.places.get(&rows.segment[at]) else { continue };
            let segment = &mut self.segments[*place];
            let law = &self.laws[segment.laws[usize::from(rows.operation[at] > 0)]];
            let page = segment.page(law, &mut random);
            *offset = u64::from(page) * self.page_bytes;
            let most = self.segment_bytes.saturating_sub(u64::from(rows.bytes[at]));
            if *offset > most {
                *offset = most - most % self.page_bytes;
            }
            let behind = (*offset + u64::from(rows.bytes[at])).div_ceil(self.page_bytes);
            if let Some(last) = &mut segment.last {
                last.next = behind.max(last.next);
            }
        }
    }
}

impl Ready {
    fn new(law: &Law) -> Option<Self> {
        let valid = law.run.iter().all(|share| (0.0..=1.0).contains(share));
        let weights: Vec<f64> = law.distances.iter().map(|(_, _, weight)| *weight).collect();
        let places: Vec<_> = law.distances.iter().map(|(bin, kind, _)| (*bin, *kind)).collect();
        if !valid || places.iter().any(|(bin, kind)| *bin > BINS || usize::from(*kind) >= KINDS) {
            return None;
        }
        let distances = if weights.is_empty() { None } else { Some(Alias::new(&weights)?) };
        Some(Self { run: law.run.map(|share| (share * 4_294_967_296.0) as u64), distances, places })
    }

    /// A distance, how many lie in its bin, and a kind of page; none for a page that was never accessed.
    fn distance(&self, random: &mut Random) -> Option<(u32, u32, u8)> {
        let (first, second) = random.pair();
        let (bin, kind) = self.places[self.distances.as_ref()?.draw(first, second)];
        if bin == BINS {
            return None;
        }
        let (least, count) = of_bin(bin);
        Some((least + place(random.bits() as u32, count), count, kind))
    }
}

impl Segment {
    fn new(located: Located, seed: u64) -> Self {
        let mut random = Random::new(seed, u64::from(located.segment), Purpose::Permutation);
        let pages = located.pages;
        // Near the golden section of the pages, so that the first of them lie far apart; prime to their number.
        let wanted = (f64::from(pages) * 0.618_033_988_75) as u32;
        let step = (0..pages).map(|more| (wanted + more) % pages).find(|step| divisor(*step, pages) == 1);
        Self {
            laws: located.laws,
            pages,
            stack: Stack::default(),
            memory: vec![Memory::default(); pages as usize],
            next: 0,
            first: place(random.bits() as u32, pages),
            step: step.unwrap_or(1),
            last: None,
        }
    }

    /// The page of the next request.
    fn page(&mut self, law: &Ready, random: &mut Random) -> u32 {
        let next = self.last.filter(|last| last.next < u64::from(self.pages));
        let next = next.filter(|last| u64::from(random.bits() as u32) < law.run[last.nature]);
        if let Some(last) = self.last {
            self.memory[last.page as usize].goes_on(next.is_some());
        }
        let (page, distance) = match next {
            Some(last) => (self.go_on(last.next as u32), None),
            None => self.jump(law, random),
        };
        let nature = self.memory[page as usize].access(next.is_some(), distance);
        self.last = Some(Last { page, next: u64::from(page) + 1, nature });
        page
    }

    fn go_on(&mut self, page: u32) -> u32 {
        if self.memory[page as usize].is_accessed() {
            self.stack.touch(page);
        } else {
            self.stack.push(page);
        }
        page
    }

    /// A page at a distance that the law gives, and that distance; or a new one.
    fn jump(&mut self, law: &Ready, random: &mut Random) -> (u32, Option<u64>) {
        if let Some((distance, count, kind)) = law.distance(random) {
            let memory = &self.memory;
            let is_wanted = |page: u32| memory[page as usize].kind() == kind;
            if let Some(page) = self.stack.touch_near(distance as usize, count as usize, is_wanted) {
                return (page, Some(u64::from(distance)));
            }
        }
        if let Some(page) = self.fresh() {
            return (page, None);
        }
        // All pages were accessed, so what should be a new one is any of them.
        let distance = place(random.bits() as u32, self.stack.len() as u32);
        (self.stack.touch_near(distance as usize, 0, |_| true).unwrap_or(0), Some(u64::from(distance)))
    }

    /// The next page of the permutation that was not accessed, which makes it the most recent.
    fn fresh(&mut self) -> Option<u32> {
        while self.next < self.pages {
            let at = u64::from(self.first) + u64::from(self.next) * u64::from(self.step);
            let page = (at % u64::from(self.pages)) as u32;
            self.next += 1;
            if !self.memory[page as usize].is_accessed() {
                self.stack.push(page);
                return Some(page);
            }
        }
        None
    }
}

/// Spreads numbers of segments by one multiplication: they come from a corpus, and are drawn for each request.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

fn divisor(first: u32, second: u32) -> u32 {
    if second == 0 { first } else { divisor(second, first % second) }
}
