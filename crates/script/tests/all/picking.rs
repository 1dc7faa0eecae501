//! What `pick` draws by a law, and the rows that were loaded.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::support::{HEAD, Loaded, noted, run, text};
use nephoscope_script::{Access, used_keys};

/// Warehouses with districts, which have a composite key, a text key, and a column that is not stored.
const TABLES: &str = r#"
w:table("house", { rows = 20, columns = { { "h_id", serial() } } })
w:table("district", { columns = {
  { "d_house", parent("house", 1, 5) }, { "d_id", line() }, { "d_name", pattern("D-###") },
  { "d_secret", integer(1, 1000000), stored = false }, { "d_none", null() },
  { "d_label", derive("text", { "d_name" }, function(row, random, name) return name .. "/" .. row end) } } })
"#;

/// A transaction after the tables, in a workload that is loaded.
fn loaded(body: &str) -> Loaded {
    Loaded::new(&format!(
        "{HEAD}{TABLES}local kept = {{}}\nw:transaction(\"t\", function(tx, pick)\n{body}\nend)"
    ))
    .unwrap()
}

#[test]
fn a_loaded_row_has_the_cells_that_the_generators_make() {
    let loaded = loaded(
        r#"local d = pick.row("district")
        tx:exec("pair", d.d_house, d.d_id)
        tx:exec("pair", d.d_name, d.d_secret)
        tx:exec("pair", d.d_label, d.d_none)"#,
    );
    let dataset = &loaded.workload.dataset;
    let (table, mut cells) = (dataset.find("district").unwrap(), dataset.cells().unwrap());
    let mut rows = BTreeMap::new();
    for row in 0..dataset.tables()[table].rows() {
        let cell = |column| text(cells.get(table, column, row).unwrap());
        let row: Vec<String> = (0..6).map(cell).collect();
        let calls = vec![
            format!("pair({}, {})", row[0], row[1]),
            format!("pair({}, {})", row[2], row[3]),
            format!("pair({}, null)", row[5]),
        ];
        rows.insert(calls[0].clone(), calls);
    }
    let mut session = loaded.session(3, 1);
    let mut seen = HashSet::new();
    for _ in 0..500 {
        let calls = session.run("t").unwrap();
        assert_eq!(calls, rows[&calls[0]]);
        seen.insert(calls[0].clone());
    }
    assert_eq!(seen.len(), rows.len(), "each row is as likely");
}

#[test]
fn a_loaded_row_may_be_kept_and_is_picked_again_by_a_retry() {
    let loaded = loaded(
        r#"local row = pick.row("item")
        kept[1] = kept[1] or row
        tx:exec("pair", row.i_id, pick.key(1, 1000000))
        tx:exec("note", kept[1].i_id)"#,
    );
    let mut session = loaded.session(3, 1);
    let first = session.run("t").unwrap();
    loaded.vm.set_access(Access::Latest { k: 1 });
    let step = session.script.retry(0);
    assert_eq!(session.finish(step).unwrap(), first);
    assert_eq!(session.run("t").unwrap(), ["pair(1000, 1000000)", &first[1]]);
}

#[test]
fn popular_rows_are_those_with_popular_keys() {
    let loaded = loaded(
        r#"if tx.session == 1 then tx:exec("note", pick.item()) else tx:exec("note", pick.row("item").i_id) end"#,
    );
    loaded.vm.set_access(Access::Zipfian { theta: 1.2 });
    let hottest = |session: u64| {
        let (mut session, mut counts) = (loaded.session(3, session), BTreeMap::<i64, u32>::new());
        for _ in 0..3000 {
            *counts.entry(session.noted("t")).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count).unwrap().0
    };
    assert_eq!(hottest(1), hottest(2));
}

