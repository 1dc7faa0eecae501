//! What a workload file can declare: tables with every kind of column, options, transactions, mixes, invariants; and
//! the statements and schemas of a dialect.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::support::{Folder, HEAD, SQL, declared};
use nephoscope_datagen::Kind;
use nephoscope_drivers::{Dialect, Error, RowEncoder, RowSource as _, Value};
use nephoscope_script::{OptionKind, OptionValue, When, Workload};

#[test]
fn tables_scale_and_have_keys_where_the_first_column_is_serial() {
    let lua = format!(
        r#"{HEAD}w:describe "what it is"
        w:table("fixed", {{ rows = 5, columns = {{ {{ "f_id", serial(100) }}, {{ "hidden", integer(1, 2), stored = false }} }} }})
        w:table("texts", {{ rows = 3, columns = {{ {{ "number", serial(), stored = false }}, {{ "key", words(3, 9) }} }} }})
        w:table("child", {{ columns = {{ {{ "c_item", parent("item", 2, 2) }}, {{ "c_line", line() }} }} }})
        w:transaction("t", function() end)"#
    );
    let source = Folder::new(&lua, SQL).source(&[], 0.5, Dialect::NONE).unwrap();
    let workload = source.workload().unwrap();
    assert_eq!((workload.name.as_str(), workload.description.as_str()), ("probe", "what it is"));
    let tables: Vec<_> = workload.tables.iter().map(|t| (t.name.as_str(), t.rows, t.first_key)).collect();
    assert_eq!(
        tables,
        [
            ("item", 500, Some(1)),
            ("empty", 0, Some(1)),
            ("fixed", 5, Some(100)),
            ("texts", 3, Some(1)),
            ("child", 1000, None)
        ]
    );
    assert_eq!(
        workload.tables[2].columns,
        [("f_id".to_owned(), "serial")],
        "what is not stored is not shown"
    );
    assert_eq!(
        workload.tables[3].columns,
        [("key".to_owned(), "words")],
        "the number behind it can be picked"
    );
    assert_eq!(workload.tables[4].columns, [("c_item".to_owned(), "parent"), ("c_line".to_owned(), "line")]);
    let keys = workload.key_spaces(&BTreeMap::from([("item".to_owned(), 3)]));
    let names: Vec<&str> = keys.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["item", "empty", "fixed", "texts"]);
    assert_eq!((keys[0].1.handed_out(), keys[2].1.handed_out()), (3, 0));
    assert!((100..105).contains(&keys[2].1.once().unwrap()));
}

