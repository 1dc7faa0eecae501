//! Latency read back from simulated databases whose latency is planted.
//!
//! These tests measure time on cores that others use as well, so they run one at a time, and what they plant is long
//! against the few milliseconds by which a busy machine may be late.
#![allow(clippy::unwrap_used)]

mod support;

use nephoscope_engine::histogram::WindowHistogram;
use serde_json::json;
use support::{Lateness, SECOND, SimBase, alone, check, measured, phase, run, run_to_rest, spec, watched};

/// What first-come-first-served sessions make of a constant rate: an independent little calculation.
struct Queue {
    rate: f64,
    seconds: f64,
    sessions: usize,
    service: f64,
    /// When nothing is served.
    stall: (f64, f64),
}

impl Queue {
    /// Latency and service time of each arrival, in seconds, each sorted.
    fn serve(&self) -> (Vec<f64>, Vec<f64>) {
        let mut free = vec![0.0_f64; self.sessions];
        let (mut latencies, mut services) = (Vec::new(), Vec::new());
        for arrival in 0..(self.rate * self.seconds).round() as usize {
            let due = (arrival as f64 + 0.5) / self.rate;
            let first = (0..free.len()).min_by(|a, b| free[*a].total_cmp(&free[*b])).unwrap();
            let begin = due.max(free[first]);
            let end = self.done(begin);
            free[first] = end;
            latencies.push(end - due);
            services.push(end - begin);
        }
        latencies.sort_by(f64::total_cmp);
        services.sort_by(f64::total_cmp);
        (latencies, services)
    }

    fn done(&self, begin: f64) -> f64 {
        let (stall, over) = self.stall;
        if begin + self.service <= stall || begin >= over {
            begin + self.service
        } else if begin < stall {
            over + self.service - (stall - begin)
        } else {
            over + self.service
        }
    }
}

