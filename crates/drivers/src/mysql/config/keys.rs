//! The settings of MySQL's URLs by their names.

use crate::net::given::Keys;
use crate::net::settings::TlsWords;

/// The settings; each has the name of MySQL's own option.
pub(crate) const KEYS: Keys = Keys {
    schemes: &["mysql://", "mariadb://"],
    known: &KNOWN,
    without_effect: &["compress", "no-beep", "default-character-set"],
    database: "database",
    aliases: &[],
};

/// The settings of TLS, as MySQL's own clients have them.
pub(crate) const TLS_WORDS: TlsWords = TlsWords {
    product: "MySQL",
    mode: "ssl-mode",
    modes: ["REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"],
    roots: "ssl-ca",
    system_roots: "leave ssl-ca out to trust the system's store",
    certificate: "ssl-cert",
    key: "ssl-key",
    versions: None,
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
