//! Histories as text: each form says the same, and what is wrong is named with its line.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)] // Other tests use the rest.
mod planting;

use adya::{History, Opts, Valid, Workload};
use nephoscope_histories::forms::{Dialect, Family, HEADER, Told, export, read, write_line};
use nephoscope_histories::{Anomaly, Checker, Operation, Options, Outcome, Summary, Transaction};
use planting::Simulator;
use planting::plants::PLANTS;

fn all(text: &str) -> Result<(Vec<Transaction>, Told), String> {
    let mut found = Vec::new();
    let keep = |transaction: &Transaction| {
        found.push(transaction.clone());
        Ok(())
    };
    let told = read(text.as_bytes(), keep).map_err(|fault| fault.to_string())?;
    Ok((found, told))
}

fn found(history: &[Transaction]) -> Summary {
    let mut checker = Checker::new(Options { reads_before_writes: true, ..Options::default() });
    for transaction in history {
        checker.push(transaction).unwrap();
    }
    checker.finish().unwrap()
}

/// A history with each plant.
fn planted() -> Vec<Transaction> {
    let (mut simulator, mut made) = (Simulator::new(7, 5), Vec::new());
    let mut transaction = Transaction::default();
    for at in 0..6_000_u64 {
        if at % 100 == 0
            && let Some(plant) = PLANTS.get(at as usize / 100)
        {
            plant.put(&mut simulator, at / 100);
        }
        if at == 5_000 {
            simulator.close();
        }
        if !simulator.next(&mut transaction) {
            break;
        }
        made.push(transaction.clone());
    }
    made
}

fn own(history: &[Transaction]) -> String {
    let mut text = format!("{HEADER}\n# tenant: main\n");
    for transaction in history {
        write_line(transaction, &mut text);
    }
    text
}

#[test]
fn our_own_form_says_all_there_is() {
    let history = planted();
    assert!(history.len() > 4_000);
    let (again, told) = all(&own(&history)).unwrap();
    assert_eq!(told.transactions, history.len() as u64);
    assert_eq!(own(&again), own(&history));
    assert_eq!(found(&again), found(&history));
    assert!(found(&again).counts.len() > 12);
}

