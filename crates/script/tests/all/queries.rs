//! `tx:query`: statements whose SQL is made while the workload runs.

use crate::support::{HEAD, Loaded, SQL, noted, run};
use nephoscope_drivers::{Reply, Want};
use nephoscope_script::Step;

/// As `run`, where queued statements ride with the next.
fn piped(body: &str) -> Result<Vec<String>, String> {
    let lua = format!("{HEAD}w:transaction(\"t\", function(tx, pick)\n{body}\nend)");
    Loaded::with(&lua, SQL, true)?.session(1, 1).run("t")
}

#[test]
fn what_it_gives_stands_in_the_place_of_a_name_in_every_word() {
    let calls = piped(
        r#"
        local find = tx:query("SELECT c FROM t WHERE id = :id AND k = :k")
        tx:exec(find, 1, "x")
        tx:queue(find, { id = 2, k = tx.null })
        tx:one(find, 3, true)
        tx:rows(tx:query("SELECT 1;  "))
        tx:results(tx:query("CALL p(':not', :a)"), 0.5)
        tx:key(tx:query("INSERT INTO t VALUES (1, 'a'), (2, 'b') RETURNING id"))
    "#,
    )
    .unwrap();
    assert_eq!(
        calls,
        [
            "SELECT c FROM t WHERE id = :id AND k = :k(1, 'x')",
            "SELECT c FROM t WHERE id = :id AND k = :k(2, null) queued",
            "SELECT c FROM t WHERE id = :id AND k = :k(3, true) rows",
            "SELECT 1() rows",
            "CALL p(':not', :a)(0.5) rows",
            "INSERT INTO t VALUES (1, 'a'), (2, 'b') RETURNING id() rows",
        ]
    );
}

