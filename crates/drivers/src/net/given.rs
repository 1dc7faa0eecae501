//! What a user gave, by the names of the settings: which there are, where a value came from, what it may be.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use super::secret::Password;
use super::settings::{Host, HostAddress};
use crate::contract::error::ConfigError;

/// How the environment is asked.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// This process's environment.
pub(crate) fn process_environment(variable: &str) -> Option<String> {
    match std::env::var(variable) {
        Ok(value) => Some(value),
        Err(std::env::VarError::NotPresent) => None,
        Err(std::env::VarError::NotUnicode(_)) => {
            tracing::warn!("environment: {variable} is ignored: it is not UTF-8");
            None
        }
    }
}

/// A key with a value.
type Setting = (&'static str, &'static str);

/// What a protocol's URL may say.
pub(crate) struct Keys {
    /// What a URL begins with, in the order in which a message names them.
    pub(crate) schemes: &'static [&'static str],
    /// The settings, each with its environment variable where it has one. In the order in which they are listed.
    pub(crate) known: &'static [(&'static str, Option<&'static str>)],
    /// Keys that make no difference here.
    pub(crate) without_effect: &'static [&'static str],
    /// The key that the URL's path gives.
    pub(crate) database: &'static str,
    /// Names that other tools have for a key and a value, with what they are here.
    pub(crate) aliases: &'static [(Setting, Setting)],
}

impl Keys {
    /// The key of this name, if there is one.
    pub(crate) fn find(&self, name: &str) -> Option<&'static str> {
        self.all().find(|key| *key == name)
    }

    fn all(&self) -> impl Iterator<Item = &'static str> {
        self.known.iter().map(|(key, _)| *key).chain(self.without_effect.iter().copied())
    }

    /// The error for a key that does not exist. `name` is what the user wrote.
    pub(super) fn unknown(&self, name: &str) -> ConfigError {
        let allowed = self.all().collect::<Vec<_>>().join(", ");
        ConfigError(format!("url: parameter {} is not known; allowed are {allowed}", quoted(name)))
    }
}

/// The text in quotation marks, unless it may be a piece of a password that landed in the wrong place.
pub(crate) fn quoted(text: &str) -> String {
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
    /// The user's file of options.
    File,
    Environment(&'static str),
}

/// A value with its name and origin, so that a message can say them.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    key: &'static str,
    origin: Origin,
    pub(crate) text: String,
}

impl fmt::Display for Value {
    /// The name of the setting where the user wrote it: `url: sslmode` or `environment: PGSSLMODE`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.origin {
            Origin::Url => write!(f, "url: {}", self.key),
            Origin::File => write!(f, "option file: {}", self.key),
            Origin::Environment(variable) => write!(f, "environment: {variable}"),
        }
    }
}

impl Value {
    /// An error about this value; `what` follows the value's name and text.
    pub(crate) fn error(&self, what: &str) -> ConfigError {
        ConfigError(format!("{self} {} {what}", quoted(&self.text)))
    }

    /// Whether it stands in the URL.
    pub(crate) fn is_of_url(&self) -> bool {
        self.origin == Origin::Url
    }

    /// The same value in upper case.
    pub(crate) fn upper_case(&self) -> Self {
        Self { text: self.text.to_ascii_uppercase(), ..self.clone() }
    }

    /// The elements of a list, separated by commas.
    pub(crate) fn list(&self) -> Vec<&str> {
        self.text.split(',').map(str::trim).collect()
    }

    /// The value as one of a fixed set.
    pub(crate) fn choice<T: Choice>(&self) -> Result<T, ConfigError> {
        let found = T::OPTIONS.iter().find(|(name, _)| *name == self.text);
        found.map(|(_, option)| *option).ok_or_else(|| {
            let names: Vec<&str> = T::OPTIONS.iter().map(|(name, _)| *name).collect();
            self.error(&format!("is not known; allowed are {}", names.join(", ")))
        })
    }
}

/// A setting with a fixed set of values.
pub(crate) trait Choice: Copy + PartialEq + 'static {
    /// Every value with its name in URLs.
    const OPTIONS: &'static [(&'static str, Self)];

    /// The name of this value.
    fn option_name(self) -> &'static str {
        Self::OPTIONS.iter().find(|(_, option)| *option == self).map_or("", |(name, _)| name)
    }
}

/// `true` or `false`.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Switch(pub(crate) bool);

impl Choice for Switch {
    const OPTIONS: &'static [(&'static str, Self)] = &[("false", Self(false)), ("true", Self(true))];
}

/// What the user gave.
#[derive(Default)]
pub(crate) struct Given {
    values: BTreeMap<&'static str, Value>,
    pub(crate) password: Option<Password>,
}

impl Given {
    /// Sets a value of the URL; a later one replaces an earlier one.
    pub(crate) fn set(&mut self, key: &'static str, text: String) {
        self.values.insert(key, Value { key, origin: Origin::Url, text });
    }

    /// Adds a value of the user's file of options, where there is none yet.
    pub(crate) fn set_by_file(&mut self, key: &'static str, text: String) {
        self.values.entry(key).or_insert(Value { key, origin: Origin::File, text });
    }

    /// Adds what the environment says and the URL does not.
    pub(crate) fn add_environment(&mut self, keys: &Keys, environment: Lookup<'_>) {
        for &(key, variable) in keys.known {
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
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key).filter(|value| !value.text.is_empty())
    }

    /// The name of a key where the user wrote it, for messages about more than its value.
    pub(crate) fn name(&self, key: &str) -> String {
        self.get(key).map_or_else(|| format!("url: {key}"), ToString::to_string)
    }

    /// The text of a key.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.get(key).map(|value| value.text.as_str())
    }

    /// The value of a key with a fixed set of values, or its default.
    pub(crate) fn choice<T: Choice>(&self, key: &str, default: T) -> Result<T, ConfigError> {
        self.get(key).map_or(Ok(default), Value::choice)
    }

    /// A whole number of 0 or more.
    pub(crate) fn whole(&self, key: &str) -> Result<Option<u32>, ConfigError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.text.parse().map(Some).map_err(|_| value.error("is not a whole number of 0 or more"))
    }

    /// The hosts of `host` and `port`, lists both, without a password; this machine where there is none.
    pub(crate) fn hosts(&self, default_port: u16) -> Result<Vec<Host>, ConfigError> {
        let list = |key| self.get(key).map(Value::list).unwrap_or_default();
        let (names, ports) = (list("host"), list("port"));
        let host = |place: usize| {
            let name = names.get(place).copied().filter(|name| !name.is_empty()).unwrap_or("localhost");
            let address =
                name.parse::<IpAddr>().map_or_else(|_| HostAddress::Name(name.to_owned()), HostAddress::Ip);
            let port = ports.get(place).or(ports.first()).filter(|port| !port.is_empty());
            let port = port.map_or(Some(default_port), |port| port.parse().ok().filter(|port| *port != 0));
            let wrong = || {
                let port = self.name("port");
                ConfigError(format!("{port} is not a port; allowed are numbers from 1 to 65535"))
            };
            Ok(Host { name: name.to_owned(), address, port: port.ok_or_else(wrong)?, password: None })
        };
        (0..names.len().max(1)).map(host).collect()
    }
}
