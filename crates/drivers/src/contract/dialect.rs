//! What a driver knows of its product's SQL, as data.

use crate::contract::capabilities::Capabilities;
use crate::contract::lexer::Lexer;
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