/// The word that each column of one table is made with, its kind and whether the values of its rows are what they
/// have to be.
type Column = (&'static str, Kind, Fits);
type Fits = fn(&Value<'_>) -> bool;

fn is_text(value: &Value<'_>, fits: impl Fn(&str) -> bool) -> bool {
    matches!(value, Value::Text(body) if fits(std::str::from_utf8(body).unwrap()))
}

/// Every word that makes a column, but those that need a second table.
const COLUMNS: &[Column] = &[
    ("serial(5)", Kind::Integer, |v| matches!(v, Value::Int(5..=24))),
    ("constant(\"x\")", Kind::Text, |v| *v == Value::Text(b"x")),
    ("constant(1.5)", Kind::Float, |v| *v == Value::Float(1.5)),
    ("constant(true)", Kind::Boolean, |v| *v == Value::Bool(true)),
    ("null()", Kind::Null, |v| *v == Value::Null),
    ("integer(-3, 3)", Kind::Integer, |v| matches!(v, Value::Int(-3..=3))),
    ("decimal(\"0.50\", 2)", Kind::Decimal(2), |v| matches!(v, Value::Decimal { units: 50..=200, scale: 2 })),
    ("decimal(1, 2, 0)", Kind::Decimal(0), |v| matches!(v, Value::Decimal { units: 1..=2, scale: 0 })),
    ("float(1, 2)", Kind::Float, |v| matches!(v, Value::Float(1.0..=2.0))),
    ("boolean(1)", Kind::Boolean, |v| *v == Value::Bool(true)),
    ("boolean()", Kind::Boolean, |v| matches!(v, Value::Bool(_))),
    ("choice { \"a\", \"b\" }", Kind::Text, |v| is_text(v, |text| text == "a" || text == "b")),
    ("choice({ 1, 2 }, { 0, 1 })", Kind::Integer, |v| *v == Value::Int(2)),
    ("reference(\"item\")", Kind::Integer, |v| matches!(v, Value::Int(1..=1000))),
    ("reference(\"item\", \"i_id\")", Kind::Integer, |v| matches!(v, Value::Int(1..=1000))),
    ("name()", Kind::Text, |v| is_text(v, |text| text.contains(' '))),
    ("given_name(\"sex\")", Kind::Text, |v| is_text(v, |text| text.len() > 1)),
    ("family_name()", Kind::Text, |v| is_text(v, |text| text.len() > 1)),
    ("gender()", Kind::Text, |v| is_text(v, |text| text == "F" || text == "M")),
    ("gender(\"w\", \"m\")", Kind::Text, |v| is_text(v, |text| text == "w" || text == "m")),
    ("company()", Kind::Text, |v| is_text(v, |text| text.len() > 1)),
    ("email()", Kind::Text, |v| is_text(v, |text| text.contains('@'))),
    ("phone()", Kind::Text, |v| is_text(v, |text| text.chars().any(|c| c.is_ascii_digit()))),
    ("street()", Kind::Text, |v| is_text(v, |text| text.len() > 1)),
    ("postcode()", Kind::Text, |v| is_text(v, |text| text.chars().all(|c| c.is_ascii_digit()))),
    ("province()", Kind::Text, |v| is_text(v, |text| text.len() > 1)),
    ("city()", Kind::Text, |v| is_text(v, |text| text.len() > 1)),
    ("words(10, 30)", Kind::Text, |v| is_text(v, |text| (10..=30).contains(&text.len()))),
    ("letters(3, 5)", Kind::Text, |v| is_text(v, |text| (3..=5).contains(&text.len()))),
    ("digits(4)", Kind::Text, |v| is_text(v, |text| text.len() == 4 && text.parse::<u32>().is_ok())),
    ("bytes(2, 4)", Kind::Bytes, |v| matches!(v, Value::Bytes(body) if (2..=4).contains(&body.len()))),
    ("uuid()", Kind::Uuid, |v| matches!(v, Value::Uuid(_))),
    ("date(\"1970-01-02\", \"1970-01-03\")", Kind::Date, |v| matches!(v, Value::Date(1..=2))),
    ("timestamp(\"1970-01-01\", \"1970-01-01 00:00:01\")", Kind::Timestamp, |v| {
        matches!(v, Value::Timestamp(0..=1_000_000))
    }),
    (
        "after(\"day\", 1, 2)",
        Kind::Timestamp,
        |v| matches!(v, Value::Timestamp(micros) if (1_000_000..=2_000_000).contains(&(micros - 86_400_000_000))),
    ),
    ("optional(1, uuid())", Kind::Uuid, |v| *v == Value::Null),
    ("optional(0, constant(1))", Kind::Integer, |v| *v == Value::Int(1)),
    ("distinct(1, 20)", Kind::Integer, |v| matches!(v, Value::Int(1..=20))),
    ("zipfian(3, 5, 0.9)", Kind::Integer, |v| matches!(v, Value::Int(3..=5))),
    ("reference(\"item\", \"i_id\", 0.99)", Kind::Integer, |v| matches!(v, Value::Int(1..=1000))),
    ("letters(2, 3, \"xyz\")", Kind::Text, |v| {
        is_text(v, |text| matches!(text.len(), 2 | 3) && text.chars().all(|next| "xyz".contains(next)))
    }),
    ("pattern(\"#-%#\")", Kind::Text, |v| {
        is_text(v, |text| {
            text.len() == 3 && text.starts_with(|first: char| first.is_ascii_digit()) && text.ends_with("-#")
        })
    }),
    ("copy(\"base\")", Kind::Integer, |v| *v == Value::Int(6)),
    ("product(\"base\", \"base\")", Kind::Integer, |v| *v == Value::Int(36)),
    ("lookup(\"owner\", \"i_id\")", Kind::Integer, |v| matches!(v, Value::Int(1..=1000))),
    (
        "derive(\"integer\", { \"base\" }, function(row, random, base) return base + 1 end)",
        Kind::Integer,
        |v| *v == Value::Int(7),
    ),
    ("derive(\"text\", {}, function(row, random) return \"r\" .. random(3, 4) end)", Kind::Text, |v| {
        is_text(v, |text| text == "r3" || text == "r4")
    }),
    ("derive(\"float\", {}, function(row, random) return random() end)", Kind::Float, |v| {
        matches!(v, Value::Float(0.0..1.0))
    }),
    ("derive(\"boolean\", function(row) return row % 1 == 0 end)", Kind::Boolean, |v| {
        *v == Value::Bool(true)
    }),
    ("derive(\"date\", {}, function() return 86400 * 2 + 5 end)", Kind::Date, |v| *v == Value::Date(2)),
    ("derive(\"timestamp\", { \"day\" }, function(_, _, day) return day + 0.5 end)", Kind::Timestamp, |v| {
        *v == Value::Timestamp(86_400_500_000)
    }),
];

/// Checks each value of a row against its column.
struct Checked<'a> {
    fits: &'a [(&'static str, Fits)],
    at: usize,
    rows: usize,
}

