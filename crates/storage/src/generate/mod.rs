//! Requests made from a forecast (`CDSBen` section 4.4): how many in each second, and where.
//!
//! A second is a unit of work with random numbers of its own, so that threads and batches change nothing.

mod alias;
mod bursts;
mod drawing;
mod offsets;
mod plan;
mod random;
mod second;
mod stack;

use std::ops::Range;

pub use self::plan::{Arrivals, Bursts, Plan, PlanError, Source};
use crate::Columns;
use drawing::Drawing;
use offsets::Offsets;

const SECOND_US: u64 = 1_000_000;

/// Makes requests batch by batch, in the order of their times. Batches are whole seconds.
#[derive(Debug)]
pub struct Generator {
    drawing: Drawing,
    offsets: Offsets,
    seconds: usize,
    /// The next second.
    next: usize,
    threads: usize,
}

impl Generator {
    /// A generator that works on so many threads; 0 counts as 1.
    pub fn new(plan: Plan, threads: usize) -> Result<Self, PlanError> {
        let seconds = plan.seconds();
        let offsets = Offsets::new(&plan)?;
        Ok(Self { drawing: Drawing::new(plan)?, offsets, seconds, next: 0, threads: threads.max(1) })
    }

    /// How many requests there are in all.
    #[must_use]
    pub fn requests(&self) -> u64 {
        (0..self.seconds).map(|second| u64::from(self.drawing.requests(second))).sum()
    }

    /// Replaces what `columns` hold by the next seconds that have `most` requests together, or by one second if that
    /// has more. Returns false if there are no more seconds.
    pub fn fill(&mut self, columns: &mut Columns, most: usize) -> bool {
        let begin = self.next;
        let mut count = 0;
        while self.next < self.seconds {
            let more = self.drawing.requests(self.next) as usize;
            if self.next > begin && count + more > most {
                break;
            }
            count += more;
            self.next += 1;
        }
        resize(columns, count);
        self.draw(begin..self.next, columns);
        begin < self.next
    }

    fn draw(&mut self, seconds: Range<usize>, columns: &mut Columns) {
        let mut rows = Rows::of(columns);
        let mut work: Vec<(u64, Rows<'_>)> = Vec::with_capacity(seconds.len());
        for second in seconds {
            let (first, rest) = rows.split(self.drawing.requests(second) as usize);
            rows = rest;
            work.push((second as u64, first));
        }
        let each = work.len().div_ceil(self.threads).max(1);
        let drawing = &self.drawing;
        let fill = |part: &mut [(u64, Rows<'_>)]| {
            for (second, rows) in part {
                second::fill(drawing, *second, rows);
            }
        };
        std::thread::scope(|scope| {
            let mut parts = work.chunks_mut(each);
            let own = parts.next();
            for part in parts {
                scope.spawn(move || fill(part));
            }
            own.map(fill);
        });
        if !self.offsets.is_empty() {
            for (second, rows) in &mut work {
                self.offsets.fill(*second, rows);
            }
        }
    }
}

/// Rows of columns that are being filled.
#[derive(Default)]
struct Rows<'a> {
    time_us: &'a mut [i64],
    segment: &'a mut [u32],
    offset: &'a mut [u64],
    bytes: &'a mut [u32],
    operation: &'a mut [u8],
    process: &'a mut [u8],
    latency_us: &'a mut [f32],
}

impl<'a> Rows<'a> {
    fn of(columns: &'a mut Columns) -> Self {
        Self {
            time_us: &mut columns.time_us,
            segment: &mut columns.segment,
            offset: &mut columns.offset,
            bytes: &mut columns.bytes,
            operation: &mut columns.operation,
            process: &mut columns.process,
            latency_us: &mut columns.latency_us,
        }
    }

    fn split(self, at: usize) -> (Self, Self) {
        let (time_us, times) = self.time_us.split_at_mut(at);
        let (segment, segments) = self.segment.split_at_mut(at);
        let (offset, offsets) = self.offset.split_at_mut(at);
        let (bytes, sizes) = self.bytes.split_at_mut(at);
        let (operation, operations) = self.operation.split_at_mut(at);
        let (process, processes) = self.process.split_at_mut(at);
        let (latency_us, latencies) = self.latency_us.split_at_mut(at);
        let rest = Rows {
            time_us: times,
            segment: segments,
            offset: offsets,
            bytes: sizes,
            operation: operations,
            process: processes,
            latency_us: latencies,
        };
        (Rows { time_us, segment, offset, bytes, operation, process, latency_us }, rest)
    }
}

fn resize(columns: &mut Columns, count: usize) {
    columns.time_us.resize(count, 0);
    columns.segment.resize(count, 0);
    columns.offset.resize(count, 0);
    columns.bytes.resize(count, 0);
    columns.operation.resize(count, 0);
    columns.process.resize(count, 0);
    columns.latency_us.resize(count, f32::NAN);
}
