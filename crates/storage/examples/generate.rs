//! Generates requests into memory on one thread and prints how many there were and the processor time that it took, in
//! seconds: `generate REQUESTS_A_SECOND SECONDS CELLS [PAGES [BURST]]`. With a number of pages above 0 the offsets follow a
//! pattern, with the size of a burst the requests come in bursts of half of it to one and a half times it.

use std::time::Instant;

use nephoscope_storage::Columns;
use nephoscope_storage::generate::{Arrivals, Bursts, Generator, Plan, Source};
use nephoscope_storage::patterns::{BINS, KINDS, Law, Located, Patterns};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Vec<u32> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let [rate, seconds, cells, ref more @ ..] = given[..] else {
        return Err("REQUESTS_A_SECOND SECONDS CELLS [PAGES [BURST]]".into());
    };
    let weights: Vec<f64> = (1..=cells).map(|rank| 1.0 / f64::from(rank)).collect();
    let source = |process: &str, rate: u32| Source {
        bursts: more.get(1).map(|_| 0),
        process: process.to_owned(),
        counts: vec![rate; seconds as usize],
        weights: weights.clone(),
    };
    let plan = Plan {
        seed: 1,
        segment_bytes: 16 << 20,
        page_bytes: 8192,
        arrivals: Arrivals::Stratified,
        bursts: more.get(1).map(|size| bursts(*size)).into_iter().collect(),
        cells: (0..cells).map(|cell| (cell / 8, cell % 8, (cell as usize % 8).checked_sub(1))).collect(),
        sizes: (1..8).map(|size| (0..1024).map(|more| size * 1024 - more).collect()).collect(),
        sources: vec![source("backend", rate - rate / 5), source("other", rate / 5)],
        patterns: match more.first() {
            Some(pages @ 1..) => patterns(cells, *pages),
            _ => Patterns::default(),
        },
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

/// A thousand bursts, whose requests follow each other after 7 µs, every fourth a write.
fn bursts(size: u32) -> Bursts {
    let sizes: Vec<u32> = (0..1000).map(|at| size / 2 + at % size.max(1) + 1).collect();
    let offsets_us: Vec<u32> = sizes.iter().flat_map(|size| (0..*size).map(|at| at * 7)).collect();
    let operations = (0..offsets_us.len()).map(|at| u8::from(at % 4 == 0)).collect();
    Bursts { starts: Arrivals::Poisson, sizes, offsets_us, operations }
}

/// One law for all: an eighth of the requests go on, the distances of the others fall off as 1 / distance.
fn patterns(cells: u32, pages: u32) -> Patterns {
    let distances =
        (0..BINS).map(|bin| (bin, (bin % KINDS) as u8, 1.0)).take_while(|(bin, _, _)| *bin < 90).collect();
    let laws = vec![Law { run: [0.125; 4], distances }];
    let segments = (0..=cells / 8).map(|segment| Located { segment, pages, laws: [0; 2] }).collect();
    Patterns { laws, segments }
}
