//! Generators with a law of their own: permutations, skew, weights of numbers of children, patterns.
#![allow(clippy::unwrap_used, clippy::cast_possible_wrap)]

use std::collections::{BTreeMap, BTreeSet, HashSet};

use nephoscope_datagen::{Children, Dataset, Generator};
use proptest::prelude::*;

use crate::common::{self, Row, parent, serial, table};

fn column(dataset: &Dataset, table: usize, column: usize) -> Vec<i64> {
    let rows: Vec<Row> = common::all_rows(dataset, table);
    rows.iter().map(|row| row[column].parse().unwrap()).collect()
}

fn only(generator: Generator, rows: u64, seed: u64) -> Dataset {
    Dataset::new(&[table("t", Some(rows), vec![("x", generator)])], seed).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn distinct_integers_are_distinct(rows in 0_u64..300, more in 0_u64..300, min in -500_i64..500, seed: u64) {
        let max = min + (rows + more).max(1) as i64 - 1;
        let drawn = column(&only(Generator::Distinct { min, max }, rows, seed), 0, 0);
        prop_assert!(drawn.iter().all(|value| (min..=max).contains(value)));
        prop_assert_eq!(drawn.iter().collect::<HashSet<_>>().len() as u64, rows);
    }

    #[test]
    fn children_have_a_permutation_of_their_parent_s_own(parents in 1_u64..5, children in 1_u32..80, seed: u64) {
        let districts = table("district", Some(parents), vec![("d", serial())]);
        let max = i64::from(children);
        let columns = vec![
            ("d", parent("district", children, children)),
            ("c", Generator::Distinct { min: 1, max }),
            ("o", Generator::Line { start: -3 }),
        ];
        let dataset = Dataset::new(&[districts, table("orders", None, columns)], seed).unwrap();
        let customers = column(&dataset, 1, 1);
        let permutations: Vec<&[i64]> = customers.chunks(children as usize).collect();
        for permutation in &permutations {
            prop_assert_eq!(permutation.iter().copied().collect::<BTreeSet<_>>(), (1..=max).collect());
        }
        if children > 20 {
            let different: HashSet<_> = permutations.iter().collect();
            prop_assert_eq!(different.len() as u64, parents, "each district has its own");
        }
        let lines: Vec<i64> = (0..parents).flat_map(|_| -3..max - 3).collect();
        prop_assert_eq!(column(&dataset, 1, 2), lines);
    }

    #[test]
    fn skewed_integers_and_references_keep_to_their_bounds(
        rows in 1_u64..200, min in -9_i64..9, size in 1_i64..200, theta in 0.0..10.0, seed: u64,
    ) {
        let reference = Generator::Reference { table: "t".into(), column: Some("id".into()), theta };
        let columns = vec![
            ("x", Generator::Zipfian { min, max: min + size - 1, theta }),
            ("r", reference),
            ("id", serial()),
        ];
        let dataset = Dataset::new(&[table("t", Some(rows), columns)], seed).unwrap();
        prop_assert!(column(&dataset, 0, 0).iter().all(|value| (min..min + size).contains(value)));
        prop_assert!(column(&dataset, 0, 1).iter().all(|key| (1..=rows as i64).contains(key)));
    }

    #[test]
    fn letters_are_of_their_alphabet(
        min in 0_u32..30, more in 0_u32..30, alphabet in "[a-z0-9äß漢]{1,40}", seed: u64,
    ) {
        let generator = Generator::Letters { min, max: min + more, alphabet: Some(alphabet.clone()) };
        for row in common::all_rows(&only(generator, 50, seed), 0) {
            prop_assert!((min..=min + more).contains(&(row[0].chars().count() as u32)));
            prop_assert!(row[0].chars().all(|next| alphabet.contains(next)));
        }
    }
}

/// The chi-square of counts against what is expected of each.
fn chi_square(counts: &[f64], expected: &[f64]) -> f64 {
    counts.iter().zip(expected).map(|(count, expected)| (count - expected).powi(2) / expected).sum()
}

fn zipf(ranks: usize, theta: f64, draws: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=ranks).map(|rank| (rank as f64).powf(-theta)).collect();
    let whole: f64 = weights.iter().sum();
    weights.iter().map(|weight| draws * weight / whole).collect()
}

fn counts(drawn: &[i64], size: usize) -> Vec<f64> {
    let mut counts = vec![0.0; size];
    for value in drawn {
        counts[*value as usize - 1] += 1.0;
    }
    counts
}

#[test]
fn skew_follows_its_law() {
    for theta in [0.0, 0.5, 0.99, 1.0, 2.0] {
        let drawn = column(&only(Generator::Zipfian { min: 1, max: 50, theta }, 100_000, 7), 0, 0);
        let chi = chi_square(&counts(&drawn, 50), &zipf(50, theta, 100_000.0));
        assert!(chi < 100.0, "theta {theta}: {chi} for 49 degrees of freedom");
    }
}

#[test]
fn popular_rows_lie_all_over_the_table() {
    let reference = Generator::Reference { table: "c".into(), column: None, theta: 0.99 };
    let orders = table("orders", Some(100_000), vec![("c", reference)]);
    let dataset = Dataset::new(&[orders, table("c", Some(50), vec![("id", serial())])], 7).unwrap();
    let mut counts = counts(&column(&dataset, 0, 0), 50);
    let hottest = |counts: &[f64]| (0..50).max_by(|a, b| counts[*a].total_cmp(&counts[*b])).unwrap();
    assert_ne!(hottest(&counts), 0);
    counts.sort_by(|a, b| b.total_cmp(a));
    let chi = chi_square(&counts, &zipf(50, 0.99, 100_000.0));
    assert!(chi < 100.0, "{chi} for 49 degrees of freedom");
}

