//! What a driver knows of its product's SQL.

/// The SQL that a product understands: which of a workload's statement files apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL and its relatives.
    Postgres,
    /// No database: any text is a statement.
    None,
}

impl Dialect {
    /// The dialect's name, as it stands in file names (`statements.postgres.sql`).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::None => "none",
        }
    }
}
