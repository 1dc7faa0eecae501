//! The one place that knows every driver.

use std::sync::Arc;

use crate::contract::dialect::Dialect;
use crate::contract::driver::{Driver, Settings};
use crate::contract::error::ConfigError;
use crate::net::given::Keys;
use crate::net::secret;

/// The text with every password in it replaced by `***`: for any text that looks like a URL, of any scheme and however
/// malformed. Where it is not clear what belongs to the password, more is hidden rather than less. A driver's
/// `redacted_url` keeps all but the password.
#[must_use]
pub fn redact(url: &str) -> String {
    secret::redact(url, &|name| KEYS.iter().any(|keys| keys.find(name).is_some()))
}

/// Every dialect that a driver speaks.
#[cfg(test)]
pub(crate) const DIALECTS: [&Dialect; 4] =
    [Dialect::NONE, crate::postgres::DIALECT, crate::mysql::DIALECT, crate::sqlite::DIALECT];

/// The dialects of databases, as the driver without one speaks them.
const SPOKEN: [&Dialect; 3] = [
    &crate::noop::spoken(crate::postgres::DIALECT),
    &crate::noop::spoken(crate::mysql::DIALECT),
    &crate::noop::spoken(crate::sqlite::DIALECT),
];

/// The settings that URLs may have, of all drivers.
const KEYS: [&Keys; 3] = [&crate::postgres::config::KEYS, &crate::mysql::config::KEYS, &crate::sqlite::KEYS];

/// The driver for an endpoint, chosen by the URL's scheme.
pub fn open(url: &str, settings: &Settings) -> Result<Arc<dyn Driver>, ConfigError> {
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    match scheme {
        "postgresql" | "postgres" => Ok(Arc::new(crate::postgres::Postgres::new(url, settings)?)),
        "mysql" | "mariadb" => Ok(Arc::new(crate::mysql::Mysql::new(url, settings)?)),
        "sqlite" => Ok(Arc::new(crate::sqlite::Sqlite::new(url, settings)?)),
        "noop" => Ok(Arc::new(crate::noop::Noop::new(url, &SPOKEN)?)),
        "sim" => Ok(Arc::new(crate::sim::Sim::new(url, settings)?)),
        _ => Err(ConfigError(format!(
            "url: the scheme {scheme:?} has no driver; allowed are {}",
            SCHEMES.map(|(scheme, _)| format!("{scheme}://")).join(", ")
        ))),
    }
}

/// Every scheme that [`open`] takes, with what it is for.
pub const SCHEMES: [(&str, &str); 5] = [
    (
        "postgresql",
        "PostgreSQL and what speaks its protocol: Aurora, Neon, AlloyDB, CockroachDB, YugabyteDB …",
    ),
    ("mysql", "MySQL, MariaDB and what speaks their protocol: Aurora MySQL, PolarDB, TiDB …"),
    ("sqlite", "SQLite in this process, without a server: sqlite:///absolute/path or sqlite:relative/path"),
    ("noop", "no database: answers at once and costs nothing, to measure the engine itself"),
    ("sim", "a simulated database with planted latency, capacity, stalls, outages and errors: known truth"),
];