#[test]
fn its_results_are_those_of_any_statement() {
    let noted = noted(
        r#"
        tx:exec("note", tx:exec(tx:query("DELETE FROM t")))
        tx:exec("note", #tx:rows(tx:query("SELECT 1")))
        tx:exec("note", tx:one(tx:query("SELECT 1")).int)
        tx:exec("note", tx:one(tx:query("SELECT 2"))[6])
        "#,
    );
    assert_eq!(noted, ["3", "2", "42", "'word'"]);
}

#[test]
fn the_same_text_is_the_same_statement() {
    let noted = noted(
        r#"
        local one = tx:query("SELECT " .. 1)
        tx:exec("note", one == tx:query("SELECT 1"))
        tx:exec("note", one == tx:query("SELECT 2"))
        tx:exec("note", tostring(tx:query(("SELECT 1234567890 "):rep(9))))
        tx:exec("note", tostring(one))
        "#,
    );
    assert_eq!(noted, ["true", "false", "'SELECT 1234567890 SELECT 1234567890 SELE…'", "'SELECT 1'"]);
}

#[test]
fn what_begins_and_ends_a_transaction_does_so_as_a_text() {
    let calls = run(r#"
        tx:exec(tx:query("SELECT :a"), 1)
        tx:exec(tx:query("START TRANSACTION"))
        tx:exec("none")
        tx:exec("note", #tx:rows(tx:query("commit;")))
        tx:begin()
        tx:queue(tx:query("ROLLBACK"))
    "#)
    .unwrap();
    assert_eq!(
        calls,
        ["SELECT :a(1)", "begin", "none()", "commit", "note(0)", "begin", "rollback", "aborted"]
    );
    let error = run(r#"tx:exec(tx:query("COMMIT"))"#).unwrap_err();
    assert!(error.contains("tx:commit() outside of a transaction"), "{error}");
    let error = run(r#"tx:exec(tx:query("BEGIN"), 1)"#).unwrap_err();
    assert!(error.contains("BEGIN, COMMIT and ROLLBACK takes no parameters; one value too many"), "{error}");
}

#[test]
fn misuse_is_told() {
    for (body, expected) in [
        (
            "tx:query()",
            "tx:query takes SQL as a text, not nothing; write tx:query(\"SELECT …\"), with a colon",
        ),
        ("tx.query('SELECT 1')", "tx:query takes SQL as a text, not nothing"),
        ("tx:query(1)", "tx:query takes SQL as a text, not number"),
        ("tx:query('SELECT 1', 2)", "tx:query takes one text; one value too many"),
        ("tx:query(' ; ')", "tx:query: the text has no SQL"),
        ("tx:query('SELECT \\0')", "tx:query: the SQL has a zero byte"),
        ("tx:query('SELECT \\255')", "tx:query: the SQL is not UTF-8"),
        ("tx:exec(tx)", "the name of a statement is expected, or what tx:query gives, not table"),
        ("tx:exec(tx.null)", "the name of a statement is expected, or what tx:query gives, not userdata"),
        (
            "tx:exec(tx:one('note', 1))",
            "the name of a statement is expected, or what tx:query gives, not userdata",
        ),
        ("tx:exec(tx:query('SELECT :a'))", "SELECT :a takes 1 parameter (:a); 0 are given"),
        ("tx:exec(tx:query('SELECT 1'), 1)", "SELECT 1 takes no parameters; 1 are given"),
        ("tx:exec(tx:query('SELECT :a'), { b = 1 })", "SELECT :a lacks its parameter :a"),
        ("tx:exec(tx:query('SELECT :a'), { a = 1, b = 1 })", "SELECT :a has no parameter :b; it has :a"),
        ("tx:exec(tx:query('SELECT :a, :b'), tx, 1)", "parameter 1 of SELECT :a, :b is a table"),
        ("tx:query('SELECT 1').sql = 1", "attempt to index"),
    ] {
        let error = run(&format!("tx:exec('none')\n{body}")).unwrap_err();
        assert!(error.contains(expected) && error.contains("workload.lua:6"), "{body}: {error}");
    }
    let lua = format!(
        "{HEAD}local kept\nw:transaction(\"t\", function(tx) tx:exec(kept.query(kept, 'SELECT 1')) end)\nkept = tx"
    );
    assert!(Loaded::new(&lua).is_err(), "there is no tx outside of a function");
}

#[test]
fn any_number_of_texts_costs_no_memory() {
    let body = r#"
        for at = 1, 2000 do tx:exec(tx:query("SELECT " .. at .. (" "):rep(1000) .. pick.integer(1, 1e9))) end
    "#;
    let lua = format!("{HEAD}w:transaction(\"t\", function(tx, pick)\n{body}\nend)");
    let loaded = Loaded::with(&lua, SQL, true).unwrap();
    let mut session = loaded.session(1, 1);
    let mut most = 0;
    for _ in 0..20 {
        session.quietly("t").unwrap();
        most = most.max(loaded.vm.memory());
    }
    assert!(most < 16 << 20, "{most} bytes");
}

#[test]
fn an_error_leaves_nothing_asked() {
    let lua = format!(
        "{HEAD}w:transaction(\"bad\", function(tx) tx:exec(tx:query('SELECT :a'), 1, 2) end)\n\
         w:transaction(\"deep\", function(tx)\n\
           pcall(table.sort, {{ 1, 2 }}, function() tx:exec(tx:query('SELECT 1')) end)\n\
           tx:exec('none')\nend)\n"
    );
    let loaded = Loaded::new(&lua).unwrap();
    let mut session = loaded.session(1, 1);
    assert!(session.run("bad").is_err());
    assert_eq!(session.run("deep").unwrap(), ["none()"]);
    assert!(session.run("bad").is_err());
}

#[test]
fn a_statement_whose_key_nobody_tells_is_named() {
    let lua = format!("{HEAD}w:transaction(\"t\", function(tx) tx:key(tx:query('UPDATE t SET a = 1')) end)");
    let loaded = Loaded::new(&lua).unwrap();
    let mut session = loaded.session(1, 1);
    let step = session.script.begin(0);
    assert!(matches!(step, Step::Query { want: Want::Rows, flush: true }), "{step:?}");
    let error = session.script.resume(Reply { affected: 1, ..Reply::default() });
    let Step::Failed(error) = error else { panic!("{error:?}") };
    assert!(error.to_string().contains("tx:key: UPDATE t SET a = 1 touched a row"), "{error}");
}
