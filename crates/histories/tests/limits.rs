//! What the checker refuses, and how it tells what it found.
#![allow(clippy::unwrap_used)]

use nephoscope_histories::{Anomaly, Checker, Operation, Options, Outcome, Transaction};

fn appended(number: u64, session: u32, begin: u64, value: u64) -> Transaction {
    let operations = vec![Operation::Append { key: 3, value }];
    Transaction { number, session, begin, end: begin + 10, operations, ..Transaction::default() }
}

fn refused(history: &[Transaction]) -> String {
    let mut checker = Checker::new(Options::default());
    for transaction in history {
        if let Err(message) = checker.push(transaction) {
            return message;
        }
    }
    checker.finish().unwrap_err()
}

#[test]
fn what_cannot_be_is_refused_with_what_and_where() {
    let backwards = Transaction { end: 4, ..appended(1, 0, 5, 1) };
    assert_eq!(refused(&[backwards]), "transaction 1 ends at 4, before it begins at 5");
    assert_eq!(
        refused(&[appended(1, 7, 0, 1), appended(2, 7, 9, 2)]),
        "transaction 2 of session 7 begins at 9, before the one before it ended at 10"
    );
    let twice = "value 1 was appended to key 3 twice; values must be unique for their key";
    assert_eq!(refused(&[appended(1, 0, 0, 1), appended(2, 1, 0, 1)]), twice);
    let mut read = Transaction { number: 9, session: 9, end: 5, ..Transaction::default() };
    read.list(3, &[1]);
    assert_eq!(refused(&[appended(1, 0, 0, 1), read, appended(2, 1, 0, 1)]), twice);
    let written = |session| Transaction {
        operations: vec![Operation::Write { key: 3, value: 1 }],
        ..appended(session, session as u32, 0, 1)
    };
    assert_eq!(
        refused(&[written(1), written(2)]),
        "value 1 was written to key 3 twice; values must be unique for their key"
    );
}

#[test]
fn a_finding_is_told_in_words() {
    let mut checker = Checker::new(Options { reads_before_writes: true, ..Options::default() });
    let mut history =
        [appended(1, 0, 0, 1), appended(2, 1, 0, 2), appended(3, 2, 0, 5), appended(4, 3, 0, 6)];
    for (at, operation) in
        [(0, Operation::Read { key: 9, value: None }), (1, Operation::Write { key: 9, value: 4 })]
    {
        history[at].operations.push(operation);
    }
    let mut read = Transaction { number: 8, session: 8, end: 5, ..Transaction::default() };
    read.list(3, &[2, 1]);
    history[2].outcome = Outcome::Aborted;
    history[3].list(3, &[2, 1, 5, 6]);
    for transaction in history.iter().chain([&read]) {
        checker.push(transaction).unwrap();
    }
    let summary = checker.finish().unwrap();
    let told: Vec<String> = summary.findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "G1a: T4 met value 5 of key 3; the other is T3",
            "G-single: T1 read the initial state of key 9, which T2 followed with 4; \
             T2 wrote 2 to key 3, which T1 followed with 1",
        ]
    );
    assert_eq!(
        summary.counts.iter().map(|it| (it.anomaly, it.times)).collect::<Vec<_>>(),
        [(Anomaly::G1a, 1), (Anomaly::GSingle, 1)]
    );
}
