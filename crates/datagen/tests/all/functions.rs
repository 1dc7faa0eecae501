//! Columns that code of a workload computes.
#![allow(clippy::unwrap_used, clippy::cast_possible_wrap)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nephoscope_datagen::{CellFunction, Dataset, Draws, Generator, Kind, RowFunction};
use nephoscope_drivers::{Error, Params, Value};

use crate::common::{self, parent, serial, table};

type Body = fn(u64, Draws, &Params, &mut Vec<u8>) -> Result<Value<'static>, Error>;

/// Computes cells with a Rust function; text is what the function leaves in the buffer.
struct Plain {
    body: Body,
    instances: AtomicU64,
}

impl std::fmt::Debug for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Plain")
    }
}

impl RowFunction for Plain {
    fn instance(&self) -> Result<Box<dyn CellFunction>, Error> {
        if self.instances.fetch_add(1, Ordering::Relaxed) >= 3 {
            return Err(Error::other("no more than three interpreters"));
        }
        Ok(Box::new(Instance { body: self.body, buffer: Vec::new() }))
    }
}

struct Instance {
    body: Body,
    buffer: Vec<u8>,
}

impl CellFunction for Instance {
    fn call(&mut self, row: u64, draws: Draws, inputs: &Params) -> Result<Value<'_>, Error> {
        self.buffer.clear();
        let value = (self.body)(row, draws, inputs, &mut self.buffer)?;
        Ok(if self.buffer.is_empty() { value } else { Value::Text(&self.buffer) })
    }
}

fn function(inputs: &[&str], kind: Kind, body: Body) -> Generator {
    let inputs = inputs.iter().map(|&name| name.to_owned()).collect();
    Generator::Function { inputs, kind, function: Arc::new(Plain { body, instances: AtomicU64::new(0) }) }
}

fn names(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|&name| name.to_owned()).collect()
}

/// Joins the inputs' text with a hyphen.
#[allow(clippy::unnecessary_wraps, reason = "the type of a function's body")]
fn join(_: u64, _: Draws, inputs: &Params, out: &mut Vec<u8>) -> Result<Value<'static>, Error> {
    let parts: Vec<String> = inputs.iter().map(common::text).collect();
    out.extend_from_slice(parts.join("-").as_bytes());
    Ok(Value::Null)
}

#[test]
fn a_function_is_given_the_row_its_draws_and_the_columns_it_asks_for() {
    let columns = vec![
        ("id", serial()),
        ("word", Generator::Words { min: 3, max: 9 }),
        ("both", function(&["id", "word"], Kind::Text, join)),
        ("twice", function(&["both", "word", "both"], Kind::Text, join)),
        (
            "random",
            function(&[], Kind::Integer, |row, mut draws, _, _| Ok(Value::Int(draws.below(row + 1) as i64))),
        ),
    ];
    let dataset = Dataset::new(&[table("t", Some(100), columns)], 5).unwrap();
    for (index, row) in common::all_rows(&dataset, 0).into_iter().enumerate() {
        assert_eq!(row[2], format!("{}-{}", row[0], row[1]));
        assert_eq!(row[3], format!("{}-{}-{}", row[2], row[1], row[2]));
        assert!((0..=index as i64).contains(&row[4].parse().unwrap()));
    }
    assert_eq!(common::all_rows(&dataset, 0), common::all_rows(&dataset, 0));
}

#[test]
fn children_that_look_a_function_up_ask_it_once_for_each_parent() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let counted = function(&["id"], Kind::Text, |row, draws, inputs, out| {
        CALLS.fetch_add(1, Ordering::Relaxed);
        join(row, draws, inputs, out)
    });
    let orders = table("orders", Some(50), vec![("id", serial()), ("name", counted)]);
    let name = Generator::Lookup { reference: "o".to_owned(), column: "name".to_owned() };
    let lines = table("lines", None, vec![("o", parent("orders", 3, 3)), ("name", name)]);
    let dataset = Dataset::new(&[orders, lines], 5).unwrap();
    let found: Vec<String> = common::all_rows(&dataset, 1).into_iter().map(|mut row| row.remove(1)).collect();
    let expected: Vec<String> =
        (1..=50).flat_map(|order| [order; 3]).map(|order| order.to_string()).collect();
    assert_eq!(found, expected);
    assert_eq!(CALLS.load(Ordering::Relaxed), 50);
}

