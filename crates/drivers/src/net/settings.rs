//! Where a server is, and how TLS is used: what every protocol's configuration has.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::given::{Choice, Given, Lookup};
use super::secret::Password;
use crate::contract::error::ConfigError;

/// What a percent-encoded part of a URL may show as it is.
pub(crate) const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The same between the brackets of an IPv6 address.
const ENCODED_ADDRESS: &AsciiSet = &ENCODED.remove(b':');
/// The same for a parameter's value, where a path or a list is better read plainly.
pub(crate) const ENCODED_VALUE: &AsciiSet = &ENCODED.remove(b'/').remove(b',').remove(b':');

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

/// What the users of a protocol call the settings of TLS, for messages.
#[derive(Debug, PartialEq, Eq)]
pub struct TlsWords {
    /// The server's product.
    pub product: &'static str,
    /// The setting [`TlsSettings::mode`].
    pub mode: &'static str,
    /// Its values for [`SslMode::Require`], [`SslMode::VerifyCa`] and [`SslMode::VerifyFull`].
    pub modes: [&'static str; 3],
    /// The setting [`TlsSettings::roots`].
    pub roots: &'static str,
    /// How the system's store is asked for.
    pub system_roots: &'static str,
    /// The setting [`TlsSettings::certificate`].
    pub certificate: &'static str,
    /// The setting [`TlsSettings::key`].
    pub key: &'static str,
    /// The settings of the versions, where there are some.
    pub versions: Option<&'static str>,
}

impl TlsWords {
    /// A mode that uses TLS always, as a URL says it.
    #[must_use]
    pub fn with_mode(&self, mode: SslMode) -> String {
        let [require, verify_ca, verify_full] = self.modes;
        let value = match mode {
            SslMode::VerifyCa => verify_ca,
            SslMode::VerifyFull => verify_full,
            _ => require,
        };
        format!("{}={value}", self.mode)
    }
}

/// How TLS is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// What the settings are called.
    pub words: &'static TlsWords,
    /// Whether it is used, and what is verified.
    pub mode: SslMode,
    /// The authorities that the server's certificate is checked against.
    pub roots: RootCertificates,
    /// The client's certificate with its chain, PEM; `None` where there is no home directory to look in.
    pub certificate: Option<FileSetting>,
    /// The key of the client's certificate, PEM.
    pub key: Option<FileSetting>,
    /// The protocol that is asked for in ALPN; `None` is none.
    pub protocol: Option<&'static [u8]>,
    /// The oldest TLS version that will do.
    pub min_version: TlsVersion,
    /// The newest TLS version that will do; `None` is the newest there is.
    pub max_version: Option<TlsVersion>,
    /// Whether the server is told by which name it was called.
    pub server_name_indication: bool,
}

impl TlsSettings {
    /// Those of a mode, with the files that the user gave by the names of `words`. The environment may say where the
    /// system's store is.
    pub(crate) fn given(
        given: &Given,
        words: &'static TlsWords,
        mode: SslMode,
        environment: Lookup<'_>,
    ) -> Result<Self, ConfigError> {
        let file = |key| given.text(key).map(|path| FileSetting { path: path.into(), given: true });
        let path = |variable| environment(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
        let (certificate, key) = (file(words.certificate), file(words.key));
        if certificate.is_some() != key.is_some() {
            let (certificate, key) = (words.certificate, words.key);
            return Err(ConfigError(format!(
                "url: {certificate} and {key} go together; one of them is missing"
            )));
        }
        let roots = match file(words.roots) {
            None if mode >= SslMode::VerifyCa => {
                RootCertificates::System { file: path("SSL_CERT_FILE"), directory: path("SSL_CERT_DIR") }
            }
            // Whoever verifies nothing needs no authorities.
            ca => RootCertificates::File(ca.filter(|_| mode >= SslMode::VerifyCa)),
        };
        Ok(Self {
            words,
            mode,
            roots,
            certificate,
            key,
            protocol: None,
            min_version: TlsVersion::V1_2,
            max_version: None,
            server_name_indication: true,
        })
    }
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
    /// In the system's store ([`TlsWords::system_roots`]), or where these variables say.
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

/// `host:port` as it stands in a URL.
pub(crate) fn redacted_host(host: &Host) -> String {
    // An IPv6 address with its brackets; its zone, if any, has a '%'.
    if host.name.contains(':') {
        return format!("[{}]:{}", utf8_percent_encode(&host.name, ENCODED_ADDRESS), host.port);
    }
    format!("{}:{}", utf8_percent_encode(&host.name, ENCODED), host.port)
}
