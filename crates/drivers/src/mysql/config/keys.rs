//! The settings of MySQL's URLs by their names.

use crate::net::given::Keys;

/// The settings; each has the name of MySQL's own option.
pub(crate) const KEYS: Keys = Keys {
    schemes: &["mysql://", "mariadb://"],
    known: &KNOWN,
    without_effect: &["compress", "no-beep", "default-character-set"],
    database: "database",
    aliases: &[],
};

const KNOWN: [(&str, Option<&str>); 12] = [
    ("host", Some("MYSQL_HOST")),
    ("port", Some("MYSQL_TCP_PORT")),
    ("socket", Some("MYSQL_UNIX_PORT")),
    ("user", None),
    ("password", Some("MYSQL_PWD")),
    ("database", None),
    ("ssl-mode", None),
    ("ssl-ca", None),
    ("ssl-cert", None),
    ("ssl-key", None),
    ("get-server-public-key", None),
    ("connect-timeout", None),
];
