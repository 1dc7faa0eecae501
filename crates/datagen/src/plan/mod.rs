//! What is known of a dataset before any cell is computed: each column's generator with all names resolved.

mod arithmetic;
mod counted;
mod family;
mod relation;
mod shares;
mod simple;
mod text;

use crate::random::{Chance, Key, Span, Weights};
use crate::spec::Literal;

pub(crate) use self::arithmetic::{Arithmetic, Sum};
pub(crate) use self::family::{Family, Owner};
pub(crate) use self::relation::{Relation, Target, micros};
pub(crate) use self::simple::Simple;
pub(crate) use self::text::{Text, name, number};

/// A column of a dataset, by its indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) table: usize,
    pub(crate) column: usize,
}

/// How a column's cells are computed: a generator with all names resolved and everything precomputed.
#[derive(Debug)]
pub(crate) enum Plan {
    Simple(Simple),
    Constant(Literal),
    Choice { key: Key, weights: Option<Weights>, values: Box<[Literal]> },
    Bytes(Key, Span),
    Text(Key, Text),
    Relation(Relation),
    Optional { key: Key, null: Chance, of: Box<Plan> },
    Function { key: Key, index: usize, inputs: Box<[At]> },
}
