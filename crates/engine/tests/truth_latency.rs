//! Latency read back from simulated databases whose latency is planted.
//!
//! These tests measure time on cores that others use as well, so they run one at a time, and what they plant is long
//! against the few milliseconds by which a busy machine may be late.
#![allow(clippy::unwrap_used)]

mod support;

use nephoscope_engine::histogram::WindowHistogram;
use serde_json::json;
use support::{SECOND, alone, check, phase, run, spec};

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
    let story = run(&spec);
    check::arrivals(&story);
    let (latencies, services) = queue.serve();
    let all = story.all();
    assert_eq!(all.committed() as usize, latencies.len(), "every arrival is served");
    let (latency, service) = (all.latency(), all.service());
    for q in [0.5, 0.9, 0.99, 1.0] {
        let (value, truth) = (read(&latency, q), quantile(&latencies, q));
        check::within(&format!("latency, quantile {q}"), value, truth, 0.05);
    }
    // Measured from the actual start, all but the few in flight look as if nothing had happened.
    check::within("service time, 0.9", read(&service, 0.9), quantile(&services, 0.9), 0.1);
    let hidden = quantile(&services, 0.9) < quantile(&latencies, 0.9) / 5.0;
    assert!(hidden, "the plan shows what coordinated omission hides");
    check::within("service time, max", read(&service, 1.0), quantile(&services, 1.0), 0.05);
}

#[test]
fn a_stall_of_two_seconds_at_500_a_second_is_in_the_latency_of_all_who_waited() {
    let _alone = alone();
    stall_is_read_back(&Queue {
        rate: 500.0,
        seconds: 20.0,
        sessions: 100,
        service: 0.04,
        stall: (8.0, 10.0),
    });
}

#[test]
fn a_short_stall_with_few_sessions_is_read_back_with_its_backlog() {
    let _alone = alone();
    stall_is_read_back(&Queue { rate: 100.0, seconds: 5.0, sessions: 10, service: 0.05, stall: (1.5, 2.5) });
}