impl RowEncoder for Checked<'_> {
    fn push(&mut self, value: Value<'_>) -> Result<(), Error> {
        let (word, fits) = &self.fits[self.at];
        assert!(fits(&value), "{word} gave {value:?}");
        self.at += 1;
        Ok(())
    }

    fn end_row(&mut self) -> Result<(), Error> {
        (self.at, self.rows) = (0, self.rows + 1);
        Ok(())
    }
}

/// Makes all rows of the newest table and checks them.
fn check(workload: &Workload, fits: &[(&'static str, Fits)]) {
    let index = workload.tables.len() - 1;
    let mut checked = Checked { fits, at: 0, rows: 0 };
    let mut cells = workload.dataset.cells().unwrap();
    let mut rows = cells.rows(index, 0..workload.tables[index].rows);
    while rows.fill(&mut checked).unwrap() {}
    assert_eq!(checked.rows as u64, workload.tables[index].rows);
}

#[test]
fn every_word_makes_its_column() {
    let mut columns = String::new();
    for (index, (word, ..)) in COLUMNS.iter().enumerate() {
        writeln!(columns, "{{ \"column{index}\", {word} }},").unwrap();
    }
    for unstored in [
        "\"base\", constant(6)",
        "\"owner\", reference(\"item\")",
        "\"sex\", gender()",
        "\"day\", date(\"1970-01-02\", \"1970-01-02\")",
    ] {
        writeln!(columns, "{{ {unstored}, stored = false }},").unwrap();
    }
    let workload =
        declared(&format!("w:table(\"all\", {{ rows = 20, columns = {{ {columns} }} }})")).unwrap();
    let plans = workload.dataset.tables().last().unwrap().columns();
    for ((word, kind, _), plan) in COLUMNS.iter().zip(plans) {
        assert_eq!(plan.kind(), *kind, "{word}");
    }
    let fits: Vec<_> = COLUMNS.iter().map(|(word, _, fits)| (*word, *fits)).collect();
    check(&workload, &fits);
}

#[test]
fn parents_and_children_belong_together() {
    let lua = r#"w:table("bill", { rows = 10, columns = {
          { "b_id", serial() }, { "b_lines", count("entry") }, { "b_sum", total("entry", "e_price") } } })
        w:table("entry", { columns = {
          { "e_bill", parent("bill", 1, 3) }, { "e_line", line() }, { "e_price", integer(2, 2) } } })"#;
    let workload = declared(lua).unwrap();
    assert_eq!(workload.tables[3].rows, 20);
    let fits: [(&'static str, Fits); 3] = [
        ("parent", |v| matches!(v, Value::Int(1..=10))),
        ("line", |v| matches!(v, Value::Int(1..=3))),
        ("price", |v| *v == Value::Int(2)),
    ];
    check(&workload, &fits);
}

