//! The one place that knows every driver.

use crate::contract::dialect::Dialect;
use crate::contract::driver::Settings;
use crate::contract::error::ConfigError;
use crate::net::entry::{Entry, Opened};
use crate::net::secret;

/// Every driver, in the order in which they are listed: those of databases first.
const DRIVERS: &[&Entry] = &[
    &crate::postgres::ENTRY,
    &crate::mysql::ENTRY,
    &crate::sqlite::ENTRY,
    &crate::redis::ENTRY,
    &crate::cassandra::ENTRY,
    &crate::dynamodb::ENTRY,
    &crate::s3::ENTRY,
    &crate::simpledb::ENTRY,
    &crate::hbase::ENTRY,
    &crate::mongodb::ENTRY,
    // Without a database.
    &crate::noop::ENTRY,
    &crate::sim::ENTRY,
];

/// The dialects of databases, for the driver that answers without one.
static SPOKEN: [Dialect; 10] = [
    DRIVERS[0].dialect.spoken(),
    DRIVERS[1].dialect.spoken(),
    DRIVERS[2].dialect.spoken(),
    DRIVERS[3].dialect.spoken(),
    DRIVERS[4].dialect.spoken(),
    DRIVERS[5].dialect.spoken(),
    DRIVERS[6].dialect.spoken(),
    DRIVERS[7].dialect.spoken(),
    DRIVERS[8].dialect.spoken(),
    DRIVERS[9].dialect.spoken(),
];

/// The text with every password in it replaced by `***`: for any text that looks like a URL, of any scheme and however
/// malformed. Where it is not clear what belongs to the password, more is hidden rather than less. A driver's
/// `redacted_url` keeps all but the password.
#[must_use]
pub fn redact(url: &str) -> String {
    let is_known =
        |name: &str| DRIVERS.iter().filter_map(|entry| entry.keys).any(|keys| keys.find(name).is_some());
    secret::redact(url, &is_known)
}

/// Every dialect that a driver speaks.
#[cfg(test)]
pub(crate) fn dialects() -> impl Iterator<Item = &'static Dialect> {
    DRIVERS.iter().map(|entry| entry.dialect)
}

/// The driver for an endpoint, chosen by the URL's scheme.
pub fn open(url: &str, settings: &Settings) -> Opened {
    open_by(DRIVERS, url, settings)
}

/// Every scheme that [`open`] lists, with what it is for.
pub fn schemes() -> impl Iterator<Item = (&'static str, &'static str)> {
    listed(DRIVERS)
}

fn open_by(drivers: &[&'static Entry], url: &str, settings: &Settings) -> Opened {
    let driver = open_by_scheme(drivers, url, settings)?;
    let Some(wanted) = &settings.consistency else { return Ok(driver) };
    let Dialect { name, capabilities, .. } = driver.dialect();
    if capabilities.has_consistency(wanted) {
        return Ok(driver);
    }
    let allowed = capabilities.consistency_levels();
    Err(ConfigError(format!("load.consistency: {name} has no level {wanted:?}; {allowed}")))
}

fn open_by_scheme(drivers: &[&'static Entry], url: &str, settings: &Settings) -> Opened {
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    match drivers.iter().find(|entry| entry.schemes.contains(&scheme)) {
        Some(entry) => match (entry.open_as, url.split_once("?dialect=")) {
            // What the URL has beside the dialect is read as it is without one.
            (Some(open_as), Some((bare, name))) => {
                (entry.open)(bare, settings)?;
                spoken(name).map(open_as)
            }
            _ => (entry.open)(url, settings),
        },
        None => {
            let allowed: Vec<String> = listed(drivers).map(|(scheme, _)| format!("{scheme}://")).collect();
            let allowed = allowed.join(", ");
            Err(ConfigError(format!("url: the scheme {scheme:?} has no driver; allowed are {allowed}")))
        }
    }
}

fn spoken(name: &str) -> Result<&'static Dialect, ConfigError> {
    SPOKEN.iter().find(|dialect| dialect.name == name).ok_or_else(|| {
        let known = SPOKEN.each_ref().map(|dialect| dialect.name).join(", ");
        ConfigError(format!("url: there is no dialect {name:?}; dialects are {known}"))
    })
}

fn listed(drivers: &[&'static Entry]) -> impl Iterator<Item = (&'static str, &'static str)> {
    drivers.iter().map(|entry| (entry.schemes[0], entry.about))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver of one's own: its room, and a line in the table.
    const TOY: Entry = Entry {
        schemes: &["toy", "toys"],
        about: "a toy",
        open: |url, settings| (crate::noop::ENTRY.open)(&url.replacen("toys", "noop", 1), settings),
        open_as: None,
        keys: None,
        dialect: Dialect::NONE,
    };

    #[test]
    fn a_driver_is_an_entry_in_the_table() {
        let drivers: Vec<&'static Entry> = DRIVERS.iter().copied().chain([&TOY]).collect();
        let settings = Settings::default();
        assert_eq!(open_by(&drivers, "toys://", &settings).map(|driver| driver.name()).unwrap(), "noop");
        let refused = |drivers, url| open_by(drivers, url, &settings).map(|_| ()).unwrap_err().0;
        assert!(
            refused(&drivers, "tops://")
                .ends_with("sqlite://, redis://, cassandra://, dynamodb://, s3://, simpledb://, hbase://, mongodb://, noop://, sim://, toy://")
        );
        assert!(
            refused(DRIVERS, "toys://")
                .starts_with("url: the scheme \"toys\" has no driver; allowed are postgresql://, ")
        );
        assert_eq!(listed(&drivers).last(), Some(("toy", "a toy")));
    }

    #[test]
    fn a_consistency_level_that_the_driver_does_not_have_is_refused() {
        let at = |url: &str, level: &str| {
            let settings = Settings { consistency: Some(level.to_owned()), ..Settings::default() };
            open(url, &settings).map(|_| ()).map_err(|error| error.0)
        };
        assert_eq!(at("redis://h", "wait 1"), Ok(()));
        assert_eq!(at("cassandra://h", "read ONE write EACH_QUORUM"), Ok(()));
        let told = at("cassandra://h", "read ONE write MOST").unwrap_err();
        assert!(told.ends_with("EACH_QUORUM, and one for each: \"read ONE write ONE\""), "{told}");
        assert_eq!(at("mongodb://h", "read local write majority"), Ok(()));
        let told = at("mongodb://h", "read majority write linearizable").unwrap_err();
        let allowed = "allowed are local, majority, linearizable, and \"read R write W\", where R is one of local, \
             available, majority, linearizable and W one of 1, 2, 3, majority";
        assert!(told.ends_with(allowed), "{told}");
        let told = at("redis://h", "quorum").unwrap_err();
        assert!(
            told.starts_with("load.consistency: redis has no level \"quorum\"; allowed are wait 1, "),
            "{told}"
        );
        assert_eq!(
            at("mysql://me@h", "wait 1").unwrap_err(),
            "load.consistency: mysql has no level \"wait 1\"; it has only its default, and takes none"
        );
    }

    #[test]
    fn no_two_drivers_have_a_scheme_in_common() {
        let mut all: Vec<&str> = DRIVERS.iter().flat_map(|entry| entry.schemes).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
