//! The first rows of the sales workload with seed 7. Who loads with the same seed expects the same rows from
//! every version, so a difference here is a change that the CHANGELOG must tell. `UPDATE_GOLDEN=1 cargo test`
//! accepts it.

use crate::common;
use std::fmt::Write;
use std::path::Path;

use nephoscope_datagen::Dataset;

#[test]
fn the_first_sales_rows_are_what_they_were() {
    let dataset = Dataset::new(&common::sales::tables(1000), 7).unwrap();
    let mut text = String::new();
    for (index, table) in dataset.tables().iter().enumerate() {
        writeln!(text, "{}: {} rows", table.name(), table.rows()).unwrap();
        writeln!(text, "{}", table.stored_names().join(" | ")).unwrap();
        for row in common::rows(&dataset, index, 0..12) {
            writeln!(text, "{}", row.join(" | ")).unwrap();
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/sales-seed-7.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, golden, "the generated rows have changed");
}
