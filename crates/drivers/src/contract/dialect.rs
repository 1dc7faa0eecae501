//! What a driver knows of its product's SQL, as data.

use crate::contract::capabilities::Capabilities;
use crate::contract::probe_tables::ProbeStatements;

/// The SQL that a product understands: which of a workload's statement files apply, and how they are read. Each driver
/// has its own; dialects are the same where their names are.
#[derive(Debug)]
pub struct Dialect {
    /// The dialect's name, as it stands in file names (`statements.postgres.sql`).
    pub name: &'static str,
    /// How its texts and comments are told from its parameters.
    pub lexer: Lexer,
    /// What probes say.
    pub probes: ProbeStatements,
    /// What the product can do.
    pub capabilities: Capabilities,
}

impl Dialect {
    /// No database: any text is a statement, which a simulated server answers.
    pub const NONE: &'static Self = &Self {
        name: "none",
        lexer: Lexer::POSTGRES,
        probes: ProbeStatements::STANDARD,
        capabilities: Capabilities { stores: false, ..Capabilities::SERVER },
    };

    /// The dialect's words without its database, and without a server.
    pub(crate) const fn spoken(&self) -> Self {
        let capabilities =
            Capabilities { stores: false, probes: false, blocking: false, ..self.capabilities };
        Self { name: self.name, lexer: self.lexer, probes: self.probes, capabilities }
    }
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Dialect {}

/// In what SQL dialects differ where text is told from parameters. All have texts in single and double quotes, comments
/// from `--` to the line's end and between `/*` and `*/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a feature of its own, as the manuals list them")]
pub struct Lexer {
    /// A backslash in quotes takes the next character's meaning away, in `'…'` and in `"…"`; without it only in `E'…'`.
    pub backslash_escapes: bool,
    /// A name may stand in backticks.
    pub backticks: bool,
    /// `#` begins a comment, and `--` only before a blank.
    pub hash_comments: bool,
    /// A text may stand between `$tag$` and the same again, and `E'…'` has backslashes.
    pub dollar_quotes: bool,
    /// Comments between `/*` and `*/` nest.
    pub nested_comments: bool,
    /// A name may stand in brackets.
    pub brackets: bool,
    /// `//` begins a comment.
    pub slash_comments: bool,
}

impl Lexer {
    /// `PostgreSQL`'s (manual, section 4.1 "Lexical Structure").
    pub const POSTGRES: Self = Self {
        backslash_escapes: false,
        backticks: false,
        hash_comments: false,
        dollar_quotes: true,
        nested_comments: true,
        brackets: false,
        slash_comments: false,
    };
    /// `MySQL`'s and `MariaDB`'s with the default `sql_mode` (manual, section 11 "Language Structure").
    pub const MYSQL: Self = Self {
        backslash_escapes: true,
        backticks: true,
        hash_comments: true,
        dollar_quotes: false,
        nested_comments: false,
        brackets: false,
        slash_comments: false,
    };
    /// `SQLite`'s (<https://www.sqlite.org/lang.html>).
    pub const SQLITE: Self = Self {
        backslash_escapes: false,
        backticks: true,
        hash_comments: false,
        dollar_quotes: false,
        nested_comments: false,
        brackets: true,
        slash_comments: false,
    };
    /// Cassandra's CQL (<https://cassandra.apache.org/doc/latest/cassandra/developing/cql/definitions.html>).
    pub const CQL: Self = Self { nested_comments: false, slash_comments: true, ..Self::POSTGRES };
}

#[cfg(test)]
mod tests {
    use crate::contract::probe_tables::{MARKERS, POLL_ROWS, WRITES};

    #[test]
    fn every_statement_of_probes_is_about_their_tables_alone() {
        for dialect in crate::open::dialects() {
            for sql in dialect.probes.all() {
                let tables = sql.split(|next: char| !next.is_alphanumeric() && next != '_');
                let named: Vec<&str> = tables.filter(|word| word.starts_with("nephoscope")).collect();
                assert!(
                    !named.is_empty() && named.iter().all(|name| [WRITES, MARKERS].contains(name)),
                    "{sql}"
                );
            }
            assert!(dialect.probes.poll.ends_with(&format!(" LIMIT {POLL_ROWS}")));
        }
    }
}
