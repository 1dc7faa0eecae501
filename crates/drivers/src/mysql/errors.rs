//! From error number to error class.
//!
//! <https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html>,
//! <https://mariadb.com/kb/en/mariadb-error-code-reference/>,
//! <https://docs.pingcap.com/tidb/stable/error-codes>

use crate::contract::error::{Error, ErrorClass};

/// The error of a number and a server's message.
pub(crate) fn error(number: u16, message: String) -> Error {
    Error::new(class(number), number.to_string(), message)
}

/// The class of an error number.
fn class(number: u16) -> ErrorClass {
    match number {
        // ER_LOCK_DEADLOCK; ER_XA_RBDEADLOCK. The server has rolled the transaction back. Galera and Aurora
        // multi-master answer with 1213, too, where a transaction fails its certification.
        1213 | 1614 => ErrorClass::Deadlock,
        // ER_LOCK_WAIT_TIMEOUT; ER_XA_RBTIMEOUT; ER_LOCK_NOWAIT (MySQL); ER_LOCK_ABORTED of a metadata lock.
        1205 | 1613 | 3572 | 1689 => ErrorClass::LockTimeout,
        // ER_CHECKREAD: MariaDB's innodb_snapshot_isolation found a newer version of the row. 3101: group replication's
        // certification. TiDB: 8005 and 9007 write conflict, 8002 and 8022 a transaction or commit that has to be
        // repeated, 8028 the schema changed meanwhile.
        1020 | 3101 | 8005 | 9007 | 8002 | 8022 | 8028 => ErrorClass::Serialization,
        // ER_OPTION_PREVENTS_STATEMENT (--read-only, super_read_only), ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION,
        // ER_READ_ONLY_MODE, ER_INNODB_READ_ONLY: a replica, or a primary that was demoted.
        1290 | 1792 | 1836 | 1874 => ErrorClass::ReadOnly,
        // ER_SERVER_SHUTDOWN; ER_NORMAL_SHUTDOWN; ER_WSREP_NOT_READY: a Galera node that is joining or leaving.
        1053 | 1077 | 1047 => ErrorClass::ShuttingDown,
        // ER_QUERY_INTERRUPTED: KILL QUERY, which is how this driver cancels; a server that goes down says 1053.
        // ER_QUERY_TIMEOUT (MySQL, max_execution_time); ER_STATEMENT_TIMEOUT (MariaDB, max_statement_time).
        1317 | 3024 | 1969 => ErrorClass::StatementTimeout,
        // There is no place for a further connection: ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS,
        // ER_HOST_IS_BLOCKED.
        1040 | 1203 | 1129 => ErrorClass::ConnectionLost,
        // ER_USER_LIMIT_REACHED: queries, updates or connections of an account, by the hour or at a time. TiDB: 8252,
        // the quota of a resource group.
        1226 | 8252 => ErrorClass::Throttled,
        // ER_BAD_NULL_ERROR, ER_DUP_KEY, ER_DUP_ENTRY, ER_DUP_UNIQUE, ER_NO_REFERENCED_ROW, ER_ROW_IS_REFERENCED and
        // their second forms, ER_DUP_ENTRY_WITH_KEY_NAME, ER_FOREIGN_DUPLICATE_KEY (three numbers),
        // ER_VIEW_CHECK_FAILED, ER_CHECK_CONSTRAINT_VIOLATED (MySQL), ER_CONSTRAINT_FAILED (MariaDB).
        1022 | 1048 | 1062 | 1169 | 1216 | 1217 | 1369 | 1451 | 1452 | 1557 | 1586 | 1761 | 1762 | 3819
        | 4025 => ErrorClass::Constraint,
        number if ends_session(number) => ErrorClass::ConnectionLost,
        // TiDB: the cluster behind the server is busy or away (PD time-out, TiKV time-out or busy, region not there).
        9001 | 9002 | 9003 | 9005 => ErrorClass::ShuttingDown,
        _ => ErrorClass::Other,
    }
}

/// Whether the server closes the connection when it has said so: `CR_SERVER_GONE_ERROR` and `CR_SERVER_LOST` as
/// proxies pass them on, `ER_CONNECTION_KILLED` (MariaDB), `ER_CLIENT_INTERACTION_TIMEOUT`, errors of the network.
pub(crate) fn ends_session(number: u16) -> bool {
    matches!(number, 2006 | 2013 | 2055 | 1927 | 4031 | 1053 | 1077 | 1152 | 1158..=1161 | 1184)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_classes_of_the_design() {
        for (number, expected) in [
            (1213, ErrorClass::Deadlock),
            (1205, ErrorClass::LockTimeout),
            (3572, ErrorClass::LockTimeout),
            (1020, ErrorClass::Serialization),
            (8005, ErrorClass::Serialization),
            (9007, ErrorClass::Serialization),
            (8002, ErrorClass::Serialization),
            (8022, ErrorClass::Serialization),
            (1290, ErrorClass::ReadOnly),
            (1792, ErrorClass::ReadOnly),
            (1836, ErrorClass::ReadOnly),
            (1053, ErrorClass::ShuttingDown),
            (1317, ErrorClass::StatementTimeout),
            (3024, ErrorClass::StatementTimeout),
            (1969, ErrorClass::StatementTimeout),
            (2006, ErrorClass::ConnectionLost),
            (2013, ErrorClass::ConnectionLost),
            (1927, ErrorClass::ConnectionLost),
            (1040, ErrorClass::ConnectionLost),
            (1226, ErrorClass::Throttled),
            (1048, ErrorClass::Constraint),
            (1062, ErrorClass::Constraint),
            (1451, ErrorClass::Constraint),
            (1452, ErrorClass::Constraint),
            (3819, ErrorClass::Constraint),
            (4025, ErrorClass::Constraint),
            (1064, ErrorClass::Other),
            (1045, ErrorClass::Other),
            (0, ErrorClass::Other),
        ] {
            assert_eq!(class(number), expected, "{number}");
        }
    }

    #[test]
    fn an_error_says_whether_the_outcome_is_unknown() {
        let unknown = |number| error(number, String::new()).outcome_unknown();
        for number in [2013, 1927, 1053, 1317] {
            assert!(unknown(number), "{number}");
        }
        for number in [1213, 1205, 1020, 1290, 1062] {
            assert!(!unknown(number), "{number}");
        }
    }
}
