//! Idle times: sessions that are not wanted give their connections back where the load asks for it, and it is told how
//! long the load waited when it came back.

use crate::support::{SECOND, SimBase, phase, run, spec};
use serde_json::json;

/// A load, an idle time of half a second from 0.5 s on, and the load again.
fn come_and_go(url: &str, threads: usize, release: bool) -> crate::support::Story {
    let phases = [
        phase("before", 0.5, json!({"concurrency": 6, "mix": {"write": 1}, "release": release})),
        phase("idle", 0.5, json!({"concurrency": 0})),
        phase("after", 0.8, json!({"concurrency": 4})),
    ];
    let mut spec = spec(url, phases);
    spec.threads = threads;
    run(&spec)
}

/// The waits that were told in a phase, in seconds.
fn woken(story: &crate::support::Story, phase: &str) -> Vec<f64> {
    let of_phase = story.phase(phase);
    let told = of_phase.0.iter().flat_map(|interval| &interval.tenants).filter_map(|tenant| tenant.woken);
    told.map(|wait| wait as f64 / SECOND).collect()
}

#[test]
fn connections_of_idle_sessions_stand_unless_they_are_to_be_released() {
    for threads in [1, 2] {
        let base = SimBase::new("latency=constant(3ms)");
        let story = come_and_go(&base.url, threads, false);
        assert_eq!(story.phase("idle").gauge(|tenant| tenant.connected).last(), Some(&6));
        assert_eq!(base.connections(), 6);
        assert_eq!(base.commits(), story.all().committed());

        let base = SimBase::new("latency=constant(3ms)");
        let story = come_and_go(&base.url, threads, true);
        assert_eq!(story.phase("idle").gauge(|tenant| tenant.connected).last(), Some(&0));
        assert_eq!(story.phase("after").gauge(|tenant| tenant.connected).last(), Some(&4));
        assert_eq!(base.connections(), 6 + 4);
        assert!(story.phase("after").committed() > 50);
        let counted = story.all().counted(|tenant| tenant.lost + tenant.restored + tenant.refused);
        assert_eq!(counted, 0, "whoever gives a connection back has not lost it");
        assert_eq!((base.commits(), story.all().failed()), (story.all().committed(), 0));
    }
}

#[test]
fn what_is_released_comes_back_for_an_open_load() {
    let base = SimBase::new("latency=constant(3ms)");
    let phases = [
        phase("before", 0.3, json!({"concurrency": 5, "mix": {"write": 1}})),
        phase("idle", 0.3, json!({"concurrency": 0, "release": true})),
        phase("open", 0.5, json!({"rate": 200})),
    ];
    let mut spec = spec(&base.url, phases);
    spec.tenants[0].sessions = 8;
    let story = run(&spec);
    assert_eq!(story.phase("idle").gauge(|tenant| tenant.connected).last(), Some(&0));
    assert_eq!(story.phase("open").counted(|tenant| tenant.arrivals), 100);
    assert_eq!((base.connections(), base.commits()), (5 + 8, story.all().committed()));
}

#[test]
fn how_long_the_load_waits_after_an_idle_time_is_told_once() {
    for threads in [1, 2] {
        // The server stands still until 0.3 s after the load has come back.
        let base = SimBase::new("latency=constant(3ms)&stall=600ms+700ms");
        let story = come_and_go(&base.url, threads, true);
        assert!(woken(&story, "before").is_empty() && woken(&story, "idle").is_empty());
        let first = woken(&story, "after").into_iter().reduce(f64::min).unwrap();
        assert!((0.3..0.5).contains(&first), "{first}");
        assert!(woken(&story, "after").len() <= threads);
    }
}

#[test]
fn who_is_not_wanted_does_not_knock_at_a_server_that_refuses() {
    let base = SimBase::new("latency=constant(3ms)&outage=300ms+800ms");
    let story = come_and_go(&base.url, 1, true);
    assert!(story.phase("before").counted(|tenant| tenant.refused) > 0);
    // Who knocked when the idle time began may hear of it a little later.
    let knocks = story.between(0.8, 1.0).counted(|tenant| tenant.refused);
    assert_eq!(knocks, 0);
    let first = woken(&story, "after").into_iter().reduce(f64::min).unwrap();
    assert!(first > 0.1, "refused for 0.1 s: {first}");
    assert!(story.phase("after").committed() > 10);
}
