//! A segment: its log, and its pages made of it.

use std::collections::BTreeMap;

use crate::page_store::protocol::Reason;

/// The most records that wait for one that comes before them.
const MOST_EARLY: usize = 65_536;

/// What a record does to a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// These bytes stand there.
    Bytes(Box<[u8]>),
    /// So many bytes are zero.
    Zeros(u32),
}

impl Change {
    fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zeros(count) => u64::from(*count),
        }
    }

    /// The memory that it takes, besides a constant.
    fn held(&self) -> u64 {
        if let Self::Bytes(bytes) = self { bytes.len() as u64 } else { 0 }
    }
}

/// What a record does to one page.
struct Record {
    lsn: u64,
    from: usize,
    change: Change,
}

impl Record {
    fn apply(&self, page: &mut [u8]) {
        match &self.change {
            Change::Bytes(bytes) => page[self.from..self.from + bytes.len()].copy_from_slice(bytes),
            Change::Zeros(count) => page[self.from..self.from + *count as usize].fill(0),
        }
    }
}

/// A page: an image, and the records since.
#[derive(Default)]
struct Page {
    /// The LSN of the image: every record up to it is in it.
    lsn: u64,
    /// `None` is a page of zeros.
    image: Option<Box<[u8]>>,
    chain: Vec<Record>,
}

/// A segment of pages of one size.
pub(crate) struct Segment {
    page_size: u64,
    /// All records up to this LSN are there.
    complete: u64,
    /// Records that came before one that precedes them.
    early: BTreeMap<u64, (u64, Change)>,
    pages: BTreeMap<u64, Page>,
    /// The bytes of images and chains.
    held: u64,
}

/// Pages whose chains have grown to a length, by a record that was added.
pub(crate) type Long = Vec<u64>;

impl Segment {
    pub(crate) fn new(page_size: u32) -> Self {
        Self {
            page_size: u64::from(page_size),
            complete: 0,
            early: BTreeMap::new(),
            pages: BTreeMap::new(),
            held: 0,
        }
    }

    /// The LSN up to which every record is there.
    pub(crate) fn complete(&self) -> u64 {
        self.complete
    }

    /// The bytes of images and records.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// Adds a record, once: one that is there already changes nothing. Pages whose chains reach `long` are added to the
    /// list.
    pub(crate) fn append(
        &mut self,
        lsn: u64,
        offset: u64,
        change: Change,
        (long, list): (usize, &mut Long),
    ) -> Result<(), Reason> {
        self.end(offset, change.len())?;
        if lsn == 0 {
            return Err(Reason::Invalid);
        }
        if lsn <= self.complete || self.early.contains_key(&lsn) {
            return Ok(());
        }
        if lsn > self.complete + 1 && self.early.len() >= MOST_EARLY {
            return Err(Reason::Full);
        }
        self.held += change.held();
        self.early.insert(lsn, (offset, change));
        while let Some((offset, change)) = self.early.remove(&(self.complete + 1)) {
            self.complete += 1;
            self.held -= change.held();
            self.chain(offset, &change, (long, list));
        }
        Ok(())
    }

    /// Where a range ends. Its last page ends below 2^64, too.
    fn end(&self, offset: u64, bytes: u64) -> Result<u64, Reason> {
        let end = offset.checked_add(bytes).ok_or(Reason::Invalid)?;
        end.checked_next_multiple_of(self.page_size).map(|_| end).ok_or(Reason::Invalid)
    }

    /// Hangs a record on the pages that it touches.
    fn chain(&mut self, offset: u64, change: &Change, (long, list): (usize, &mut Long)) {
        let end = offset + change.len();
        let lsn = self.complete;
        let touched: Vec<u64> = match change {
            _ if end == offset => Vec::new(),
            Change::Bytes(_) => (offset / self.page_size..=(end - 1) / self.page_size).collect(),
            // Where nothing has been written all is zero as it is.
            Change::Zeros(_) => self
                .pages
                .range(offset / self.page_size..=(end - 1) / self.page_size)
                .map(|(at, _)| *at)
                .collect(),
        };
        for number in touched {
            let start = number * self.page_size;
            let (from, to) = (offset.max(start), end.min(start + self.page_size));
            let change = match change {
                Change::Bytes(bytes) => {
                    Change::Bytes(bytes[(from - offset) as usize..(to - offset) as usize].into())
                }
                Change::Zeros(_) => Change::Zeros((to - from) as u32),
            };
            self.held += change.held();
            let page = self.pages.entry(number).or_default();
            page.chain.push(Record { lsn, from: (from - start) as usize, change });
            if page.chain.len() == long {
                list.push(number);
            }
        }
    }

