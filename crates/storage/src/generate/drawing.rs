//! A plan made ready for drawing: what each cell means, and each source's distribution over the cells.

use std::collections::BTreeMap;

use super::alias::Alias;
use super::bursts::Bursts;
use super::plan::{Arrivals, Plan, PlanError};
use super::random::place;
use crate::Operation;

/// A plan made ready for drawing.
#[derive(Debug)]
pub(super) struct Drawing {
    pub(super) seed: u64,
    pub(super) arrivals: Arrivals,
    pub(super) page_bytes: u64,
    pub(super) cells: Vec<Cell>,
    pub(super) sources: Vec<Ready>,
    pub(super) bursts: Vec<Bursts>,
    /// The sizes of all cells, one after another.
    sizes: Vec<u32>,
}

/// A cell as a request needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) segment: u32,
    pub(super) operation: u8,
    /// How many pages of its segment its largest request may begin at, 1 at least.
    pub(super) starts: u32,
    first_size: u32,
    sizes: u32,
}

/// A source as a second needs it.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) process: u8,
    pub(super) counts: Vec<u32>,
    pub(super) alias: Alias,
    /// The place of its bursts.
    pub(super) bursts: Option<usize>,
}

impl Drawing {
    pub(super) fn new(plan: Plan) -> Result<Self, PlanError> {
        let seconds = plan.seconds();
        check(&plan, seconds)?;
        let mut drawing = Self {
            seed: plan.seed,
            arrivals: plan.arrivals,
            page_bytes: u64::from(plan.page_bytes),
            cells: Vec::with_capacity(plan.cells.len()),
            sources: Vec::with_capacity(plan.sources.len()),
            bursts: plan.bursts.iter().map(Bursts::new).collect::<Option<_>>().ok_or(PlanError::Bursts)?,
            sizes: Vec::new(),
        };
        drawing.add_cells(&plan)?;
        for source in plan.sources {
            let process = source.kind()? as u8;
            if source.weights.len() != plan.cells.len() {
                return Err(PlanError::Weights { weights: source.weights.len(), cells: plan.cells.len() });
            }
            let bursts = source.bursts;
            if bursts.is_some_and(|place| place >= drawing.bursts.len()) {
                return Err(PlanError::Bursts);
            }
            // A stream without requests needs no distribution.
            if source.counts.iter().any(|count| *count > 0) {
                let alias = Alias::new(&source.weights).ok_or(PlanError::Distribution)?;
                drawing.sources.push(Ready { process, counts: source.counts, alias, bursts });
            }
        }
        Ok(drawing)
    }

    fn add_cells(&mut self, plan: &Plan) -> Result<(), PlanError> {
        let mut places = BTreeMap::new();
        for (cell, &(segment, size_kb, own)) in plan.cells.iter().enumerate() {
            // Cells that name sizes share them; the others share those of their size in KB.
            let key = own.map_or((None, size_kb), |own| (Some(own), 0));
            let (first_size, sizes) = match places.get(&key) {
                Some(found) => *found,
                None => {
                    let first = self.sizes.len();
                    match own {
                        Some(own) => self.sizes.extend(plan.sizes.get(own).into_iter().flatten()),
                        None => self.sizes.push(bytes_of(plan, size_kb)?),
                    }
                    let found = (first as u32, (self.sizes.len() - first) as u32);
                    places.insert(key, found);
                    found
                }
            };
            if sizes == 0 {
                return Err(PlanError::NoSizes { cell });
            }
            let all = &self.sizes[first_size as usize..][..sizes as usize];
            let largest = all.iter().max().map_or(0, |largest| u64::from(*largest));
            let starts = plan.segment_bytes.saturating_sub(largest) / u64::from(plan.page_bytes) + 1;
            let operation = if size_kb == 0 { Operation::Read } else { Operation::Write } as u8;
            let starts = u32::try_from(starts).unwrap_or(u32::MAX);
            self.cells.push(Cell { segment, operation, starts, first_size, sizes });
        }
        Ok(())
    }

    /// How many requests a second has.
    pub(super) fn requests(&self, second: usize) -> u32 {
        self.sources.iter().map(|source| source.counts.get(second).copied().unwrap_or(0)).sum()
    }

    /// Whether a second has requests in bursts.
    pub(super) fn has_bursts(&self, second: usize) -> bool {
        let counts = |source: &Ready| source.counts.get(second).copied().unwrap_or(0);
        self.sources.iter().any(|source| source.bursts.is_some() && counts(source) > 0)
    }

    /// The bytes of a request of a cell.
    #[inline]
    pub(super) fn bytes(&self, cell: &Cell, bits: u32) -> u32 {
        self.sizes[(cell.first_size + place(bits, cell.sizes)) as usize]
    }
}

fn check(plan: &Plan, seconds: usize) -> Result<(), PlanError> {
    if plan.page_bytes == 0 || u64::from(plan.page_bytes) > plan.segment_bytes {
        return Err(PlanError::Page { page_bytes: plan.page_bytes, segment_bytes: plan.segment_bytes });
    }
    if seconds as u64 > i64::MAX as u64 / super::SECOND_US {
        return Err(PlanError::TooLong { seconds });
    }
    for second in 0..seconds {
        let counts = plan.sources.iter().filter_map(|source| source.counts.get(second));
        let requests = counts.map(|count| u64::from(*count)).sum();
        if requests > u64::from(u32::MAX) {
            return Err(PlanError::TooMany { second, requests });
        }
    }
    Ok(())
}

fn bytes_of(plan: &Plan, size_kb: u32) -> Result<u32, PlanError> {
    if size_kb == 0 {
        return Ok(plan.page_bytes);
    }
    size_kb.checked_mul(1024).ok_or(PlanError::TooLarge { size_kb })
}
