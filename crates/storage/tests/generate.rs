//! What is generated is what the plan says, whatever the threads and the batches.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use nephoscope_storage::generate::{Arrivals, Bursts, Generator, Plan, PlanError, Source};
use nephoscope_storage::patterns::Patterns;
use nephoscope_storage::{Columns, Operation, Process};
use proptest::prelude::*;

const SEGMENT: u64 = 16 << 20;

fn plan(counts: [Vec<u32>; 2], cells: &[(u32, u32)], weights: [Vec<f64>; 2], arrivals: Arrivals) -> Plan {
    let [foreground, background] = counts;
    let [first, second] = weights;
    Plan {
        seed: 7,
        segment_bytes: SEGMENT,
        page_bytes: 8192,
        arrivals,
        bursts: Vec::new(),
        cells: cells.iter().map(|&(segment, size_kb)| (segment, size_kb, None)).collect(),
        sizes: Vec::new(),
        patterns: Patterns::default(),
        sources: vec![
            Source { process: "backend".into(), counts: foreground, weights: first, bursts: None },
            Source { process: "other".into(), counts: background, weights: second, bursts: None },
        ],
    }
}

fn all(plan: &Plan, threads: usize, most: usize) -> Columns {
    let mut generator = Generator::new(plan.clone(), threads).unwrap();
    let (mut all, mut batch) = (Columns::default(), Columns::default());
    while generator.fill(&mut batch, most) {
        (0..batch.len()).for_each(|at| all.push(&batch.get(at)));
    }
    assert_eq!(generator.requests(), all.len() as u64);
    all
}

/// Columns as they can be compared: no NaN is equal to another.
fn comparable(mut columns: Columns) -> Columns {
    assert!(columns.latency_us.iter().all(|latency| latency.is_nan()));
    columns.latency_us.clear();
    columns
}

fn arrivals() -> impl Strategy<Value = Arrivals> {
    prop_oneof![Just(Arrivals::Stratified), Just(Arrivals::Poisson)]
}

/// Bursts of up to nine requests, and which of the two sources have them.
fn bursts() -> impl Strategy<Value = (Vec<Bursts>, [Option<usize>; 2])> {
    let burst = prop::collection::vec((0..1_000_000_u32, 0..2_u8), 1..10);
    let one = (prop::collection::vec(burst, 1..6), arrivals()).prop_map(|(bursts, starts)| {
        let requests = bursts.concat();
        Bursts {
            starts,
            sizes: bursts.iter().map(|burst| burst.len() as u32).collect(),
            offsets_us: requests.iter().map(|request| request.0).collect(),
            operations: requests.iter().map(|request| request.1).collect(),
        }
    });
    let places = prop::array::uniform2(prop_oneof![Just(None), (0..3_usize).prop_map(Some)]);
    (prop::collection::vec(one, 3), places)
}

fn plans() -> impl Strategy<Value = Plan> {
    let counts = || prop::collection::vec(prop_oneof![Just(0), 0..40_u32], 0..12);
    let cells = prop::collection::vec((any::<u32>(), 0..40_u32, 0.01..1.0_f64, 0.01..1.0_f64), 1..20);
    (counts(), counts(), cells, arrivals(), bursts(), any::<u64>()).prop_map(
        |(first, second, cells, arrivals, (bursts, places), seed)| {
            let cells_of: Vec<(u32, u32)> = cells.iter().map(|cell| (cell.0, cell.1)).collect();
            let weights =
                [cells.iter().map(|cell| cell.2).collect(), cells.iter().map(|cell| cell.3).collect()];
            let mut plan = Plan { seed, bursts, ..plan([first, second], &cells_of, weights, arrivals) };
            plan.sources.iter_mut().zip(places).for_each(|(source, place)| source.bursts = place);
            plan
        },
    )
}

