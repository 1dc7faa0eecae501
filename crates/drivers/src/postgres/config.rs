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
mod secret;
#[cfg(test)]
mod tests;
mod url;

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

pub use secret::{Password, redact};

use crate::error::ConfigError;
use keys::Choice;

/// What a percent-encoded part of a URL may show as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The same between the brackets of an IPv6 address.
const ENCODED_ADDRESS: &AsciiSet = &ENCODED.remove(b':');
/// The same for a parameter's value, where a path or a list is better read plainly.
const ENCODED_VALUE: &AsciiSet = &ENCODED.remove(b'/').remove(b',').remove(b':');

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

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The name as given: what the certificate is checked against. A directory for a Unix socket.
    pub name: String,
    /// Where to connect to.
    pub address: HostAddress,
    /// The TCP port, or the number in the socket's name.
    pub port: u16,
    /// The password for this host; the password file may hold another one for each.
    pub password: Option<Password>,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAddress {
    /// A name to be resolved.
    Name(String),
    /// An IP address.
    Ip(IpAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl Host {
    /// Whether the server is reached over a Unix socket, and so without TLS.
    #[must_use]
    pub fn is_unix(&self) -> bool {
        matches!(self.address, HostAddress::Unix(_))
    }
}

impl fmt::Display for Host {
    /// `db.example.com:5432`, `[::1]:5432`, or the socket's path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            HostAddress::Unix(path) => write!(f, "{}", path.display()),
            _ if self.name.contains(':') => write!(f, "[{}]:{}", self.name, self.port),
            _ => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

/// How TLS is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// Whether it is used, and what is verified.
    pub mode: SslMode,
    /// The authorities that the server's certificate is checked against.
    pub roots: RootCertificates,
    /// The client's certificate with its chain, PEM; `None` where there is no home directory to look in.
    pub certificate: Option<FileSetting>,
    /// The key of the client's certificate, PEM.
    pub key: Option<FileSetting>,
    /// How TLS begins.
    pub negotiation: SslNegotiation,
    /// The oldest TLS version that will do.
    pub min_version: TlsVersion,
    /// The newest TLS version that will do; `None` is the newest there is.
    pub max_version: Option<TlsVersion>,
    /// Whether the server is told by which name it was called.
    pub server_name_indication: bool,
}

/// A file to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSetting {
    /// Where it is.
    pub path: PathBuf,
    /// Whether the user named it. A default file may be missing.
    pub given: bool,
}

/// Where the certificates of the trusted authorities are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootCertificates {
    /// In a PEM file; `None` where there is no home directory to look in.
    File(Option<FileSetting>),
    /// In the system's store (`sslrootcert=system`), or where these variables say.
    System {
        /// `SSL_CERT_FILE`: a PEM file.
        file: Option<PathBuf>,
        /// `SSL_CERT_DIR`: directories of PEM files, with ':' between them.
        directory: Option<PathBuf>,
    },
}

/// Whether TLS is used, and what is verified. In the order of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// Never TLS.
    Disable,
    /// Plain first; TLS where the server refuses that.
    Allow,
    /// TLS first; plain where the server has none.
    Prefer,
    /// Only TLS, with any certificate unless there is a root certificate file.
    Require,
    /// Only TLS, with a certificate of a trusted authority.
    VerifyCa,
    /// Only TLS, with a certificate of a trusted authority for this host.
    VerifyFull,
}

impl SslMode {
    /// The name in URLs.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.option_name()
    }

    /// Whether a connection without TLS will not do.
    #[must_use]
    pub fn requires_tls(self) -> bool {
        self >= Self::Require
    }
}

impl Choice for SslMode {
    const OPTIONS: &'static [(&'static str, Self)] = &[
        ("disable", Self::Disable),
        ("allow", Self::Allow),
        ("prefer", Self::Prefer),
        ("require", Self::Require),
        ("verify-ca", Self::VerifyCa),
        ("verify-full", Self::VerifyFull),
    ];
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

/// A TLS version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

impl Choice for TlsVersion {
    const OPTIONS: &'static [(&'static str, Self)] = &[("TLSv1.2", Self::V1_2), ("TLSv1.3", Self::V1_3)];
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
        Self::parse_with(url, &|variable| match std::env::var(variable) {
            Ok(value) => Some(value),
            Err(std::env::VarError::NotPresent) => None,
            Err(std::env::VarError::NotUnicode(_)) => {
                tracing::warn!("environment: {variable} is ignored: it is not UTF-8");
                None
            }
        })
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

fn redacted_host(host: &Host) -> String {
    // An IPv6 address with its brackets; its zone, if any, has a '%'.
    if host.name.contains(':') {
        return format!("[{}]:{}", utf8_percent_encode(&host.name, ENCODED_ADDRESS), host.port);
    }
    format!("{}:{}", utf8_percent_encode(&host.name, ENCODED), host.port)
}