    /// Adds the bytes of a range, as of an LSN, behind `out`; gives how many records had to be applied. `None` where a
    /// record up to that LSN is missing still.
    pub(crate) fn read(
        &self,
        lsn: u64,
        offset: u64,
        bytes: u32,
        out: &mut Vec<u8>,
    ) -> Result<Option<u64>, Reason> {
        let end = self.end(offset, u64::from(bytes))?;
        if lsn > self.complete {
            return Ok(None);
        }
        let (mut at, mut applied) = (offset, 0);
        let mut page = vec![0; self.page_size as usize];
        while at < end {
            let number = at / self.page_size;
            let start = number * self.page_size;
            applied += self.materialise(number, lsn, &mut page)?;
            let to = end.min(start + self.page_size);
            out.extend_from_slice(&page[(at - start) as usize..(to - start) as usize]);
            at = to;
        }
        Ok(Some(applied))
    }

    /// Makes a page as of an LSN.
    fn materialise(&self, number: u64, lsn: u64, into: &mut [u8]) -> Result<u64, Reason> {
        let Some(page) = self.pages.get(&number) else {
            into.fill(0);
            return Ok(0);
        };
        if page.lsn > lsn {
            return Err(Reason::Gone);
        }
        match &page.image {
            Some(image) => into.copy_from_slice(image),
            None => into.fill(0),
        }
        let until = page.chain.partition_point(|record| record.lsn <= lsn);
        page.chain[..until].iter().for_each(|record| record.apply(into));
        Ok(until as u64)
    }

    /// Makes an image of a page and its records, but for those of the newest `retain` LSNs; gives how many records it
    /// took up.
    pub(crate) fn consolidate(&mut self, number: u64, retain: u64) -> u64 {
        let horizon = self.complete.saturating_sub(retain);
        let Some(page) = self.pages.get_mut(&number) else { return 0 };
        let until = page.chain.partition_point(|record| record.lsn <= horizon);
        if until == 0 {
            return 0;
        }
        let held = &mut self.held;
        let size = self.page_size as usize;
        let image = page.image.get_or_insert_with(|| {
            *held += size as u64;
            vec![0; size].into()
        });
        for record in page.chain.drain(..until) {
            record.apply(image);
            page.lsn = record.lsn;
            *held -= record.change.held();
        }
        until as u64
    }

