//! What holds for every statement file and every access distribution.

use crate::support::{Folder, HEAD, Loaded, SQL};
use nephoscope_drivers::{Dialect, Lexer};
use nephoscope_script::{Access, parse_statements};
use proptest::prelude::*;

/// A piece of SQL, and the parameters that are in it.
fn piece() -> impl Strategy<Value = (String, Vec<&'static str>)> {
    let text = prop_oneof![
        Just("SELECT a, b FROM t WHERE c = 1 "),
        Just("':p it''s :q' "),
        Just("E'\\' :p' "),
        Just("\":p\" "),
        Just("x::integer "),
        Just("a[1:2] "),
        Just("/* :p /* :q */ ' \" $$ */ "),
        Just("-- :p ' /* $$\n"),
        Just("$$ :p ' $$ "),
        Just("$tag$ :p $$ :q $tag$ "),
        Just("ü → 'é' "),
        Just("\n"),
    ];
    prop_oneof![
        3 => text.prop_map(|text| (text.to_owned(), Vec::new())),
        1 => Just((":p, ".to_owned(), vec!["p"])),
        1 => Just(("(:q::text)".to_owned(), vec!["q"])),
        1 => Just((":a_1 ".to_owned(), vec!["a_1"])),
    ]
}

proptest! {
    #[test]
    fn no_statement_file_breaks_the_parser(text in "(-- name: ?[a-c]?|[ -~]|\n|'|\"|;|\\$\\$|/\\*|\\*/|é|\u{0}){0,80}") {
        if let Ok(statements) = parse_statements("s.sql", &text, Lexer::POSTGRES) {
            for (index, statement) in statements.iter().enumerate() {
                prop_assert!(!statement.text().trim().is_empty());
                prop_assert!(!statements[..index].iter().any(|other| other.name() == statement.name()));
            }
        }
    }

    #[test]
    fn an_error_names_the_file_and_a_line_of_it(text in "(-- name: ?[a-b]?|[a-z;' ]|\n|/\\*){0,60}") {
        if let Err(error) = parse_statements("s.sql", &text, Lexer::POSTGRES) {
            let error = error.to_string();
            let line: usize = error.strip_prefix("s.sql:").unwrap().split(':').next().unwrap().parse().unwrap();
            prop_assert!((1..=text.lines().count()).contains(&line), "{}", error);
        }
    }

    #[test]
    fn parameters_are_found_outside_of_quotations_comments_and_casts_only(
        pieces in prop::collection::vec(piece(), 1..12),
    ) {
        let sql: String = pieces.iter().map(|(text, _)| text.as_str()).collect();
        let mut expected: Vec<&str> = Vec::new();
        for param in pieces.iter().flat_map(|(_, params)| params) {
            if !expected.contains(param) {
                expected.push(param);
            }
        }
        // A word before and one after, so that nothing is trimmed.
        let file = format!("-- name: first\nSELECT {sql}\nFROM t;\n-- name: second\nSELECT 1");
        let statements = parse_statements("s.sql", &file, Lexer::POSTGRES).unwrap();
        prop_assert_eq!(statements.len(), 2);
        prop_assert_eq!(statements[0].params(), &expected[..]);
        prop_assert_eq!(statements[0].text(), format!("SELECT {sql}\nFROM t"));
    }

    #[test]
    fn any_lua_file_is_an_answer_or_an_error(lua in "(w:table|w:mix|\\(|\\)|\\{|\\}|\"a\"|serial|end|function|[ -~]|\n){0,30}") {
        let _ = Folder::new(&format!("{HEAD}{lua}"), SQL).source(&[], 1.0, Dialect::NONE).unwrap().workload();
    }
}

/// A loaded workload whose one transaction notes a key.
fn picking() -> Loaded {
    let lua = format!("{HEAD}w:transaction(\"t\", function(tx, pick) tx:queue(\"note\", pick.item()) end)");
    Loaded::new(&lua).unwrap()
}

/// How often each of 1,000 keys is picked.
fn counts(loaded: &Loaded, access: Access, seed: u64, draws: usize) -> Vec<u64> {
    loaded.vm.set_access(access);
    let mut session = loaded.session(seed, 1);
    let mut counts = vec![0; 1000];
    for _ in 0..draws {
        counts[session.noted("t") as usize - 1] += 1;
    }
    counts
}

/// The sum of squared differences from what a law expects, each over the expected.
fn chi_square(counts: &[u64], expected: impl Fn(usize) -> f64) -> f64 {
    let terms = counts.iter().enumerate().map(|(index, count)| {
        let expected = expected(index);
        (*count as f64 - expected).powi(2) / expected
    });
    terms.sum()
}

/// With 999 degrees of freedom, above this once in ten thousand times.
const CHI_999: f64 = 1173.0;

#[test]
fn uniform_and_zipfian_keys_follow_their_laws() {
    let (loaded, draws) = (picking(), 300_000);
    for seed in [1, 2] {
        let counts_uniform = counts(&loaded, Access::Uniform, seed, draws);
        let chi = chi_square(&counts_uniform, |_| draws as f64 / 1000.0);
        assert!(chi < CHI_999, "uniform, seed {seed}: chi-square {chi}");
        for theta in [0.5, 0.99, 1.2] {
            let access = Access::Zipfian { theta };
            let mut ranked = counts(&loaded, access, seed, draws);
            ranked.sort_unstable_by(|a, b| b.cmp(a));
            let norm: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-theta)).sum();
            // Sorting favours the neighbours' luck, so the ranks are taken together in octaves.
            let octave = |values: &dyn Fn(usize) -> f64| -> Vec<f64> {
                let ends = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000];
                ends.windows(2).map(|pair| (pair[0]..pair[1]).map(values).sum()).collect()
            };
            let found = octave(&|rank| ranked[rank] as f64);
            let law = octave(&|rank| draws as f64 * (rank as f64 + 1.0).powf(-theta) / norm);
            for (index, (found, law)) in found.iter().zip(&law).enumerate() {
                assert!((found / law - 1.0).abs() < 0.05, "theta {theta}, octave {index}: {found} of {law}");
            }
        }
    }
}

#[test]
fn a_zipfian_key_keeps_its_rank_whatever_the_seed() {
    let (loaded, draws) = (picking(), 300_000);
    let access = Access::Zipfian { theta: 0.99 };
    let (one, other) = (counts(&loaded, access, 1, draws), counts(&loaded, access, 2, draws));
    // Two samples of one law: half the squared difference over the mean, summed.
    let chi: f64 = one
        .iter()
        .zip(&other)
        .filter(|(a, b)| *a + *b > 0)
        .map(|(a, b)| (*a as f64 - *b as f64).powi(2) / (*a + *b) as f64)
        .sum();
    assert!(chi < CHI_999, "chi-square {chi}");
    let hottest = |counts: &[u64]| (0..1000).max_by_key(|index| counts[*index]);
    assert_eq!(hottest(&one), hottest(&other));
}
