//! What is refused, and in which words.

use crate::spec::ColumnSpec;
use crate::{Children, Dataset, Generator, Kind, Literal, TableSpec};

fn table(name: &str, rows: Option<u64>, columns: Vec<(&str, Generator)>) -> TableSpec {
    let columns = columns.into_iter().map(|(name, generator)| ColumnSpec::new(name, generator)).collect();
    TableSpec { name: name.to_owned(), rows, columns }
}

fn refusal(tables: &[TableSpec]) -> String {
    Dataset::new(tables, 1).unwrap_err().to_string()
}

/// Why a generator is refused as column "x" of table "orders", which has columns of every kind and stands
/// beside its parent "customer" and its children "lines".
fn why(generator: Generator) -> String {
    let customer = table("customer", Some(10), vec![("c_id", Generator::Serial { start: 1 })]);
    let mut columns = kinds();
    columns.insert(0, ("c", parent("customer", 1, 3)));
    columns.push(("x", generator));
    let lines =
        table("lines", None, vec![("o", parent("orders", 1, 3)), ("amount", integer(1, i64::MAX / 4))]);
    let message = refusal(&[customer, table("orders", None, columns), lines]);
    message.strip_prefix(r#"table "orders", column "x": "#).unwrap_or(&message).to_owned()
}

fn kinds() -> Vec<(&'static str, Generator)> {
    vec![
        ("number", integer(1, 10)),
        ("huge", integer(i64::MIN, i64::MAX)),
        ("money", Generator::Decimal { min: -5, max: 5, scale: 10 }),
        ("share", Generator::Float { min: 0.0, max: 1.0 }),
        ("letters", Generator::Letters { min: 0, max: 9, alphabet: None }),
        ("day", Generator::Date { from: "2024-01-01".to_owned(), to: "2024-12-31".to_owned() }),
        ("nothing", Generator::Null),
    ]
}

fn integer(min: i64, max: i64) -> Generator {
    Generator::Integer { min, max }
}

/// The columns of a table that does not matter.
fn column() -> Vec<(&'static str, Generator)> {
    vec![("a", Generator::Null)]
}

fn parent(table: &str, min: u32, max: u32) -> Generator {
    Generator::Parent { table: table.to_owned(), column: None, children: Children::Between { min, max } }
}

fn reference(table: &str, column: Option<&str>) -> Generator {
    Generator::Reference { table: table.to_owned(), column: column.map(str::to_owned), theta: 0.0 }
}

fn copy(column: &str) -> Generator {
    Generator::Copy { column: column.to_owned() }
}

fn product(columns: &[&str]) -> Generator {
    Generator::Product { columns: columns.iter().map(|&name| name.to_owned()).collect() }
}

fn choice(values: Vec<Literal>, weights: Vec<f64>) -> Generator {
    Generator::Choice { values, weights }
}

fn date(from: &str, to: &str) -> Generator {
    Generator::Date { from: from.to_owned(), to: to.to_owned() }
}

#[test]
fn values_that_make_no_sense_are_refused() {
    let max = i64::MAX;
    for (generator, message) in [
        (integer(5, 4), "integer: min 5 is greater than max 4"),
        (Generator::Decimal { min: 0, max: 1, scale: 19 }, "decimal: scale 19 is more than 18"),
        (Generator::Float { min: 1.0, max: 0.0 }, "float: min 1 is greater than max 0"),
        (Generator::Float { min: 0.0, max: f64::INFINITY }, "float: 0 to inf is no range of finite width"),
        (Generator::Boolean { probability: 1.5 }, "boolean: probability 1.5 is not from 0 to 1"),
        (
            Generator::Serial { start: max },
            &format!("serial: the last of 20 rows from {max} does not fit 64 bits"),
        ),
        (choice(vec![], vec![]), "choice: has no values"),
        (choice(vec![Literal::Integer(1)], vec![1.0, 2.0]), "choice: has 1 values and 2 weights"),
        (choice(vec![Literal::Integer(1)], vec![-1.0]), "choice: the weight -1 is not a number from 0 up"),
        (
            choice(vec![Literal::Integer(1), Literal::Boolean(true)], vec![]),
            "choice: mixes values that are integer and boolean",
        ),
        (Generator::Words { min: 9, max: 8 }, "words: min 9 is greater than max 8"),
        (Generator::Digits { count: 1 << 25 }, "digits: a length of 33554432 is more than 16777216"),
        (date("2024-02-30", "2024-03-01"), r#"date: "2024-02-30" is not a date such as 2024-02-29"#),
        (date("2024-03-01", "2024-02-01"), r#"date: from "2024-03-01" is later than to "2024-02-01""#),
        (
            Generator::Optional { probability: 0.5, of: Box::new(integer(5, 4)) },
            "integer: min 5 is greater than max 4",
        ),
    ] {
        assert_eq!(why(generator), message);
    }
}

#[test]
fn names_that_nothing_bears_are_told_with_those_that_are_known() {
    let lookup = |reference: &str, column: &str| Generator::Lookup {
        reference: reference.to_owned(),
        column: column.to_owned(),
    };
    for (generator, message) in [
        (
            reference("custmer", None),
            r#"reference names table "custmer", which is not declared; tables are customer, orders, lines"#,
        ),
        (
            reference("customer", Some("id")),
            r#"reference names column "id", which table "customer" does not have; its columns are c_id"#,
        ),
        (
            lookup("c", "c_name"),
            r#"lookup names column "c_name", which table "customer" does not have; its columns are c_id"#,
        ),
        (
            lookup("number", "c_id"),
            r#"lookup: column "number" is made by integer, and not by reference or parent"#,
        ),
        (
            Generator::Name { gender: Some("letters".to_owned()) },
            r#"name: column "letters" is made by letters, and not by gender"#,
        ),
        (
            Generator::City { province: Some("number".to_owned()) },
            r#"city: column "number" is made by integer, and not by province"#,
        ),
        (
            Generator::Count { table: "customer".to_owned() },
            r#"count: table "customer" has no parent column that names "orders""#,
        ),
    ] {
        assert_eq!(why(generator), message);
    }
}

#[test]
fn columns_of_the_wrong_kind_are_not_computed_with() {
    let after = |column: &str| Generator::After { column: column.to_owned(), min_seconds: 0, max_seconds: 1 };
    for (generator, message) in [
        (product(&["number", "letters"]), r#"product: needs numbers, but column "letters" is text"#),
        (product(&["nothing"]), r#"product: needs numbers, but column "nothing" is null"#),
        (product(&[]), "product: names no columns"),
        (product(&["money", "money"]), "product: has 20 digits behind the point, and 18 are the most"),
        (after("number"), r#"after: needs a date or a timestamp, but column "number" is integer"#),
        (
            Generator::After { column: "day".to_owned(), min_seconds: 9, max_seconds: 8 },
            "after: min_seconds 9 is greater than max_seconds 8",
        ),
        (Generator::Email { of: Some("day".to_owned()) }, r#"email: needs text, but column "day" is date"#),
    ] {
        assert_eq!(why(generator), message);
    }
}

#[test]
fn numbers_that_could_outgrow_64_bits_are_refused_before_the_load() {
    let outgrows =
        "can be too large for 64 bits; narrow what it is computed from, or use fewer digits behind the point";
    assert_eq!(why(product(&["huge", "number"])), format!("product: {outgrows}"));
    let total = Generator::Total { table: "lines".to_owned(), column: "amount".to_owned() };
    assert!(Dataset::new(&[], 1).is_ok());
    let lines = |max| {
        let orders = table("orders", Some(5), vec![("x", total.clone())]);
        [orders, table("lines", None, vec![("o", parent("orders", 1, 4)), ("amount", integer(0, max))])]
    };
    assert!(Dataset::new(&lines(i64::MAX / 4), 1).is_ok());
    assert_eq!(
        refusal(&lines(i64::MAX / 4 + 1)),
        format!(r#"table "orders", column "x": total: {outgrows}"#)
    );
}

#[test]
fn floats_do_not_outgrow_and_decimals_add_their_digits() {
    let mut columns = kinds();
    columns.push(("float", product(&["huge", "huge", "share"])));
    columns.push(("decimal", product(&["number", "money", "number"])));
    columns.push(("integer", product(&["number", "number"])));
    let dataset = Dataset::new(&[table("t", Some(3), columns)], 1).unwrap();
    let kinds: Vec<Kind> = dataset.tables()[0].columns().iter().rev().map(crate::ColumnPlan::kind).collect();
    assert_eq!(kinds[..3], [Kind::Integer, Kind::Decimal(10), Kind::Float]);
}

#[test]
fn columns_that_need_themselves_are_refused() {
    let tables = [table("t", Some(1), vec![("a", copy("b")), ("b", product(&["c"])), ("c", copy("b"))])];
    assert_eq!(refusal(&tables), r#"table "t", column "b": depends on itself: t.b needs t.c needs t.b"#);
    let total = Generator::Total { table: "lines".to_owned(), column: "share".to_owned() };
    let share = Generator::Lookup { reference: "o".to_owned(), column: "total".to_owned() };
    let orders = table("orders", Some(1), vec![("id", Generator::Serial { start: 1 }), ("total", total)]);
    let lines = table("lines", None, vec![("o", parent("orders", 1, 2)), ("share", share)]);
    assert_eq!(
        refusal(&[orders, lines]),
        r#"table "orders", column "total": depends on itself: orders.total needs lines.share needs orders.total"#
    );
}

#[test]
fn work_that_doubles_with_each_column_is_refused_and_so_is_a_long_chain() {
    let chain = |length: usize, next: fn(&str) -> Generator| {
        let names: Vec<String> = (0..=length).map(|index| format!("c{index}")).collect();
        let mut columns = vec![(names[0].as_str(), integer(0, 1))];
        columns.extend(names.windows(2).map(|pair| (pair[1].as_str(), next(&pair[0]))));
        // Backwards, so that the last is resolved first.
        columns.reverse();
        Dataset::new(&[table("t", Some(1), columns)], 1)
    };
    let square = |column: &str| product(&[column, column]);
    assert!(chain(5, square).is_ok());
    let message = chain(30, square).unwrap_err().to_string();
    assert!(message.ends_with("each value is computed from more than 256 others"), "{message}");
    let longest = chain(255, copy).unwrap();
    assert!(longest.cells().unwrap().get(0, 0, 0).is_ok());
    assert!(chain(256, copy).is_err());
    assert!(chain(100_000, copy).is_err());
}

#[test]
fn tables_that_cannot_be_made_are_refused() {
    for (tables, message) in [
        (vec![table("", Some(1), column())], r#"table "": has no name"#),
        (
            vec![table("a", Some(1), column()), table("a", Some(1), column())],
            r#"table "a": is declared twice"#,
        ),
        (vec![table("a", Some(1), vec![])], r#"table "a": has no stored column"#),
        (vec![table("a", Some(1), vec![("", Generator::Null)])], r#"table "a": column 1 has no name"#),
        (
            vec![table("a", Some(1), vec![("x", Generator::Null), ("x", Generator::Null)])],
            r#"table "a": column "x" is declared twice"#,
        ),
        (
            vec![table("a", None, column())],
            r#"table "a": does not say how many rows it has, and has no parent column that they follow from"#,
        ),
        (vec![table("a", Some(u64::MAX), column())], r#"table "a": 18446744073709551615 rows are too many"#),
        (
            vec![table("a", Some(0), column()), table("b", Some(1), vec![("x", reference("a", None))])],
            r#"table "b", column "x": reference: table "a" has no rows to refer to"#,
        ),
    ] {
        assert_eq!(refusal(&tables), message);
    }
}

#[test]
fn parents_that_cannot_have_such_children_are_refused() {
    let optional = Generator::Optional { probability: 0.1, of: Box::new(parent("a", 1, 1)) };
    for (tables, message) in [
        (
            vec![table("a", Some(10), column()), table("b", Some(10), vec![("p", parent("a", 1, 3))])],
            r#"table "b", column "p": parent: 10 rows of "a" have 20 children, but the table says 10 rows"#,
        ),
        (
            vec![table("a", Some(1 << 60), column()), table("b", None, vec![("p", parent("a", 1, 19))])],
            r#"table "b", column "p": parent: gives the table too many rows"#,
        ),
        (
            vec![
                table("a", None, vec![("p", parent("b", 1, 1))]),
                table("b", None, vec![("p", parent("a", 1, 1))]),
            ],
            r#"table "a", column "p": parent: the table would be its own ancestor"#,
        ),
        (
            vec![table("a", Some(1), column()), table("b", None, vec![("p", parent("a", 2, 1))])],
            r#"table "b", column "p": parent: min 2 is greater than max 1"#,
        ),
        (
            vec![
                table("a", Some(1), column()),
                table("b", None, vec![("p", parent("a", 1, 1)), ("q", parent("a", 1, 1))]),
            ],
            r#"table "b", column "q": parent: column "p" is one already; a table has at most one"#,
        ),
        (
            vec![table("a", Some(1), vec![("p", optional)])],
            r#"table "a", column "p": optional: cannot hold a parent, which every child has"#,
        ),
        (
            vec![table("a", Some(1), vec![("x", Generator::Line { start: 1 })])],
            r#"table "a", column "x": line: the table has no parent column"#,
        ),
    ] {
        assert_eq!(refusal(&tables), message);
    }
}

#[test]
fn rows_follow_from_grandparents_in_whatever_order_tables_stand() {
    let line = table("line", None, vec![("p", parent("orders", 2, 4))]);
    let orders = table("orders", Some(15), vec![("p", parent("customer", 1, 2))]);
    let customer = table("customer", Some(10), vec![("id", Generator::Serial { start: 1 })]);
    let dataset = Dataset::new(&[line, orders, customer], 1).unwrap();
    let rows: Vec<u64> = dataset.tables().iter().map(crate::TablePlan::rows).collect();
    assert_eq!(rows, [45, 15, 10]);
    assert_eq!(dataset.find("orders"), Some(1));
    assert_eq!(dataset.find("order"), None);
}
