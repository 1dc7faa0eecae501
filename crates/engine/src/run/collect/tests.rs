//! Shards of any order, cut by workers that hear of changes early or late, make whole intervals.

use super::*;
use crate::histogram::WindowHistogram;
use crate::spec::{PhaseKind, Role};
use crate::worker::recorder::{SeriesData, TenantGauges};
use nephoscope_runtime::ThreadUse;
use proptest::prelude::*;
use std::sync::mpsc::channel;

const LENGTH: Nanos = 100;

fn phase() -> Arc<PhaseSpec> {
    let (labels, loads) = (BTreeMap::new(), BTreeMap::new());
    let (name, kind, history) = (String::new(), PhaseKind::Measure, false);
    Arc::new(PhaseSpec { name, kind, seconds: None, labels, history, retry: None, loads })
}

fn shard(worker: usize, phase: Nanos, start: Nanos, end: Nanos, times: &[Nanos]) -> Shard {
    let mut data = Box::<SeriesData>::default();
    for time in times {
        data.committed += 1;
        data.latency.record(*time);
    }
    let tenants = vec![TenantGauges { arrivals: times.len() as u64, ..TenantGauges::default() }];
    let series = if times.is_empty() { Vec::new() } else { vec![(0, data)] };
    Shard {
        worker,
        phase,
        start,
        end,
        series,
        lag: None,
        tenants,
        errors: Vec::new(),
        used: ThreadUse::default(),
    }
}

/// What a worker sends: an interval ends where a multiple of the length or a phase does, but a worker that is
/// late to hear of a phase ends its interval with the multiple. Before the end of the run all have heard of all.
fn shards(worker: usize, phases: &[Nanos], end: Nanos, times: &[Nanos], late: bool) -> Vec<Shard> {
    let mut cuts: Vec<Nanos> = (1..=end / LENGTH).map(|number| number * LENGTH).chain([end]).collect();
    cuts.extend(phases.iter().filter(|_| !late));
    cuts.sort_unstable();
    cuts.dedup();
    let (mut sent, mut start, mut of_shard) = (Vec::new(), 0, times.chunks(3));
    for cut in cuts.into_iter().filter(|cut| *cut > 0) {
        let phase = *phases.iter().rfind(|begins| **begins <= start).unwrap();
        sent.push(shard(worker, phase, start, cut, of_shard.next().unwrap_or_default()));
        start = cut;
    }
    sent
}

proptest! {
    /// However the workers' shards come between each other, they make whole intervals without a gap, in the
    /// order of time and of the phases, and what is in them is what was sent.
    #[test]
    fn shards_of_any_order_add_up_to_the_whole(
        borders in prop::collection::btree_set(1..=900_u64, 0..5),
        end in 990..1300_u64,
        workers in prop::collection::vec((prop::collection::vec(1..5_000_000_u64, 0..30), any::<bool>()), 1..4),
        order in prop::collection::vec(any::<prop::sample::Index>(), 80),
    ) {
        let phases: Vec<Nanos> = [0].into_iter().chain(borders).collect();
        let name = SeriesName { tenant: "t".to_owned(), role: Role::Rw, transaction: "x".to_owned() };
        let (recycle, _taken): (Vec<Recycle>, Vec<_>) = workers.iter().map(|_| channel()).unzip();
        let coming = phases.iter().map(|at| (*at, phase())).collect();
        let mut collector = Collector::new(vec![name], recycle, LENGTH, coming);
        let mut whole: WindowHistogram = histogram::empty();
        let mut waiting: Vec<(usize, VecDeque<Shard>)> = Vec::new();
        for (worker, (times, late)) in workers.iter().enumerate() {
            let sent = shards(worker, &phases, end, times, *late);
            let of_worker = sent.iter().flat_map(|shard| &shard.series);
            of_worker.for_each(|(_, data)| data.latency.add_to(&mut whole));
            waiting.push((worker, sent.into()));
        }
        for draw in order.iter().cycle() {
            if waiting.is_empty() {
                break;
            }
            let turn = draw.index(waiting.len());
            match waiting[turn].1.pop_front() {
                Some(shard) => collector.add(shard),
                None => collector.finished(waiting.remove(turn).0),
            }
        }
        let mut merged: WindowHistogram = histogram::empty();
        let (mut through, mut begun, mut arrivals) = (0, 0, 0);
        while let Some(record) = collector.take() {
            match record {
                Record::Phase { at, number, .. } => {
                    prop_assert_eq!((at, at, number), (phases[begun], through, begun as u32));
                    begun += 1;
                }
                Record::Interval(interval) => {
                    prop_assert_eq!((interval.start, interval.phase as usize + 1), (through, begun));
                    through = interval.end;
                    arrivals += interval.tenants[0].arrivals;
                    interval.series.iter().for_each(|series| merged.add(&series.latency).unwrap());
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
        prop_assert_eq!((through, begun), (end, phases.len()));
        prop_assert_eq!(arrivals, whole.len());
        prop_assert_eq!(merged, whole);
    }
}
