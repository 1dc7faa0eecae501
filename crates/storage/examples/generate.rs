//! Generates requests into memory on one thread and prints how many there were and the processor time that it took, in
//! seconds: `generate REQUESTS_A_SECOND SECONDS CELLS [PAGES]`. With a number of pages the offsets follow a pattern.

use std::time::Instant;

use nephoscope_storage::Columns;
use nephoscope_storage::generate::{Arrivals, Generator, Plan, Source};
use nephoscope_storage::patterns::{BINS, KINDS, Law, Located, Patterns};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Vec<u32> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let [rate, seconds, cells, ref pages @ ..] = given[..] else {
        return Err("REQUESTS_A_SECOND SECONDS CELLS [PAGES]".into());
    };
    let weights: Vec<f64> = (1..=cells).map(|rank| 1.0 / f64::from(rank)).collect();
    let source = |process: &str, rate: u32| Source {
        bursts: None,
        process: process.to_owned(),
        counts: vec![rate; seconds as usize],
        weights: weights.clone(),
    };
    let plan = Plan {
        seed: 1,
        segment_bytes: 16 << 20,
        page_bytes: 8192,
        arrivals: Arrivals::Stratified,
        bursts: Vec::new(),
        cells: (0..cells).map(|cell| (cell / 8, cell % 8)).collect(),
        sizes: (1..8).map(|size| (size, (0..1024).map(|more| size * 1024 - more).collect())).collect(),
        sources: vec![source("backend", rate - rate / 5), source("other", rate / 5)],
        patterns: pages.first().map_or_else(Patterns::default, |pages| patterns(cells, *pages)),
    };
    let mut generator = Generator::new(plan, 1)?;
    let mut columns = Columns::default();
    let (mut count, mut sum) = (0, 0);
    let begin = Instant::now();
    while generator.fill(&mut columns, 1 << 20) {
        count += columns.len();
        sum ^= columns.offset.last().copied().unwrap_or(0);
    }
    let took = begin.elapsed().as_secs_f64();
    #[allow(clippy::print_stdout)] // It is what the benchmark reads.
    {
        println!("{count} {took} {sum}");
    }
    Ok(())
}

/// One law for all: an eighth of the requests go on, the distances of the others fall off as 1 / distance.
fn patterns(cells: u32, pages: u32) -> Patterns {
    let distances =
        (0..BINS).map(|bin| (bin, (bin % KINDS) as u8, 1.0)).take_while(|(bin, _, _)| *bin < 90).collect();
    let laws = vec![Law { run: [0.125; 4], distances }];
    let segments = (0..=cells / 8).map(|segment| Located { segment, pages, laws: [0; 2] }).collect();
    Patterns { laws, segments }
}
