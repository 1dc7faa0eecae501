//! What holds for every dataset.
#![allow(clippy::unwrap_used, clippy::cast_possible_wrap)]

use std::collections::{BTreeMap, HashSet};

use nephoscope_datagen::{ColumnSpec, Dataset, Generator, Literal, TableSpec};
use nephoscope_drivers::Value;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::common::{self, Row, parent, serial, table};

fn text(name: &str) -> String {
    name.to_owned()
}

/// A generator that names no other column.
fn plain() -> impl Strategy<Value = Generator> {
    let lengths = (0_u32..40, 0_u32..40).prop_map(|(min, more)| (min, min + more));
    let integers = (any::<i64>(), any::<i64>()).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let dates = (1_u32..10_000, 1_u32..10_000)
        .prop_map(|(a, b)| [a.min(b), a.max(b)].map(|y| format!("{y:04}-02-28")));
    let words = prop_oneof![Just("NEW"), Just("PAID"), Just("")].prop_map(|word| Literal::Text(text(word)));
    let choice = prop::collection::vec((words, 0.0..10.0), 1..9).prop_map(|pairs| {
        let (values, mut weights): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        weights[0] += 0.5;
        Generator::Choice { values, weights }
    });
    prop_oneof![
        (-9_i64..9).prop_map(|start| Generator::Serial { start }),
        Just(Generator::Constant(Literal::Float(1.5))),
        Just(Generator::Null),
        integers.clone().prop_map(|(min, max)| Generator::Integer { min, max }),
        (integers, 0_u8..=18).prop_map(|((min, max), scale)| Generator::Decimal { min, max, scale }),
        (-1e300..1e300).prop_map(|min| Generator::Float { min, max: 1e300 }),
        (0.0..=1.0).prop_map(|probability| Generator::Boolean { probability }),
        choice,
        Just(Generator::Name { gender: None }),
        Just(Generator::GivenName { gender: None }),
        Just(Generator::FamilyName),
        Just(Generator::Gender { female: text("F"), male: text("M") }),
        Just(Generator::Company),
        Just(Generator::Email { of: None }),
        Just(Generator::Phone),
        Just(Generator::Street),
        Just(Generator::Postcode),
        Just(Generator::Province),
        Just(Generator::City { province: None }),
        lengths.clone().prop_map(|(min, max)| Generator::Words { min, max }),
        lengths.clone().prop_map(|(min, max)| Generator::Letters { min, max, alphabet: None }),
        lengths.prop_map(|(min, max)| Generator::Bytes { min, max }),
        (0_u32..40).prop_map(|count| Generator::Digits { count }),
        Just(Generator::Uuid),
        dates.clone().prop_map(|[from, to]| Generator::Date { from, to }),
        dates.prop_map(|[from, to]| Generator::Timestamp { from, to }),
    ]
}

fn maybe_optional() -> impl Strategy<Value = Generator> {
    (plain(), prop::option::of(0.0..=1.0)).prop_map(|(generator, probability)| match probability {
        Some(probability) => Generator::Optional { probability, of: Box::new(generator) },
        None => generator,
    })
}

