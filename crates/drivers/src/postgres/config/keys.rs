//! The settings of PostgreSQL's URLs by their names.

use crate::net::given::Keys;
use crate::net::settings::TlsWords;

/// The settings. The sockets are kept alive in any case, every wait has a deadline, and there is neither Kerberos nor
/// compression under TLS.
pub(crate) const KEYS: Keys = Keys {
    schemes: &["postgresql://", "postgres://"],
    known: &KNOWN,
    without_effect: &WITHOUT_EFFECT,
    database: "dbname",
    // JDBC's way to say it, which libpq understands too.
    aliases: &[(("ssl", "true"), ("sslmode", "require"))],
};

/// The settings of TLS, as libpq has them.
pub(crate) const TLS_WORDS: TlsWords = TlsWords {
    product: "PostgreSQL",
    mode: "sslmode",
    modes: ["require", "verify-ca", "verify-full"],
    roots: "sslrootcert",
    system_roots: "use sslrootcert=system",
    certificate: "sslcert",
    key: "sslkey",
    versions: Some("ssl_min_protocol_version and ssl_max_protocol_version"),
};

const KNOWN: [(&str, Option<&str>); 24] = [
    ("host", Some("PGHOST")),
    ("hostaddr", Some("PGHOSTADDR")),
    ("port", Some("PGPORT")),
    ("user", Some("PGUSER")),
    ("password", Some("PGPASSWORD")),
    ("passfile", Some("PGPASSFILE")),
    ("dbname", Some("PGDATABASE")),
    ("sslmode", Some("PGSSLMODE")),
    ("sslrootcert", Some("PGSSLROOTCERT")),
    ("sslcert", Some("PGSSLCERT")),
    ("sslkey", Some("PGSSLKEY")),
    ("sslnegotiation", Some("PGSSLNEGOTIATION")),
    ("sslsni", Some("PGSSLSNI")),
    ("ssl_min_protocol_version", Some("PGSSLMINPROTOCOLVERSION")),
    ("ssl_max_protocol_version", Some("PGSSLMAXPROTOCOLVERSION")),
    ("channel_binding", Some("PGCHANNELBINDING")),
    ("target_session_attrs", Some("PGTARGETSESSIONATTRS")),
    ("load_balance_hosts", Some("PGLOADBALANCEHOSTS")),
    ("connect_timeout", Some("PGCONNECT_TIMEOUT")),
    ("application_name", Some("PGAPPNAME")),
    ("fallback_application_name", None),
    ("options", Some("PGOPTIONS")),
    // PGCLIENTENCODING is not asked: the driver's own encoding is UTF-8, whatever the terminal's is.
    ("client_encoding", None),
    ("gssencmode", Some("PGGSSENCMODE")),
];

const WITHOUT_EFFECT: [&str; 8] = [
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "krbsrvname",
    "gsslib",
    "sslcompression",
];