#[test]
fn new_keys_are_everybody_s_and_kept_for_the_next_run() {
    let loaded = loaded(r#"tx:exec("note", pick.new("item")) tx:inserted("item", 1001)"#);
    let (mut one, mut other) = (loaded.session(1, 1), loaded.session(1, 2));
    assert_eq!([one.noted("t"), other.noted("t"), one.noted("t")], [1001, 1002, 1003]);
    let index = one.index("t");
    let step = one.script.retry(index);
    assert_eq!(one.finish(step).unwrap(), ["note(1003)"], "a retry has the same");
    let used = used_keys(&loaded.keys);
    assert_eq!(used, BTreeMap::from([("item new".to_owned(), 3)]));
    let next = loaded.workload.key_spaces(&used);
    assert_eq!(next[0].1.new_key(), 1004);
    assert_eq!(next[0].1.handed_out(), 0);
    assert_eq!(Arc::strong_count(&next[0].1), 1);
}

#[test]
fn keys_of_a_range_follow_the_access_distribution() {
    let loaded = loaded(r#"tx:exec("note", pick.key(-5, 94))"#);
    let counts = |access| {
        loaded.vm.set_access(access);
        let mut session = loaded.session(9, 1);
        let mut counts = [0.0_f64; 100];
        for _ in 0..40_000 {
            counts[usize::try_from(session.noted("t") + 5).unwrap()] += 1.0;
        }
        counts
    };
    let uniform: f64 = counts(Access::Uniform).iter().map(|count| (count - 400.0).powi(2) / 400.0).sum();
    assert!(uniform < 170.0, "{uniform} for 99 degrees of freedom");
    let latest = counts(Access::Latest { k: 10 });
    assert_eq!(latest.iter().position(|count| *count > 0.0), Some(90));
    let mut zipfian = counts(Access::Zipfian { theta: 1.0 });
    zipfian.sort_by(|a, b| b.total_cmp(a));
    let norm: f64 = (1..=100).map(|rank| 1.0 / f64::from(rank)).sum();
    for rank in [1_u32, 2, 5, 10] {
        let expected = 40_000.0 / norm / f64::from(rank);
        let got = zipfian[rank as usize - 1];
        assert!((got / expected - 1.0).abs() < 0.15, "rank {rank}: {got} instead of {expected}");
    }
}

#[test]
fn a_further_attempt_that_asks_for_another_range_has_a_key_of_that_one() {
    let loaded = loaded(
        r#"if tx.attempt == 1 then return tx:exec("note", pick.key(0, 5)) end
           tx:exec("note", pick.key(10, 10 * 2^32 + 5))"#,
    );
    let mut session = loaded.session(9, 1);
    session.run("t").unwrap();
    let step = session.script.retry(0);
    let again = session.finish(step).unwrap();
    let key: i64 = again[0].trim_start_matches("note(").trim_end_matches(')').parse().unwrap();
    assert!(key >= 10, "{key}");
}

#[test]
fn ranks_follow_their_law() {
    let loaded = loaded(r#"tx:exec("note", pick.zipf(20, 0.8))"#);
    let mut session = loaded.session(9, 1);
    let mut counts = [0.0_f64; 20];
    for _ in 0..40_000 {
        counts[usize::try_from(session.noted("t")).unwrap() - 1] += 1.0;
    }
    let norm: f64 = (1..=20).map(|rank| f64::from(rank).powf(-0.8)).sum();
    let expected = (1..=20).map(|rank| 40_000.0 * f64::from(rank).powf(-0.8) / norm);
    let chi: f64 =
        counts.iter().zip(expected).map(|(count, expected)| (count - expected).powi(2) / expected).sum();
    assert!(chi < 50.0, "{chi} for 19 degrees of freedom");
}

#[test]
fn a_pattern_is_drawn() {
    let drawn = noted(r##"for _ = 1, 300 do tx:exec("note", pick.pattern("#?-%#")) end"##);
    let digits: HashSet<char> = drawn.iter().map(|text| text.chars().nth(1).unwrap()).collect();
    assert_eq!(digits, ('0'..='9').collect());
    let letters: HashSet<char> = drawn.iter().map(|text| text.chars().nth(2).unwrap()).collect();
    assert_eq!(letters, ('a'..='z').collect());
    assert!(drawn.iter().all(|text| text.ends_with("-#'")));
    assert_eq!(run("pick.zipf(1, 0) tx:exec(\"note\", pick.key(7, 7))").unwrap(), ["note(7)"]);
}

#[test]
fn a_column_whose_function_fails_says_which_row() {
    let failing = r#"w:table("odd", { rows = 1, columns = {
        { "o", derive("text", {}, function() error("on purpose") end) } } })
        w:transaction("t", function(tx, pick) return pick.row("odd").o end)"#;
    let error = Loaded::new(&format!("{HEAD}{failing}")).unwrap().session(1, 1).run("t").unwrap_err();
    assert!(error.contains("table \"odd\", column \"o\", row 0: workload.lua:5: on purpose"), "{error}");
}
