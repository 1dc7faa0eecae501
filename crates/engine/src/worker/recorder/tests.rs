//! Whatever is recorded, and whenever intervals end, the shards hold all of it once.

use super::*;
use std::sync::mpsc::{Receiver, Sender, channel};

use nephoscope_runtime::clock::{MILLISECOND, SECOND};
use proptest::prelude::*;

use crate::histogram::{self, WindowHistogram};

fn sample(end: Nanos, outcome: Outcome, attempts: u32) -> Sample {
    Sample {
        intended: end - 3 * MILLISECOND,
        start: end - 2 * MILLISECOND,
        end,
        outcome,
        attempts,
        affected: 2,
        has_waited: false,
    }
}

#[test]
fn an_interval_holds_what_ended_in_it() {
    let (shards, received) = channel();
    let (recycle, used) = channel();
    let mut recorder = Recorder::new(0, 2, SECOND, shards, used);
    recorder.begin(10 * SECOND);
    assert_eq!(recorder.ends(), 11 * SECOND);
    recorder.add(0, &sample(SECOND / 2, Outcome::Committed, 1));
    recorder.add(0, &sample(SECOND / 2, Outcome::Committed, 3));
    recorder.add(0, &sample(SECOND / 2, Outcome::Failed, 2));
    recorder.add_error(0, &Error::new(ErrorClass::Deadlock, "40P01", "a"));
    recorder.add_error(0, &Error::new(ErrorClass::Deadlock, "40P01", "b"));
    recorder.rotate(SECOND, 0, Vec::new);
    let shard = received.try_recv().unwrap();
    assert_eq!((shard.start, shard.end, shard.series.len()), (0, SECOND, 1));
    let data = &shard.series[0].1;
    assert_eq!((data.committed, data.failed, data.retried, data.retries, data.affected), (2, 1, 1, 3, 6));
    assert_eq!((data.latency.whole().len(), data.prompt.is_empty()), (2, true));
    assert!((data.latency.whole().mean() / 3e6 - 1.0).abs() < 0.001);
    assert!((data.service.whole().mean() / 2e6 - 1.0).abs() < 0.001);
    assert_eq!(data.errors[1], 2);
    assert_eq!((shard.errors.len(), shard.errors[0].count), (1, 2));

    let mut data = shard.series.into_iter().next().unwrap().1;
    data.reset();
    assert!(data.is_empty());
    recycle.send(data).unwrap();
    // A phase begins within the interval.
    recorder.rotate(SECOND + SECOND / 4, SECOND + SECOND / 4, Vec::new);
    assert_eq!(recorder.ends(), 12 * SECOND + SECOND / 4);
    recorder.rotate(2 * SECOND, SECOND + SECOND / 4, Vec::new);
    let shards: Vec<Shard> = received.try_iter().collect();
    assert_eq!(shards.iter().map(|shard| shard.phase).collect::<Vec<_>>(), [0, SECOND + SECOND / 4]);
    assert!(shards.iter().all(|shard| shard.series.is_empty()));
}

#[test]
fn an_error_storm_keeps_few_messages_and_every_count() {
    let (shards, received) = channel();
    let (_recycle, used) = channel();
    let mut recorder = Recorder::new(0, 1, SECOND, shards, used);
    recorder.begin(0);
    for number in 0..10_000 {
        recorder.add_error(0, &Error::other(format!("key {number} is taken")));
    }
    recorder.rotate(SECOND, 0, Vec::new);
    let shard = received.try_recv().unwrap();
    assert_eq!(shard.errors.len(), NOTES);
    assert_eq!(shard.series[0].1.errors[CLASSES - 1], 10_000);
}

/// Something that happens on a worker, after a time.
#[derive(Clone, Debug)]
enum Event {
    Sample {
        series: usize,
        outcome: Outcome,
        attempts: u32,
        waited: Nanos,
    },
    Error {
        series: usize,
        class: usize,
    },
    Lag,
    /// A phase begins.
    Phase,
    /// The receiver sends back what it has read.
    Recycle,
}

fn event() -> impl Strategy<Value = Event> {
    let outcome = prop_oneof![Just(Outcome::Committed), Just(Outcome::Aborted), Just(Outcome::Failed)];
    prop_oneof![
        6 => (0..3_usize, outcome, 1..4_u32, 0..20 * SECOND)
            .prop_map(|(series, outcome, attempts, waited)| Event::Sample { series, outcome, attempts, waited }),
        2 => (0..3_usize, 0..CLASSES).prop_map(|(series, class)| Event::Error { series, class }),
        1 => Just(Event::Lag),
        1 => Just(Event::Phase),
        1 => Just(Event::Recycle),
    ]
}

/// What a series came to: counts in the order of [`SeriesData`], and the latencies.
type Sums = ([u64; 5], [u64; CLASSES], WindowHistogram);

