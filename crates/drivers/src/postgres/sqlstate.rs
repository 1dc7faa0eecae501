//! From SQLSTATE to error class (PostgreSQL manual, appendix A, "PostgreSQL Error Codes").

use crate::error::ErrorClass;

/// The class of an SQLSTATE.
pub(crate) fn class(code: &str) -> ErrorClass {
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
        // Class 08: connection exceptions; 53300: too many connections.
        "53300" => ErrorClass::ConnectionLost,
        _ if code.starts_with("08") => ErrorClass::ConnectionLost,
        _ => ErrorClass::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("23505", ErrorClass::Other),
            ("", ErrorClass::Other),
        ] {
            assert_eq!(class(code), expected, "{code}");
        }
    }
}
