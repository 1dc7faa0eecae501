//! The requests of a second that come in bursts.

use super::drawing::{Drawing, Ready};
use super::plan::{self, Arrivals};
use super::random::{Purpose, Random, place};
use super::second::{lay, put};
use super::{Rows, SECOND_US};

/// Bursts made ready for drawing.
#[derive(Debug)]
pub(super) struct Bursts {
    starts: Arrivals,
    /// Where each burst begins in `requests`, and the end of the last.
    bounds: Vec<u32>,
    requests: Vec<Request>,
}

/// A request of a burst.
#[derive(Clone, Copy, Debug)]
struct Request {
    offset_us: u32,
    operation: u8,
}

impl Bursts {
    /// `None` if the arrays do not fit each other, or a number is wrong.
    pub(super) fn new(bursts: &plan::Bursts) -> Option<Self> {
        let mut bounds = vec![0_u32];
        let mut end = 0_u32;
        for size in &bursts.sizes {
            end = end.checked_add(*size).filter(|_| *size > 0)?;
            bounds.push(end);
        }
        let (offsets, operations) = (&bursts.offsets_us, &bursts.operations);
        let fits = offsets.len() == end as usize && operations.len() == offsets.len() && end > 0;
        let valid = offsets.iter().all(|offset| u64::from(*offset) < SECOND_US)
            && operations.iter().all(|operation| *operation < 2);
        let requests = offsets.iter().zip(operations);
        let requests = requests.map(|(&offset_us, &operation)| Request { offset_us, operation }).collect();
        (fits && valid).then_some(Self { starts: bursts.starts, bounds, requests })
    }

    /// Draws bursts with so many requests together, and calls `take` with the time within a second and the operation of
    /// each request.
    fn draw(&self, count: usize, random: &mut Random, times: &mut Random, mut take: impl FnMut(u32, u8)) {
        let bursts = (self.bounds.len() - 1) as u32;
        let mut drawn: Vec<&[Request]> = Vec::new();
        let mut all = 0;
        while all < count {
            let at = place(random.bits() as u32, bursts) as usize;
            let burst = &self.requests[self.bounds[at] as usize..self.bounds[at + 1] as usize];
            all += burst.len();
            drawn.push(burst);
        }
        // The burst that crosses a given number is a large one more often than others: to cut that would make bursts
        // smaller than they are.
        let mut excess = all - count;
        for burst in &mut drawn {
            let kept = burst.len().saturating_sub(excess);
            excess -= burst.len() - kept;
            *burst = &burst[..kept];
        }
        drawn.retain(|burst| !burst.is_empty());
        let mut starts = vec![0; drawn.len()];
        lay(self.starts, times, 0, &mut starts);
        for (start, requests) in starts.into_iter().zip(drawn) {
            for request in requests {
                let time = start as u32 + request.offset_us;
                take(time.checked_sub(SECOND_US as u32).unwrap_or(time), request.operation);
            }
        }
    }
}

/// A request whose cell is not chosen yet.
#[derive(Clone, Copy)]
struct Slot {
    source: u32,
    operation: u8,
}

/// The cells drawn for a source in a second, by their operation.
type Drawn = [Vec<u32>; 2];

/// Fills the rows of a second: cells are drawn as for any second, and go to requests of their operation.
pub(super) fn fill(
    drawing: &Drawing,
    second: u64,
    rows: &mut Rows<'_>,
    times: &mut Random,
    random: &mut Random,
) {
    let all = rows.time_us.len();
    let mut choices = Random::new(drawing.seed, second, Purpose::Bursts);
    let mut slots: Vec<Slot> = Vec::with_capacity(all);
    // The time and the place in `slots`: requests of one time keep the order of their burst.
    let mut order: Vec<u64> = Vec::with_capacity(all);
    let mut cells: Vec<Drawn> = Vec::with_capacity(drawing.sources.len());
    for (number, source) in drawing.sources.iter().enumerate() {
        let count = source.counts.get(second as usize).copied().unwrap_or(0) as usize;
        let first = slots.len();
        let mut drawn = Drawn::default();
        let mut next = |random: &mut Random| {
            let (high, low) = random.pair();
            let cell = source.alias.draw(high, low);
            let operation = drawing.cells[cell].operation;
            drawn[usize::from(operation)].push(cell as u32);
            operation
        };
        let mut add = |time: u32, operation: u8| {
            order.push(u64::from(time) << 32 | slots.len() as u64);
            slots.push(Slot { source: number as u32, operation });
        };
        if let Some(place) = source.bursts {
            drawing.bursts[place].draw(count, &mut choices, times, &mut add);
            for _ in 0..count {
                next(random);
            }
        } else {
            let mut own = vec![0; count];
            lay(drawing.arrivals, times, 0, &mut own);
            for time in own {
                add(time as u32, next(random));
            }
        }
        give_way(&mut slots[first..], &drawn, &mut choices);
        cells.push(drawn);
    }
    order.sort_unstable();
    let begin_us = (second * SECOND_US) as i64;
    for (at, key) in order.into_iter().enumerate() {
        let slot = slots[(key & u64::from(u32::MAX)) as usize];
        let source: &Ready = &drawing.sources[slot.source as usize];
        let cell = cells[slot.source as usize][usize::from(slot.operation)].pop();
        let cell = drawing.cells[cell.unwrap_or_default() as usize];
        rows.time_us[at] = begin_us + (key >> 32) as i64;
        let (size, page) = random.pair();
        put(drawing, rows, at, &cell, source.process, (size, page));
    }
}

/// Lets the slots of a source have as many reads and writes as its cells: of the operation of which there are too many,
/// slots chosen at random change.
fn give_way(slots: &mut [Slot], cells: &Drawn, random: &mut Random) {
    let writes = slots.iter().filter(|slot| slot.operation == 1).count();
    let many = u8::from(writes > cells[1].len());
    let mut left = if many == 1 { writes } else { slots.len() - writes };
    let mut excess = left - cells[usize::from(many)].len();
    for slot in slots.iter_mut().filter(|slot| slot.operation == many) {
        if excess == 0 {
            break;
        }
        if (place(random.bits() as u32, left as u32) as usize) < excess {
            slot.operation = 1 - many;
            excess -= 1;
        }
        left -= 1;
    }
}
