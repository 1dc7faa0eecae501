//! What is planted is found by its name, with its transactions as the witness; nothing is found where nothing is planted.
#![allow(clippy::unwrap_used)]

mod planting;

use std::collections::BTreeMap;

use nephoscope_histories::{ANOMALIES, Anomaly, Checker, Finding, Options, Order, Summary, Transaction};
use planting::plants::{PLANTS, of_number};
use planting::{Simulator, WINDOW};

fn options() -> Options {
    Options {
        order: Order::RealTime,
        window: WINDOW,
        reads_before_writes: true,
        witnesses: u64::MAX,
        ..Options::default()
    }
}

const NEVER: u64 = u64::MAX;

/// Runs transactions, and plants something after each so many.
fn checked(options: Options, seed: u64, transactions: u64, between: u64) -> (Summary, u64) {
    let mut simulator = Simulator::new(seed, 5);
    let mut checker = Checker::new(options);
    let mut transaction = Transaction::default();
    let mut planted = 0;
    for at in 1..=transactions {
        simulator.next(&mut transaction);
        checker.push(&transaction).unwrap();
        if at % between == 0 {
            PLANTS[planted as usize % PLANTS.len()].put(&mut simulator, planted);
            planted += 1;
        }
    }
    simulator.close();
    while simulator.next(&mut transaction) {
        checker.push(&transaction).unwrap();
    }
    (checker.finish().unwrap(), planted)
}

/// What was found of each plant. A finding whose witness is of more than one plant, or of none, is of plant `u64::MAX`.
fn by_plant(findings: &[Finding]) -> BTreeMap<u64, Vec<(Anomaly, Order)>> {
    let mut found: BTreeMap<u64, Vec<(Anomaly, Order)>> = BTreeMap::new();
    for finding in findings {
        let mut plants: Vec<_> =
            finding.parties.iter().map(|it| of_number(it.number).unwrap_or(u64::MAX)).collect();
        plants.dedup();
        let plant = if plants.len() == 1 { plants[0] } else { u64::MAX };
        found.entry(plant).or_default().push((finding.anomaly, finding.order));
    }
    for names in found.values_mut() {
        names.sort_unstable();
    }
    found
}

#[test]
fn every_plant_is_found_by_its_name() {
    let (summary, planted) = checked(options(), 1, 120_000, 97);
    let found = by_plant(&summary.findings);
    assert!(planted > 20 * PLANTS.len() as u64);
    let mut wrong = BTreeMap::new();
    for plant in 0..planted {
        let expected = PLANTS[plant as usize % PLANTS.len()].found;
        let got = found.get(&plant).map_or(&[][..], Vec::as_slice);
        if got != expected {
            wrong.entry(plant as usize % PLANTS.len()).or_insert((plant, expected, got.to_vec()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(!found.contains_key(&u64::MAX), "{:?}", found[&u64::MAX]);
    assert!(
        summary.is_exact(),
        "{} late, {} forced, {} left out",
        summary.late,
        summary.forced,
        summary.unordered
    );
}

#[test]
fn each_anomaly_is_planted() {
    for anomaly in ANOMALIES {
        assert!(
            PLANTS.iter().any(|plant| plant.found == [(anomaly, plant.found[0].1)]),
            "{}",
            anomaly.name()
        );
    }
}

#[test]
fn nothing_is_found_in_a_million_clean_transactions() {
    for (seed, transactions) in [(2, 800_000), (3, 100_000), (4, 100_000)] {
        let (summary, _) = checked(options(), seed, transactions, NEVER);
        assert_eq!(
            summary.findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            Vec::<String>::new()
        );
        assert!(summary.counts.is_empty() && summary.is_exact(), "{summary:?}");
        assert!(summary.committed > transactions * 9 / 10 && summary.unknown > 0 && summary.aborted > 0);
        assert!(summary.most_held < 60_000, "{} were held", summary.most_held);
    }
}

#[test]
fn a_window_that_is_too_short_is_told() {
    let (summary, _) = checked(Options { window: 100, ..options() }, 5, 100_000, NEVER);
    assert!(summary.late > 0 && !summary.is_exact());
}

#[test]
fn memory_is_bounded_by_force_where_the_window_does_not() {
    let endless = Options { window: u64::MAX, ..options() };
    let (all, _) = checked(endless.clone(), 5, 100_000, NEVER);
    assert!(all.most_held > 90_000 && all.is_exact());
    let (bounded, _) = checked(Options { most_held: 20_000, ..endless }, 5, 100_000, NEVER);
    assert!(bounded.forced > 0 && !bounded.is_exact());
    assert!(bounded.most_held < 3 * 20_000, "{}", bounded.most_held);
}