fn exported(history: &[Transaction], dialect: Dialect, family: Family) -> String {
    let mut text = Vec::new();
    export(history, dialect, family, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn what_elle_reads_has_the_same_anomalies() {
    let history = planted();
    for family in [Family::Lists, Family::Registers] {
        let edn = exported(&history, Dialect::Edn, family);
        let (from_edn, told) = all(&edn).unwrap();
        let (from_json, _) = all(&exported(&history, Dialect::Json, family)).unwrap();
        assert_eq!(from_edn, from_json);
        assert_eq!(told.transactions, from_edn.len() as u64);
        let names =
            |summary: Summary| summary.counts.iter().map(|it| (it.anomaly, it.times)).collect::<Vec<_>>();
        let of_family = |anomaly: Anomaly| !matches!(anomaly, Anomaly::Total | Anomaly::Counter);
        let ours = names(found(&history)).into_iter().filter(|it| of_family(it.0)).collect::<Vec<_>>();
        for (anomaly, times) in names(found(&from_edn)) {
            let (_, most) = ours.iter().find(|it| it.0 == anomaly).unwrap();
            assert!(times <= *most, "{anomaly:?}");
        }
    }
}

#[test]
fn another_checker_reads_what_is_exported() {
    let mut clean = Vec::new();
    let (mut simulator, mut transaction) = (Simulator::new(3, 5), Transaction::default());
    for at in 0..400 {
        if at == 300 {
            simulator.close();
        }
        if !simulator.next(&mut transaction) {
            break;
        }
        clean.push(transaction.clone());
    }
    let mut skewed = clean.clone();
    let end = clean.iter().map(|it| it.end).max().unwrap();
    for (number, read_key, append) in [(1 << 40, 1 << 41, 1 << 42), ((1 << 40) + 1, 1 << 42, 1 << 41)] {
        let mut made = Transaction { number, session: 900 + (number & 1) as u32, ..Transaction::default() };
        (made.begin, made.end) = (end + 1, end + 9);
        made.list(read_key, &[]);
        made.operations.push(Operation::Append { key: append, value: 7 });
        skewed.push(made);
    }
    let options = Opts { models: vec!["serializable".into()], ..Opts::default() };
    for (history, valid) in [(&clean, true), (&skewed, false)] {
        let text = exported(history, Dialect::Json, Family::Lists);
        // Adya reads a map a line.
        let lines = text.lines().filter(|line| line.starts_with('{')).map(|line| line.trim_end_matches(','));
        let theirs = History::from_json(&lines.collect::<Vec<_>>().join("\n")).unwrap();
        let report = adya::check(&theirs, Workload::ListAppend, &options);
        assert_eq!(matches!(report.valid, Valid::True), valid, "{:?}", report.anomaly_types);
    }
}

#[test]
fn histories_of_jepsens_tests_are_read() {
    let text = r#"
; what a test has written
{:type :info, :f :start, :process :nemesis, :time 5, :value ["n1" #{:a}]}
#jepsen.history.Op{:index 0, :time 10, :type :invoke, :process 0, :f :txn, :value [[:r "x" nil] [:append "x" 1]]}
{:index 1 :time 20 :type :ok :process 0 :f :txn :value [[:r "x" nil] [:append "x" 1]] :error #inst "2024-01-01"}
{:index 2, :time 30, :type :invoke, :process 1, :f :txn, :value [[:append "x" 2]]}
{:index 3, :time 40, :type :info, :process 1, :f :txn, :value [[:append "x" 2]], :error :timeout}
{:index 4, :time 50, :type :invoke, :process 2, :f :txn, :value [[:r "x" nil]]}
{:index 5, :time 60, :type :fail, :process 2, :f :txn, :value nil}
{:index 6, :time 70, :type :invoke, :process 2, :f :txn, :value [[:append :y 3]]}
"#;
    let (history, told) = all(text).unwrap();
    assert_eq!((told.skipped, told.transactions), (1, 4));
    let outcomes: Vec<_> = history.iter().map(|it| (it.begin, it.end, it.outcome)).collect();
    assert_eq!(
        outcomes,
        [
            (10, 20, Outcome::Committed),
            (30, 40, Outcome::Unknown),
            (50, 60, Outcome::Aborted),
            (70, 70, Outcome::Unknown)
        ]
    );
    assert!(matches!(
        history[0].operations[..],
        [Operation::List { length: 0, .. }, Operation::Append { value: 1, .. }]
    ));
    // The same as one list, in JSON with everything on one line.
    let json = r#"[{"type":"invoke","process":0,"value":[["w",1,5],["r",1,null]]},{"type":"ok","process":0,"value":[["w",1,5],["r",1,5]]}]"#;
    let (history, _) = all(json).unwrap();
    assert_eq!(
        history[0].operations,
        [Operation::Write { key: 1, value: 5 }, Operation::Read { key: 1, value: Some(5) }]
    );
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let own = |line: &str| all(&format!("{HEADER}\nc 1 2 3 4 a1:1\n{line}\n")).unwrap_err();
    assert_eq!(own("x 1 2 3 4"), "line 3: \"x\" is no outcome; allowed are c, a, u");
    assert_eq!(own("c 1 2 x 4"), "line 3: its begin is \"x\"; expected a whole number");
    assert_eq!(
        own("c 1 2 3 4 a1"),
        "line 3: \"a1\" is no operation; allowed are a, w, r, i, n, t, l and b with their numbers"
    );
    let elle = |map: &str| {
        all(&format!("{{:type :invoke :process 0 :value [[:append 1 1]]}}\n\n{map}\n")).unwrap_err()
    };
    assert_eq!(
        elle("{:type :ok :process 0 :value [[:append 1 -1]]}"),
        "line 3: the value -1 is below 0, or too large"
    );
    assert_eq!(
        elle("{:type :ok :process 1 :value []}"),
        "line 3: process 1 ends a transaction that it has not begun"
    );
    assert_eq!(
        elle("{:type :invoke :process 0 :value []}"),
        "line 3: process 0 begins a transaction before its last one has ended"
    );
    assert_eq!(elle("{:type :ok"), "line 4: the text ends within a map");
    assert_eq!(elle("7"), "line 3: expected a map, { … }, not '7'");
    assert!(elle("{:type :ok :process 0 :value 7}").starts_with("line 3: a transaction's value is a list"));
    let refused = |text: &str| read(text.as_bytes(), |_| Err("no more".to_owned())).unwrap_err().to_string();
    assert_eq!(refused(&format!("{HEADER}\nc 1 2 3 4 a1:1\n")), "line 2: no more");
}

#[test]
fn a_file_that_is_not_whole_says_so() {
    let (history, told) = all(&format!("{HEADER}\nc 1 2 3 4 a1:1\nc 2 2 5 6 a1")).unwrap();
    assert_eq!((history.len(), told.is_cut), (1, true));
    let (_, told) = all(&format!("{HEADER}\nc 1 2 3 4 a1:1\n# cut\n")).unwrap();
    assert!(told.is_cut);
}
