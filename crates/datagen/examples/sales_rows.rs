//! How fast the sales workload's rows are made on one core, into an encoder that forgets them:
//! `cargo run --release --example sales_rows [customers]`.
#![allow(clippy::print_stdout, reason = "a benchmark that a person runs")]

use std::time::Instant;

use nephoscope_datagen::Dataset;
use nephoscope_drivers::{Error, RowEncoder, RowSource, Value};

#[path = "../tests/all/common/sales.rs"]
mod sales;

/// Counts what it is given, so that none of it is optimised away.
#[derive(Default)]
struct Forgetful {
    rows: u64,
    cells: u64,
    bytes: u64,
}

impl RowEncoder for Forgetful {
    fn push(&mut self, value: Value<'_>) -> Result<(), Error> {
        self.cells += 1;
        self.bytes += match value {
            Value::Text(text) => text.len() as u64,
            _ => 8,
        };
        Ok(())
    }

    fn end_row(&mut self) -> Result<(), Error> {
        self.rows += 1;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let customers = std::env::args().nth(1).map_or(Ok(300_000), |text| text.parse())?;
    let dataset = Dataset::new(&sales::tables(customers), 7)?;
    let mut cells = dataset.cells()?;
    let mut seconds = 0.0;
    for (index, table) in dataset.tables().iter().enumerate() {
        let mut encoder = Forgetful::default();
        let start = Instant::now();
        let mut rows = cells.rows(index, 0..table.rows());
        while rows.fill(&mut encoder)? {}
        let taken = start.elapsed().as_secs_f64();
        seconds += taken;
        let (per_second, per_cell) = (encoder.rows as f64 / taken, taken * 1e9 / encoder.cells as f64);
        println!(
            "{:<10} {:>9} rows {:>6.3} s {:>12.0} rows/s {:>5.1} ns/cell {:>5} MB",
            table.name(),
            encoder.rows,
            taken,
            per_second,
            per_cell,
            encoder.bytes / 1_000_000,
        );
    }
    println!("together   {seconds:>23.3} s");
    Ok(())
}
