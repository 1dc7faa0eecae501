//! The verbs of tables with a key: `tx:read` and its kin.

use crate::support::{Folder, Loaded};
use nephoscope_drivers::{Action, Capabilities, Dialect};

const HEAD: &str = r#"local w = workload "probe"
w:table("item", { rows = 10, key = "k", columns = {
  { "number", serial(), stored = false }, { "k", letters(3, 3) }, { "a", letters(3, 3) }, { "b", letters(3, 3) },
  { "c", letters(3, 3) } } })
w:table("pair", { rows = 10, key = "p", columns = { { "p", serial() }, { "v", letters(3, 3) } } })
"#;

/// A system that knows rows by their key alone.
const WITHOUT_SQL: &Dialect = &Dialect {
    name: "keys",
    capabilities: Capabilities { sql: false, transactions: false, ..Dialect::NONE.capabilities },
    ..*Dialect::NONE
};

/// One that has a language of its own besides.
const WITH_ITS_OWN: &Dialect = &Dialect {
    capabilities: Capabilities { own_statements: true, ..WITHOUT_SQL.capabilities },
    ..*WITHOUT_SQL
};

/// What a transaction's body calls.
fn run(body: &str) -> Result<Vec<String>, String> {
    let lua = format!("{HEAD}w:transaction(\"t\", function(tx, pick)\n{body}\nend)");
    Loaded::with(&lua, "-- name: note\nSELECT :value\n", true)?.session(1, 1).run("t")
}

