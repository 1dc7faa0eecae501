//! What must hold of every run, and comparisons that say what they compared.

use std::collections::BTreeSet;

use nephoscope_engine::histogram::WindowHistogram;
use nephoscope_engine::{Interval, LoadSpec};

use super::Story;

/// The accounting identity, and intervals without a gap, an overlap or a second phase.
pub fn every_run(story: &Story, spec: &LoadSpec) {
    story.intervals.iter().for_each(interval);
    course(story, spec);
}

/// As [`every_run`] but for what each interval must say of itself, which is [`interval`].
pub fn course(story: &Story, spec: &LoadSpec) {
    let all = story.all();
    let (committed, aborted, failed) = (all.committed(), all.sum(|of| of.aborted), all.failed());
    let totals = story.totals();
    assert_eq!(
        totals.started,
        committed + aborted + failed + totals.in_flight,
        "started = {committed} committed + {aborted} aborted + {failed} failed + {} in flight",
        totals.in_flight
    );
    phases(story);
    intervals(story, spec);
}

/// In a run whose load is open all along every arrival is started, or is told of as unstarted.
#[track_caller]
pub fn arrivals(story: &Story) {
    let (all, started) = (story.all(), story.totals().started);
    let (arrivals, unstarted) = (all.counted(|of| of.arrivals), all.sum(|of| of.unstarted));
    assert_eq!(arrivals, started + unstarted, "arrivals = {started} started + {unstarted} unstarted");
    assert!(all.counted(|of| of.dropped) <= unstarted, "what is dropped is never started");
}

fn phases(story: &Story) {
    for (number, phase) in story.phases.iter().enumerate() {
        assert_eq!(phase.number as usize, number, "phases are numbered as they begin");
        let first = story.intervals.iter().find(|interval| interval.phase == phase.number);
        assert_eq!(
            first.map(|interval| interval.start),
            Some(phase.at),
            "{:?} has its time",
            phase.spec.name
        );
    }
    assert_eq!(story.phase_names().last(), Some(&"drain"));
    let names: Vec<&str> = story.phase_names();
    assert_eq!(names.iter().filter(|name| **name == "drain").count(), 1, "{names:?}");
}

fn intervals(story: &Story, spec: &LoadSpec) {
    let length = spec.interval_ms * 1_000_000;
    let (mut end, mut phase, mut begun) = (0, None, 0);
    for interval in &story.intervals {
        if phase.replace(interval.phase) != Some(interval.phase) {
            begun = interval.start;
        }
        let (first, last) = (interval.start - begun, interval.end - 1 - begun);
        assert_eq!(interval.start, end, "an interval begins where the one before has ended");
        assert!(interval.end > interval.start);
        let whole = first / length == last / length;
        assert!(whole, "{}–{} goes beyond {length} of its phase", interval.start, interval.end);
        end = interval.end;
    }
    assert!(story.intervals.is_sorted_by_key(|interval| interval.phase));
}

/// What an interval must say of itself.
pub fn interval(of: &Interval) {
    assert!((0.0..=1.0).contains(&of.busiest), "the share of a core is {}", of.busiest);
    let mut names = BTreeSet::new();
    for series in &of.series {
        let name = (&series.name.tenant, series.name.role.name(), &series.name.transaction);
        assert!(names.insert(name), "{name:?} stands twice in an interval");
        // Who has waited for a session since an earlier phase is in its latency.
        assert!(series.latency.len() <= series.committed);
        assert_eq!(series.service.len(), series.latency.len());
        assert!(len(series.failures.as_ref()) <= series.failed);
        assert!(len(series.censored.as_ref()) >= series.unstarted);
        assert!(series.service.max() <= series.latency.max(), "service time is a part of latency");
        assert!(series.retried <= series.committed + series.aborted);
        assert!(series.retried <= series.retries);
    }
}

fn len(histogram: Option<&WindowHistogram>) -> u64 {
    histogram.map_or(0, WindowHistogram::len)
}

/// Asserts that a value lies within a share of the truth.
#[track_caller]
pub fn within(what: &str, value: f64, truth: f64, share: f64) {
    let error = value / truth - 1.0;
    assert!(
        error.abs() <= share,
        "{what}: {value} instead of {truth}, {:.2} % off and {:.2} % allowed",
        error * 100.0,
        share * 100.0
    );
}

/// Asserts that a time in seconds lies within a share of the truth, and above that no more than the machine was late.
#[track_caller]
pub fn time(what: &str, value: f64, truth: f64, share: f64, slack: f64) {
    let range = truth * (1.0 - share)..=truth * (1.0 + share) + slack;
    assert!(range.contains(&value), "{what}: {value} s instead of {truth} s, {range:?} allowed");
}

/// Asserts that a count could come from independent draws: within five standard deviations, which one run in two
/// million exceeds by chance.
#[track_caller]
pub fn binomial(what: &str, count: u64, draws: u64, probability: f64) {
    let mean = draws as f64 * probability;
    let bound = 5.0 * (mean * (1.0 - probability)).sqrt() + 1.0;
    let off = (count as f64 - mean).abs();
    assert!(off <= bound, "{what}: {count} of {draws}, expected {mean:.1} ± {bound:.1}");
}
