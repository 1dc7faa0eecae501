//! The conversations of `MySQL` and `MariaDB`.

mod examples;
mod limits;
mod talk;

pub(super) use examples::examples;
