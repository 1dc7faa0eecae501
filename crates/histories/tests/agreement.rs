//! The checker agrees with `adya`, an implementation of Elle, on small histories of every isolation level.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use adya::r#gen::{GenOpts, Kind};
use adya::sim::{Isolation, SimOpts, run};
use adya::{History, Opts, Valid, Workload, check};
use nephoscope_histories::{Checker, Operation, Options, Order, Outcome, Summary, Transaction};
use proptest::prelude::*;
use serde_json::Value;

const LEVELS: [Isolation; 5] = [
    Isolation::Serializable,
    Isolation::SnapshotIsolation,
    Isolation::ReadCommitted,
    Isolation::ReadUncommitted,
    Isolation::LostUpdate,
];

/// Reads what adya's simulator has made: a line for each begin and each end, whose number is its time.
fn transactions(text: &str) -> Vec<Transaction> {
    let mut open: BTreeMap<u64, u64> = BTreeMap::new();
    let mut ended = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (time, session) = (line["index"].as_u64().unwrap() + 1, line["process"].as_u64().unwrap());
        if line["type"] == "invoke" {
            open.insert(session, time);
            continue;
        }
        let mut made = Transaction::default();
        made.restart(time - 1, session as u32, open.remove(&session).unwrap());
        made.end = time;
        made.outcome = match line["type"].as_str().unwrap() {
            "ok" => Outcome::Committed,
            "fail" => Outcome::Aborted,
            _ => Outcome::Unknown,
        };
        for operation in line["value"].as_array().unwrap() {
            let key = operation[1].as_u64().unwrap();
            let value = operation[2].as_u64();
            match (operation[0].as_str().unwrap(), &operation[2]) {
                ("append", _) => made.operations.push(Operation::Append { key, value: value.unwrap() }),
                ("w", _) => made.operations.push(Operation::Write { key, value: value.unwrap() }),
                (_, Value::Array(values)) => {
                    let values: Vec<u64> = values.iter().map(|it| it.as_u64().unwrap()).collect();
                    made.list(key, &values);
                }
                _ => made.operations.push(Operation::Read { key, value }),
            }
        }
        ended.push(made);
    }
    ended
}

fn ours(history: &[Transaction], order: Order) -> Summary {
    let options = Options { order, reads_before_writes: true, witnesses: u64::MAX, ..Options::default() };
    let mut checker = Checker::new(options);
    for transaction in history {
        checker.push(transaction).unwrap();
    }
    let summary = checker.finish().unwrap();
    assert!(summary.is_exact());
    summary
}

fn theirs(text: &str, workload: Workload, model: &str) -> Option<Vec<String>> {
    let options = Opts {
        models: vec![model.into()],
        wfr_keys: true,
        timeout: Duration::from_secs(20),
        ..Opts::default()
    };
    let report = check(&History::from_json(text).unwrap(), workload, &options);
    match report.valid {
        Valid::Unknown => None,
        _ => Some(report.anomaly_types),
    }
}

fn history(level: usize, kind: Kind, seed: u64, transactions: usize, keys: usize, unknown: f64) -> String {
    run(&SimOpts {
        isolation: LEVELS[level],
        processes: 4,
        txns: transactions,
        abort_rate: 0.05,
        info_rate: unknown,
        r#gen: GenOpts { kind, key_count: keys, min_txn_len: 1, max_txn_len: 4, max_writes_per_key: 8 },
        seed,
    })
}

/// Anomalies that are no cycles, by one name of both checkers. Adya calls a list that lacks an element incompatible.
fn direct(name: &str) -> Option<&'static str> {
    Some(match name {
        "G1a" => "G1a",
        "G1b" => "G1b",
        "internal" | "future-read" => "internal",
        "lost update" | "lost-update" => "lost update",
        "incompatible order" | "incompatible-order" | "missing elements" => "incompatible order",
        "duplicate elements" | "duplicate-elements" => "duplicate elements",
        _ => return None,
    })
}