fn quantile(sorted: &[f64], q: f64) -> f64 {
    sorted[((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1]
}

fn read(histogram: &WindowHistogram, q: f64) -> f64 {
    histogram.value_at_quantile(q) as f64 / SECOND
}

fn stall_is_read_back(queue: &Queue) {
    let (stall, over) = queue.stall;
    let length = over - stall;
    let service_ms = queue.service * 1000.0;
    let url = format!("sim://?latency=constant({service_ms}ms)&stall={stall}s+{length}s");
    let mut spec =
        spec(&url, [phase("all", queue.seconds, json!({"rate": queue.rate, "mix": {"write": 1}}))]);
    spec.tenants[0].sessions = queue.sessions;
    let (story, late) = watched(|| run(&spec));
    check::arrivals(&story);
    let (latencies, services) = queue.serve();
    let all = story.all();
    assert_eq!(all.committed() as usize, latencies.len(), "every arrival is served");
    let (latency, service) = (all.latency(), all.service());
    for q in [0.5, 0.9, 0.99, 1.0] {
        let (value, truth) = (read(&latency, q), quantile(&latencies, q));
        check::time(&format!("latency, quantile {q}"), value, truth, 0.05, late.slack());
    }
    // Measured from the actual start, all but the few in flight look as if nothing had happened.
    let (value, truth) = (read(&service, 0.75), quantile(&services, 0.75));
    check::time("service time, 0.75", value, truth, 0.05, late.slack());
    let hidden = truth < quantile(&latencies, 0.9) / 3.0;
    assert!(hidden, "the plan shows what coordinated omission hides");
    check::time("service time, max", read(&service, 1.0), quantile(&services, 1.0), 0.05, late.slack());
}

#[test]
fn a_stall_of_two_seconds_at_500_a_second_is_in_the_latency_of_all_who_waited() {
    let _alone = alone();
    let queue = Queue { rate: 500.0, seconds: 10.0, sessions: 100, service: 0.04, stall: (4.0, 6.0) };
    measured(|| stall_is_read_back(&queue));
}

#[test]
fn a_short_stall_with_few_sessions_is_read_back_with_its_backlog() {
    let _alone = alone();
    let queue = Queue { rate: 8.0, seconds: 5.0, sessions: 4, service: 0.2, stall: (1.5, 2.5) };
    measured(|| stall_is_read_back(&queue));
}

/// More arrivals than can be served, for a while; then the rest is served, in the same phase. Reads latency against the truth, give or
/// take what `slack` makes of the machine's lateness; gives service time, and that lateness.
fn queue_is_read_back(
    queue: &Queue,
    url: &str,
    sessions: usize,
    slack: impl Fn(&Lateness, f64) -> f64,
) -> (WindowHistogram, Lateness) {
    let load = json!({"rate": queue.rate, "mix": {"write": 1}});
    let mut spec = spec(url, [phase("all", queue.seconds + 4.0, load)]);
    spec.tenants[0].sessions = sessions;
    let (story, late) = watched(|| run_to_rest(&spec, queue.seconds));
    check::arrivals(&story);
    let (latencies, _) = queue.serve();
    let all = story.all();
    assert_eq!(all.committed() as usize, latencies.len(), "every arrival is served");
    let latency = all.latency();
    for q in [0.25, 0.5, 0.9, 0.99, 1.0] {
        let (what, truth) = (format!("latency, quantile {q}"), quantile(&latencies, q));
        check::time(&what, read(&latency, q), truth, 0.05, slack(&late, truth));
    }
    (all.service(), late)
}

#[test]
fn a_capacity_of_the_database_makes_a_queue_that_is_read_back() {
    let _alone = alone();
    let queue = Queue { rate: 300.0, seconds: 2.0, sessions: 4, service: 0.02, stall: (1e6, 1e6) };
    let (latencies, _) = queue.serve();
    let url = "sim://?latency=constant(20ms)&capacity=4";
    measured(|| {
        let (service, late) = queue_is_read_back(&queue, url, 300, |late, _| late.slack());
        // Sessions enough for all who wait: the queue is the database's, and service time has it, too.
        let truth = quantile(&latencies, 0.9);
        check::time("service time, 0.9", read(&service, 0.9), truth, 0.05, late.slack());
    });
}

#[test]
fn few_sessions_make_a_queue_of_the_clients_own_that_latency_has_and_service_time_has_not() {
    let _alone = alone();
    let queue = Queue { rate: 60.0, seconds: 2.0, sessions: 4, service: 0.1, stall: (1e6, 1e6) };
    // Each start waits for the end before it, so all lateness from the first on adds up.
    let whole = queue.rate * queue.seconds / 4.0;
    measured(|| {
        let slack = |late: &Lateness, _| late.slack() + whole * late.mean_slack();
        let (service, late) = queue_is_read_back(&queue, "sim://?latency=constant(100ms)", 4, slack);
        check::time("service time, 0.5", read(&service, 0.5), 0.1, 0.05, late.slack());
    });
}

type Law = fn(f64) -> f64;

#[test]
fn laws_of_service_times_are_read_back() {
    let _alone = alone();
    let laws: [(&str, Law); 3] = [
        ("uniform(50ms,250ms)", |q| 0.05 + 0.2 * q),
        ("exponential(100ms)", |q| -0.1 * (1.0 - q).ln()),
        ("constant(80ms)", |_| 0.08),
    ];
    for (law, truth) in laws {
        let load = json!({"concurrency": 150, "mix": {"write": 1}});
        let mut spec = spec(&format!("sim://?latency={law}"), [phase("all", 1.5, load)]);
        spec.threads = 2;
        measured(|| {
            let (story, late) = watched(|| run(&spec));
            let service = story.all().service();
            assert!(service.len() > 300, "{} are few", service.len());
            for q in [0.1, 0.5, 0.9] {
                let what = format!("{law}, quantile {q}");
                // A closed loop of so many has some 1,500 draws: a quantile of them is within some per cent.
                check::time(&what, read(&service, q), truth(q), 0.2, late.slack());
            }
        });
    }
}

#[test]
fn what_the_backlog_does_not_hold_is_dropped_and_counted() {
    for threads in 1..=3 {
        let base = SimBase::new("latency=constant(50ms)");
        let mut spec = spec(&base.url, [phase("all", 1.0, json!({"rate": 500, "mix": {"write": 1}}))]);
        spec.threads = threads;
        (spec.tenants[0].sessions, spec.tenants[0].backlog) = (2, 50);
        let story = run(&spec);
        check::arrivals(&story);
        let all = story.all();
        assert_eq!(all.counted(|tenant| tenant.arrivals), 500);
        // Two sessions serve at most 42 in the time; the 50 that wait at the end are never started, as the dropped ones.
        assert!((8..=42).contains(&all.committed()), "{}", all.committed());
        let backlog = story.phase("all").gauge(|tenant| tenant.backlog);
        assert!(backlog.iter().all(|waiting| *waiting <= 50), "{backlog:?}");
        assert!(backlog[3..].iter().all(|waiting| *waiting >= 48), "{backlog:?}");
        let (unstarted, dropped) = (all.sum(|of| of.unstarted), all.counted(|of| of.dropped));
        assert_eq!(unstarted, dropped + backlog.last().unwrap());
        // Those and the two that are served came in the second, one after the other, and are late by what is left of it.
        let censored = all.censored();
        assert!((unstarted..=unstarted + 2).contains(&censored.len()), "{} censored", censored.len());
        assert!((0.4..0.6).contains(&read(&censored, 0.5)), "{} s", read(&censored, 0.5));
        assert_eq!((base.connections(), base.commits()), (2, all.committed()), "sessions have a cap");
        assert_eq!(story.phase("all").gauge(|tenant| tenant.sessions), [2; 10]);
    }
}

#[test]
fn the_accounts_of_every_interval_add_up_while_arrivals_wait() {
    let mut spec =
        spec("sim://?latency=constant(40ms)", [phase("all", 1.0, json!({"rate": 400, "mix": {"write": 1}}))]);
    (spec.tenants[0].sessions, spec.tenants[0].backlog, spec.threads) = (4, 100, 2);
    let story = run(&spec);
    check::arrivals(&story);
    let (mut arrived, mut ended, mut dropped) = (0, 0, 0);
    for interval in &story.phase("all").0 {
        let tenant = &interval.tenants[0];
        arrived += tenant.arrivals;
        dropped += tenant.dropped;
        ended += interval.series.iter().map(|series| series.committed).sum::<u64>();
        // What has arrived was dropped, has ended, waits, or is in flight on one of four sessions.
        let left = arrived - dropped - tenant.backlog;
        assert!((ended..=ended + 4).contains(&left), "{left} started, {ended} ended");
    }
}

#[test]
fn lateness_of_the_client_is_told_for_those_whom_a_session_waited_for() {
    let load = json!({"rate": 200, "mix": {"write": 1}});
    let mut spec = spec("sim://?latency=constant(1ms)", [phase("all", 1.0, load)]);
    // As many sessions as arrivals: there is always one free.
    spec.tenants[0].sessions = 200;
    let all = run(&spec);
    let (lag, latency, service) = (all.all().lag(), all.all().latency(), all.all().service());
    assert_eq!((lag.len(), latency.len()), (200, 200));
    let late = latency.mean() - service.mean();
    let off = (late - lag.mean()).abs();
    assert!(off < 0.002 * latency.mean() + 2_000.0, "latency is lateness and service time: {off} ns off");
}
