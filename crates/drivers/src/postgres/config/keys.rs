//! The settings by their names: which there are, where a value came from, what it may be.

use std::collections::BTreeMap;
use std::fmt;

use super::secret::Password;
use crate::error::ConfigError;

/// How the environment is asked.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The settings, each with its environment variable where it has one. In the order in which they are listed.
const KEYS: [(&str, Option<&str>); 24] = [
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

/// Keys that make no difference here: the sockets are kept alive in any case, every wait has a deadline, and
/// there is neither Kerberos nor compression under TLS.
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

/// The key of this name, if there is one.
pub(super) fn key(name: &str) -> Option<&'static str> {
    KEYS.iter().map(|(key, _)| *key).chain(WITHOUT_EFFECT).find(|key| *key == name)
}

/// Every key, for a message.
fn allowed() -> String {
    KEYS.iter().map(|(key, _)| *key).chain(WITHOUT_EFFECT).collect::<Vec<_>>().join(", ")
}

/// The error for a key that does not exist. `name` is what the user wrote.
pub(super) fn unknown(name: &str) -> ConfigError {
    ConfigError(format!("url: parameter {} is not known; allowed are {}", quoted(name), allowed()))
}

/// The text in quotation marks, unless it may be a piece of a password that landed in the wrong place.
pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./, ".contains(c);
    if text.len() <= 64 && text.chars().all(plain) {
        format!("\"{text}\"")
    } else {
        "(not shown: it may hold a part of a password)".to_owned()
    }
}

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Url,
    Environment(&'static str),
}

/// A value with its name and origin, so that a message can say them.
#[derive(Clone, Debug)]
pub(super) struct Value {
    key: &'static str,
    origin: Origin,
    pub(super) text: String,
}

impl fmt::Display for Value {
    /// The name of the setting where the user wrote it: `url: sslmode` or `environment: PGSSLMODE`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.origin {
            Origin::Url => write!(f, "url: {}", self.key),
            Origin::Environment(variable) => write!(f, "environment: {variable}"),
        }
    }
}

impl Value {
    /// An error about this value; `what` follows the value's name and text.
    pub(super) fn error(&self, what: &str) -> ConfigError {
        ConfigError(format!("{self} {} {what}", quoted(&self.text)))
    }

    /// The elements of a list, separated by commas.
    pub(super) fn list(&self) -> Vec<&str> {
        self.text.split(',').map(str::trim).collect()
    }

    /// The value as one of a fixed set.
    pub(super) fn choice<T: Choice>(&self) -> Result<T, ConfigError> {
        let found = T::OPTIONS.iter().find(|(name, _)| *name == self.text);
        found.map(|(_, option)| *option).ok_or_else(|| {
            let names: Vec<&str> = T::OPTIONS.iter().map(|(name, _)| *name).collect();
            self.error(&format!("is not known; allowed are {}", names.join(", ")))
        })
    }
}

/// A setting with a fixed set of values.
pub(super) trait Choice: Copy + PartialEq + 'static {
    /// Every value with its name in URLs.
    const OPTIONS: &'static [(&'static str, Self)];

    /// The name of this value.
    fn option_name(self) -> &'static str {
        Self::OPTIONS.iter().find(|(_, option)| *option == self).map_or("", |(name, _)| name)
    }
}

/// What the user gave.
#[derive(Default)]
pub(super) struct Given {
    values: BTreeMap<&'static str, Value>,
    pub(super) password: Option<Password>,
}

impl Given {
    /// Sets a value of the URL; a later one replaces an earlier one.
    pub(super) fn set(&mut self, key: &'static str, text: String) {
        self.values.insert(key, Value { key, origin: Origin::Url, text });
    }

    /// Adds what the environment says and the URL does not.
    pub(super) fn add_environment(&mut self, environment: Lookup<'_>) {
        for (key, variable) in KEYS {
            let Some(variable) = variable else { continue };
            if key == "password" {
                self.password = self.password.take().or_else(|| environment(variable).map(Password::new));
            } else if !self.values.contains_key(key)
                && let Some(text) = environment(variable)
            {
                self.values.insert(key, Value { key, origin: Origin::Environment(variable), text });
            }
        }
    }

    /// The value of a key. An empty one is as none, as in libpq.
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key).filter(|value| !value.text.is_empty())
    }

    /// The name of a key where the user wrote it, for messages about more than its value.
    pub(super) fn name(&self, key: &str) -> String {
        self.get(key).map_or_else(|| format!("url: {key}"), ToString::to_string)
    }

    /// The text of a key.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.get(key).map(|value| value.text.as_str())
    }

    /// The value of a key with a fixed set of values, or its default.
    pub(super) fn choice<T: Choice>(&self, key: &str, default: T) -> Result<T, ConfigError> {
        self.get(key).map_or(Ok(default), Value::choice)
    }
}
