//! What a workload says of its tables: plain data, not yet checked. [`crate::Dataset::new`] checks it.

use std::sync::Arc;

use crate::function::RowFunction;
use crate::kind::Kind;

/// A table and how its rows are made.
#[derive(Clone, Debug)]
pub struct TableSpec {
    /// The table's name; no two tables share one.
    pub name: String,
    /// How many rows it has. They are numbered from 0. A table with a [`Generator::Parent`] column may leave
    /// it out: its rows follow from the parent's, and what is given must agree with that.
    pub rows: Option<u64>,
    /// The columns, in the order in which they are loaded; at least one of them stored.
    pub columns: Vec<ColumnSpec>,
}

/// A column and how its values are made.
#[derive(Clone, Debug)]
pub struct ColumnSpec {
    /// The column's name; no two columns of a table share one.
    pub name: String,
    /// What makes its values.
    pub generator: Generator,
    /// Whether the database's table has the column. One that it has not can still be used by other columns:
    /// the price that an order line's amount is computed with.
    pub stored: bool,
}

impl ColumnSpec {
    /// A column that the database's table has.
    pub fn new(name: impl Into<String>, generator: Generator) -> Self {
        Self { name: name.into(), generator, stored: true }
    }

    /// A column that other columns are computed with and that the database's table does not have.
    pub fn unstored(name: impl Into<String>, generator: Generator) -> Self {
        Self { name: name.into(), generator, stored: false }
    }
}

/// A value written in a workload file.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// Text.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// A truth value.
    Boolean(bool),
}

/// How many children a parent has.
#[derive(Clone, Debug)]
pub enum Children {
    /// From `min` to `max`, and on average exactly `(min + max) / 2`: of two neighbouring parents one has a number
    /// `n` of children, the other `min + max - n`; without a neighbour the last has half of `min + max`, rounded down.
    Between {
        /// The fewest.
        min: u32,
        /// The most.
        max: u32,
    },
    /// Numbers of children, each with its weight. Of each 4,096 neighbouring parents, counted from the first, as many
    /// have a number of children as its weight says, to a parent, and one at least.
    Weighted(Vec<(u32, f64)>),
    /// What a function gives for the parent's row, counted from 0: an integer that depends on nothing but its arguments.
    /// It is asked once for each parent, and its numbers are kept: 4 bytes a parent.
    Function(Arc<dyn RowFunction>),
}

