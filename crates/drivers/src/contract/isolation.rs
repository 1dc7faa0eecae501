//! The isolation levels of the SQL standard.

/// How much a transaction sees of others that run beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// It may see what is not committed.
    ReadUncommitted,
    /// Each statement sees what was committed before it.
    ReadCommitted,
    /// What was read once is read the same again.
    RepeatableRead,
    /// As if transactions ran one after another.
    Serializable,
}

impl Isolation {
    /// Every level, the weakest first.
    pub const ALL: [Self; 4] =
        [Self::ReadUncommitted, Self::ReadCommitted, Self::RepeatableRead, Self::Serializable];

    /// The level in the words of SQL and in small letters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "read uncommitted",
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
            Self::Serializable => "serializable",
        }
    }

    /// The level of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}