proptest! {
    #[test]
    fn each_second_and_stream_has_its_number_of_requests(plan in plans()) {
        let found = all(&plan, 1, 100);
        for (source, process) in plan.sources.iter().zip([Process::Backend, Process::Other]) {
            let mut counts = vec![0; plan.seconds()];
            for at in (0..found.len()).filter(|at| found.process[*at] == process as u8) {
                counts[(found.time_us[at] / 1_000_000) as usize] += 1;
            }
            let mut expected = source.counts.clone();
            expected.resize(plan.seconds(), 0);
            prop_assert_eq!(counts, expected);
        }
    }

    #[test]
    fn threads_and_batches_change_nothing(plan in plans(), threads in 0..5_usize, most in 0..200_usize) {
        prop_assert_eq!(comparable(all(&plan, 1, usize::MAX)), comparable(all(&plan, threads, most)));
    }

    #[test]
    fn times_are_in_order_and_requests_within_their_segments(plan in plans()) {
        let found = all(&plan, 2, 64);
        prop_assert!(found.time_us.is_sorted());
        for at in 0..found.len() {
            let request = found.get(at);
            prop_assert!(request.offset + u64::from(request.bytes) <= SEGMENT);
            prop_assert_eq!(request.offset % 8192, 0);
            let size_kb = if request.operation == Operation::Read { 0 } else { request.bytes / 1024 };
            prop_assert!(plan.cells.contains(&(request.segment, size_kb, None)));
        }
    }

    #[test]
    fn of_n_requests_one_lies_in_each_nth_of_a_second(count in 1..5000_u32) {
        let plan = plan([vec![0, count], vec![]], &[(1, 0)], [vec![1.0], vec![0.0]], Arrivals::Stratified);
        for (at, time) in all(&plan, 1, 1).time_us.into_iter().enumerate() {
            let inside = (time - 1_000_000) as f64 * f64::from(count) / 1e6;
            // Times are whole microseconds, rounded down.
            prop_assert!(inside <= (at + 1) as f64 && inside + f64::from(count) / 1e6 >= at as f64);
        }
    }
}

/// How far counts are from what was expected of them: χ² over its degrees of freedom.
fn chi_square(found: &[u64], expected: &[f64]) -> f64 {
    let sum: f64 =
        found.iter().zip(expected).map(|(count, mean)| (*count as f64 - mean).powi(2) / mean).sum();
    sum / (found.len() - 1) as f64
}

#[test]
fn cells_have_their_frequencies() {
    let cells: Vec<(u32, u32)> = (0..200).map(|cell| (cell / 4, cell % 4)).collect();
    let weights: Vec<f64> = (0..200).map(|cell| 1.0 / f64::from(cell + 1)).collect();
    let sum: f64 = weights.iter().sum();
    let found = all(
        &plan([vec![50_000; 20], vec![]], &cells, [weights.clone(), weights.clone()], Arrivals::Stratified),
        1,
        1,
    );
    let mut counts = vec![0; 200];
    for at in 0..found.len() {
        let request = found.get(at);
        let size = if request.operation == Operation::Read { 0 } else { request.bytes / 1024 };
        counts[(request.segment * 4 + size) as usize] += 1;
    }
    let expected: Vec<f64> = weights.iter().map(|weight| weight / sum * 1e6).collect();
    // χ²/199 has a standard deviation of 0.1.
    assert!((0.6..1.4).contains(&chi_square(&counts, &expected)));
}

#[test]
fn sizes_and_offsets_have_their_distributions() {
    let cells = [(3, 2), (4, 2), (5, 2)];
    let mut plan = plan([vec![300_000], vec![]], &cells, [vec![1.0; 3], vec![0.0; 3]], Arrivals::Poisson);
    plan.sizes = vec![vec![1025, 1100, 1600, 2048], vec![1500]];
    (plan.cells[0].2, plan.cells[1].2) = (Some(0), Some(1));
    let found = all(&plan, 1, 1);
    let segments = &found.segment;
    let of_segment = |segment| (0..found.len()).filter(move |at| segments[*at] == segment);
    for (segment, sizes) in [(3, &[1025, 1100, 1600, 2048][..]), (4, &[1500]), (5, &[2048])] {
        let mut counts = BTreeMap::new();
        of_segment(segment).for_each(|at| *counts.entry(found.bytes[at]).or_insert(0_u64) += 1);
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), sizes);
        let expected = vec![counts.values().sum::<u64>() as f64 / sizes.len() as f64; sizes.len()];
        assert!(sizes.len() == 1 || chi_square(&counts.into_values().collect::<Vec<_>>(), &expected) < 6.0);
    }
    let mut pages = vec![0; 2048];
    of_segment(3).for_each(|at| pages[(found.offset[at] / 8192) as usize] += 1);
    assert!((0.8..1.2).contains(&chi_square(&pages, &vec![100_000.0 / 2048.0; 2048])));
}

#[test]
fn poisson_times_are_uniform_and_have_poisson_gaps() {
    let plan = plan([vec![100_000], vec![]], &[(1, 0)], [vec![1.0], vec![0.0]], Arrivals::Poisson);
    let times = all(&plan, 1, 1).time_us;
    let mut tenths = vec![0; 100];
    for time in &times {
        tenths[(time / 10_000) as usize] += 1;
    }
    // A Poisson process has an index of dispersion of 1; 99 degrees of freedom give it a deviation of 0.14.
    assert!((0.5..1.5).contains(&chi_square(&tenths, &[1000.0; 100])));
    let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((0.95..1.05).contains(&(variance.sqrt() / mean)));
}

