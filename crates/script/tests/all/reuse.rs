//! Workloads of several files: `require` of the own folder, `w:extends` of another workload.

use std::path::Path;

use crate::support::Folder;
use nephoscope_drivers::{Dialect, mysql};
use nephoscope_script::{OptionValue, Source, Workload};
use tempfile::TempDir;

const MAIN: &str = r#"local w = workload "main"
local one, two = require "part", require "part"
assert(one == two and one.count == 1, "it runs once")
w:transaction("t", function(tx) tx:exec("note", one.value()) end)"#;

const PART: &str =
    "local part = { count = 1 }\nfunction part.value() return math.random(1, 9) end\nreturn part";

fn said(folder: &Folder) -> String {
    folder.workload(&[]).map(|_| ()).unwrap_err()
}

#[test]
fn a_file_of_the_folder_runs_once_and_gives_its_value() {
    let folder = Folder::of_lua(MAIN).with("part.lua", PART).with("other.lua", "not Lua at all");
    let source = folder.source(&[], 1.0, Dialect::NONE).unwrap();
    assert_eq!(names(&source), ["workload.lua"], "what is not asked for is not read");
    source.workload().unwrap();
    assert_eq!(names(&source), ["workload.lua", "part.lua"]);
    // What was read once stays, whatever becomes of the file: each thread runs the same.
    let folder = folder.with("part.lua", "error(\"changed\")");
    source.workload().unwrap();
    assert_eq!(said(&folder), "part.lua:1: changed");
}

#[test]
fn errors_of_a_required_file_name_it() {
    for (part, expected) in [
        ("local x = = 1", "part.lua:1: unexpected symbol near '='"),
        ("\nserail()", "part.lua:2: nothing is called serail here; is it serial?"),
        ("local again = require \"part\"", "part.lua:1: require \"part\": part.lua would require itself"),
        ("workload \"second\"", "part.lua:1: a file declares one workload, and this is the second"),
    ] {
        assert_eq!(said(&Folder::of_lua(MAIN).with("part.lua", part)), expected);
    }
    let absent = "workload.lua:2: require \"part\": there is no part.lua in the workload's folder";
    assert_eq!(said(&Folder::of_lua(MAIN)), absent);
}

#[test]
fn a_dialects_own_statement_may_be_used_by_a_required_file() {
    let folder = Folder::of_lua("local w = workload \"main\"\nrequire(\"part\")(w)")
        .with("statements.mysql.sql", "-- name: hint\nSELECT 1");
    let used = folder.with(
        "part.lua",
        "return function(w) local hint = \"hint\" w:transaction(\"t\", function(tx) tx:one(hint) end) end",
    );
    let workload = used.source(&[], 1.0, mysql::DIALECT).unwrap().workload().unwrap();
    assert_eq!(workload.statements.len(), 1);
    assert_eq!(
        said(&used),
        "workload.lua: the statement \"hint\" is there for mysql and not for none; w:has(\"hint\") asks whether it is"
    );
}