#[test]
fn numbers_of_children_are_written_in_four_ways() {
    let counted = ("function(row) return row % 4 end", 6144);
    for (arguments, rows) in [("1, 3", 8192), ("3", 12_288), ("{ [0] = 1, 1, [5] = 2 }", 11_264), counted] {
        let lua = format!(
            r#"w:table("bill", {{ rows = 4096, columns = {{ {{ "b_id", serial() }}, {{ "b_no", serial(5) }} }} }})
            w:table("entry", {{ columns = {{ {{ "e_bill", parent("bill", {arguments}) }}, {{ "e_line", line(0) }} }} }})
            w:table("other", {{ columns = {{ {{ "o_bill", parent("bill", {arguments}, "b_no") }} }} }})"#
        );
        let workload = declared(&lua).unwrap();
        assert_eq!(workload.tables[3].rows, rows, "{arguments}");
        check(&workload, &[("parent", |v| matches!(v, Value::Int(5..=4100)))]);
    }
}

#[test]
fn a_function_that_gives_something_else_is_an_error() {
    for (function, expected) in [
        (
            "derive(\"integer\", {}, function() return 1.5 end)",
            "workload.lua:4: derive: the function gave the number 1.5, where the column is integer",
        ),
        (
            "derive(\"text\", {}, function() return {} end)",
            "workload.lua:4: derive: the function gave a table, where the column is text",
        ),
        (
            "derive(\"float\", function(_, random) local one = random(1, 2, 3) return one end)",
            "workload.lua:4: random takes 2 arguments at most",
        ),
        ("derive(\"text\", {}, function() error(\"on purpose\") end)", "workload.lua:4: on purpose"),
        (
            "derive(\"integer\", {}, function() return 1 + math.random(9) end)",
            "workload.lua:4: math.random would make other data each time; draw with the function's second argument",
        ),
        ("derive(\"text\", {}, function() return tx.now end)", "workload.lua:4: nothing is called tx here"),
    ] {
        let lua = format!("w:table(\"t\", {{ rows = 1, columns = {{ {{ \"a\", {function} }} }} }})");
        let workload = declared(&lua).unwrap();
        let mut cells = workload.dataset.cells().unwrap();
        let mut checked = Checked { fits: &[], at: 0, rows: 0 };
        let error = cells.rows(2, 0..1).fill(&mut checked).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn options_have_kinds_defaults_and_help_and_the_study_sets_them() {
    let lua = format!(
        r#"{HEAD}local size = w:option("size", "integer", 5, "how many")
        local mode = w:option("mode", {{ "fast", "safe" }}, "fast", "how")
        local share = w:option("share", "number", 0.5)
        local label = w:option("label", "text", "none", "what for")
        local strict = w:option("strict", "boolean", false, "whether")
        w:describe(table.concat({{ size, mode, share, label, tostring(strict) }}, " "))
        w:transaction("t", function() end)"#
    );
    let folder = Folder::new(&lua, SQL);
    let workload = folder.workload(&[]).unwrap();
    assert_eq!(workload.description, "5 fast 0.5 none false");
    let kinds: Vec<_> = workload.options.iter().map(|option| option.kind.clone()).collect();
    let choice = OptionKind::Choice(vec!["fast".to_owned(), "safe".to_owned()]);
    assert_eq!(
        kinds,
        [OptionKind::Integer, choice, OptionKind::Number, OptionKind::Text, OptionKind::Boolean]
    );
    assert_eq!((workload.options[0].help.as_str(), workload.options[2].help.as_str()), ("how many", ""));
    let given = [
        ("size", OptionValue::Number(7.0)),
        ("mode", OptionValue::Text("safe".to_owned())),
        ("strict", OptionValue::Boolean(true)),
    ];
    let workload = folder.workload(&given).unwrap();
    assert_eq!(workload.description, "7 safe 0.5 none true");
    assert_eq!(workload.options[0].default, OptionValue::Number(5.0));
    assert_eq!(workload.options[0].value, OptionValue::Number(7.0));
}

#[test]
fn transactions_mixes_and_invariants_are_read() {
    let lua = r#"w:transaction("write", { help = "writes" }, function() end)
        w:transaction("read", { read_only = true, help = "reads" }, function() end)
        w:transaction("idle", function() end)
        w:mix("RW", { read = 80, idle = 0, write = 20.5 })
        w:mix("RO", { read = 1 })
        w:invariant("none", "nothing is wrong")
        w:invariant("note", { when = "loaded" }, "until a run")"#;
    let workload = declared(lua).unwrap();
    let transactions: Vec<_> =
        workload.transactions.iter().map(|t| (t.name.as_str(), t.read_only, t.help.as_str())).collect();
    assert_eq!(transactions, [("write", false, "writes"), ("read", true, "reads"), ("idle", false, "")]);
    let weights = |name: &str| workload.mix(name).unwrap().weights.clone();
    assert_eq!(weights("RW"), [("write".to_owned(), 20.5), ("read".to_owned(), 80.0)], "in declared order");
    assert_eq!(weights("RO"), [("read".to_owned(), 1.0)]);
    assert!(workload.mix("WO").is_none());
    let invariants: Vec<_> =
        workload.invariants.iter().map(|i| (i.statement.as_str(), i.when, i.help.as_str())).collect();
    assert_eq!(
        invariants,
        [("none", When::Always, "nothing is wrong"), ("note", When::Loaded, "until a run")]
    );
    // Invariants' statements are for the check, not for transactions.
    let names =
        |of: &[nephoscope_drivers::Statement]| of.iter().map(|s| s.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&workload.statements), ["pair"]);
    assert_eq!(names(&workload.checks), ["note", "none"]);
}

#[test]
fn a_dialect_has_its_own_statements_and_schema() {
    let lua = format!("{HEAD}w:transaction(\"t\", function() end)");
    let folder = Folder::new(&lua, "-- name: a\nSELECT :x\n-- name: b\nSELECT :y, :x, :y")
        .with("statements.postgres.sql", "-- name: b\nSELECT :y::int")
        .with("schema.sql", "-- name: create\nCREATE TABLE t (a int);\n-- name: drop\nDROP TABLE t;")
        .with("schema.postgres.sql", "-- name: create\nCREATE TABLE t (a integer)");
    let read = |dialect| folder.source(&[], 1.0, dialect).unwrap();
    let workload = read(Dialect::NONE).workload().unwrap();
    assert_eq!(workload.statements[1].text(), "SELECT :y, :x, :y");
    assert_eq!(workload.statements[1].params(), ["y", "x"]);
    assert_eq!(workload.schema.create, "CREATE TABLE t (a int)");
    let source = read(nephoscope_drivers::postgres::DIALECT);
    let workload = source.workload().unwrap();
    let texts: Vec<String> = workload.statements.iter().map(nephoscope_drivers::Statement::text).collect();
    assert_eq!(texts, ["SELECT :x", "SELECT :y::int"]);
    assert_eq!(workload.schema.create, "CREATE TABLE t (a integer)");
    assert_eq!(workload.schema.drop, "DROP TABLE t", "what the dialect does not override stays");
    let files = source.files();
    let files: Vec<_> = files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
    assert_eq!(
        files,
        ["workload.lua", "statements.sql", "statements.postgres.sql", "schema.sql", "schema.postgres.sql"]
    );
}

#[test]
fn the_shipped_workloads_are_in_order() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let source = nephoscope_script::Source::read(
            &path,
            BTreeMap::new(),
            1.0,
            1,
            nephoscope_drivers::postgres::DIALECT,
        )
        .unwrap();
        let workload = source.workload().unwrap();
        let has_schema = workload.tables.is_empty() || !workload.schema.create.is_empty();
        assert!(!workload.mixes.is_empty() && has_schema, "{}", path.display());
    }
}