/// One kind of burst: a read, and 40 µs later a write.
fn pair(starts: Arrivals) -> Bursts {
    Bursts { starts, sizes: vec![2], offsets_us: vec![0, 40], operations: vec![0, 1] }
}

/// A plan of one source whose requests come in pairs, a second's number of them.
fn of_pairs(counts: Vec<u32>, starts: Arrivals, writes: f64) -> Plan {
    let weights = [vec![1.0 - writes, writes], vec![0.0, 1.0]];
    let mut plan = plan([counts, vec![]], &[(1, 0), (2, 4)], weights, Arrivals::Stratified);
    plan.bursts = vec![pair(starts)];
    plan.sources[0].bursts = Some(0);
    plan
}

#[test]
fn the_requests_of_a_burst_keep_their_distances_and_one_is_cut() {
    let times = all(&of_pairs(vec![101], Arrivals::Stratified, 0.5), 1, 1).time_us;
    let begins: Vec<usize> = (0..101).filter(|at| times.binary_search(&(times[*at] + 40)).is_ok()).collect();
    assert_eq!(begins.len(), 50);
    // One of 51 bursts begins in each 51st of the second, the cut one too.
    let mut starts = begins.iter().map(|at| times[*at]).collect::<Vec<_>>();
    starts.extend(
        times
            .iter()
            .filter(|time| !times.contains(&(**time + 40)) && !times.contains(&(**time - 40)) && **time != 0),
    );
    starts.sort_unstable();
    for (at, start) in starts.iter().enumerate() {
        assert_eq!(*start as usize * 51 / 1_000_000, at);
    }
}

#[test]
fn bursts_keep_their_operations_where_the_cells_allow_it() {
    for writes in [0.5, 0.2, 0.9] {
        let found = all(&of_pairs(vec![20_000; 5], Arrivals::Poisson, writes), 1, 1);
        let (mut share, mut first, mut second) = (0, 0, 0);
        for at in 0..found.len() {
            let is_write = i32::from(found.operation[at]);
            share += is_write;
            if found.time_us.binary_search(&(found.time_us[at] + 40)).is_ok() {
                first += is_write;
            }
            if found.time_us.binary_search(&(found.time_us[at] - 40)).is_ok() {
                second += is_write;
            }
        }
        // Of 100,000 requests the share of writes has a deviation of 0.0016.
        assert!((f64::from(share) / 1e5 - writes).abs() < 0.008);
        // Requests that lie 40 µs apart by chance are two of a hundred.
        let expected = [(2.0 * writes - 1.0).max(0.0), (2.0 * writes).min(1.0)];
        assert!((f64::from(first) / 5e4 - expected[0]).abs() < 0.04, "{writes}: {first}");
        assert!((f64::from(second) / 5e4 - expected[1]).abs() < 0.04, "{writes}: {second}");
    }
}

#[test]
fn what_reaches_over_the_end_of_a_second_goes_to_its_beginning() {
    let mut plan = of_pairs(vec![2; 2000], Arrivals::Poisson, 0.5);
    plan.bursts[0].offsets_us[1] = 600_000;
    let times = all(&plan, 1, 1).time_us;
    let apart = |pair: &[i64]| (pair[1] - pair[0]) / 100 == 6000 || (pair[1] - pair[0]) / 100 == 4000;
    assert!(times.chunks(2).all(apart));
    let over = times.chunks(2).filter(|pair| pair[1] - pair[0] == 400_000).count();
    // Six of ten, with a deviation of 22.
    assert!((1100..1300).contains(&over), "{over}");
}

/// The requests in each hundredth of 40 seconds.
fn in_hundredths(times: &[i64]) -> Vec<u64> {
    let mut counts = vec![0; 4000];
    for time in times {
        counts[(time / 10_000) as usize] += 1;
    }
    counts
}