fn names(source: &Source) -> Vec<String> {
    source.files().iter().map(|file| file.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

/// Folders beside each other.
struct Shelf(TempDir);

impl Shelf {
    fn new() -> Self {
        let shelf = Self(TempDir::new().unwrap());
        shelf.with(
            "base/workload.lua",
            r#"local w = workload "base"
            w:describe "the base"
            local size = w:option("size", "integer", 5, "how many")
            local part = require "part"
            w:table("item", { rows = size, columns = { { "i_id", serial() }, { "i_x", derive("integer", part) } } })
            w:transaction("read", { read_only = true }, function(tx, pick) tx:one("find", pick.item()) end)
            w:transaction("write", function(tx, pick) tx:exec("change", pick.item()) end)
            w:mix("RW", { read = 1, write = 1 })
            w:invariant("bad", "nothing is bad")
            return { size = size }"#,
        );
        shelf.with("base/part.lua", "return function(row) return row * 2 end");
        shelf.with(
            "base/statements.sql",
            "-- name: find\nSELECT :id\n-- name: change\nSELECT :id + 1\n-- name: bad\nSELECT 1",
        );
        shelf.with("base/statements.mysql.sql", "-- name: find\nSELECT :id + 0");
        shelf.with(
            "base/schema.sql",
            "-- name: create\nCREATE TABLE item (a int);\n-- name: drop\nDROP TABLE item;",
        );
        shelf
    }

    fn with(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn source(&self, lua: &str, options: &[(&str, OptionValue)], dialect: &Dialect) -> Source {
        self.with("mine/workload.lua", lua);
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Source::read(&self.0.path().join("mine"), options, 1.0, 7, dialect).unwrap()
    }

    fn workload(&self, lua: &str) -> Result<Workload, String> {
        self.source(lua, &[], Dialect::NONE).workload().map_err(|error| error.to_string())
    }
}

const MINE: &str = r#"local w = workload "mine"
local base = w:extends "base"
w:table("extra", { rows = base.size, columns = { { "e_id", serial() }, { "e_item", reference("item") } } })
w:schema("create", "CREATE TABLE extra (b int)")
w:schema("drop", "DROP TABLE extra")
w:statement("change", "SELECT :id + 2")
w:transaction("count", { read_only = true }, function(tx) tx:one("bad") end)
w:transaction("write", { help = "anew" }, function(tx, pick) tx:exec("change", pick.extra()) end)
w:mix("COUNT", { count = 1, read = 3 })
w:invariant("bad", { when = "loaded" }, "nothing is bad at first")
"#;

#[test]
fn a_workload_extends_another_and_declares_parts_of_it_anew() {
    let shelf = Shelf::new();
    let source = shelf.source(MINE, &[("size", OptionValue::Number(6.0))], mysql::DIALECT);
    let workload = source.workload().unwrap();
    assert_eq!((workload.name.as_str(), workload.description.as_str()), ("mine", "the base"));
    let tables: Vec<_> = workload.tables.iter().map(|table| (table.name.as_str(), table.rows)).collect();
    assert_eq!(tables, [("item", 6), ("extra", 6)]);
    let transactions: Vec<_> =
        workload.transactions.iter().map(|of| (of.name.as_str(), of.help.as_str())).collect();
    assert_eq!(
        transactions,
        [("read", ""), ("write", "anew"), ("count", "")],
        "what is anew keeps its place"
    );
    assert_eq!(workload.mixes.iter().map(|mix| mix.name.as_str()).collect::<Vec<_>>(), ["RW", "COUNT"]);
    let texts: Vec<_> = workload.statements.iter().map(nephoscope_drivers::Statement::text).collect();
    assert_eq!(texts, ["SELECT :id + 0", "SELECT :id + 2"], "the dialect's, and the own");
    assert_eq!(workload.invariants[0].help, "nothing is bad at first");
    assert_eq!(workload.schema.create, "CREATE TABLE item (a int);\nCREATE TABLE extra (b int)");
    assert_eq!(workload.schema.drop, "DROP TABLE extra;\nDROP TABLE item");
    let files = source.files();
    let inside = |path: &Path| {
        path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
            + "/"
            + path.file_name().unwrap().to_str().unwrap()
    };
    assert_eq!(
        files.iter().map(|file| inside(file)).collect::<Vec<_>>(),
        [
            "mine/workload.lua",
            "base/workload.lua",
            "base/statements.sql",
            "base/statements.mysql.sql",
            "base/schema.sql",
            "base/part.lua"
        ]
    );
}

#[test]
fn what_extends_wrongly_is_told_where() {
    let shelf = Shelf::new();
    let begin = "local w = workload \"mine\"\n";
    shelf.with("loop/workload.lua", "local w = workload \"loop\"\nw:extends \"loop\"");
    shelf.with("back/workload.lua", "local w = workload \"back\"\nw:extends \"mine\"");
    shelf.with("wrong/workload.lua", "local w = workload \"wrong\"\nw:tabel()");
    shelf.with("sql/workload.lua", "local w = workload \"sql\"");
    shelf.with("sql/statements.sql", "SELECT 1");
    shelf.with("nameless/workload.lua", "local x = 1");
    for (lua, expected) in [
        ("w:extends \"loop\"", "loop/workload.lua:2: w:extends \"loop\": the workload would extend itself"),
        ("w:extends \"back\"", "back/workload.lua:2: w:extends \"mine\": the workload would extend itself"),
        ("w:extends \"wrong\"", "wrong/workload.lua:2: a workload has no word tabel; "),
        (
            "w:extends \"sql\"",
            "workload.lua:2: w:extends \"sql\": sql/statements.sql:1: SQL before the first line",
        ),
        ("w:extends \"nameless\"", "nameless/workload.lua: the file declares no workload"),
        ("w:extends \"none\"", "workload.lua:2: w:extends \"none\": no workload of this name comes with"),
        ("w:extends \"../base\"", "workload.lua:2: the workload that is extended must be one word"),
        ("w:extends \"base\"\nw:extends \"base\"", "workload.lua:3: w:extends comes once, before everything"),
        (
            "w:load(function() end)\nw:extends \"base\"",
            "workload.lua:3: w:extends comes once, before everything",
        ),
        ("w:has(\"x\")\nw:extends \"base\"", "workload.lua:3: w:extends comes once, before everything"),
        (
            "w:schema(\"create\", \"SELECT 1\")\nw:extends \"base\"",
            "workload.lua:3: w:extends comes once, before everything",
        ),
        (
            "pcall(w.needs, w, \"notify\")\nw:extends \"base\"",
            "workload.lua:3: w:extends comes once, before everything",
        ),
        (
            "w:extends \"base\"\nw:table(\"item\", { rows = 1, columns = { { \"a\", serial() } } })",
            "workload.lua:3: the table item is declared twice",
        ),
        (
            "w:extends \"base\"\nw:mix(\"RW\", { read = 1 })\nw:mix(\"RW\", { read = 1 })",
            "workload.lua:4: the mix RW is declared twice",
        ),
        (
            "w:extends \"base\"\nlocal x = function() require \"part\" end x()",
            "workload.lua:3: require \"part\": there is no part.lua in the workload's folder",
        ),
    ] {
        let error = shelf.workload(&format!("{begin}{lua}")).map(|_| ()).unwrap_err();
        assert!(error.starts_with(expected), "{lua}: {error}");
    }
}

#[test]
fn a_workload_that_comes_with_nephoscope_is_found_before_one_beside() {
    let shelf = Shelf::new();
    shelf.with(
        "packaged/base/workload.lua",
        "local w = workload \"packaged\"\nw:transaction(\"t\", function() end)",
    );
    let lua = "local w = workload \"mine\"\nw:extends \"base\"";
    let source = shelf.source(lua, &[], Dialect::NONE);
    let packaged = source.clone().with_packaged(Some(&shelf.0.path().join("packaged")));
    assert_eq!(packaged.workload().unwrap().transactions.len(), 1);
    let beside = shelf.source(lua, &[], Dialect::NONE);
    assert_eq!(beside.workload().unwrap().transactions.len(), 2);
}
