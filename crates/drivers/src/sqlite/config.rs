//! Which file a URL names, and how it is opened: `sqlite:///absolute/path` or `sqlite:relative/path`, then options.

use std::ffi::CString;

use libsqlite3_sys as ffi;

use crate::contract::error::ConfigError;
use crate::net::given::{Choice, Given, Keys, Value};
use crate::net::url::{decode_text, error, read_parameter};

/// What a URL may say.
pub(crate) const KEYS: Keys = Keys {
    schemes: &["sqlite:"],
    known: &[
        ("mode", None),
        ("begin", None),
        ("page_size", None),
        ("journal_mode", None),
        ("synchronous", None),
        ("wal_autocheckpoint", None),
        ("cache_size", None),
        ("mmap_size", None),
        ("temp_store", None),
        ("foreign_keys", None),
    ],
    without_effect: &[],
    database: "",
    aliases: &[],
};

/// What a pragma may be set to.
enum Allowed {
    Words(&'static [&'static str]),
    /// From the first to the second.
    Numbers(i64, i64),
}

/// The pragmas among the options (<https://www.sqlite.org/pragma.html>), in the order in which they are set: the size
/// of pages can no more be changed when a file is in WAL mode.
const PRAGMAS: [(&str, Allowed); 8] = [
    ("page_size", Allowed::Numbers(512, 65_536)),
    ("journal_mode", Allowed::Words(&["delete", "truncate", "persist", "memory", "wal", "off"])),
    ("synchronous", Allowed::Words(&["off", "normal", "full", "extra"])),
    ("wal_autocheckpoint", Allowed::Numbers(0, i32::MAX as i64)),
    ("cache_size", Allowed::Numbers(i32::MIN as i64, i32::MAX as i64)),
    ("mmap_size", Allowed::Numbers(0, i64::MAX)),
    ("temp_store", Allowed::Words(&["default", "file", "memory"])),
    ("foreign_keys", Allowed::Words(&["on", "off"])),
];

/// How a file is opened (<https://www.sqlite.org/c3ref/open.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    ReadOnly,
    ReadWrite,
    Create,
}

impl Choice for Mode {
    const OPTIONS: &'static [(&'static str, Self)] =
        &[("ro", Self::ReadOnly), ("rw", Self::ReadWrite), ("rwc", Self::Create)];
}

/// How transactions begin (<https://www.sqlite.org/lang_transaction.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// With the first statement, and with the lock that it needs: one that reads first and writes later may fail.
    Deferred,
    /// With the write lock, which is waited for: no transaction fails for another, and only one runs at a time.
    Immediate,
}

impl Choice for Begin {
    const OPTIONS: &'static [(&'static str, Self)] =
        &[("deferred", Self::Deferred), ("immediate", Self::Immediate)];
}

/// A file and how it is used.
#[derive(Clone, Debug)]
pub(super) struct Config {
    /// The path for people to read.
    pub(super) path: String,
    /// The path as SQLite is given it.
    pub(super) file: CString,
    /// Those of `sqlite3_open_v2`.
    pub(super) flags: i32,
    pub(super) begin: Begin,
    /// Names and values, checked.
    pub(super) pragmas: Vec<(&'static str, String)>,
    /// The URL that means the same.
    pub(super) url: String,
}

impl Config {
    /// Reads a URL.
    pub(super) fn parse(url: &str) -> Result<Self, ConfigError> {
        let rest = url.split_once(':').map_or("", |(_, rest)| rest);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = decode_text(file_of(path)?, "the path")?;
        let mut given = Given::default();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            read_parameter(parameter, &KEYS, &mut given)?;
        }
        let flags = match given.choice("mode", Mode::Create)? {
            Mode::ReadOnly => ffi::SQLITE_OPEN_READONLY,
            Mode::ReadWrite => ffi::SQLITE_OPEN_READWRITE,
            Mode::Create => ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE,
        };
        let begin = given.choice("begin", Begin::Deferred)?;
        let mut pragmas = Vec::new();
        for (name, allowed) in &PRAGMAS {
            if let Some(value) = given.get(name) {
                check(name, value, allowed)?;
                pragmas.push((*name, value.text.clone()));
            }
        }
        // To SQLite some names are no files: ":memory:", "file:…", the empty one. With a folder before it any name is.
        let name = if path.starts_with('/') { path.clone() } else { format!("./{path}") };
        let file = CString::new(name).map_err(|_| error("the path holds a zero byte"))?;
        Ok(Self { path, file, flags, begin, pragmas, url: url.to_owned() })
    }
}

