//! From SQLite's result codes to error classes (<https://www.sqlite.org/rescode.html>).

use libsqlite3_sys as ffi;

use super::raw::Failure;
use crate::contract::error::{Error, ErrorClass};

/// The names of result codes; a code without one is given as its number.
macro_rules! names {
    ($($name:ident)*) => {
        fn name(code: i32) -> Option<&'static str> {
            match code {
                $(ffi::$name => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

names! {
    SQLITE_ERROR SQLITE_INTERNAL SQLITE_PERM SQLITE_ABORT SQLITE_BUSY SQLITE_LOCKED SQLITE_NOMEM SQLITE_READONLY
    SQLITE_INTERRUPT SQLITE_IOERR SQLITE_CORRUPT SQLITE_FULL SQLITE_CANTOPEN SQLITE_PROTOCOL SQLITE_SCHEMA
    SQLITE_TOOBIG SQLITE_CONSTRAINT SQLITE_MISMATCH SQLITE_MISUSE SQLITE_AUTH SQLITE_RANGE SQLITE_NOTADB
    SQLITE_BUSY_RECOVERY SQLITE_BUSY_SNAPSHOT SQLITE_BUSY_TIMEOUT SQLITE_LOCKED_SHAREDCACHE
    SQLITE_READONLY_RECOVERY SQLITE_READONLY_CANTLOCK SQLITE_READONLY_ROLLBACK SQLITE_READONLY_DBMOVED
    SQLITE_READONLY_CANTINIT SQLITE_READONLY_DIRECTORY
    SQLITE_IOERR_READ SQLITE_IOERR_SHORT_READ SQLITE_IOERR_WRITE SQLITE_IOERR_FSYNC SQLITE_IOERR_DIR_FSYNC
    SQLITE_IOERR_TRUNCATE SQLITE_IOERR_FSTAT SQLITE_IOERR_LOCK SQLITE_IOERR_DELETE SQLITE_IOERR_NOMEM
    SQLITE_IOERR_SHMOPEN SQLITE_IOERR_SHMSIZE SQLITE_IOERR_SHMLOCK SQLITE_IOERR_SHMMAP
    SQLITE_CORRUPT_VTAB SQLITE_CORRUPT_INDEX
    SQLITE_CANTOPEN_ISDIR SQLITE_CANTOPEN_FULLPATH SQLITE_CANTOPEN_SYMLINK SQLITE_CANTOPEN_DIRTYWAL
    SQLITE_CONSTRAINT_CHECK SQLITE_CONSTRAINT_COMMITHOOK SQLITE_CONSTRAINT_FOREIGNKEY SQLITE_CONSTRAINT_NOTNULL
    SQLITE_CONSTRAINT_PRIMARYKEY SQLITE_CONSTRAINT_TRIGGER SQLITE_CONSTRAINT_UNIQUE SQLITE_CONSTRAINT_ROWID
    SQLITE_CONSTRAINT_DATATYPE
}

/// The class of a result code whose lock is not waited for any more.
fn class(failure: &Failure) -> ErrorClass {
    match failure.primary() {
        // A snapshot that another session's commit has left behind can never be written to.
        _ if failure.code == ffi::SQLITE_BUSY_SNAPSHOT => ErrorClass::Serialization,
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED | ffi::SQLITE_PROTOCOL => ErrorClass::LockTimeout,
        ffi::SQLITE_READONLY => ErrorClass::ReadOnly,
        ffi::SQLITE_INTERRUPT => ErrorClass::StatementTimeout,
        // The file cannot be reached, or not any more: a new connection may find it again.
        ffi::SQLITE_CANTOPEN | ffi::SQLITE_IOERR => ErrorClass::ConnectionLost,
        ffi::SQLITE_CONSTRAINT => ErrorClass::Constraint,
        _ => ErrorClass::Other,
    }
}

/// The error of a failure. Whatever the statement had changed is undone, unless reading or writing the file failed.
pub(super) fn error(failure: &Failure) -> Error {
    let code = name(failure.code).map_or_else(|| failure.code.to_string(), str::to_owned);
    let error = Error::new(class(failure), code, failure.message.as_str());
    if failure.primary() == ffi::SQLITE_INTERRUPT { error.with_known_outcome() } else { error }
}

/// The error of a statement that had to wait for a lock until its time was up.
pub(super) fn lock_timeout(failure: &Failure) -> Error {
    let code = name(failure.code).unwrap_or("SQLITE_BUSY");
    let message = format!("{}, up to the statement's time limit", failure.message);
    Error::new(ErrorClass::LockTimeout, code, message)
}

/// The error of a wait for a lock that was ended by a request.
pub(super) fn cancelled() -> Error {
    let message = "the statement was cancelled while it waited for a lock";
    Error::new(ErrorClass::StatementTimeout, "SQLITE_INTERRUPT", message).with_known_outcome()
}

/// The error of a transaction that has read and cannot write: another one writes, and waits in its turn for this one to
/// end, or leaves this one's view behind when it commits.
pub(super) fn serialization(failure: &Failure) -> Error {
    let code = name(failure.code).unwrap_or("SQLITE_BUSY");
    let message = format!("{}, and a transaction that has read cannot wait to write", failure.message);
    Error::new(ErrorClass::Serialization, code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_classes_of_the_design() {
        for (code, expected, named) in [
            (ffi::SQLITE_BUSY, ErrorClass::LockTimeout, "SQLITE_BUSY"),
            (ffi::SQLITE_BUSY_SNAPSHOT, ErrorClass::Serialization, "SQLITE_BUSY_SNAPSHOT"),
            (ffi::SQLITE_LOCKED_SHAREDCACHE, ErrorClass::LockTimeout, "SQLITE_LOCKED_SHAREDCACHE"),
            (ffi::SQLITE_READONLY_DBMOVED, ErrorClass::ReadOnly, "SQLITE_READONLY_DBMOVED"),
            (ffi::SQLITE_INTERRUPT, ErrorClass::StatementTimeout, "SQLITE_INTERRUPT"),
            (ffi::SQLITE_CANTOPEN, ErrorClass::ConnectionLost, "SQLITE_CANTOPEN"),
            (ffi::SQLITE_IOERR_FSYNC, ErrorClass::ConnectionLost, "SQLITE_IOERR_FSYNC"),
            (ffi::SQLITE_FULL, ErrorClass::Other, "SQLITE_FULL"),
            (ffi::SQLITE_CORRUPT, ErrorClass::Other, "SQLITE_CORRUPT"),
            (ffi::SQLITE_CONSTRAINT_UNIQUE, ErrorClass::Constraint, "SQLITE_CONSTRAINT_UNIQUE"),
            (ffi::SQLITE_CONSTRAINT_FOREIGNKEY, ErrorClass::Constraint, "SQLITE_CONSTRAINT_FOREIGNKEY"),
            (9985, ErrorClass::Other, "9985"),
        ] {
            let error = error(&Failure { code, message: "said".to_owned() });
            assert_eq!((error.class(), error.code()), (expected, named));
        }
    }

    #[test]
    fn only_a_broken_file_leaves_the_outcome_open() {
        let unknown = |code| error(&Failure { code, message: String::new() }).outcome_unknown();
        assert!(unknown(ffi::SQLITE_IOERR_FSYNC));
        for code in [ffi::SQLITE_INTERRUPT, ffi::SQLITE_BUSY, ffi::SQLITE_FULL, ffi::SQLITE_CONSTRAINT] {
            assert!(!unknown(code), "{code}");
        }
    }
}
