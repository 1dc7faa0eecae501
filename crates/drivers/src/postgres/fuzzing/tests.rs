//! The seeds of the fuzz targets, and what fuzzing has found, in every test run.

use std::fs;
use std::path::Path;

/// Calls a target with every seed that it has.
fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let seeds: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!seeds.is_empty(), "{} is empty", folder.display());
    for seed in seeds {
        println!("{}", seed.display());
        check(&fs::read(&seed).unwrap());
    }
}

#[test]
fn the_seeds_of_protocol_hold() {
    replay("protocol", super::protocol);
}

#[test]
fn the_seeds_of_values_hold() {
    replay("values", super::values);
}

#[test]
fn the_seeds_of_settings_hold() {
    replay("settings", super::settings);
}