/// The path of a URL whose scheme has been taken off.
fn file_of(rest: &str) -> Result<&str, ConfigError> {
    const FORMS: &str = "a file is written sqlite:///absolute/path or sqlite:relative/path";
    let path = match rest.strip_prefix("//") {
        Some(after) if !after.is_empty() && !after.starts_with('/') => {
            return Err(error(&format!("after sqlite:// stands a host, and a file has none; {FORMS}")));
        }
        Some(after) => after,
        None => rest,
    };
    match path {
        "" | "/" => Err(error(&format!("it names no file; {FORMS}"))),
        ":memory:" => {
            Err(error(&format!("a database in memory belongs to one connection and is no use here; {FORMS}")))
        }
        _ => Ok(path),
    }
}

fn check(name: &str, value: &Value, allowed: &Allowed) -> Result<(), ConfigError> {
    match allowed {
        Allowed::Words(words) if words.contains(&value.text.as_str()) => Ok(()),
        Allowed::Words(words) => Err(value.error(&format!("is not known; allowed are {}", words.join(", ")))),
        Allowed::Numbers(least, most) => {
            let number = value.text.parse::<i64>().ok().filter(|number| (*least..=*most).contains(number));
            match number {
                Some(number) if name != "page_size" || number.count_ones() == 1 => Ok(()),
                Some(_) => Err(value.error("is no power of two")),
                None => Err(value.error(&format!("is not a whole number from {least} to {most}"))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        Config::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn a_url_names_a_file() {
        for (url, path, file) in [
            ("sqlite:///var/lib/a%20b.db", "/var/lib/a b.db", "/var/lib/a b.db"),
            ("sqlite:/tmp/x", "/tmp/x", "/tmp/x"),
            ("sqlite:data/x.db?mode=ro", "data/x.db", "./data/x.db"),
            ("sqlite:file:x@y", "file:x@y", "./file:x@y"),
        ] {
            let config = Config::parse(url).unwrap();
            assert_eq!((config.path.as_str(), config.file.to_str().unwrap()), (path, file));
            assert_eq!(config.url, url);
        }
        for (url, said) in [
            ("sqlite:", "names no file"),
            ("sqlite://", "names no file"),
            ("sqlite:///", "names no file"),
            ("sqlite://data/x.db", "stands a host"),
            ("sqlite::memory:", "in memory"),
            ("sqlite:///a%00b", "zero byte"),
            ("sqlite:///a%f", "hexadecimal"),
        ] {
            assert!(refused(url).contains(said), "{url}: {}", refused(url));
        }
    }

    #[test]
    fn options_are_checked() {
        let config =
            Config::parse("sqlite:x?synchronous=normal&journal_mode=wal&cache_size=-2000&begin=immediate")
                .unwrap();
        let set: Vec<(&str, &str)> = config.pragmas.iter().map(|(name, value)| (*name, &**value)).collect();
        assert_eq!(set, [("journal_mode", "wal"), ("synchronous", "normal"), ("cache_size", "-2000")]);
        assert_eq!((config.begin, config.flags & ffi::SQLITE_OPEN_CREATE), (Begin::Immediate, 4));
        for (options, said) in [
            ("journal_mode=wall", "url: journal_mode \"wall\" is not known; allowed are delete, truncate"),
            ("cache_size=many", "url: cache_size \"many\" is not a whole number from -2147483648 to"),
            ("page_size=5000", "url: page_size \"5000\" is no power of two"),
            ("mode=w", "url: mode \"w\" is not known; allowed are ro, rw, rwc"),
            ("journal=wal", "url: parameter \"journal\" is not known; allowed are mode, begin, page_size"),
            ("journal_mode", "has no '='"),
        ] {
            let error = refused(&format!("sqlite:x?{options}"));
            assert!(error.contains(said), "{error}");
        }
    }
}
