//! Runs planned by hand: a change before a phase that was planned ahead, a commit that a shutdown answers.

use std::time::Duration;

use nephoscope_drivers::Settings;
use nephoscope_engine::spec::{ArrivalLaw, Level, LoadChange, MixSpec, PhaseSpec, Reads};
use nephoscope_engine::{Record, Simulation};

use crate::draw::{Draw, rest};

fn phase(name: &str, seconds: f64, load: &LoadChange) -> PhaseSpec {
    let load = LoadChange { mix: Some(MixSpec::Name("all".to_owned())), ..load.clone() };
    PhaseSpec {
        name: name.to_owned(),
        seconds: Some(seconds),
        loads: [("*".to_owned(), load)].into(),
        ..rest()
    }
}

#[test]
fn what_a_planned_phase_does_not_say_stays_as_it_was_set_by_hand() {
    let mut spec = Draw::new(1).spec(1, 1.0);
    let closed = LoadChange { concurrency: Some(Level::At(1.0)), ..LoadChange::default() };
    let open = LoadChange { rate: Some(Level::At(1000.0)), ..LoadChange::default() };
    spec.interval_ms = 100;
    spec.phases = vec![phase("closed", 1.0, &closed), phase("open", 5.0, &open)];
    let mut simulation = Simulation::start(&spec).unwrap();
    let by_hand = LoadChange { arrivals: Some(ArrivalLaw::Poisson), ..open };
    simulation.run().change_at(phase("by hand", 1.0, &by_hand), false, 500_000_000).unwrap();
    simulation.advance(7_000_000_000);
    let (mut phase, mut counts) = (0, Vec::new());
    while let Some(record) = simulation.run().next(Duration::ZERO) {
        match record {
            Record::Phase { number, .. } => phase = number,
            Record::Interval(interval) if phase == 1 => counts.push(interval.tenants[0].arrivals as f64),
            _ => {}
        }
    }
    assert_eq!(counts.len(), 50);
    let mean = counts.iter().sum::<f64>() / 50.0;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 49.0;
    assert!((0.4..2.0).contains(&(variance / mean)), "even arrivals have no variance: {counts:?}");
}

#[test]
fn a_commit_that_is_answered_by_57p01_is_never_run_again() {
    let url = "sim://soak-57p01?latency=constant(1ms)&late_error=shutting_down:0.3";
    let database = nephoscope_drivers::open(url, &Settings::default()).unwrap();
    let mut spec = Draw::new(1).spec(1, 1.0);
    spec.tenants.truncate(1);
    (spec.tenants[0].rw, spec.tenants[0].ro) = (vec![url.to_owned()], Vec::new());
    spec.tenants[0].reads = Reads::Rw;
    (spec.retry.attempts, spec.statement_timeout_ms, spec.drain_timeout_ms) = (5, 1_000, 1_000);
    let mix = MixSpec::Weights([("write".to_owned(), 1.0)].into());
    let closed = LoadChange { concurrency: Some(Level::At(8.0)), mix: Some(mix), ..LoadChange::default() };
    spec.phases = vec![PhaseSpec { seconds: Some(2.0), loads: [("*".to_owned(), closed)].into(), ..rest() }];
    let mut simulation = Simulation::start(&spec).unwrap();
    simulation.advance(4_000_000_000);
    let totals = std::iter::from_fn(|| simulation.run().next(Duration::ZERO))
        .find_map(|record| if let Record::End(ending) = record { Some(ending.totals) } else { None })
        .unwrap();
    let stored = database.admin().unwrap().query("").unwrap().rows[0][0].clone().unwrap();
    assert!(totals.uncertain > 100 && totals.in_flight == 0, "{totals:?}");
    assert_eq!(stored, totals.started.to_string(), "each transaction is there once");
    let (sure, perhaps) = totals.tallies.values().next().unwrap()["commits"];
    assert_eq!((sure + perhaps, perhaps), (totals.started as f64, totals.uncertain as f64));
}