fn expected(sums: &mut Sums, event: &Event) {
    match *event {
        Event::Sample { outcome, attempts, waited, .. } => {
            sums.0[outcome as usize] += 1;
            sums.0[3] += u64::from(attempts > 1 && outcome != Outcome::Failed);
            sums.0[4] += u64::from(attempts - 1);
            if outcome == Outcome::Committed {
                histogram::record(&mut sums.2, waited);
            }
        }
        Event::Error { class, .. } => sums.1[class] += 1,
        Event::Lag | Event::Phase | Event::Recycle => {}
    }
}

fn add(sums: &mut Sums, data: &SeriesData) {
    let counts = [data.committed, data.aborted, data.failed, data.retried, data.retries];
    sums.0.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    sums.1.iter_mut().zip(data.errors).for_each(|(sum, count)| *sum += count);
    data.prompt.add_to(&mut sums.2);
    data.latency.add_to(&mut sums.2);
    for times in [&data.latency, &data.service] {
        assert_eq!(times.whole().len() + data.prompt.whole().len(), data.committed);
    }
}

const ORIGIN: Nanos = 77 * SECOND;

/// A recorder, driven as a worker drives it, and the reader of its shards.
struct Bench {
    recorder: Recorder,
    received: Receiver<Shard>,
    recycle: Sender<Box<SeriesData>>,
    now: Nanos,
    phase: Nanos,
    /// Events since the tenants' gauges were last taken.
    gauge: u64,
    /// The end of the last shard, and what the shards have told: series, lags, gauges.
    end: Nanos,
    told: (Vec<Sums>, u64, u64),
    #[allow(clippy::vec_box)] // As the recorder has them.
    held: Vec<Box<SeriesData>>,
}

fn nothing() -> (Vec<Sums>, u64, u64) {
    ((0..3).map(|_| ([0; 5], [0; CLASSES], histogram::empty())).collect(), 0, 0)
}

impl Bench {
    fn new() -> Self {
        let (shards, received) = channel();
        let (recycle, used) = channel();
        let mut recorder = Recorder::new(0, 3, SECOND, shards, used);
        recorder.begin(ORIGIN);
        let (told, held) = (nothing(), Vec::new());
        Self { recorder, received, recycle, now: 0, phase: 0, gauge: 0, end: 0, told, held }
    }

    fn rotate(&mut self, at: Nanos) {
        let gauge = &mut self.gauge;
        let gauges = || vec![TenantGauges { arrivals: std::mem::take(gauge), ..TenantGauges::default() }];
        self.recorder.rotate(at, self.phase, gauges);
    }

    fn wait(&mut self, time: Nanos) {
        self.now += time;
        while self.recorder.ends() <= ORIGIN + self.now {
            self.rotate(self.recorder.ends() - ORIGIN);
        }
    }

    fn take(&mut self, event: &Event) {
        self.gauge += 1;
        match *event {
            Event::Sample { series, outcome, attempts, waited } => {
                let end = ORIGIN + self.now;
                let (intended, start) = (end - waited, end - waited / 2);
                self.recorder.add(
                    series,
                    &Sample { intended, start, end, outcome, attempts, affected: 0, has_waited: false },
                );
            }
            Event::Error { series, class } => {
                self.recorder.add_error(series, &Error::new(ErrorClass::ALL[class], "", "planted"));
            }
            Event::Lag => self.recorder.add_lag(1),
            Event::Phase => {
                self.phase = self.now;
                self.rotate(self.now);
            }
            Event::Recycle => self.held.drain(..).for_each(|mut data| {
                data.reset();
                self.recycle.send(data).unwrap();
            }),
        }
    }

    fn read(&mut self) {
        for shard in self.received.try_iter() {
            assert_eq!(shard.start, self.end, "a shard begins where the one before has ended");
            assert!(shard.end > shard.start && shard.phase <= shard.start);
            let place = |time| (time - shard.phase) / SECOND;
            assert_eq!(place(shard.start), place(shard.end - 1), "a shard is of one interval");
            self.end = shard.end;
            self.told.1 += shard.lag.map_or(0, |lag| lag.whole().len());
            self.told.2 += shard.tenants[0].arrivals;
            for (series, data) in shard.series {
                add(&mut self.told.0[series], &data);
                self.held.push(data);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn shards_cut_at_any_time_add_up_to_the_whole(
        events in prop::collection::vec((prop_oneof![Just(0), 0..3 * SECOND], event()), 1..120),
    ) {
        let (mut bench, mut whole) = (Bench::new(), nothing());
        for (after, event) in events.iter().chain([&(1, Event::Lag), &(1, Event::Phase)]) {
            bench.wait(*after);
            bench.take(event);
            bench.read();
            match *event {
                Event::Sample { series, .. } | Event::Error { series, .. } => {
                    expected(&mut whole.0[series], event);
                }
                Event::Lag => whole.1 += 1,
                Event::Phase | Event::Recycle => {}
            }
            whole.2 += 1;
        }
        prop_assert_eq!(bench.end, bench.now, "the last phase has cut the last shard");
        prop_assert_eq!(bench.told, whole);
    }
}
