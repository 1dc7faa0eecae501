//! What may be sent together.
//!
//! A server goes on after an error: of commands that are sent together it runs those that follow one that failed.
//! Commands are therefore sent in waves, and the next wave leaves when every reply of the last one was good. Within a
//! wave a command may follow others only if it does no harm where they fail:
//!
//! * COMMIT follows nothing: it would commit what is left of a transaction whose statement has failed.
//! * BEGIN follows nothing: it commits the transaction that is under way.
//! * A statement that may write follows BEGIN only. Behind another statement it could be run by itself, and so be
//!   committed at once: outside a transaction always, and inside one where the failure was a deadlock, for which the
//!   server rolls back the whole transaction and goes on without one.
//! * What is said of the next transaction follows nothing, and BEGIN may follow it: where it has failed, the transaction
//!   is in another isolation level and is rolled back, because COMMIT waits.
//! * A statement that only reads, and ROLLBACK, may follow anything: they leave nothing behind.
//!
//! BEGIN itself fails only where a proxy or an operator gets in its way. The statement behind it may then have been
//! committed, and the error says that the outcome is unknown.

/// What a command can do to the transaction or the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Begin,
    /// How the next transaction is isolated.
    Next,
    Commit,
    Rollback,
    /// A statement that only reads, or the preparation of any.
    Read,
    /// Any other statement.
    Write,
    /// A statement that needs the answer to its preparation.
    Bound,
}

/// The commands that are on their way together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wave {
    #[default]
    Empty,
    /// What is said of the next transaction, alone.
    Told,
    /// BEGIN alone.
    Begun,
    /// Anything else.
    Closed,
}

impl Wave {
    /// The wave with one more command; `None` where that has to wait for the replies.
    #[inline]
    pub(super) fn with(self, effect: Effect) -> Option<Self> {
        match (self, effect) {
            (Self::Empty | Self::Told, Effect::Begin) => Some(Self::Begun),
            (Self::Empty, Effect::Next) => Some(Self::Told),
            (Self::Empty, _) | (_, Effect::Read | Effect::Rollback) | (Self::Begun, Effect::Write) => {
                Some(Self::Closed)
            }
            _ => None,
        }
    }
}

/// Whether a statement only reads. A stored function that writes, called by a SELECT, is not seen here.
pub(crate) fn only_reads(sql: &str) -> bool {
    let sql = without_comments(sql);
    let word = sql.split(|next: char| !next.is_ascii_alphabetic()).next().unwrap_or_default();
    // WITH may introduce an UPDATE or a DELETE.
    word.eq_ignore_ascii_case("select")
}

fn without_comments(mut sql: &str) -> &str {
    loop {
        sql = sql.trim_start_matches(|next: char| next.is_whitespace() || next == '(');
        // What is in /*! … */ is run.
        let rest = match sql {
            _ if sql.starts_with("/*!") || sql.starts_with("/*M!") => None,
            _ if sql.starts_with("/*") => sql.split_once("*/"),
            _ if sql.starts_with('#') || sql.starts_with("-- ") => sql.split_once('\n'),
            _ => None,
        };
        match rest {
            Some((_, rest)) => sql = rest,
            None => return sql,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_select_reads() {
        for sql in ["SELECT 1", " (select 2)", "/* x */ -- y\n# z\nSeLeCt(3)"] {
            assert!(only_reads(sql), "{sql}");
        }
        for sql in [
            "UPDATE t SET n = 1",
            "WITH c AS (SELECT 1) DELETE FROM t",
            "/*!99 UPDATE t SET n = 1 */ SELECT 1",
            "/* SELECT",
            "CALL p()",
            "selected",
            "",
        ] {
            assert!(!only_reads(sql), "{sql}");
        }
    }

    #[test]
    fn nothing_that_could_be_committed_follows_what_may_fail() {
        use Effect::{Begin, Bound, Commit, Next, Read, Rollback, Write};
        for effect in [Begin, Next, Commit, Rollback, Read, Write, Bound] {
            assert!(Wave::Empty.with(effect).is_some());
            assert_eq!(Wave::Closed.with(effect).is_some(), matches!(effect, Read | Rollback), "{effect:?}");
            let harmless = matches!(effect, Read | Rollback | Write);
            assert_eq!(Wave::Begun.with(effect).is_some(), harmless, "{effect:?}");
            let harmless = matches!(effect, Begin | Read | Rollback);
            assert_eq!(Wave::Told.with(effect).is_some(), harmless, "{effect:?}");
        }
    }
}
