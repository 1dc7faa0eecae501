//! The segments that requests name by number, and how large each has to be.

use std::collections::BTreeMap;

use nephoscope_runtime::ALIGNMENT;

use crate::requests::{Columns, Operation};

/// A segment: a part of a relation, a file or a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its number in the requests.
    pub number: u32,
    /// Its name, the same for whoever executes the same requests.
    pub name: String,
    /// The bytes that requests reach: the end of the request that reaches farthest.
    pub bytes: u64,
    /// Where it begins if all segments lie one behind the other, each at a multiple of [`ALIGNMENT`].
    pub start: u64,
}

/// Bytes: half of what a file can have.
const MOST: u64 = 1 << 62;

/// The segments of all requests that are executed on a target, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    segments: Vec<Segment>,
}

impl Layout {
    /// The layout that holds all requests of several sources.
    #[must_use]
    pub fn of<'a>(sources: impl IntoIterator<Item = &'a Columns>) -> Self {
        let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
        for columns in sources {
            for at in 0..columns.len() {
                let end = columns.offset[at].saturating_add(u64::from(columns.bytes[at]));
                // A sync names a segment and reaches none of its bytes.
                let end = if columns.operation[at] == Operation::Sync as u8 { 0 } else { end };
                let known = ends.entry(columns.segment[at]).or_default();
                *known = end.max(*known);
            }
        }
        let mut end = 0_u64;
        let segment = |(number, bytes): (u32, u64)| {
            let start = end;
            // More than there is anywhere: whoever prepares the segments says so.
            let bytes = bytes.min(MOST);
            end = end.saturating_add(bytes).min(MOST).next_multiple_of(ALIGNMENT as u64);
            Segment { number, name: format!("segment-{number}"), bytes, start }
        };
        Self { segments: ends.into_iter().map(segment).collect() }
    }

    /// The segments, in the order of their numbers.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The place of a segment in [`Layout::segments`], if there is one of this number.
    #[must_use]
    pub fn place(&self, number: u32) -> Option<usize> {
        self.segments.binary_search_by_key(&number, |segment| segment.number).ok()
    }

    /// The bytes of all segments one behind the other.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.segments.last().map_or(0, |last| (last.start + last.bytes).next_multiple_of(ALIGNMENT as u64))
    }
}