/// How a column's values are made.
///
/// Ranges include both of their ends. Where a generator names a column of its own row it gives the column's
/// name alone. Null in gives null out, as in SQL: sums leave nulls out, products and copies of null are null.
#[derive(Clone, Debug)]
pub enum Generator {
    /// The row's number, counted from `start`.
    Serial {
        /// The first row's value; 1 is usual.
        start: i64,
    },
    /// The same value in each row.
    Constant(Literal),
    /// Null in each row.
    Null,
    /// An integer, each of the range as likely.
    Integer {
        /// The smallest.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// An integer that no other row has; in a table with a [`Generator::Parent`] column, that no other child of the
    /// same parent has. The range must have as many integers as there are rows, or children of a parent.
    Distinct {
        /// The smallest.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// An integer, the smallest most often: the i-th with a probability proportional to `1 / i^theta`.
    Zipfian {
        /// The smallest.
        min: i64,
        /// The greatest.
        max: i64,
        /// The skew, from 0 (each is as likely) to [`crate::MAX_THETA`].
        theta: f64,
    },
    /// An exact decimal, each of the range as likely. [`crate::decimal_units`] reads the ends from text.
    Decimal {
        /// The smallest, in units of `10^-scale`.
        min: i64,
        /// The greatest, in units of `10^-scale`.
        max: i64,
        /// How many digits stand behind the point, at most 18.
        scale: u8,
    },
    /// A floating-point number, evenly spread.
    Float {
        /// The smallest.
        min: f64,
        /// The upper end, which is hardly ever reached.
        max: f64,
    },
    /// True with a probability.
    Boolean {
        /// How likely true is, from 0 to 1.
        probability: f64,
    },
    /// One of some values.
    Choice {
        /// The values, all of one kind.
        values: Vec<Literal>,
        /// How often each is drawn in relation to the others (to within 2⁻³² of the greatest); empty if all
        /// are as likely.
        weights: Vec<f64>,
    },
    /// A key of another table (or of this one).
    Reference {
        /// The table.
        table: String,
        /// The key's column; the table's first if left out.
        column: Option<String>,
        /// The skew, from 0 (each row is as likely) to [`crate::MAX_THETA`]: the i-th most popular row with a
        /// probability proportional to `1 / i^theta`. Popular rows lie all over the table, where [`crate::Shuffle`]
        /// places their ranks.
        theta: f64,
    },
    /// The key of the row's parent, and what makes this table the children of another. The children of a parent
    /// stand together. A table has at most one such column.
    Parent {
        /// The parent's table.
        table: String,
        /// The key's column; the parent table's first if left out.
        column: Option<String>,
        /// How many children each parent has.
        children: Children,
    },
    /// The row's number among the children of its parent.
    Line {
        /// The first child's; 1 is usual.
        start: i64,
    },
    /// How many children the row has in a table whose parent is this one.
    Count {
        /// The children's table.
        table: String,
    },
    /// The sum of a numeric column over the row's children, exact unless the column is a float; 0 without
    /// children.
    Total {
        /// The children's table.
        table: String,
        /// The children's column.
        column: String,
    },
    /// The product of numeric columns of the row, exact unless one is a float. The digits behind the point
    /// add up.
    Product {
        /// The columns, one or more.
        columns: Vec<String>,
    },
    /// The value of another column of the row.
    Copy {
        /// The column.
        column: String,
    },
    /// The value of a column in the row that a [`Generator::Reference`] or [`Generator::Parent`] column of
    /// this row points at.
    Lookup {
        /// The reference or parent column of this row.
        reference: String,
        /// The column of the table that it points at.
        column: String,
    },
    /// A person's given name and family name.
    Name {
        /// A [`Generator::Gender`] column of the row that the name agrees with.
        gender: Option<String>,
    },
    /// A person's given name.
    GivenName {
        /// A [`Generator::Gender`] column of the row that the name agrees with.
        gender: Option<String>,
    },
    /// A family name, common ones more often.
    FamilyName,
    /// A person's gender, both as likely.
    Gender {
        /// How a woman is marked; `F` is usual.
        female: String,
        /// How a man is marked; `M` is usual.
        male: String,
    },
    /// The name of a company.
    Company,
    /// An e-mail address under `example.com`, which nobody has; no two rows have the same.
    Email {
        /// A text column of the row that the address is made from; a name of its own if left out.
        of: Option<String>,
    },
    /// A mobile number.
    Phone,
    /// A street and a number in it.
    Street,
    /// A postal code of six digits.
    Postcode,
    /// A province, those with more people more often.
    Province,
    /// A city.
    City {
        /// A [`Generator::Province`] column of the row that the city lies in; a province of its own if left
        /// out.
        province: Option<String>,
    },
    /// Text of whole words.
    Words {
        /// The shortest length, in characters.
        min: u32,
        /// The greatest length, in characters, at most 16,777,216.
        max: u32,
    },
    /// Text of random letters.
    Letters {
        /// The shortest length, in characters.
        min: u32,
        /// The greatest length, in characters, at most 16,777,216.
        max: u32,
        /// The characters that are drawn from, each as often as it stands there, at most 256; a to z if left out.
        alphabet: Option<String>,
    },
    /// Text that follows a pattern: see [`crate::write_pattern`].
    Pattern(String),
    /// Text of random digits.
    Digits {
        /// How many, at most 16,777,216.
        count: u32,
    },
    /// Random bytes.
    Bytes {
        /// The shortest length, in bytes.
        min: u32,
        /// The greatest length, in bytes, at most 16,777,216.
        max: u32,
    },
    /// A random UUID (version 4).
    Uuid,
    /// A date, each of the range as likely.
    Date {
        /// The first, as `YYYY-MM-DD`.
        from: String,
        /// The last, included.
        to: String,
    },
    /// A point in time in whole microseconds, each of the range as likely.
    Timestamp {
        /// The first: `YYYY-MM-DD`, or with a time of day in UTC, `YYYY-MM-DD HH:MM[:SS[.ffffff]]`, with `T`
        /// or a space between.
        from: String,
        /// The last, included. A date alone is its first moment.
        to: String,
    },
    /// A point in time after a date (its first moment) or a timestamp of the row.
    After {
        /// The date or timestamp column.
        column: String,
        /// The least time between, in seconds.
        min_seconds: u64,
        /// The most time between, in seconds, at most 100,000,000,000.
        max_seconds: u64,
    },
    /// Null with a probability, and otherwise what another generator makes.
    Optional {
        /// How likely null is, from 0 to 1.
        probability: f64,
        /// Any generator but a parent.
        of: Box<Generator>,
    },
    /// What code of the workload makes of the row's number, random draws and other columns of the row.
    Function {
        /// Columns of the row that the function is given, in this order.
        inputs: Vec<String>,
        /// What the function gives. Columns of kind [`Kind::Any`] cannot be computed with.
        kind: Kind,
        /// The function.
        function: Arc<dyn RowFunction>,
    },
}

impl Generator {
    /// The generator's word in workload files and messages.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Serial { .. } => "serial",
            Self::Constant(_) => "constant",
            Self::Null => "null",
            Self::Integer { .. } => "integer",
            Self::Distinct { .. } => "distinct",
            Self::Zipfian { .. } => "zipfian",
            Self::Decimal { .. } => "decimal",
            Self::Float { .. } => "float",
            Self::Boolean { .. } => "boolean",
            Self::Choice { .. } => "choice",
            Self::Reference { .. } => "reference",
            Self::Parent { .. } => "parent",
            Self::Line { .. } => "line",
            Self::Count { .. } => "count",
            Self::Total { .. } => "total",
            Self::Product { .. } => "product",
            Self::Copy { .. } => "copy",
            Self::Lookup { .. } => "lookup",
            Self::Name { .. } => "name",
            Self::GivenName { .. } => "given_name",
            Self::FamilyName => "family_name",
            Self::Gender { .. } => "gender",
            Self::Company => "company",
            Self::Email { .. } => "email",
            Self::Phone => "phone",
            Self::Street => "street",
            Self::Postcode => "postcode",
            Self::Province => "province",
            Self::City { .. } => "city",
            Self::Words { .. } => "words",
            Self::Letters { .. } => "letters",
            Self::Pattern(_) => "pattern",
            Self::Digits { .. } => "digits",
            Self::Bytes { .. } => "bytes",
            Self::Uuid => "uuid",
            Self::Date { .. } => "date",
            Self::Timestamp { .. } => "timestamp",
            Self::After { .. } => "after",
            Self::Optional { .. } => "optional",
            Self::Function { .. } => "function",
        }
    }
}