/// The place of a cycle's name, from the most severe.
fn severity(name: &str) -> Option<usize> {
    let name = if name == "long fork" { "G-nonadjacent" } else { name.trim_end_matches("-item") };
    ["G0", "G1c", "G-single", "G-nonadjacent", "G2"].iter().position(|it| *it == name)
}

fn anomaly_names(summary: &Summary) -> Vec<&'static str> {
    summary.counts.iter().map(|it| it.anomaly.name()).collect()
}

/// Whether there is an anomaly: the same answer in each order. What is found because of a transaction whose outcome is
/// unknown, but whose writes were read, adya does not look for.
fn same_verdict(text: &str, workload: Workload) {
    let history = transactions(text);
    let unknown = |number| history.iter().any(|it| it.number == number && it.outcome == Outcome::Unknown);
    for (order, model) in [
        (Order::None, "serializable"),
        (Order::Session, "strong-session-serializable"),
        (Order::RealTime, "strict-serializable"),
    ] {
        let Some(theirs) = theirs(text, workload, model) else { continue };
        let ours = ours(&history, order);
        if theirs.is_empty() {
            for finding in &ours.findings {
                assert!(finding.parties.iter().any(|it| unknown(it.number)), "{order:?}: {finding}\n{text}");
            }
        } else {
            assert!(!ours.counts.is_empty(), "{order:?}: {theirs:?}\n{text}");
        }
    }
}

/// Which anomalies there are. Lists that contradict each other leave the order of versions open, and adya takes a read of
/// a transaction's own intermediate write for one of two that lose an update.
fn same_names(text: &str, workload: Workload) {
    let Some(theirs) = theirs(text, workload, "serializable") else { return };
    let ours = anomaly_names(&ours(&transactions(text), Order::None));
    let mut of_ours: BTreeSet<_> = ours.iter().filter_map(|name| direct(name)).collect();
    let mut of_theirs: BTreeSet<_> = theirs.iter().filter_map(|name| direct(name)).collect();
    if of_theirs.contains("incompatible order") {
        assert!(
            of_ours.contains("incompatible order") && of_ours.is_subset(&of_theirs),
            "{ours:?} {theirs:?}\n{text}"
        );
        return;
    }
    let lost = of_ours.contains("lost update") || of_theirs.contains("lost update");
    if of_theirs.contains("G1b") {
        assert!(!of_ours.remove("lost update") || of_theirs.contains("lost update"), "{theirs:?}\n{text}");
        of_theirs.remove("lost update");
    }
    assert_eq!(of_ours, of_theirs, "{text}");
    if workload == Workload::ListAppend && !lost {
        let worst = |names: &[&str]| names.iter().filter_map(|name| severity(name)).min();
        let theirs: Vec<&str> = theirs.iter().map(String::as_str).collect();
        assert_eq!(worst(&ours), worst(&theirs), "{ours:?} {theirs:?}\n{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_history_has_the_same_anomalies_to_both(
        level in 0..LEVELS.len(), lists: bool, seed: u64, length in 4..40_usize, keys in 1..5_usize, unknown: bool,
    ) {
        let (kind, workload) = if lists {
            (Kind::ListAppend, Workload::ListAppend)
        } else {
            (Kind::RwRegister, Workload::RwRegister)
        };
        let text = history(level, kind, seed, length, keys, if unknown { 0.1 } else { 0.0 });
        same_verdict(&text, workload);
        if !unknown {
            same_names(&text, workload);
        }
    }
}

#[test]
fn the_simulators_levels_differ() {
    let found = |level| {
        let texts = (0..200).map(|seed| history(level, Kind::ListAppend, seed, 30, 3, 0.0));
        let all = texts.flat_map(|text| anomaly_names(&ours(&transactions(&text), Order::RealTime)));
        all.collect::<BTreeSet<_>>()
    };
    assert!(found(0).is_empty());
    assert!(found(1).iter().all(|name| *name == "G2-item") && !found(1).is_empty());
    assert!(found(2).contains("lost update") && !found(2).contains("G1a"));
    assert!(found(3).contains("G1a") && found(3).contains("G1b"));
    assert!(found(4).contains("incompatible order"));
}
