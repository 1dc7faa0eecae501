//! Parameters that are lists, and transactions with an isolation level of their own.

use crate::support::{Folder, HEAD, Loaded, SQL};
use nephoscope_drivers::Dialect;
use nephoscope_script::Workload;

const LISTS: &str = "-- name: find\nSELECT c FROM t WHERE id IN (:ids…)\n\
                     -- name: mixed\nSELECT c FROM t WHERE k = :k AND id IN (:ids...) AND x < :x\n\
                     -- name: fill\nINSERT INTO t VALUES :rows…\n";

fn run(body: &str) -> Result<Vec<String>, String> {
    let lua = format!("{HEAD}w:transaction(\"t\", function(tx, pick)\n{body}\nend)");
    Loaded::with(&lua, &format!("{SQL}{LISTS}"), true)?.session(1, 1).run("t")
}

#[test]
fn there_is_a_statement_for_each_length() {
    let calls = run(r#"
        tx:rows("find", { 5 })
        tx:rows("find", { ids = { 5, "x", tx.null } })
        tx:one("mixed", 1, { 2, 3 }, 4)
        tx:queue("mixed", { x = 4, ids = { 2 }, k = 1 })
        tx:exec("fill", { { 1, "a" }, { 2, tx.null } })
        tx:exec(tx:query("DELETE FROM t WHERE id IN (:ids…)"), { 7, 8 })
        tx:exec(tx:query("INSERT INTO t (a, b) VALUES :rows… ON CONFLICT DO NOTHING"), { { true, 2 } })
    "#)
    .unwrap();
    assert_eq!(
        calls,
        [
            "SELECT c FROM t WHERE id IN (:ids[1])(5) rows",
            "SELECT c FROM t WHERE id IN (:ids[1], :ids[2], :ids[3])(5, 'x', null) rows",
            "SELECT c FROM t WHERE k = :k AND id IN (:ids[1], :ids[2]) AND x < :x(1, 2, 3, 4) rows",
            "SELECT c FROM t WHERE k = :k AND id IN (:ids[1]) AND x < :x(1, 2, 4) queued",
            "INSERT INTO t VALUES (:rows[1], :rows[2]), (:rows[3], :rows[4])(1, 'a', 2, null)",
            "DELETE FROM t WHERE id IN (:ids[1], :ids[2])(7, 8)",
            "INSERT INTO t (a, b) VALUES (:rows[1], :rows[2]) ON CONFLICT DO NOTHING(true, 2)",
        ]
    );
}

#[test]
fn misuse_of_lists_is_told() {
    for (body, expected) in [
        (
            "tx:rows('find', {})",
            "the list :ids of find is empty; SQL has no empty list, so ask before the call",
        ),
        ("tx:rows('fill', { {}, {} })", "the list :rows of fill has empty rows; SQL has no empty list"),
        ("tx:rows('find', 5)", "the list :ids of find is given as a number; a list is written { 1, 2 }"),
        ("tx:rows('find')", "find takes 1 parameter (:ids); 0 are given"),
        ("tx:rows('find', { 1 }, { 2 })", "find takes 1 parameter (:ids); 2 are given"),
        ("tx:rows('mixed', { 1 }, { 2 }, 3)", "parameter :k of mixed is a table"),
        ("tx:rows('mixed', { k = 1, x = 2 })", "mixed lacks its parameter :ids"),
        (
            "tx:rows('mixed', { k = 1, x = 2, ids = { 1 }, y = 3 })",
            "mixed has no parameter :y; it has :k, :ids, :x",
        ),
        (
            "tx:rows('find', { 1, function() end })",
            "value 2 of the list :ids of find is a function; allowed are",
        ),
        (
            "tx:rows('find', { 1, { 2 } })",
            "the list :ids of find has values and rows: its first item is a value, item 2 is a row",
        ),
        ("tx:rows('find', { { 1 }, 2 })", "its first item is a row, item 2 is a value"),
        (
            "tx:rows('fill', { { 1, 2 }, { 3 } })",
            "row 2 of the list :rows of fill has 1 values, and the first row has 2",
        ),
        (
            "tx:rows('fill', { { 1, nil, 3 } })",
            "row 1 of the list :rows of fill has a gap, or a key that is no place; NULL is written tx.null",
        ),
        (
            "tx:rows('find', { 1, 2, other = 3 })",
            "the list :ids of find has a gap, or a key that is no place",
        ),
        ("tx:rows('find', { 1, nil, 3 })", "the list :ids of find has a gap"),
        ("tx:rows('find', { nil, nil })", "the list :ids of find is empty"),
        (
            "local all = {}\nfor i = 1, 65536 do all[i] = i end\ntx:rows('find', all)",
            "find has 65536 values; a statement has 65535 at most",
        ),
        (
            "tx:rows('none_such')",
            "no statement is called \"none_such\"; the statements are note, pair, none, find, mixed, fill",
        ),
    ] {
        let error = run(&format!("tx:exec('none')\n{body}")).unwrap_err();
        assert!(error.contains(expected) && error.contains("workload.lua:"), "{body}: {error}");
    }
}

fn read(settings: &str, dialect: &'static Dialect) -> Result<Workload, String> {
    let lua = format!("{HEAD}w:transaction(\"t\", {{ {settings} }}, function(tx) tx:begin() end)");
    let source = Folder::new(&lua, SQL).source(&[], 1.0, dialect)?;
    source.workload().map_err(|error| error.to_string())
}

#[test]
fn a_transaction_begins_in_its_own_level() {
    let lua = format!(
        "{HEAD}w:transaction(\"strict\", {{ isolation = \"repeatable read\" }}, function(tx, pick, mine)\n\
           tx:begin() tx:exec(\"note\", pick.integer(3, 3) + mine) tx:commit() tx:begin() tx:rollback() end)\n\
         w:session(function() return 4 end)\n\
         w:transaction(\"plain\", function(tx) tx:begin() tx:commit() end)\n\
         w:transaction(\"wrong\", {{ isolation = \"serializable\" }}, function(tx) tx:begin() tx:begin() end)\n"
    );
    let loaded = Loaded::new(&lua).unwrap();
    let mut session = loaded.session(1, 1);
    let step = session.script.set_up();
    session.finish(step).unwrap();
    let calls = session.run("strict").unwrap();
    assert_eq!(
        calls,
        ["beginin(repeatableread)", "note(7)", "commit", "beginin(repeatableread)", "rollback", "aborted"]
    );
    assert_eq!(session.run("plain").unwrap(), ["begin", "commit"]);
    let error = session.run("wrong").unwrap_err();
    assert!(error.starts_with("workload.lua:8: tx:begin() within a transaction"), "{error}");
    assert!(!error.contains("=tx") && !error.contains("[string"), "{error}");
}

#[test]
fn a_level_is_one_that_the_dialect_has() {
    let sqlite = nephoscope_drivers::sqlite::DIALECT;
    let postgres = nephoscope_drivers::postgres::DIALECT;
    for (settings, dialect, expected) in [
        ("isolation = 'read committed'", postgres, None),
        ("isolation = 'serializable'", sqlite, None),
        (
            "isolation = 'read committed'",
            sqlite,
            Some("transaction t: sqlite has no isolation level \"read committed\"; allowed: serializable"),
        ),
        (
            "isolation = 'snapshot'",
            postgres,
            Some(
                "workload.lua:4: transaction t: isolation is \"snapshot\"; allowed are \"read uncommitted\", \"read committed\", \
                 \"repeatable read\", \"serializable\"",
            ),
        ),
        ("isolation = 5", postgres, Some("workload.lua:4: transaction t: isolation is integer; allowed are")),
    ] {
        match (read(settings, dialect), expected) {
            (Ok(workload), None) => assert!(workload.transactions[0].isolation.is_some()),
            (Err(error), Some(expected)) => assert!(error.contains(expected), "{error}"),
            (read, _) => panic!("{settings}: {:?}", read.map(|workload| workload.transactions)),
        }
    }
}
