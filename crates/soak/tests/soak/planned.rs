//! A phase planned ahead and a change made by hand before it comes.

use std::time::Duration;

use nephoscope_engine::spec::{ArrivalLaw, Level, LoadChange, MixSpec, PhaseSpec};
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