#[test]
fn a_verb_is_the_statement_of_its_table_and_fields() {
    let calls = run(r#"
        tx:read("item", "x")
        tx:read("item", "x", "b")
        tx:read("pair", 7, { "v" })
        tx:scan("item", "x", 20)
        tx:insert("item", "x", { c = 3, a = 1, b = tx.null })
        tx:insert("pair", 8, { v = "y" })
        tx:update("item", "x", { b = true })
        tx:update("item", "x", { b = 2, c = 3, a = 1 })
        tx:update("pair", 9, { v = 0.5 })
        tx:delete("pair", 7)
    "#);
    assert_eq!(
        calls.unwrap(),
        [
            "read item('x') rows",
            "read item.b('x') rows",
            "read pair(7) rows",
            "scan item('x', 20) rows",
            "insert item('x', 1, null, 3)",
            "insert pair(8, 'y')",
            "update item.b(true, 'x')",
            "update item(1, 2, 3, 'x')",
            "update pair(0.5, 9)",
            "delete pair(7)",
        ]
    );
}

#[test]
fn other_fields_are_a_statement_that_is_made_once() {
    let calls = run(r#"
        tx:read("item", "x", { "c", "a" })
        tx:scan("item", "x", 5, "b")
        tx:update("item", "x", { c = 3, a = 1 })
        tx:insert("item", "x", { b = 2 })
    "#);
    assert_eq!(
        calls.unwrap(),
        [
            "SELECT c, a FROM item WHERE k = :key('x') rows",
            "SELECT b FROM item WHERE k >= :key ORDER BY k LIMIT :count('x', 5) rows",
            "UPDATE item SET a = :a, c = :c WHERE k = :k(1, 3, 'x')",
            "INSERT INTO item (k, b) VALUES (:k, :b)('x', 2)",
        ]
    );
}

#[test]
fn values_are_read_at_the_call_so_that_a_table_can_be_used_again() {
    let calls = run(r#"
        local values = { v = 1 }
        tx:update("pair", 1, values)
        values.v = 2
        tx:update("pair", 1, values)
    "#);
    assert_eq!(calls.unwrap(), ["update pair(1, 1)", "update pair(2, 1)"]);
}

#[test]
fn a_slip_of_the_pen_is_told() {
    for (body, message) in [
        (
            r#"tx:read("items", 1)"#,
            r#"tx:read: no table with a key is called "items"; such tables are item, pair"#,
        ),
        (
            r#"tx.read("item", 1)"#,
            "tx:read: no table with a key is called number; such tables are item, pair",
        ),
        (r#"tx:read("item")"#, "tx:read: the key is missing"),
        (r#"tx:read("item", 1, "d")"#, r#"tx:read: item has no field "d"; its fields are a, b, c"#),
        (r#"tx:read("item", 1, 7)"#, "tx:read: item has no field number; its fields are a, b, c"),
        (r#"tx:read("item", 1, {})"#, "tx:read: the list of fields is empty; leave it out for all fields"),
        (r#"tx:read("item", 1, { "a", "a" })"#, r#"tx:read: the field "a" is asked for twice"#),
        (r#"tx:read("item", 1, "a", 2)"#, "tx:read takes a table, a key and fields; one value too many"),
        (
            r#"tx:read("item", {})"#,
            "tx:read: the key is a table; allowed are numbers, texts, booleans and tx.null",
        ),
        (r#"tx:scan("item", "x")"#, "tx:scan: the count is missing"),
        (r#"tx:update("item", 1)"#, "tx:update: values by their fields are expected, { a = … }, not nothing"),
        (r#"tx:update("item", 1, {})"#, "tx:update: no value is given; the fields are a, b, c"),
        (r#"tx:update("item", 1, { k = 2 })"#, r#"tx:update: item has no field "k"; its fields are a, b, c"#),
        (r#"tx:insert("item", 1, { 2 })"#, "tx:insert: item has no field number; its fields are a, b, c"),
        (
            r#"tx:insert("item", 1, { a = {} })"#,
            "tx:insert: a is a table; allowed are numbers, texts, booleans and tx.null",
        ),
        (r#"tx:delete("item", 1, 2)"#, "tx:delete takes a table and a key; one value too many"),
    ] {
        let told = run(body).unwrap_err();
        assert!(told.lines().next().unwrap().ends_with(message), "{body}: {told}");
    }
    let lua = "local w = workload \"probe\"\nw:transaction(\"t\", function(tx) tx:read(\"t\", 1) end)";
    let told = Loaded::with(lua, "", false).unwrap().session(1, 1).run("t").unwrap_err();
    assert!(told.contains("tx:read: no table has a key: w:table(name, { key = \"column\", … })"), "{told}");
}

#[test]
fn the_key_is_the_first_stored_column() {
    for (table, message) in [
        (
            r#"key = "b", columns = { { "a", serial() }, { "b", serial() } }"#,
            r#"the key is "b"; it must be the first stored column, "a""#,
        ),
        (
            r#"key = "a", columns = { { "a", serial(), stored = false }, { "b", serial() } }"#,
            r#"the key is "a"; it must be the first stored column, "b""#,
        ),
        (r#"key = "a", columns = { { "a", serial() } }"#, "no column is stored beside the key"),
        (r#"key = 7, columns = { { "a", serial() } }"#, "its key must be a text, not integer"),
    ] {
        let lua = format!("local w = workload \"probe\"\nw:table(\"t\", {{ rows = 1, {table} }})");
        let told = Folder::new(&lua, "").workload(&[]).unwrap_err();
        assert_eq!(told, format!("workload.lua:2: table t: {message}"));
    }
}

/// The statements of a workload on a system without SQL, or why it does not run there.
fn without_sql(lua: &str, sql: &str) -> Result<Vec<String>, String> {
    let workload = Folder::new(&format!("{HEAD}{lua}"), sql).source(&[], 1.0, WITHOUT_SQL)?.workload();
    let workload = workload.map_err(|error| error.to_string())?;
    assert!(workload.checks.len() == workload.invariants.len() && workload.schema.create.is_empty());
    assert!(workload.statements.iter().all(|statement| statement.verb().is_some()));
    Ok(workload.statements.iter().map(|statement| statement.name().to_owned()).collect())
}

#[test]
fn a_system_without_sql_has_the_verbs_alone() {
    let lua = r#"
        w:schema("create", "CREATE TABLE item")
        w:invariant("counted", "rows are counted")
        assert(not w:can "sql" and not w:can "transactions")
        w:transaction("t", function(tx) tx:read("pair", 1) end)
    "#;
    let found = without_sql(lua, "-- name: counted\nSELECT 1\n-- name: unused\nSELECT 2\n").unwrap();
    let expected = "read item|read item.a|read item.b|read item.c|scan item|insert item|update item|update item.a|\
                    update item.b|update item.c|delete item|read pair|scan pair|insert pair|update pair|delete pair";
    assert_eq!(found.join("|"), expected);
    let actions = Action::ALL.map(Action::name);
    assert!(found.iter().all(|name| actions.contains(&name.split(' ').next().unwrap())));
}

#[test]
fn statements_of_a_systems_own_language_stand_beside_the_verbs() {
    let lua = format!("{HEAD}w:transaction(\"t\", function(tx) tx:exec(\"used\") end)");
    let sql = "-- name: used\nSELECT 1\n-- name: unused\nSELECT 2\n";
    let workload = Folder::new(&lua, sql).source(&[], 1.0, WITH_ITS_OWN).unwrap().workload().unwrap();
    let own = workload.statements.iter().filter(|statement| statement.verb().is_none());
    assert_eq!(own.map(nephoscope_drivers::Statement::name).collect::<Vec<_>>(), ["used"]);
    assert!(workload.statements.len() > 1 && workload.schema.create.is_empty());
}

#[test]
fn what_needs_sql_is_refused_where_there_is_none() {
    let uses = r#"w:transaction("t", function(tx) tx:exec("used") end)"#;
    let sql = "-- name: used\nSELECT 1\n";
    assert_eq!(
        without_sql(uses, sql).unwrap_err(),
        "workload.lua: the statement \"used\" is SQL, which keys does not have; w:can \"sql\" tells whether a system has"
    );
    let table = r#"w:table("plain", { rows = 1, columns = { { "a", serial() } } })
        w:transaction("t", function() end)"#;
    assert_eq!(
        without_sql(table, "").unwrap_err(),
        "workload.lua: table \"plain\": keys has no SQL, and keeps only tables with a key: key = \"…\""
    );
    let needs = "w:needs \"sql\"\nw:transaction(\"t\", function() end)";
    assert!(
        without_sql(needs, "")
            .unwrap_err()
            .contains("the workload needs sql, which systems of the dialect keys")
    );
    let can = "w:can \"fly\"";
    assert!(
        without_sql(can, "").unwrap_err().contains("a workload cannot need \"fly\"; it can need sql, trans")
    );
}
