//! What a value that depends on other columns is made of.

use super::{Arithmetic, At, Family};
use crate::instant::SECOND;
use crate::random::{Key, Ranks, Shuffle, Span};

/// A value that depends on other columns.
#[derive(Debug)]
pub(crate) enum Relation {
    /// A column of a row of another table: references, parents and what is looked up through them.
    Reach { target: Target, column: At },
    /// Another column of the row.
    Copy(At),
    /// The row's number among its parent's children, from a number.
    Line(Family, i64),
    /// The integer of a permutation from a number that the row has; with the permutation of its parent's children
    /// where it has a parent.
    Distinct { key: Key, min: i64, shuffle: Shuffle, family: Option<Family> },
    /// How many children the row has.
    Count(Family),
    /// The sum of a column over the row's children; its index among the totals kept.
    Total { family: Family, column: At, arithmetic: Arithmetic, index: usize },
    /// The product of columns of the row.
    Product { factors: Box<[At]>, arithmetic: Arithmetic },
    /// Microseconds behind a date or a timestamp of the row.
    After { column: At, key: Key, micros: Span },
    /// An address made of a text of the row.
    Email { of: Option<At>, key: Key },
}

/// Which row of another table a row points at.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// Each of so many rows is as likely.
    Any { key: Key, rows: u64 },
    /// Popular rows are more likely.
    Popular { key: Key, ranks: Ranks, shuffle: Shuffle },
    /// The row's parent.
    Owner(Family),
}

/// The shortest and the longest that [`Relation::After`] can be behind, in microseconds.
pub(crate) fn micros(min_seconds: u64, max_seconds: u64) -> Span {
    Span::new(min_seconds.cast_signed() * SECOND, max_seconds.cast_signed() * SECOND)
}