/// A parent table and its children, with plain columns and every relation between them.
fn tables() -> impl Strategy<Value = Vec<TableSpec>> {
    let columns = || prop::collection::vec(maybe_optional(), 1..4);
    (columns(), columns(), 0_u64..30, 0_u32..4, 0_u32..6).prop_map(|(above, below, rows, min, more)| {
        let lines = || text("lines");
        let mut orders = vec![
            ("id", serial()),
            ("count", Generator::Count { table: lines() }),
            ("total", Generator::Total { table: lines(), column: text("amount") }),
            ("self", Generator::Reference { table: text("orders"), column: None, theta: 0.0 }),
        ];
        let mut children = vec![
            ("order", parent("orders", min, min + more)),
            ("line", Generator::Line { start: 1 }),
            ("quantity", Generator::Integer { min: -3, max: 9 }),
            ("price", Generator::Decimal { min: 0, max: 9_999, scale: 2 }),
            ("amount", Generator::Product { columns: vec![text("quantity"), text("price")] }),
            ("copy", Generator::Copy { column: text("amount") }),
            ("order_total", Generator::Lookup { reference: text("order"), column: text("total") }),
            ("day", Generator::Date { from: text("2024-01-01"), to: text("2024-01-01") }),
            ("later", Generator::After { column: text("day"), min_seconds: 0, max_seconds: 9 }),
        ];
        let names: Vec<String> = (0..9).map(|index| format!("p{index}")).collect();
        orders.extend(above.into_iter().zip(&names).map(|(generator, name)| (name.as_str(), generator)));
        children.extend(below.into_iter().zip(&names).map(|(generator, name)| (name.as_str(), generator)));
        vec![table("lines", None, children), table("orders", Some(rows), orders)]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_do_not_depend_on_the_chunks_they_are_made_in(tables in tables(), seed: u64, chunk in 1_u64..20) {
        let dataset = Dataset::new(&tables, seed).unwrap();
        for (index, table) in dataset.tables().iter().enumerate() {
            let whole = common::all_rows(&dataset, index);
            prop_assert_eq!(whole.len() as u64, table.rows());
            let mut chunked = Vec::new();
            for start in (0..table.rows()).step_by(chunk as usize) {
                chunked.extend(common::rows(&dataset, index, start..start + chunk));
            }
            prop_assert_eq!(whole, chunked);
        }
    }

    #[test]
    fn cells_do_not_depend_on_what_was_asked_for_before(
        tables in tables(), seed: u64, asked in prop::collection::vec((0_usize..2, any::<Index>(), any::<Index>()), 1..40),
    ) {
        let dataset = Dataset::new(&tables, seed).unwrap();
        let whole = [0, 1].map(|table| common::all_rows(&dataset, table));
        let mut cells = dataset.cells().unwrap();
        for (table, column, row) in asked {
            if whole[table].is_empty() {
                continue;
            }
            let (column, row) = (column.index(whole[table][0].len()), row.index(whole[table].len()));
            let cell = common::text(cells.get(table, column, row as u64).unwrap());
            prop_assert_eq!(&cell, &whole[table][row][column]);
        }
    }

    #[test]
    fn columns_do_not_depend_on_the_columns_beside_them(tables in tables(), seed: u64) {
        let whole = common::all_rows(&Dataset::new(&tables, seed).unwrap(), 1);
        let mut fewer = tables.clone();
        let dropped = fewer[1].columns.len() - 1;
        fewer[1].columns.remove(dropped);
        fewer[1].columns.rotate_left(1);
        // The key is no longer the first column, so those who took it as such must name it.
        for column in fewer.iter_mut().flat_map(|table| &mut table.columns) {
            if let Generator::Reference { column, .. } | Generator::Parent { column, .. } = &mut column.generator {
                *column = Some(text("id"));
            }
        }
        let mut expected: Vec<Row> = whole;
        for row in &mut expected {
            row.remove(dropped);
            row.rotate_left(1);
        }
        prop_assert_eq!(common::all_rows(&Dataset::new(&fewer, seed).unwrap(), 1), expected);
    }

    #[test]
    fn children_agree_with_their_parents(tables in tables(), seed: u64) {
        let dataset = Dataset::new(&tables, seed).unwrap();
        let mut cells = dataset.cells().unwrap();
        let mut children: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for row in 0..dataset.tables()[0].rows() {
            let Value::Int(order) = cells.get(0, 0, row).unwrap() else { panic!() };
            let Value::Int(line) = cells.get(0, 1, row).unwrap() else { panic!() };
            let Value::Int(quantity) = cells.get(0, 2, row).unwrap() else { panic!() };
            let Value::Decimal { units: price, scale: 2 } = cells.get(0, 3, row).unwrap() else { panic!() };
            let amount = Value::Decimal { units: quantity * price, scale: 2 };
            prop_assert_eq!(cells.get(0, 4, row).unwrap(), amount);
            prop_assert_eq!(cells.get(0, 5, row).unwrap(), amount);
            let looked_up = common::text(cells.get(0, 6, row).unwrap());
            prop_assert_eq!(looked_up, common::text(cells.get(1, 2, order as u64 - 1).unwrap()));
            let siblings = children.entry(order).or_default();
            siblings.push(quantity * price);
            prop_assert_eq!(line, siblings.len() as i64);
        }
        let orders = dataset.tables()[1].rows();
        for row in 0..orders {
            let amounts = children.remove(&(row as i64 + 1)).unwrap_or_default();
            prop_assert_eq!(cells.get(1, 1, row).unwrap(), Value::Int(amounts.len() as i64));
            let total = Value::Decimal { units: amounts.iter().sum(), scale: 2 };
            prop_assert_eq!(cells.get(1, 2, row).unwrap(), total);
            let Value::Int(reference) = cells.get(1, 3, row).unwrap() else { panic!() };
            prop_assert!((1..=orders as i64).contains(&reference));
        }
        prop_assert!(children.is_empty());
    }

    #[test]
    fn plain_values_keep_to_what_was_asked_for(generator in plain(), seed: u64) {
        let dataset = Dataset::new(&[table("t", Some(50), vec![("x", generator.clone())])], seed).unwrap();
        let mut cells = dataset.cells().unwrap();
        for row in 0..50 {
            let value = cells.get(0, 0, row).unwrap();
            prop_assert!(dataset.tables()[0].columns()[0].kind().holds(&value));
            let length = |min: u32, max: u32, body: &[u8]| (min as usize..=max as usize).contains(&body.len());
            let kept = match (&generator, value) {
                (Generator::Integer { min, max }, Value::Int(units))
                | (Generator::Decimal { min, max, .. }, Value::Decimal { units, .. }) => (*min..=*max).contains(&units),
                (Generator::Float { min, max }, Value::Float(value)) => (*min..=*max).contains(&value),
                (Generator::Words { min, max } | Generator::Letters { min, max, .. }, Value::Text(body)) => {
                    length(*min, *max, body) && std::str::from_utf8(body).unwrap().trim().len() == body.len()
                }
                (Generator::Digits { count }, Value::Text(body)) => length(*count, *count, body),
                (Generator::Bytes { min, max }, Value::Bytes(body)) => length(*min, *max, body),
                (Generator::Uuid, Value::Uuid(uuid)) => uuid[6] >> 4 == 4 && uuid[8] >> 6 == 2,
                _ => true,
            };
            prop_assert!(kept, "{:?} gave {:?}", generator, common::text(cells.get(0, 0, row).unwrap()));
        }
    }

    #[test]
    fn points_in_time_lie_between_their_ends(
        a in (1_u32..=9999, 1_u32..=12, 1_u32..=28), b in (1_u32..=9999, 1_u32..=12, 1_u32..=28), seed: u64,
    ) {
        let [from, to] = [a.min(b), a.max(b)].map(|(year, month, day)| format!("{year:04}-{month:02}-{day:02}"));
        let columns = vec![
            ("day", Generator::Date { from: from.clone(), to: to.clone() }),
            ("moment", Generator::Timestamp { from: from.clone(), to: to.clone() }),
            ("first", Generator::Date { from: from.clone(), to: from.clone() }),
            ("last", Generator::Date { from: to.clone(), to }),
            ("after", Generator::After { column: text("moment"), min_seconds: 5, max_seconds: 6 }),
            ("after_day", Generator::After { column: text("day"), min_seconds: 0, max_seconds: 0 }),
        ];
        let dataset = Dataset::new(&[table("t", Some(20), columns)], seed).unwrap();
        let mut cells = dataset.cells().unwrap();
        for row in 0..20 {
            let mut number = |column| match cells.get(0, column, row).unwrap() {
                Value::Date(days) => i64::from(days),
                Value::Timestamp(micros) => micros,
                other => panic!("{other:?}"),
            };
            let (day, moment, first, last) = (number(0), number(1), number(2), number(3));
            prop_assert!((first..=last).contains(&day));
            prop_assert!((first * 86_400_000_000..=last * 86_400_000_000).contains(&moment));
            prop_assert!((moment + 5_000_000..=moment + 6_000_000).contains(&number(4)));
            prop_assert_eq!(number(5), day * 86_400_000_000);
        }
    }
}

fn sales(seed: u64) -> Dataset {
    Dataset::new(&common::sales::tables(2000), seed).unwrap()
}

#[test]
fn seeds_differ_and_the_same_seed_does_not() {
    let rows = |seed| [0, 1, 2].map(|table| common::all_rows(&sales(seed), table));
    let (first, again, other) = (rows(7), rows(7), rows(8));
    assert!(first == again);
    for (table, (first, other)) in first.iter().zip(&other).enumerate() {
        let same = first.iter().zip(other).filter(|(first, other)| first[1..] == other[1..]).count();
        assert_eq!(same, 0, "table {table}");
    }
}

#[test]
fn choices_keep_to_their_weights() {
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    for row in common::all_rows(&sales(7), 1) {
        *counts.entry(row[3].clone()).or_default() += 1.0;
    }
    for (status, share) in [("NEW", 0.1), ("PAID", 0.25), ("SHIPPED", 0.6), ("CANCELLED", 0.05)] {
        let error = (counts[status] - 2000.0 * share) / f64::sqrt(2000.0 * share * (1.0 - share));
        assert!(error.abs() < 4.0, "{status}: {}", counts[status]);
    }
}

#[test]
fn references_reach_all_rows_and_about_as_often() {
    let mut counts = vec![0_u32; 100];
    let orders = table(
        "orders",
        Some(10_000),
        vec![("c", Generator::Reference { table: text("c"), column: None, theta: 0.0 })],
    );
    let dataset = Dataset::new(&[orders, table("c", Some(100), vec![("id", serial())])], 7).unwrap();
    for row in common::all_rows(&dataset, 0) {
        counts[row[0].parse::<usize>().unwrap() - 1] += 1;
    }
    assert!(counts.iter().all(|count| (60..140).contains(count)), "{counts:?}");
}

#[test]
fn a_lookup_is_null_where_its_reference_is() {
    let reference = Generator::Reference { table: text("c"), column: None, theta: 0.0 };
    let columns = vec![
        ("c", Generator::Optional { probability: 0.3, of: Box::new(reference) }),
        ("c_name", Generator::Lookup { reference: text("c"), column: text("name") }),
    ];
    let customers = vec![("id", serial()), ("name", Generator::Name { gender: None })];
    let tables = [table("orders", Some(1000), columns), table("c", Some(100), customers)];
    let dataset = Dataset::new(&tables, 7).unwrap();
    let names: Vec<Row> = common::all_rows(&dataset, 1);
    let mut nulls = 0;
    for row in common::all_rows(&dataset, 0) {
        if row[0] == "null" {
            nulls += 1;
            assert_eq!(row[1], "null");
        } else {
            assert_eq!(row[1], names[row[0].parse::<usize>().unwrap() - 1][1]);
        }
    }
    assert!((240..360).contains(&nulls), "{nulls}");
}

#[test]
fn nulls_are_left_out_of_totals_and_pass_through_the_rest() {
    let maybe = |of| Generator::Optional { probability: 0.5, of: Box::new(of) };
    let lines = vec![
        ("o", parent("orders", 0, 4)),
        ("amount", maybe(Generator::Integer { min: 1, max: 9 })),
        ("double", Generator::Product { columns: vec![text("two"), text("amount")] }),
        ("two", Generator::Constant(Literal::Integer(2))),
        ("day", maybe(Generator::Date { from: text("2024-01-01"), to: text("2024-02-01") })),
        ("later", Generator::After { column: text("day"), min_seconds: 1, max_seconds: 2 }),
        ("word", maybe(Generator::Words { min: 3, max: 5 })),
        ("mail", Generator::Email { of: Some(text("word")) }),
    ];
    let total = Generator::Total { table: text("lines"), column: text("double") };
    let tables =
        [table("orders", Some(100), vec![("id", serial()), ("total", total)]), table("lines", None, lines)];
    let dataset = Dataset::new(&tables, 3).unwrap();
    let mut totals = vec![0; 100];
    for row in common::all_rows(&dataset, 1) {
        assert_eq!(row[1] == "null", row[2] == "null");
        assert_eq!(row[4] == "null", row[5] == "null");
        assert_eq!(row[6] == "null", row[7] == "null");
        totals[row[0].parse::<usize>().unwrap() - 1] += row[2].parse::<i64>().unwrap_or(0);
    }
    for (row, total) in common::all_rows(&dataset, 0).into_iter().zip(totals) {
        assert_eq!(row[1], total.to_string());
    }
}

#[test]
fn addresses_differ_and_resemble_the_name() {
    let columns = vec![
        ("name", Generator::Name { gender: None }),
        ("email", Generator::Email { of: Some(text("name")) }),
        ("other", Generator::Email { of: None }),
    ];
    let dataset = Dataset::new(&[table("t", Some(3000), columns)], 7).unwrap();
    let mut seen = HashSet::new();
    for row in common::all_rows(&dataset, 0) {
        assert!(row[1].starts_with(&row[0].to_lowercase().replace(' ', ".")), "{row:?}");
        assert!(row[2].ends_with("@example.com"));
        assert!(seen.insert(row[1].clone()), "{row:?}");
    }
}

#[test]
fn columns_that_are_not_stored_are_not_loaded_but_can_be_asked_for() {
    let mut spec = table("t", Some(3), vec![("id", serial())]);
    spec.columns.insert(0, ColumnSpec::unstored("price", Generator::Integer { min: 4, max: 4 }));
    let dataset = Dataset::new(&[spec], 1).unwrap();
    assert_eq!(dataset.tables()[0].stored_names(), ["id"]);
    assert_eq!(common::all_rows(&dataset, 0), [["1"], ["2"], ["3"]]);
    assert_eq!(dataset.cells().unwrap().get(0, 0, 2).unwrap(), Value::Int(4));
}

#[test]
fn a_cell_that_does_not_exist_is_an_error() {
    let dataset = sales(1);
    let mut cells = dataset.cells().unwrap();
    for (table, column, row) in [(3, 0, 0), (0, 9, 0), (0, 0, 2000)] {
        let message = cells.get(table, column, row).unwrap_err().to_string();
        assert_eq!(message, format!("table {table} has no column {column} or no row {row}"));
    }
    assert!(common::rows(&dataset, 0, 1998..5000).len() == 2);
    assert!(common::rows(&dataset, 9, 0..5).is_empty());
}

#[test]
fn a_table_of_any_size_is_ready_at_once() {
    let dataset = Dataset::new(&common::sales::tables(1 << 55), 7).unwrap();
    let lines = dataset.tables()[2].rows();
    assert_eq!(lines, 10 << 55);
    let mut cells = dataset.cells().unwrap();
    assert_eq!(cells.get(2, 1, lines - 1).unwrap(), Value::Int(1 << 55));
    let Value::Decimal { units, .. } = cells.get(1, 4, (1 << 55) - 1).unwrap() else { panic!() };
    let sum: i64 = (lines - 19..lines)
        .filter(|row| cells.get(2, 1, *row).unwrap() == Value::Int(1 << 55))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|row| match cells.get(2, 5, row).unwrap() {
            Value::Decimal { units, .. } => units,
            other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!(units, sum);
}
