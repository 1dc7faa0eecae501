//! The requests of one second: the unit of work, which depends on nothing but the plan and the second's number.

use super::drawing::{Cell, Drawing};
use super::plan::Arrivals;
use super::random::{Purpose, Random, place};
use super::{Rows, SECOND_US, bursts};

/// Fills the rows of a second, which are as many as it has requests.
pub(super) fn fill(drawing: &Drawing, second: u64, rows: &mut Rows<'_>) {
    let begin_us = (second * SECOND_US) as i64;
    let mut times = Random::new(drawing.seed, second, Purpose::Times);
    let mut random = Random::new(drawing.seed, second, Purpose::Cells);
    if drawing.has_bursts(second as usize) {
        bursts::fill(drawing, second, rows, &mut times, &mut random);
        return;
    }
    lay(drawing.arrivals, &mut times, begin_us, rows.time_us);
    let mut left: Vec<u32> = drawing
        .sources
        .iter()
        .map(|source| source.counts.get(second as usize).copied().unwrap_or(0))
        .collect();
    let count = rows.time_us.len();
    for at in 0..count {
        let (which, size) = random.pair();
        let (first, again) = random.pair();
        let source = &drawing.sources[chosen(&mut left, (count - at) as u32, which)];
        let cell = drawing.cells[source.alias.draw(first, again)];
        put(drawing, rows, at, &cell, source.process, (size, random.bits() as u32));
    }
}

/// Writes a request of a cell: its size and its page by random bits, and not its time.
#[inline]
pub(super) fn put(
    drawing: &Drawing,
    rows: &mut Rows<'_>,
    at: usize,
    cell: &Cell,
    process: u8,
    (size, page): (u32, u32),
) {
    rows.segment[at] = cell.segment;
    rows.bytes[at] = drawing.bytes(cell, size);
    rows.operation[at] = cell.operation;
    rows.process[at] = process;
    rows.offset[at] = u64::from(place(page, cell.starts)) * drawing.page_bytes;
    rows.latency_us[at] = f32::NAN;
}

/// Lays times in order into the second that begins then.
pub(super) fn lay(arrivals: Arrivals, random: &mut Random, begin_us: i64, times: &mut [i64]) {
    match arrivals {
        Arrivals::Stratified => stratified(random, begin_us, times),
        Arrivals::Poisson => poisson(random, begin_us, times),
    }
}

/// Chooses the source of the next request, by how many each has `left` of `all`, so that each gets its number exactly.
#[inline]
fn chosen(left: &mut [u32], all: u32, bits: u32) -> usize {
    let mut at = place(bits, all);
    for (source, count) in left.iter_mut().enumerate() {
        if at < *count {
            *count -= 1;
            return source;
        }
        at -= *count;
    }
    unreachable!("the sources have as many requests as the second")
}

/// One time in each of n equal parts of the second.
fn stratified(random: &mut Random, begin_us: i64, times: &mut [i64]) {
    let part = SECOND_US as f64 / times.len() as f64;
    for (at, time) in times.iter_mut().enumerate() {
        let inside = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        *time = begin_us + (((at as f64 + inside) * part) as i64).min(SECOND_US as i64 - 1);
    }
}

/// n independent times in their order: the sums of n exponential gaps over the sum of n + 1.
fn poisson(random: &mut Random, begin_us: i64, times: &mut [i64]) {
    let mut sum = 0.0;
    let sums: Vec<f64> = times
        .iter()
        .map(|_| {
            sum -= random.unit().ln();
            sum
        })
        .collect();
    sum -= random.unit().ln();
    // The sum is 0 if every gap is, which has a chance of 2⁻⁵³ each.
    let scale = if sum > 0.0 { SECOND_US as f64 / sum } else { 0.0 };
    for (time, sum) in times.iter_mut().zip(sums) {
        *time = begin_us + ((sum * scale) as i64).min(SECOND_US as i64 - 1);
    }
}