    /// How long a page's chain is.
    pub(crate) fn chain_length(&self, number: u64) -> usize {
        self.pages.get(&number).map_or(0, |page| page.chain.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: u32 = 16;
    /// The bytes of the model: five pages.
    const SPACE: usize = 80;

    fn read(segment: &Segment, lsn: u64, offset: u64, bytes: u32) -> Result<Option<Vec<u8>>, Reason> {
        let mut out = Vec::new();
        segment.read(lsn, offset, bytes, &mut out).map(|read| read.map(|_| out))
    }

    fn add(segment: &mut Segment, lsn: u64, offset: u64, change: Change) -> Result<(), Reason> {
        segment.append(lsn, offset, change, (usize::MAX, &mut Vec::new()))
    }

    /// Records and their order of arrival.
    fn records() -> impl Strategy<Value = (Vec<(usize, Change)>, Vec<usize>)> {
        let bytes = prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Change::Bytes(bytes.into()));
        let change = prop_oneof![4 => bytes, 1 => (0_u32..40).prop_map(Change::Zeros)];
        prop::collection::vec((0_usize..SPACE, change), 1..40).prop_flat_map(|records| {
            let order = Just((0..records.len()).collect::<Vec<_>>()).prop_shuffle();
            (Just(records), order)
        })
    }

    proptest! {
        #[test]
        fn a_read_sees_exactly_the_records_up_to_its_lsn(
            (records, order) in records(),
            folds in prop::collection::vec((0_u64..8, 0_u64..10), 0..40),
            (offset, bytes) in (0..SPACE as u64, 0_u32..60),
        ) {
            let mut model = vec![vec![0_u8; 2 * SPACE]];
            for (offset, change) in &records {
                let mut next = model.last().unwrap().clone();
                match change {
                    Change::Bytes(bytes) => next[*offset..offset + bytes.len()].copy_from_slice(bytes),
                    Change::Zeros(count) => next[*offset..offset + *count as usize].fill(0),
                }
                model.push(next);
            }
            let mut segment = Segment::new(PAGE);
            let mut folds = folds.iter().cycle();
            // A page of an older LSN than this may be gone.
            let mut horizon = 0;
            for at in &order {
                let (place, change) = &records[*at];
                for _ in 0..2 {
                    // The second time it is there already.
                    prop_assert_eq!(add(&mut segment, *at as u64 + 1, *place as u64, change.clone()), Ok(()));
                }
                if let Some((page, retain)) = folds.next() {
                    segment.consolidate(*page, *retain);
                    horizon = horizon.max(segment.complete().saturating_sub(*retain));
                }
                for (lsn, state) in (0..).zip(&model) {
                    let expected = state[offset as usize..][..bytes as usize].to_vec();
                    match read(&segment, lsn, offset, bytes) {
                        Ok(Some(found)) => prop_assert_eq!(found, expected),
                        Ok(None) => prop_assert!(lsn > segment.complete()),
                        Err(reason) => prop_assert!(reason == Reason::Gone && lsn < horizon),
                    }
                }
            }
            prop_assert_eq!(segment.complete(), records.len() as u64);
        }

        #[test]
        fn what_is_held_is_what_the_pages_hold(
            (records, order) in records(),
            folds in prop::collection::vec(0_u64..8, 0..20),
        ) {
            let mut segment = Segment::new(PAGE);
            for at in order {
                let (place, change) = &records[at];
                prop_assert_eq!(add(&mut segment, at as u64 + 1, *place as u64, change.clone()), Ok(()));
            }
            for page in folds {
                segment.consolidate(page, 3);
            }
            let of = |page: &Page| {
                let image = page.image.as_ref().map_or(0, |image| image.len() as u64);
                image + page.chain.iter().map(|record| record.change.held()).sum::<u64>()
            };
            prop_assert_eq!(segment.held(), segment.pages.values().map(of).sum::<u64>());
        }
    }

    #[test]
    fn a_chain_that_has_grown_is_told_of_once() {
        let (mut segment, mut long) = (Segment::new(PAGE), Vec::new());
        for lsn in 1..=9 {
            segment.append(lsn, 17, Change::Bytes([1].into()), (4, &mut long)).unwrap();
        }
        assert_eq!((long, segment.chain_length(1)), (vec![1], 9));
        assert_eq!((segment.consolidate(1, 2), segment.chain_length(1)), (7, 2));
        assert_eq!(read(&segment, 6, 17, 1), Err(Reason::Gone));
        assert_eq!(read(&segment, 7, 17, 1), Ok(Some(vec![1])));
        assert_eq!(segment.consolidate(5, 0), 0);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut segment = Segment::new(PAGE);
        assert_eq!(add(&mut segment, 0, 0, Change::Zeros(1)), Err(Reason::Invalid));
        assert_eq!(add(&mut segment, 1, u64::MAX, Change::Zeros(1)), Err(Reason::Invalid));
        assert_eq!(read(&segment, 0, u64::MAX, 1), Err(Reason::Invalid));
        // The last page below 2^64 would end there.
        assert_eq!(add(&mut segment, 1, u64::MAX - 9, Change::Zeros(1)), Err(Reason::Invalid));
        assert_eq!(read(&segment, 0, u64::MAX - 9, 1), Err(Reason::Invalid));
        for lsn in 2..=MOST_EARLY as u64 + 1 {
            add(&mut segment, lsn, 0, Change::Zeros(1)).unwrap();
        }
        assert_eq!(add(&mut segment, MOST_EARLY as u64 + 2, 0, Change::Zeros(1)), Err(Reason::Full));
        assert_eq!(segment.complete(), 0);
        // The one that they wait for has a place, whatever waits.
        add(&mut segment, 1, 0, Change::Zeros(1)).unwrap();
        assert_eq!(segment.complete(), MOST_EARLY as u64 + 1);
    }
}