const POSTGRES: &Dialect = nephoscope_drivers::postgres::DIALECT;
const MYSQL: &Dialect = nephoscope_drivers::mysql::DIALECT;

/// What a workload comes to on a dialect: the names of its statements, or the error.
fn statements_of(folder: &Folder, dialect: &'static Dialect) -> Result<Vec<String>, String> {
    let workload = folder.source(&[], 1.0, dialect)?.workload().map_err(|error| error.to_string())?;
    Ok(workload.statements.iter().map(|statement| statement.name().to_owned()).collect())
}

#[test]
fn a_statement_may_be_there_for_one_dialect_only() {
    let folder = |body: &str| {
        let lua = format!("{HEAD}{body}\nw:transaction(\"t\", function(tx) end)");
        Folder::new(&lua, SQL).with("statements.mysql.sql", "-- name: hint\nSELECT 1 # why\n")
    };
    let asks = folder("local hint = w:has(\"hint\")\nassert(not w:has('nothing'))");
    assert_eq!(statements_of(&asks, MYSQL).unwrap(), ["note", "pair", "none", "hint"]);
    assert_eq!(statements_of(&asks, POSTGRES).unwrap(), ["note", "pair", "none"]);
    let uses = folder("local name = \"hint\"");
    assert!(statements_of(&uses, MYSQL).is_ok());
    assert_eq!(
        statements_of(&uses, POSTGRES).unwrap_err(),
        "workload.lua: the statement \"hint\" is there for mysql and not for postgres; w:has(\"hint\") asks whether it is"
    );
    let slip = folder("local name = \"hints\"");
    assert_eq!(
        statements_of(&slip, MYSQL).unwrap_err(),
        "statements.mysql.sql: the statement hint overrides none of the common file, and nothing uses it"
    );
    assert!(statements_of(&slip, POSTGRES).is_ok(), "nothing of another dialect's is wanted");
}

