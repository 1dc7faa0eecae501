//! From SQLSTATE to error class (PostgreSQL manual, appendix A, "PostgreSQL Error Codes").

use crate::contract::error::{Error, ErrorClass};

/// The error of an SQLSTATE and a server's message.
pub(crate) fn error(code: String, message: String) -> Error {
    // statement_completion_unknown: the server itself does not know, as when CockroachDB's commit is ambiguous.
    let unknown = code == "40003";
    let error = Error::new(class(&code), code, message);
    if unknown { error.with_unknown_outcome() } else { error }
}

/// The class of an SQLSTATE.
fn class(code: &str) -> ErrorClass {
    match code {
        "40001" => ErrorClass::Serialization,
        "40P01" => ErrorClass::Deadlock,
        "55P03" => ErrorClass::LockTimeout,
        // A write on a replica, or in a read-only transaction.
        "25006" => ErrorClass::ReadOnly,
        // admin_shutdown, crash_shutdown, cannot_connect_now.
        "57P01" | "57P02" | "57P03" => ErrorClass::ShuttingDown,
        // query_canceled (also by statement_timeout), transaction_timeout, idle_in_transaction_session_timeout.
        "57014" | "25P04" | "25P03" => ErrorClass::StatementTimeout,
        // Class 08: connection exceptions; 53300: too many connections; 57P05: closed by idle_session_timeout.
        "53300" | "57P05" => ErrorClass::ConnectionLost,
        // insufficient_resources, configuration_limit_exceeded: a quota. (A disk or a memory that is full is none.)
        "53000" | "53400" => ErrorClass::Throttled,
        _ if code.starts_with("08") => ErrorClass::ConnectionLost,
        // Class 23: integrity constraint violations; 44000: WITH CHECK OPTION.
        "44000" => ErrorClass::Constraint,
        _ if code.starts_with("23") => ErrorClass::Constraint,
        _ => ErrorClass::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::error::ErrorClasses;

    #[test]
    fn codes_have_the_classes_of_the_design() {
        for (code, expected) in [
            ("40001", ErrorClass::Serialization),
            ("40P01", ErrorClass::Deadlock),
            ("55P03", ErrorClass::LockTimeout),
            ("25006", ErrorClass::ReadOnly),
            ("57P01", ErrorClass::ShuttingDown),
            ("57014", ErrorClass::StatementTimeout),
            ("08006", ErrorClass::ConnectionLost),
            ("53300", ErrorClass::ConnectionLost),
            ("57P05", ErrorClass::ConnectionLost),
            ("40003", ErrorClass::Other),
            ("23502", ErrorClass::Constraint),
            ("23503", ErrorClass::Constraint),
            ("23505", ErrorClass::Constraint),
            ("23514", ErrorClass::Constraint),
            ("23P01", ErrorClass::Constraint),
            ("53000", ErrorClass::Throttled),
            ("53400", ErrorClass::Throttled),
            ("53100", ErrorClass::Other),
            ("53200", ErrorClass::Other),
            ("42P01", ErrorClass::Other),
            ("", ErrorClass::Other),
        ] {
            assert_eq!(class(code), expected, "{code}");
        }
    }

    #[test]
    fn an_error_says_whether_the_outcome_is_unknown() {
        let unknown = |code: &str| error(code.to_owned(), String::new()).outcome_unknown();
        for code in ["40003", "57P01", "57P02", "57P05", "08006", "08007", "57014"] {
            assert!(unknown(code), "{code}");
        }
        for code in ["40001", "40P01", "55P03", "25006", "23505"] {
            assert!(!unknown(code), "{code}");
        }
        let lost = error("40003".to_owned(), String::new()).context("commit");
        assert!(lost.outcome_unknown() && !ErrorClasses::RETRIED.contains(lost.class()));
    }
}