#[test]
fn numbers_of_functions_can_be_computed_with() {
    let amount = function(&["price"], Kind::Decimal(2), |_, _, inputs, _| {
        let Some(Value::Decimal { units, .. }) = inputs.iter().next() else { return Ok(Value::Null) };
        Ok(Value::Decimal { units: units + 1, scale: 2 })
    });
    let total = |column: &str| Generator::Total { table: "lines".to_owned(), column: column.to_owned() };
    let orders =
        table("orders", Some(50), vec![("id", serial()), ("a", total("price")), ("b", total("amount"))]);
    let price = Generator::Decimal { min: 0, max: 10_000, scale: 2 };
    let lines =
        table("lines", None, vec![("o", parent("orders", 3, 3)), ("price", price), ("amount", amount)]);
    let dataset = Dataset::new(&[orders, lines], 5).unwrap();
    let mut cells = dataset.cells().unwrap();
    for row in 0..50 {
        let Value::Decimal { units, .. } = cells.get(0, 1, row).unwrap() else { panic!() };
        assert_eq!(cells.get(0, 2, row).unwrap(), Value::Decimal { units: units + 3, scale: 2 });
    }
}

#[test]
fn a_failing_function_is_told_with_its_cell() {
    let fails = function(&[], Kind::Any, |row, _, _, _| {
        if row == 7 { Err(Error::other("attempt to index a nil value")) } else { Ok(Value::Null) }
    });
    let dataset = Dataset::new(&[table("t", Some(10), vec![("x", fails)])], 5).unwrap();
    let mut cells = dataset.cells().unwrap();
    assert_eq!(cells.get(0, 0, 6).unwrap(), Value::Null);
    let error = cells.get(0, 0, 7).unwrap_err();
    assert_eq!(error.to_string(), r#"table "t", column "x", row 7: attempt to index a nil value"#);
}

#[test]
fn a_value_of_another_kind_than_declared_is_refused() {
    let text = function(&[], Kind::Integer, |_, _, _, _| Ok(Value::Bool(true)));
    let dataset = Dataset::new(&[table("t", Some(1), vec![("x", text)])], 5).unwrap();
    let error = dataset.cells().unwrap().get(0, 0, 0).unwrap_err();
    let expected = "the function gave Bool(true) and not, as declared, a value that is integer";
    assert_eq!(error.message(), format!(r#"table "t", column "x", row 0: {expected}"#));
}

#[test]
fn numbers_too_large_for_64_bits_are_an_error() {
    let huge = || function(&[], Kind::Integer, |_, _, _, _| Ok(Value::Int(i64::MAX)));
    let far = function(&[], Kind::Timestamp, |_, _, _, _| Ok(Value::Timestamp(i64::MAX)));
    let after = Generator::After { column: "far".to_owned(), min_seconds: 1, max_seconds: 2 };
    let product = Generator::Product { columns: names(&["huge", "huge"]) };
    let total = Generator::Total { table: "child".to_owned(), column: "huge".to_owned() };
    let columns =
        vec![("huge", huge()), ("far", far), ("after", after), ("product", product), ("total", total)];
    let child = table("child", None, vec![("parent", parent("t", 2, 2)), ("huge", huge())]);
    let dataset = Dataset::new(&[table("t", Some(1), columns), child], 5).unwrap();
    let mut cells = dataset.cells().unwrap();
    for (column, what) in [
        (2, "the point in time is too far off"),
        (3, "the product is too large"),
        (4, "the total is too large"),
    ] {
        let error = cells.get(0, column, 0).unwrap_err().to_string();
        assert!(error.ends_with(&format!("row 0: {what} for 64 bits")), "{error}");
    }
}

#[test]
fn each_thread_makes_its_own_instance_and_may_fail_to() {
    let dataset =
        Dataset::new(&[table("t", Some(10), vec![("x", function(&[], Kind::Any, join))])], 5).unwrap();
    let kept: Vec<_> = (0..3).map(|_| dataset.cells().unwrap()).collect();
    assert_eq!(dataset.cells().map(|_| ()).unwrap_err().to_string(), "no more than three interpreters");
    drop(kept);
}