#[test]
fn bursts_have_their_index_of_dispersion() {
    let mut plan = of_pairs(vec![10_000; 40], Arrivals::Poisson, 0.5);
    plan.bursts = vec![Bursts {
        starts: Arrivals::Poisson,
        sizes: vec![10, 30],
        offsets_us: (0..40).map(|at| at * 5).collect(),
        operations: vec![0; 40],
    }];
    let times = all(&plan, 1, 1).time_us;
    let counts = in_hundredths(&times);
    // Σ size² / Σ size = 25, less a hundredth because a second's number is given; with a deviation of 0.6.
    let found = chi_square(&counts, &vec![100.0; 4000]);
    assert!((22.5..27.0).contains(&found), "{found}");
    plan.bursts[0].starts = Arrivals::Stratified;
    let times = all(&plan, 1, 1).time_us;
    let counts = in_hundredths(&times);
    // Five bursts begin in each window, so only their sizes differ: Σ (size − 20)² / Σ size = 5, and what the ends give.
    let found = chi_square(&counts, &vec![100.0; 4000]);
    assert!((5.0..10.0).contains(&found), "{found}");
}

#[test]
fn to_cut_bursts_does_not_make_them_smaller() {
    // 100 requests of 199 in bursts are in one of 100, the others come alone; a second has 150.
    let mut plan = of_pairs(vec![150; 2000], Arrivals::Stratified, 0.5);
    plan.bursts = vec![Bursts {
        starts: Arrivals::Stratified,
        sizes: [vec![1; 99], vec![100]].concat(),
        offsets_us: vec![0; 199],
        operations: vec![0; 199],
    }];
    let times = all(&plan, 1, 1).time_us;
    let in_large: usize =
        times.chunk_by(|one, next| one == next).map(<[i64]>::len).filter(|size| *size > 9).sum();
    let share = in_large as f64 / times.len() as f64;
    assert!((0.46..0.55).contains(&share), "{share}");
}

#[test]
fn numbers_at_their_ends_do_not_overflow() {
    let mut plan = plan(
        [vec![3], vec![2]],
        &[(u32::MAX, 0), (0, 4_194_303)],
        [vec![1.0, 1.0], vec![0.0, 5e-324]],
        Arrivals::Poisson,
    );
    plan.segment_bytes = u64::MAX;
    plan.seed = u64::MAX;
    plan.sizes = vec![vec![u32::MAX]];
    plan.cells[0].2 = Some(0);
    for page_bytes in [1, u32::MAX] {
        plan.page_bytes = page_bytes;
        let found = all(&plan, 3, usize::MAX);
        assert_eq!(found.len(), 5);
        assert!((0..5).all(|at| found.offset[at].checked_add(u64::from(found.bytes[at])).is_some()));
    }
}

#[test]
fn what_is_wrong_with_a_plan_is_said() {
    let good = || plan([vec![1], vec![1]], &[(1, 0)], [vec![1.0], vec![1.0]], Arrivals::Stratified);
    let said = |change: fn(&mut Plan)| {
        let mut plan = good();
        change(&mut plan);
        Generator::new(plan, 1).unwrap_err()
    };
    assert_eq!(said(|plan| plan.page_bytes = 0), PlanError::Page { page_bytes: 0, segment_bytes: SEGMENT });
    assert_eq!(said(|plan| plan.sources[0].process = "x".into()), PlanError::Process("x".into()));
    assert_eq!(said(|plan| plan.sources[1].weights.clear()), PlanError::Weights { weights: 0, cells: 1 });
    assert_eq!(said(|plan| plan.sources[1].weights[0] = f64::NAN), PlanError::Distribution);
    assert_eq!(
        said(|plan| plan.sources[1].counts[0] = u32::MAX),
        PlanError::TooMany { second: 0, requests: 1 << 32 }
    );
    assert_eq!(said(|plan| plan.cells[0].2 = Some(0)), PlanError::NoSizes { cell: 0 });
    let empty: fn(&mut Plan) = |plan| (plan.cells[0].2, plan.sizes) = (Some(0), vec![vec![]]);
    assert_eq!(said(empty), PlanError::NoSizes { cell: 0 });
    assert_eq!(said(|plan| plan.sources[0].bursts = Some(0)), PlanError::Bursts);
    let damages: [fn(&mut Bursts); 5] = [
        |bursts| bursts.sizes[0] = 0,
        |bursts| bursts.sizes[0] = u32::MAX,
        |bursts| bursts.sizes.clear(),
        |bursts| bursts.offsets_us[0] = 1_000_000,
        |bursts| bursts.operations[0] = 2,
    ];
    for damage in damages {
        let mut plan = Plan { bursts: vec![pair(Arrivals::Poisson)], ..good() };
        damage(&mut plan.bursts[0]);
        assert_eq!(Generator::new(plan, 1).unwrap_err(), PlanError::Bursts);
    }
    assert_eq!(said(|plan| plan.cells[0].1 = u32::MAX), PlanError::TooLarge { size_kb: u32::MAX });
    assert!(Generator::new(good(), 1).is_ok());
}