#[test]
fn a_lookup_follows_a_skewed_reference() {
    let reference = Generator::Reference { table: "c".into(), column: None, theta: 0.8 };
    let lookup = Generator::Lookup { reference: "c".into(), column: "same".into() };
    let orders = table("orders", Some(500), vec![("c", reference), ("copy", lookup)]);
    let customers =
        table("c", Some(50), vec![("id", serial()), ("same", Generator::Copy { column: "id".into() })]);
    for row in common::all_rows(&Dataset::new(&[orders, customers], 7).unwrap(), 0) {
        assert_eq!(row[0], row[1]);
    }
}

#[test]
fn parents_have_children_by_weight() {
    let children = Children::Weighted(vec![(0, 1.0), (1, 2.0), (40, 1.0)]);
    let user = Generator::Parent { table: "user".into(), column: None, children };
    let tables = [table("user", Some(8192), vec![("id", serial())]), table("item", None, vec![("u", user)])];
    let dataset = Dataset::new(&tables, 7).unwrap();
    assert_eq!(dataset.tables()[1].rows(), 8192 / 4 * 42);
    let mut items: BTreeMap<i64, u64> = BTreeMap::new();
    for user in column(&dataset, 1, 0) {
        *items.entry(user).or_default() += 1;
    }
    let of = |number| items.values().filter(|items| **items == number).count();
    assert_eq!((of(1), of(40), items.len()), (4096, 2048, 6144));
    let neighbours = items.values().zip(items.values().skip(1)).filter(|(one, next)| one == next).count();
    assert!((3000..3900).contains(&neighbours), "the numbers are mixed: {neighbours}");
}

#[test]
fn a_pattern_is_filled_with_what_is_drawn() {
    let rows = common::all_rows(&only(Generator::Pattern("A-##??%#".into()), 2000, 7), 0);
    let mut seen: Vec<BTreeSet<char>> = vec![BTreeSet::new(); 7];
    for row in &rows {
        for (place, next) in row[0].chars().enumerate() {
            seen[place].insert(next);
        }
    }
    let sizes: Vec<usize> = seen.iter().map(BTreeSet::len).collect();
    assert_eq!(sizes, [1, 1, 10, 10, 26, 26, 1], "{:?}", rows[0]);
    assert!(rows.iter().all(|row| row[0].starts_with("A-") && row[0].ends_with('#')));
}

#[test]
fn what_cannot_be_is_refused() {
    let why = |generator| {
        let message = Dataset::new(&[table("t", Some(10), vec![("x", generator)])], 1).unwrap_err().0;
        message.strip_prefix("table \"t\", column \"x\": ").unwrap().to_owned()
    };
    let reference = |theta| Generator::Reference { table: "t".into(), column: Some("x".into()), theta };
    let letters = |alphabet: &str| Generator::Letters { min: 1, max: 2, alphabet: Some(alphabet.into()) };
    for (generator, message) in [
        (
            Generator::Distinct { min: 1, max: 9 },
            "distinct: the table has 10 rows, but 1 to 9 are only 9 integers",
        ),
        (Generator::Distinct { min: 2, max: 1 }, "distinct: min 2 is greater than max 1"),
        (
            Generator::Distinct { min: i64::MIN, max: i64::MAX },
            "distinct: -9223372036854775808 to 9223372036854775807 are too many integers",
        ),
        (Generator::Zipfian { min: 1, max: 0, theta: 1.0 }, "zipfian: min 1 is greater than max 0"),
        (Generator::Zipfian { min: 1, max: 9, theta: -1.0 }, "zipfian: theta -1 is not from 0 to 10"),
        (Generator::Zipfian { min: 1, max: 9, theta: f64::NAN }, "zipfian: theta NaN is not from 0 to 10"),
        (reference(11.0), "reference: theta 11 is not from 0 to 10"),
        (letters(""), "letters: the alphabet has 0 characters; it must have 1 to 256"),
        (Generator::Pattern("#%".into()), "pattern: the pattern ends with %; a % itself is written %%"),
    ] {
        assert_eq!(why(generator), message);
    }
}

#[test]
fn numbers_of_children_that_cannot_be_are_refused() {
    let why = |weights: &[(u32, f64)], more: Option<(&str, Generator)>| {
        let children = Children::Weighted(weights.to_vec());
        let parent = Generator::Parent { table: "p".into(), column: None, children };
        let columns = std::iter::once(("x", parent)).chain(more).collect();
        let tables = [table("p", Some(10), vec![("id", serial())]), table("t", None, columns)];
        Dataset::new(&tables, 1).unwrap_err().0
    };
    let many: Vec<(u32, f64)> = (0..4097).map(|children| (children, 1.0)).collect();
    for (weights, message) in [
        (&[][..], "no number of children has a weight above 0"),
        (&[(1, 0.0)], "no number of children has a weight above 0"),
        (&[(3, -1.0)], "the weight of 3 children is -1; it must be a number from 0 up"),
        (&[(3, 1e308), (4, 1e308)], "the weights are too large together"),
        (&many, "4097 numbers of children have a weight; 4096 are the most"),
    ] {
        assert_eq!(why(weights, None), format!("table \"t\", column \"x\": parent: {message}"));
    }
    let distinct = Generator::Distinct { min: 1, max: 4 };
    assert_eq!(
        why(&[(1, 1.0), (5, 1.0), (9, 0.0)], Some(("y", distinct))),
        "table \"t\", column \"y\": distinct: a parent can have 5 children, but 1 to 4 are only 4 integers"
    );
    let line = Generator::Line { start: i64::MAX };
    assert_eq!(
        why(&[(5, 1.0)], Some(("y", line))),
        "table \"t\", column \"y\": line: the last of 5 lines from 9223372036854775807 does not fit 64 bits"
    );
}
