//! Errors, in one set of classes for every driver.

use std::fmt;

/// What kind of error a transaction met. The same words stand in events, reports and `errors` columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The transaction could not be serialized with others; a retry may succeed.
    Serialization,
    /// The transaction was chosen as the victim of a deadlock; a retry may succeed.
    Deadlock,
    /// A lock was not to be had in time.
    LockTimeout,
    /// The connection broke, or could not be made.
    ConnectionLost,
    /// The server takes no writes: a replica, or a primary that was demoted.
    ReadOnly,
    /// The server is going down or coming up; a retry may succeed.
    ShuttingDown,
    /// The statement took longer than it was allowed to.
    StatementTimeout,
    /// A key, a foreign key, a check or NOT NULL was violated.
    Constraint,
    /// The server refuses work beyond a quota or a rate; the same work may succeed later.
    Throttled,
    /// Anything else: bad SQL, a missing table.
    Other,
}

impl ErrorClass {
    /// Every class, in the order in which they are counted and shown.
    pub const ALL: [Self; 10] = [
        Self::Serialization,
        Self::Deadlock,
        Self::LockTimeout,
        Self::ConnectionLost,
        Self::ReadOnly,
        Self::ShuttingDown,
        Self::StatementTimeout,
        Self::Constraint,
        Self::Throttled,
        Self::Other,
    ];

    /// The class's name in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Serialization => "serialization",
            Self::Deadlock => "deadlock",
            Self::LockTimeout => "lock_timeout",
            Self::ConnectionLost => "connection_lost",
            Self::ReadOnly => "read_only",
            Self::ShuttingDown => "shutting_down",
            Self::StatementTimeout => "statement_timeout",
            Self::Constraint => "constraint",
            Self::Throttled => "throttled",
            Self::Other => "other",
        }
    }

    /// The class of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Whether an error of the class says nothing of what was sent before it: the session ended, or nobody waited.
    fn leaves_outcome_open(self) -> bool {
        matches!(self, Self::ConnectionLost | Self::ShuttingDown | Self::StatementTimeout)
    }
}

/// A set of error classes: those after which a transaction is run again (METRICS, section 1: outcome "retried"). A commit
/// that was sent and not answered forbids it, whatever the class: see [`Error::outcome_unknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorClasses(u16);

impl ErrorClasses {
    /// The classes whose errors a further attempt usually does not meet.
    pub const RETRIED: Self =
        Self::of(&[ErrorClass::Serialization, ErrorClass::Deadlock, ErrorClass::ShuttingDown]);

    /// No class.
    pub const NONE: Self = Self(0);

    /// The set of some classes.
    #[must_use]
    pub const fn of(classes: &[ErrorClass]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < classes.len() {
            bits |= 1 << classes[at] as u16;
            at += 1;
        }
        Self(bits)
    }

    /// The set of classes by their names. The error is the first name that is none.
    pub fn named<T: AsRef<str>>(names: &[T]) -> Result<Self, &str> {
        names.iter().map(AsRef::as_ref).try_fold(Self(0), |found, name| {
            let class = ErrorClass::from_name(name).ok_or(name)?;
            Ok(Self(found.0 | 1 << class as u16))
        })
    }

    /// Whether a class is one of them.
    #[inline]
    #[must_use]
    pub const fn contains(self, class: ErrorClass) -> bool {
        self.0 & (1 << class as u16) != 0
    }
}

/// The code of what is asked of a transaction that has failed, in every driver.
const FAILED: &str = "25P02";

/// An error of a database or of the way to it. Boxed inside, so that a result is small.
#[derive(Clone, Debug)]
pub struct Error(Box<Detail>);

#[derive(Clone, Debug)]
struct Detail {
    class: ErrorClass,
    code: String,
    message: String,
    outcome_unknown: bool,
}

impl Error {
    /// An error with the server's own code (an SQLSTATE for SQL databases; empty where there is none).
    pub fn new(class: ErrorClass, code: impl Into<String>, message: impl Into<String>) -> Self {
        let outcome_unknown = class.leaves_outcome_open();
        Self(Box::new(Detail { class, code: code.into(), message: message.into(), outcome_unknown }))
    }

    /// The same error as one that leaves open what the server has done, whatever its class.
    #[must_use]
    pub fn with_unknown_outcome(mut self) -> Self {
        self.0.outcome_unknown = true;
        self
    }

    /// The same error as one after which nothing was done, whatever its class.
    #[must_use]
    pub(crate) fn with_known_outcome(mut self) -> Self {
        self.0.outcome_unknown = false;
        self
    }

    /// A statement was refused because its transaction has failed. The SQLSTATE is `in_failed_sql_transaction`.
    pub(crate) fn in_failed_transaction() -> Self {
        Self::new(ErrorClass::Other, FAILED, "the transaction has failed; roll it back")
    }

    /// A transaction that had failed was to be committed.
    pub(crate) fn not_committed() -> Self {
        const WHY: &str = "the transaction had failed, so it was rolled back and not committed";
        Self::new(ErrorClass::Other, FAILED, WHY)
    }

    /// The connection broke, or could not be made.
    pub fn connection_lost(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::ConnectionLost, "", message)
    }

    /// An error without a class of its own.
    pub fn other(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Other, "", message)
    }

    /// What kind of error it is.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        self.0.class
    }

    /// Whether the server may have done what was sent and is not answered: a commit among it must not be repeated.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        self.0.outcome_unknown
    }

    /// The server's own code; empty where there is none.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// What the server, the system or the driver said. Never holds a password.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The same error with what was being done put before the message.
    #[must_use]
    pub fn context(mut self, doing: &str) -> Self {
        self.0.message = format!("{doing}: {}", self.0.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if !self.0.code.is_empty() {
            write!(f, " ({})", self.0.code)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::TimedOut {
            Self::new(ErrorClass::StatementTimeout, "", "no answer within the time limit")
        } else {
            Self::connection_lost(error.to_string())
        }
    }
}

/// The user gave something that cannot be used: a URL, a setting. Reported as bad input, with exit code 2.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);
