//! How to reach a server: a libpq URL, `PG*` variables and the password file, read once into a [`Config`].
//!
//! The rules are libpq's (<https://www.postgresql.org/docs/current/libpq-connect.html>), so that a URL that
//! works in psql works here. Where they differ, this is why:
//!
//! * A raw `@` in the host or the database is an error: it is nearly always a password that was not encoded,
//!   and would end up in messages.
//! * `client_encoding` is UTF-8, `application_name` is `nephoscope` unless given.
//! * Without a host, a Unix socket is used where there is one, else `localhost`.
//! * A parameter that would change who is trusted, and is not supported, is an error and not ignored:
//!   `require_auth`, `requirepeer`, `sslcrl`, `sslcertmode`, `sslpassword`, `service`.

mod build;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzzing;
mod keys;
mod pgpass;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use percent_encoding::utf8_percent_encode;

use crate::contract::error::ConfigError;
use crate::net::given::Choice;
use crate::net::settings::{ENCODED, ENCODED_VALUE, Host, TlsSettings, redacted_host};
pub(crate) use keys::{KEYS, TLS_WORDS};

/// The protocol's name in ALPN.
pub(crate) const PROTOCOL: &[u8] = b"postgresql";

/// How to reach a server, and as whom.
#[derive(Clone, Debug)]
pub struct Config {
    /// The servers in the order in which they are tried, unless [`LoadBalance::Random`]. Never empty.
    pub hosts: Vec<Host>,
    /// The role.
    pub user: String,
    /// The database.
    pub database: String,
    /// How TLS is used. It never is over a Unix socket.
    pub tls: TlsSettings,
    /// How TLS begins.
    pub negotiation: SslNegotiation,
    /// Whether the SCRAM exchange is bound to the TLS channel.
    pub channel_binding: ChannelBinding,
    /// Which servers will do.
    pub target_session_attrs: TargetSessionAttrs,
    /// In which order the hosts are tried.
    pub load_balance: LoadBalance,
    /// The longest that making a connection to one host may take; `None` is without a limit of its own.
    pub connect_timeout: Option<Duration>,
    /// The parameters of the start-up message, in order: `user`, `database`, `options`, …
    pub startup: Vec<(String, String)>,
    /// The parameters of [`Config::redacted`].
    shown: Vec<(&'static str, String)>,
}

/// How TLS begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslNegotiation {
    /// With an `SSLRequest` message, which the server answers.
    Postgres,
    /// At once, with the protocol `postgresql` in ALPN: one round trip less, `PostgreSQL` 17 and newer.
    Direct,
}

impl Choice for SslNegotiation {
    const OPTIONS: &'static [(&'static str, Self)] =
        &[("postgres", Self::Postgres), ("direct", Self::Direct)];
}

/// Whether the SCRAM exchange is bound to the TLS channel, so that nobody can stand between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// Where the server offers it.
    Prefer,
    /// Always; the connection fails where it cannot be.
    Require,
}

impl Choice for ChannelBinding {
    const OPTIONS: &'static [(&'static str, Self)] =
        &[("disable", Self::Disable), ("prefer", Self::Prefer), ("require", Self::Require)];
}

/// Which servers will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetSessionAttrs {
    /// Any.
    Any,
    /// One whose transactions may write by default.
    ReadWrite,
    /// One whose transactions may not.
    ReadOnly,
    /// One that is not in recovery.
    Primary,
    /// One that is in recovery.
    Standby,
    /// One in recovery, or any where none is.
    PreferStandby,
}

impl TargetSessionAttrs {
    /// The name in URLs.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.option_name()
    }
}

impl Choice for TargetSessionAttrs {
    const OPTIONS: &'static [(&'static str, Self)] = &[
        ("any", Self::Any),
        ("read-write", Self::ReadWrite),
        ("read-only", Self::ReadOnly),
        ("primary", Self::Primary),
        ("standby", Self::Standby),
        ("prefer-standby", Self::PreferStandby),
    ];
}

/// In which order the hosts are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadBalance {
    /// In the order given.
    Disable,
    /// In a random order, another one for each connection.
    Random,
}

impl Choice for LoadBalance {
    const OPTIONS: &'static [(&'static str, Self)] = &[("disable", Self::Disable), ("random", Self::Random)];
}

impl Config {
    /// Reads a URL, with this process's environment and the user's password file for what the URL leaves out.
    pub fn parse(url: &str) -> Result<Self, ConfigError> {
        Self::parse_with(url, &crate::net::given::process_environment)
    }

    /// Reads a URL with another environment. Asked for are the `PG*` variables, `HOME`, `USER`, `LOGNAME`,
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    pub fn parse_with(url: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let directories = pgpass::SOCKET_DIRECTORIES.map(Path::new);
        build::config(url, environment, &directories)
    }

    /// The URL that means the same, without the password: for logs and manifests.
    ///
    /// It says what was given, in the URL or the environment, and what the host and `sslmode` came out as.
    #[must_use]
    pub fn redacted(&self) -> String {
        let encode = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
        let hosts: Vec<String> = self.hosts.iter().map(redacted_host).collect();
        let mut url = format!(
            "postgresql://{}@{}/{}?sslmode={}",
            encode(&self.user),
            hosts.join(","),
            encode(&self.database),
            self.tls.mode.name()
        );
        for (name, value) in &self.shown {
            url.extend(["&", name, "="]);
            url.extend(utf8_percent_encode(value, ENCODED_VALUE));
        }
        url
    }
}
