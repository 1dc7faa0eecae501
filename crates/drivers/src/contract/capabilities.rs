//! What a driver's systems can do, as data: for whoever has to know before anything is touched.

/// What the systems behind a driver can do.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a capability of its own")]
pub struct Capabilities {
    /// What is written stays there: data can be loaded and checked.
    pub stores: bool,
    /// Probes are answered as a database would answer them.
    pub probes: bool,
    /// Statements run on the thread that sends them, in this process.
    pub blocking: bool,
    /// Statements are SQL. Without it they are the verbs of tables with a key, and nothing else.
    pub sql: bool,
    /// Without SQL, a workload may have statements in the dialect's own language beside the verbs.
    pub own_statements: bool,
    /// BEGIN and COMMIT hold several statements together.
    pub transactions: bool,
    /// The reply to an INSERT tells the key: see [`crate::Reply::inserted_id`].
    pub generated_keys: bool,
    /// The isolation levels that a session can ask for, in the words of SQL and in small letters.
    pub isolation: &'static [&'static str],
    /// The consistency levels that a session can ask for beside the system's default.
    pub consistency: &'static [&'static str],
    /// Reads and writes may have levels of their own: `read ONE write QUORUM`.
    pub consistency_apart: bool,
}

/// The levels of the SQL standard.
const STANDARD: &[&str] = &["read uncommitted", "read committed", "repeatable read", "serializable"];

impl Capabilities {
    /// Those of a database server with transactions.
    pub(crate) const SERVER: Self = Self {
        stores: true,
        probes: true,
        blocking: false,
        sql: true,
        own_statements: false,
        transactions: true,
        generated_keys: false,
        isolation: STANDARD,
        consistency: &[],
        consistency_apart: false,
    };

    /// Those of a key-value server: no SQL, and no transactions of several statements.
    pub(crate) const KEYED: Self =
        Self { probes: false, sql: false, transactions: false, isolation: &[], ..Self::SERVER };

    /// Whether a session can ask for a consistency level.
    #[must_use]
    pub fn has_consistency(&self, level: &str) -> bool {
        let apart = level.strip_prefix("read ").and_then(|rest| rest.split_once(" write "));
        match apart.filter(|_| self.consistency_apart) {
            Some((read, write)) => self.consistency.contains(&read) && self.consistency.contains(&write),
            None => self.consistency.contains(&level),
        }
    }

    /// What a workload may need, by the name that it is asked for, and whether it is there.
    #[must_use]
    pub fn needed(&self) -> [(&'static str, bool); 3] {
        [("sql", self.sql), ("transactions", self.transactions), ("generated_keys", self.generated_keys)]
    }
}
