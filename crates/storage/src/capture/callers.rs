//! Which kind of process made a call, from the words that the server has for it.

use crate::requests::{Operation, Process};

/// The words of each product, as its server says them, and what they mean. Words that are not here are
/// [`Process::Other`].
const WORDS: &[(&str, Process)] = &[
    // PostgreSQL: `GetBackendTypeDesc`, and the types of its own background workers.
    ("client backend", Process::Backend),
    ("parallel worker", Process::Backend),
    ("standalone backend", Process::Backend),
    ("checkpointer", Process::Checkpointer),
    ("background writer", Process::BackgroundWriter),
    ("walwriter", Process::LogWriter),
    ("autovacuum worker", Process::Vacuum),
    ("autovacuum launcher", Process::Vacuum),
    ("walsender", Process::Replication),
    ("walreceiver", Process::Replication),
    ("slotsync worker", Process::Replication),
    ("logical replication launcher", Process::Replication),
    ("logical replication apply worker", Process::Replication),
    ("logical replication parallel worker", Process::Replication),
    ("logical replication tablesync worker", Process::Replication),
    // MariaDB: what the session of a thread is.
    ("connection", Process::Backend),
    ("replication", Process::Replication),
];

/// `MariaDB`'s word for a thread with a session that is no client's: once it has started, `InnoDB`'s purge.
const INNER_SESSION: &str = "inner session";
/// The name of the threads of `MariaDB` that work for no session: `InnoDB`'s page cleaner, its log, and the threads
/// that read and write in their place. Who they are shows in what they do.
const THREAD: &str = "mariadbd";

/// Who made a call, as far as the words alone tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    Known(Process),
    /// A thread of `MariaDB` with a session of its own.
    InnerSession,
    /// A thread of `MariaDB` without a session.
    Thread,
}

impl Caller {
    pub(crate) fn of(words: &str) -> Self {
        match words {
            THREAD => return Self::Thread,
            INNER_SESSION => return Self::InnerSession,
            _ => {}
        }
        let found = WORDS.iter().find(|(known, _)| *known == words);
        Self::Known(found.map_or(Process::Other, |(_, process)| *process))
    }

    /// The kind of process, given what it did to which file.
    pub(crate) fn process(self, path: &str, operation: Operation) -> Process {
        match self {
            Self::Known(process) => process,
            Self::Thread if path.starts_with("ib_logfile") => Process::LogWriter,
            Self::Thread if operation != Operation::Read && is_table_space(path) => Process::BackgroundWriter,
            Self::InnerSession if is_table_space(path) => Process::Vacuum,
            Self::Thread | Self::InnerSession => Process::Other,
        }
    }
}

/// Whether a file holds pages of `InnoDB`.
fn is_table_space(path: &str) -> bool {
    let is_table = std::path::Path::new(path).extension().is_some_and(|suffix| suffix == "ibd");
    is_table || path.starts_with("ibdata") || path.starts_with("undo")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_nobody_knows_are_another_process() {
        let process = Caller::of("my extension's worker").process("base/5/1", Operation::Read);
        assert_eq!(process, Process::Other);
    }

    #[test]
    fn a_thread_without_a_session_is_known_by_what_it_does() {
        let thread = Caller::of("mariadbd");
        assert_eq!(thread.process("ib_logfile0", Operation::Write), Process::LogWriter);
        assert_eq!(thread.process("shop/orders.ibd", Operation::Write), Process::BackgroundWriter);
        assert_eq!(thread.process("shop/orders.ibd", Operation::Read), Process::Other);
        assert_eq!(thread.process("binlog.index", Operation::Sync), Process::Other);
    }

    #[test]
    fn the_purge_is_known_by_the_pages_that_it_touches() {
        let inner = Caller::of("inner session");
        assert_eq!(inner.process("undo001", Operation::Read), Process::Vacuum);
        assert_eq!(inner.process("mysql/plugin.frm", Operation::Read), Process::Other);
    }
}
