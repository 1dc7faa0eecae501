//! How random the draws are: fixed seeds, so that a test fails only if the mixing was changed for the worse.

use super::*;

/// Pearson's statistic of counts that should be equal.
fn chi_square(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum()
}

/// The statistic's limit for 255 degrees of freedom that good draws pass with a chance of 99.99 %.
const LIMIT_255: f64 = 347.0;

fn keys() -> impl Iterator<Item = Key> {
    (0..8).flat_map(|seed| ["a", "b", "ol_amount"].map(|column| Key::new(seed, "orders", column)))
}

#[test]
fn draws_along_the_rows_are_uniform_in_every_byte() {
    for key in keys() {
        let mut counts = [[0_u64; 256]; 8];
        for row in 0..65_536 {
            for (byte, counts) in key.draws(row).bits().to_le_bytes().into_iter().zip(&mut counts) {
                counts[usize::from(byte)] += 1;
            }
        }
        for counts in &counts {
            assert!(chi_square(counts) < LIMIT_255, "{}", chi_square(counts));
        }
    }
}

#[test]
fn draws_within_a_cell_and_pairs_of_neighbours_are_uniform() {
    let nibbles = |high: u64, low: u64| ((high >> 60) << 4 | low >> 60) as usize;
    for key in keys() {
        let mut within = [0_u64; 256];
        let mut between_rows = [0_u64; 256];
        for row in 0..65_536 {
            let mut draws = key.draws(row);
            let (first, second) = (draws.bits(), draws.bits());
            within[nibbles(first, second)] += 1;
            between_rows[nibbles(first, key.draws(row + 1).bits())] += 1;
        }
        assert!(chi_square(&within) < LIMIT_255);
        assert!(chi_square(&between_rows) < LIMIT_255);
    }
}

#[test]
fn columns_tables_and_seeds_are_not_correlated() {
    let base = Key::new(7, "orders", "o_date");
    let others = [
        Key::new(8, "orders", "o_date"),
        Key::new(7, "orders", "o_dat"),
        Key::new(7, "orderso", "_date"),
        Key::new(7, "customer", "o_date"),
        base.inner(),
    ];
    let rows = 100_000;
    for other in others {
        let product = |row| (base.draws(row).unit() - 0.5) * (other.draws(row).unit() - 0.5) * 12.0;
        let correlation = (0..rows).map(product).sum::<f64>() / rows as f64;
        assert!(correlation.abs() < 4.0 / (rows as f64).sqrt(), "{correlation}");
    }
}

#[test]
fn a_changed_bit_of_the_row_changes_half_of_the_bits() {
    let key = Key::new(1, "t", "c");
    for bit in 0..40 {
        let changed = |row: u64| (key.draws(row).bits() ^ key.draws(row ^ (1 << bit)).bits()).count_ones();
        let mean = (0..1000).map(|row| f64::from(changed(row * 977))).sum::<f64>() / 1000.0;
        assert!((mean - 32.0).abs() < 0.5, "bit {bit}: {mean}");
    }
}

#[test]
fn every_integer_of_a_span_is_as_likely() {
    let span = Span::new(-128, 127);
    let mut counts = [0_u64; 256];
    for row in 0..100_000 {
        counts[(span.draw(&mut Key::new(3, "t", "c").draws(row)) + 128) as usize] += 1;
    }
    assert!(chi_square(&counts) < LIMIT_255);
}

#[test]
fn spans_hold_their_ends() {
    let mut draws = Key::new(3, "t", "c").draws(0);
    for _ in 0..1000 {
        assert_eq!(draws.between(5, 5), 5);
        assert!((-1..=1).contains(&draws.between(-1, 1)));
        assert!(draws.between(i64::MAX - 1, i64::MAX) >= i64::MAX - 1);
        assert!((0.0..1.0).contains(&draws.unit()));
        assert_eq!(draws.below(0), 0);
    }
    // Of all integers, half are negative: the span of 2^64 does not collapse.
    let negative = (0..1000).filter(|_| draws.between(i64::MIN, i64::MAX) < 0).count();
    assert!((400..600).contains(&negative));
}

#[test]
fn a_chance_of_zero_never_hits_and_of_one_always() {
    let mut draws = Key::new(3, "t", "c").draws(0);
    assert!((0..10_000).all(|_| !Chance::new(0.0).hits(&mut draws) && Chance::new(1.0).hits(&mut draws)));
    let hits = (0..10_000).filter(|_| Chance::new(0.2).hits(&mut draws)).count();
    assert!((1800..2200).contains(&hits), "{hits}");
}

#[test]
fn weights_are_kept() {
    let weights = [5.0, 0.0, 1.0, 0.25, 3.0, 0.0, 0.75];
    let drawn = Weights::new(&weights).unwrap();
    let mut counts = [0_u64; 7];
    for row in 0..1_000_000 {
        counts[drawn.draw(&mut Key::new(9, "t", "c").draws(row))] += 1;
    }
    for (count, weight) in counts.into_iter().zip(weights) {
        let expected = weight * 100_000.0;
        assert!((count as f64 - expected).abs() <= 4.0 * f64::sqrt(expected), "{count} of {expected}");
    }
    assert_eq!(Weights::new(&[1e-300, 1e300]).unwrap().entries.len(), 2);
}

#[test]
fn weights_that_mean_nothing_are_refused() {
    assert_eq!(Weights::new(&[1.0, -1.0]).unwrap_err(), "the weight -1 is not a number from 0 up");
    assert_eq!(Weights::new(&[f64::NAN]).unwrap_err(), "the weight NaN is not a number from 0 up");
    assert_eq!(Weights::new(&[0.0, 0.0]).unwrap_err(), "no weight is greater than 0");
}

#[test]
fn symbols_are_uniform() {
    let mut counts = [0_u64; 16];
    Key::new(4, "t", "c").draws(0).symbols(16, 160_000, |symbol| counts[usize::from(symbol)] += 1);
    assert_eq!(counts.iter().sum::<u64>(), 160_000);
    assert!(chi_square(&counts) < 40.0);
}
