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
    /// The levels that reads and writes may have of their own, `read ONE write QUORUM`: those of reads, and those of
    /// writes. Empty where there are none.
    pub consistency_apart: [&'static [&'static str]; 2],
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
        consistency_apart: [&[], &[]],
    };

    /// Those of a key-value server: no SQL, and no transactions of several statements.
    pub(crate) const KEYED: Self =
        Self { probes: false, sql: false, transactions: false, isolation: &[], ..Self::SERVER };

    /// Whether a session can ask for a consistency level.
    #[must_use]
    pub fn has_consistency(&self, level: &str) -> bool {
        let [reads, writes] = self.consistency_apart;
        let apart = level.strip_prefix("read ").and_then(|rest| rest.split_once(" write "));
        self.consistency.contains(&level)
            || apart.is_some_and(|(read, write)| reads.contains(&read) && writes.contains(&write))
    }

    /// Which consistency levels a session can ask for, for messages.
    #[must_use]
    pub fn consistency_levels(&self) -> String {
        let all = |levels: &[&str]| levels.join(", ");
        match (self.consistency, self.consistency_apart) {
            ([], _) => "it has only its default, and takes none".to_owned(),
            (both, [[], _] | [_, []]) => format!("allowed are {}", all(both)),
            (both, [reads, writes]) if reads == both && writes == both => {
                let first = both[0];
                format!("allowed are {}, and one for each: \"read {first} write {first}\"", all(both))
            }
            (both, [reads, writes]) => format!(
                "allowed are {}, and \"read R write W\", where R is one of {} and W one of {}",
                all(both),
                all(reads),
                all(writes)
            ),
        }
    }

    /// What a workload may need, by the name that it is asked for, and whether it is there.
    #[must_use]
    pub fn needed(&self) -> [(&'static str, bool); 3] {
        [("sql", self.sql), ("transactions", self.transactions), ("generated_keys", self.generated_keys)]
    }
}
