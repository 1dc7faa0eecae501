//! Seeded column generators and parallel bulk loading.
//!
//! A workload declares its tables as [`TableSpec`]s; [`Dataset::new`] checks them; [`Cells`] computes any
//! cell, and [`load`] streams all rows into a database from several threads.
//!
//! ```
//! use nephoscope_datagen::{Children, ColumnSpec, Dataset, Generator, TableSpec};
//!
//! let orders = TableSpec {
//!     name: "orders".into(),
//!     rows: Some(1000),
//!     columns: vec![
//!         ColumnSpec::new("o_id", Generator::Serial { start: 1 }),
//!         ColumnSpec::new("o_total", Generator::Total { table: "lines".into(), column: "l_amount".into() }),
//!     ],
//! };
//! let children = Children::Between { min: 1, max: 19 };
//! let parent = Generator::Parent { table: "orders".into(), column: None, children };
//! let lines = TableSpec {
//!     name: "lines".into(),
//!     rows: None,
//!     columns: vec![
//!         ColumnSpec::new("l_order", parent),
//!         ColumnSpec::new("l_amount", Generator::Decimal { min: 1, max: 99_99, scale: 2 }),
//!     ],
//! };
//! let dataset = Dataset::new(&[orders, lines], 7)?;
//! assert_eq!(dataset.tables()[1].rows(), 10_000);
//! let mut cells = dataset.cells()?;
//! println!("{:?}", cells.get(0, 1, 999)?); // the last order's total
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The same rows for the same seed
//!
//! Every cell is a pure function of the seed, the names of its table and column, the row's number and what
//! its generator says (`random.rs` has the arithmetic). Nothing is drawn in sequence, so the rows depend
//! neither on the number of threads nor on who asks for what, a column can be computed from columns of other
//! tables (an order's total from its lines), and memory does not grow with the number of rows.

mod data;
mod dataset;
mod decimal;
mod function;
mod generate;
mod instant;
mod kind;
mod load;
mod pattern;
mod plan;
mod random;
mod resolve;
mod spec;

pub use dataset::{ColumnPlan, Dataset, TablePlan};
pub use decimal::{MAX_SCALE, decimal_units};
pub use function::{CellFunction, RowFunction};
pub use generate::{Cells, TableRows};
pub use kind::Kind;
pub use load::{LoadOptions, LoadReport, Progress, TableProgress, load};
pub use pattern::write_pattern;
pub use random::{Draws, Key, MAX_THETA, Ranks, Shuffle};
pub use spec::{Children, ColumnSpec, Generator, Literal, TableSpec};
