//! What a user reads when his workload is wrong: file, line, what was found and what is allowed. `UPDATE_GOLDEN=1
//! cargo test` accepts a change.

use std::fmt::Write;
use std::path::Path;

use crate::support::{Folder, HEAD, SQL, declared, run};
use nephoscope_drivers::Dialect;
use nephoscope_script::{OptionValue, Source};

/// Compares with a golden file: each case's text, and what is said about it.
fn compare(name: &str, cases: impl Iterator<Item = (String, String)>) {
    let mut text = String::new();
    for (case, message) in cases {
        assert_ne!(message, ACCEPTED, "{case}");
        writeln!(text, "> {}\n{message}\n", case.trim().replace('\n', "\n> ")).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "the messages of {name} have changed");
}

const ACCEPTED: &str = "accepted";

fn message<T>(outcome: Result<T, String>) -> String {
    outcome.err().unwrap_or_else(|| ACCEPTED.to_owned())
}

/// Lua after the header of `support`, whose lines are 1–3, so these begin with line 4.
const DECLARATIONS: &[&str] = &[
    "w:table(\"t\", { rows = 1, columns = { { \"a\", serail() } } })",
    "w:table(\"t\", { rows = 1, columns = { { \"a\", geometry() } } })",
    "w:table(\"t\", { rows = 1, columns = { { \"a\" } } })",
    "w:table(\"t\", { rows = 1, columns = { { \"a\", 5 } } })",
    "w:table(\"t\", { rows = 1, columns = { { \"a b\", serial() } } })",
    "w:table(\"t\", { rows = 1, columns = { { \"a\", serial(), false } } })",
    "w:table(\"t\", { rows = 1, columns = { { \"a\", serial(), store = false } } })",
    "w:table(\"t\", { rows = 1, colums = {} })",
    "w:table(\"t\", { rows = 1 })",
    "w:table(\"t\", { rows = 1, columns = {} })",
    "w:table(\"t\", { rows = -1, columns = { { \"a\", serial() } } })",
    "w:table(\"t\", { rows = \"many\", columns = { { \"a\", serial() } } })",
    "w:table(\"t\", { rows = function() return nil end, columns = { { \"a\", serial() } } })",
    "w:table(\"t\", { columns = { { \"a\", serial() } } })",
    "w:table(\"t\", { rows = 1, columns = { { \"a\", serial() }, { \"a\", serial() } } })",
    "w:table(\"t\", { rows = 1, columns = { { \"a\", reference(\"nowhere\") } } })",
    "w:table(\"item\", { rows = 1, columns = { { \"a\", serial() } } })",
    "w:table(\"once\", { rows = 1, columns = { { \"a\", serial() } } })",
    "w:table(\"t\", 5)",
    "w.table(\"t\", {})",
    "w:tabel(\"t\", {})",
    "workload \"second\"",
    "w:option(\"o\", \"colour\", \"red\")",
    "w:option(\"o\", \"integer\", 1.5)",
    "w:option(\"o\", \"number\")",
    "w:option(\"o\", { \"a\", 5 }, \"a\")",
    "w:option(\"o\", { \"a\", \"b\" }, \"c\")",
    "w:option(\"o\", \"text\", \"a\")\nw:option(\"o\", \"text\", \"a\")",
    "w:option(\"o\", \"text\", \"a\", 5)",
    "w:transaction(\"t\", 5)",
    "w:load(5)",
    "w:load({ parts = 0 }, function() end)",
    "w:load({ parts = \"many\" }, function() end)",
    "w:load({ threads = 4 }, function() end)",
    "w:load(function() end, { parts = 4 })",
    "w:load(function() end)\nw:load(function() end)",
    "w:transaction(\"t\", { readonly = true }, function() end)",
    "w:transaction(\"t\", { read_only = \"yes\" }, function() end)",
    "w:transaction(\"t\", { aborts_on = \"deadlock\" }, function() end)",
    "w:transaction(\"t\", { aborts_on = { \"constraint\", 5 } }, function() end)",
    "w:transaction(\"t\", { aborts_on = true }, function() end)",
    "w:transaction(\"t\", { think = \"12s\" }, function() end)",
    "w:transaction(\"t\", { keying = -1 }, function() end)",
    "w:transaction(\"t\", { think = { law = \"normal\", seconds = 1 } }, function() end)",
    "w:transaction(\"t\", { think = { mean = 1 } }, function() end)",
    "w:transaction(\"t\", function() end)\nw:transaction(\"t\", function() end)",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { u = 1 })",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { t = -1 })",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { t = \"1\" })",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { t = 0 })",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { \"t\" })",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { t = 1 })\nw:mix(\"m\", { t = 1 })",
    "w:session(5)",
    "w:session(function() end)\nw:session(function() end)",
    "w:invariant(\"nothing\", \"help\")",
    "w:invariant(\"none\", { when = \"never\" }, \"help\")",
    "w:invariant(\"none\")\nw:invariant(\"none\")",
    "tx:exec(\"none\")",
    "pick.item()",
    "local x = = 1",
    "w:describe(\"unended)",
    "local x = nil + 1",
    "error(\"on purpose\")",
    "error { code = 5 }",
    "error()",
    "w:describe(\"one\", \"two\")",
    "w:table(\"t\", { rows = 1, columns = { { \"a\", serial() } } }, 5)",
    "w:option(\"o\", \"text\", \"a\", \"help\", { data = false }, 6)",
    "w:option(\"o\", \"text\", \"a\", \"help\", { date = false })",
    "w:option(\"o\", \"text\", \"a\", \"help\", { data = 0 })",
    "w:option(\"o\", \"text\", \"a\", \"help\", false)",
    "w:transaction(\"t\", function() end, { read_only = true })",
    "w:transaction(\"t\", { read_only = true }, function() end, {})",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { t = 1 }, 5)",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { t = 1 }, { least = {} })",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { t = 1 }, { at_least = 5 })",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { t = 1 }, { at_least = { u = 5 } })",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { t = 1 }, { at_least = { t = -5 } })",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { t = 1 }, { at_least = { t = 101 } })",
    "w:transaction(\"t\", function() end)\nw:transaction(\"u\", function() end)\n\
     w:mix(\"m\", { t = 1 }, { at_least = { u = 5 } })",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { t = 1 }, { rate = \"tpm\" })",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { t = 1 }, { rate = { transaction = \"t\" } })",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { t = 1 }, { rate = { name = \"tpm\", transaction = \"u\" } })",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { t = 1 }, \
     { rate = { name = \"tpm\", transaction = \"t\", per = \"day\" } })",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { t = 1 }, \
     { rate = { name = \"tpm\", transaction = \"t\", pauses = 1 } })",
    "w:transaction(\"t\", function() end)\nw:mix(\"m\", { t = 1 }, { access = 5 })",
    "w:transaction(\"t\", { limit = 5 }, function() end)",
    "w:transaction(\"t\", { limit = { p100 = 5 } }, function() end)",
    "w:transaction(\"t\", { limit = { 5 } }, function() end)",
    "w:transaction(\"t\", { limit = { p90 = 0 } }, function() end)",
    "w:transaction(\"t\", { limit = { p90 = \"5s\" } }, function() end)",
    "w:invariant(\"none\", \"help\", { when = \"loaded\" })",
    "w:has(\"none\", \"pair\")",
    "w:statement(\"none\", \"SELECT 2\")",
    "w:statement(\"own\", \"SELECT 2\")\nw:statement(\"own\", \"SELECT 3\")",
    "w:statement(\"own\")",
    "w:statement(\"own\", \" ; \")",
    "w:statement(\"own\", \"SELECT 'a\")",
    "w:statement(\"two words\", \"SELECT 1\")",
    "w:schema(\"indexes\", \"SELECT 1\")",
    "w:schema(\"keys\", 5)",
    "w:schema(\"keys\", \"-- nothing\")",
    "w:schema(\"keys\", \"SELECT /* 1\")",
    "w.scal = w.scales",
    "w:extends \"none\"",
    "w:extends \"../sales\"",
    "require \"absent\"",
    "require \"../workload\"",
    "require \"loader.lua\"",
    "require \"workload\"",
    "require(\"a\", \"b\")",
    "require(5)",
    "w:table(\"a\", { rows = function() return w.scale / 2 end, columns = { { \"a\", serial() } } })\n\
     w:table(\"b\", { columns = { { \"b\", parent(\"a\", 2, 2) } } })",
    "w:table(\"a\", { rows = 3, columns = { { \"a\", optional(0.5, reference(\"empty\")) } } })",
    "local all = {}\nfor i = 1, 1e6 do all[i] = (\"x\"):rep(1e6) .. i end",
];

#[test]
fn declarations() {
    compare("declarations.txt", DECLARATIONS.iter().map(|lua| ((*lua).to_owned(), message(declared(lua)))));
}

/// Bodies of a transaction, whose first line is line 5.
const BODIES: &[&str] = &[
    "tx:exec(\"nothing\")",
    "tx:exec()",
    "tx.exec(\"none\")",
    "tx:exec(5)",
    "tx:exec(\"note\")",
    "tx:exec(\"pair\", 1, 2, 3)",
    "tx:exec(\"none\", nil)",
    "tx:exec(\"note\", function() end)",
    "tx:exec(\"pair\", 1, {})",
    "tx:exec(\"pair\", { a = 1 })",
    "tx:exec(\"pair\", { a = 1, b = {} })",
    "tx:exec(\"pair\", { a = 1, b = 2, c = 3 })",
    "tx:exec(\"none\", { a = 1 })",
    "tx:execute(\"none\")",
    "tx.time = 5",
    "",
    "tx:exec(\"none\")\nreturn tx:skip()",
    "tx:skip()\ntx:exec(\"none\")",
    "tx:skip()\npcall(pick.item)\nreturn tx.session",
    "tx:tally(5, 1)",
    "tx:tally(\"paid\", \"much\")",
    "tx:tally(\"paid\", 0 / 0)",
    "tx:tally(\"paid\", -1 / 0)",
    "tx:inserted(\"nowhere\", 1)",
    "tx:inserted(\"item\", \"x\")",
    "pick.nowhere()",
    "pick.empty()",
    "pick.once(\"nowhere\")",
    "pick.integer(2, 1)",
    "pick.integer(1, 2.5)",
    "pick.integer(1)",
    "pick.number(1, 2, 99)",
    "pick.chance(1.5)",
    "pick.choice {}",
    "pick.choice(5)",
    "pick.letters(0, 1e9)",
    "pick.zipf(0, 1)",
    "pick.zipf(10, 11)",
    "pick.zipf(10)",
    "pick.key(2, 1)",
    "pick.key(1, 2.5)",
    "pick.pattern(5)",
    "pick.pattern(\"#\", 5)",
    "pick.row(\"item\", 5)",
    "pick.pattern(\"#%\")",
    "pick.new(\"nowhere\")",
    "pick.row(\"nowhere\")",
    "pick.row(\"empty\")",
    "return pick.row(\"item\").price",
    "return pick.row(\"item\")[1]",
    "pick.row(\"item\").i_id = 5",
    "math.random(0)",
    "local row = tx:one(\"none\")\nreturn row.price",
    "local row = tx:one(\"none\")\nreturn row[99]",
    "local row = tx:one(\"none\")\nrow.int = 5",
    "local row = tx:one(\"none\")\nreturn row[true]",
    "order = 5",
    "return ordr",
    "local x = nil\nreturn x.field",
    "local function deep() error(\"on purpose\") end\nlocal function deeper() deep() return 1 end\ndeeper()",
    "error { code = 5, message = \"sold out\" }",
    "error(setmetatable({}, { __tostring = function() return \"an object's own words\" end }))",
    "error(setmetatable({}, { __tostring = function() error(\"worse\") end }))",
    "error()",
    "table.sort({ 3, 1, 2 }, function(a, b) tx:exec(\"none\") return a < b end)",
    "w:transaction(\"late\", function() end)",
    "workload \"late\"",
    "serial(\"x\")",
    "local function endless() return 1 + endless() end\nendless()",
    "tx:commit()",
    "tx:rollback()",
    "tx:begin()\ntx:begin()",
    "tx:begin()\ntx:commit()\ntx:commit()",
    "tx:begin()\ntx:rollback()\ntx:rollback()",
    "tx:receive()",
    "tx:receive(1)",
    "tx:send()",
    "tx:send(\"nothing\")",
    "tx:send(tx:query(\"COMMIT\"))",
    "for _ = 1, 1001 do tx:send(\"none\") end",
    "tx:begin()\ntx:abort()",
    "tx:abort(5)",
    "tx:begin(\"serializable\")",
    "tx:begin()\ntx:commit(1, 2)",
    "tx:tally(\"paid\", 1, 2)",
    "tx:inserted(\"item\", 1, 2)",
    "tx:exec(\"pair\", { 1, 2 })",
    "tx:exec(\"pair\", { a = 1, b = 2 }, 3)",
    "pick.item(1)",
    "pick.once(\"item\", 1)",
    "pick.integer(1, 2, 3)",
    "pick.number(1, 2, 3, 4)",
    "pick.chance(0.5, 0.5)",
    "pick.choice({ 1 }, { 2 })",
    "pick.letters(1, 2, 3)",
    "math.random(1, 2, 3)",
    "require \"late\"",
];

#[test]
fn transactions() {
    compare("transactions.txt", BODIES.iter().map(|body| ((*body).to_owned(), message(run(body)))));
}

/// Words of columns with wrong arguments.
const COLUMNS: &[&str] = &[
    "serial(1.5)",
    "serial(1, 2)",
    "constant()",
    "constant({})",
    "integer(1)",
    "integer(\"1\", 2)",
    "integer(2, 1)",
    "decimal(0, 1, 19)",
    "decimal(\"0.123\", 1, 2)",
    "decimal(nil, 1)",
    "boolean(2)",
    "choice()",
    "choice({})",
    "choice({ \"a\" }, { 1, 2 })",
    "choice({ \"a\" }, { -1 })",
    "choice({ \"a\", 1 })",
    "reference()",
    "reference(\"item\", \"i_id\", \"skewed\")",
    "reference(\"item\", \"i_id\", 11)",
    "distinct(1)",
    "distinct(2, 1)",
    "zipfian(1, 9)",
    "zipfian(1, 9, -1)",
    "letters(1, 2, \"\")",
    "letters(1, 2, 5)",
    "pattern()",
    "pattern(\"##%\")",
    "parent(\"item\")",
    "parent(\"item\", 1.5)",
    "parent(\"item\", {})",
    "parent(\"item\", { many = 5 })",
    "parent(\"item\", { [0.5] = 5 })",
    "parent(\"item\", { 1, \"2\" })",
    "parent(\"item\", { 1, -2 })",
    "parent(\"item\", { 1, 2 }, 3)",
    "line(\"first\")",
    "parent(\"item\", 2, 1)",
    "parent(\"item\", -1, 1)",
    "line()",
    "count(\"item\")",
    "total(\"item\", \"i_id\")",
    "product(\"nothing\")",
    "copy(5)",
    "lookup(\"a\")",
    "words(3, 2)",
    "bytes(1)",
    "date(\"2020-13-01\", \"2021-01-01\")",
    "date(\"2021-01-01\", \"2020-01-01\")",
    "timestamp(\"yesterday\", \"today\")",
    "after(\"nothing\", 0, 1)",
    "optional(0.5)",
    "optional(0.5, 5)",
    "derive(\"colour\", {}, function() end)",
    "derive(\"text\", {})",
    "derive(\"text\", { 5 }, function() end)",
    "derive(\"text\", function() end, {})",
];

#[test]
fn columns() {
    let lua = |column: &str| format!("w:table(\"t\", {{ rows = 1, columns = {{ {{ \"a\", {column} }} }} }})");
    compare(
        "columns.txt",
        COLUMNS.iter().map(|column| {
            let message = declared(&lua(column)).map(|workload| format!("{:?}", workload.tables));
            ((*column).to_owned(), message.unwrap_err())
        }),
    );
}

#[test]
fn statements() {
    let texts = [
        "SELECT 1",
        "-- name:\nSELECT 1",
        "-- name: two words\nSELECT 1",
        "-- name: a\n-- only a comment\n;",
        "-- name: a\nSELECT 1\n-- name: a\nSELECT 2",
        "-- name: a\nSELECT 'it''s,\n  :b",
        "-- name: a\nSELECT \"b",
        "-- name: a\nSELECT 1\n/* b /* c */\n-- name: d\nSELECT 1",
        "-- name: a\nDO $$ BEGIN\nEND",
    ];
    let lua = format!("{HEAD}w:transaction(\"t\", function() end)");
    let message = |text: &str| Folder::new(&lua, text).workload(&[]).map(|_| ()).unwrap_err();
    compare("statements.txt", texts.iter().map(|text| ((*text).to_owned(), message(text))));
}

#[test]
fn files_and_studies() {
    let lua = format!(
        "{HEAD}w:option(\"size\", \"integer\", 5, \"\")\nw:option(\"mode\", {{ \"fast\", \"safe\" }}, \"fast\", \"\")\n\
         w:transaction(\"t\", function() end)"
    );
    let folder = Folder::new(&lua, SQL);
    let text = |text: &str| OptionValue::Text(text.to_owned());
    let said = |options: &[(&str, OptionValue)]| folder.workload(options).map(|_| ()).unwrap_err();
    let source = |folder: &Folder, scale| {
        let source = folder.source(&[], scale, Dialect::NONE);
        let read = source.and_then(|source| source.workload().map_err(|error| error.to_string()));
        read.map(|_| ()).unwrap_err()
    };
    let of = |lua: &str| Folder::new(lua, SQL).workload(&[]).map(|_| ()).unwrap_err();
    let with = |name: &str, text: &str| source(&Folder::new(&lua, SQL).with(name, text), 1.0);
    let absent = tempfile::TempDir::new().unwrap();
    let missing = Source::read(absent.path(), std::collections::BTreeMap::new(), 1.0, 1, Dialect::NONE);
    let missing = missing.map(|_| ()).unwrap_err().to_string();
    let cases = [
        ("an option that there is not", said(&[("sise", OptionValue::Number(1.0))])),
        ("a fraction for a whole number", said(&[("size", OptionValue::Number(1.5))])),
        ("a text for a whole number", said(&[("size", text("big"))])),
        ("another choice", said(&[("mode", text("slow"))])),
        ("a scale of 0", source(&folder, 0.0)),
        ("no workload", of("local x = 1")),
        ("no transaction", of(HEAD)),
        ("compiled code", of("\u{1b}LJ\u{2}")),
        ("no file", missing.replace(&format!("{}/", absent.path().display()), "")),
        ("a dialect's statement that there is not", with("statements.none.sql", "-- name: other\nSELECT 1")),
        ("another section of the schema", with("schema.sql", "-- name: indexes\nSELECT 1")),
        ("a dialect's section that there is not", with("schema.none.sql", "-- name: keys\nSELECT 1")),
    ];
    compare("studies.txt", cases.into_iter().map(|(case, message)| (case.to_owned(), message)));
}