#[test]
fn a_workload_may_need_what_a_system_can_do() {
    let folder = |needs: &str| {
        Folder::new(&format!("{HEAD}w:needs({needs})\nw:transaction(\"t\", function() end)"), SQL)
    };
    for dialect in [MYSQL, nephoscope_drivers::sqlite::DIALECT] {
        assert!(statements_of(&folder("\"generated_keys\""), dialect).is_ok(), "{}", dialect.name);
    }
    for dialect in [POSTGRES, MYSQL, Dialect::NONE] {
        assert!(statements_of(&folder("\"transactions\""), dialect).is_ok(), "{}", dialect.name);
    }
    let line = HEAD.lines().count() + 1;
    assert_eq!(
        statements_of(&folder("\"generated_keys\""), POSTGRES).unwrap_err(),
        format!(
            "workload.lua:{line}: the workload needs generated_keys, which systems of the dialect postgres do not have; \
             they have sql, transactions"
        )
    );
    assert_eq!(
        statements_of(&folder("\"speed\""), POSTGRES).unwrap_err(),
        format!(
            "workload.lua:{line}: a workload cannot need \"speed\"; it can need sql, transactions, generated_keys"
        )
    );
}

#[test]
fn limits_and_rates_of_a_workload_are_told() {
    let workload = declared(
        r#"w:transaction("t", { limit = { p99 = 20, p90 = 5, ["p99.9"] = 0.5 } }, function() end)
           w:transaction("u", function() end)
           w:mix("m", { u = 3, t = 1 }, { at_least = { u = 70, t = 20 }, access = "latest-10",
             rate = { name = "tpm", transaction = "t", per = "minute", pauses = true } })
           w:mix("n", { t = 1 }, { rate = { name = "tps", transaction = "t" } })"#,
    )
    .unwrap();
    let limits: Vec<_> =
        workload.transactions[0].limits.iter().map(|limit| (limit.percentile, limit.seconds)).collect();
    assert_eq!(limits, [(90.0, 5.0), (99.0, 20.0), (99.9, 0.5)]);
    assert!(workload.transactions[1].limits.is_empty());
    let share = |name: &str, percent| (name.to_owned(), percent);
    let mix = &workload.mixes[0];
    assert_eq!(mix.weights, [share("t", 1.0), share("u", 3.0)]);
    assert_eq!(mix.at_least, [share("t", 20.0), share("u", 70.0)]);
    assert_eq!(mix.access.as_deref(), Some("latest-10"));
    let rate = mix.rate.as_ref().unwrap();
    assert_eq!((&*rate.name, &*rate.transaction, &*rate.per, rate.pauses), ("tpm", "t", "minute", true));
    let rate = workload.mixes[1].rate.as_ref().unwrap();
    assert_eq!((&*rate.per, rate.pauses), ("second", false));
}
