//! How to reach a server: a URL and the environment, read once into a [`Config`].
//!
//! The names of the settings are those of `redis-cli`, without its hyphens.

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::utf8_percent_encode;

use crate::contract::error::ConfigError;
use crate::net::given::{Given, Keys, Lookup, Switch, process_environment};
use crate::net::settings::{
    ENCODED, ENCODED_VALUE, Host, HostAddress, SslMode, TlsSettings, TlsWords, redacted_host,
};
use crate::net::url;

const DEFAULT_PORT: u16 = 6379;

/// The settings of a URL.
pub(crate) const KEYS: Keys = Keys {
    schemes: &["redis://", "rediss://"],
    known: &[
        ("host", None),
        ("port", None),
        ("socket", None),
        ("user", None),
        ("password", Some("REDISCLI_AUTH")),
        ("db", None),
        ("insecure", None),
        ("cacert", None),
        ("cert", None),
        ("key", None),
        ("connect-timeout", None),
    ],
    without_effect: &[],
    database: "db",
    aliases: &[],
};

const TLS_WORDS: TlsWords = TlsWords {
    product: "Redis",
    mode: "insecure",
    modes: ["true", "false", "false"],
    roots: "cacert",
    system_roots: "leave cacert out to trust the system's store",
    certificate: "cert",
    key: "key",
    versions: None,
};

/// How to reach a server, and as whom.
#[derive(Clone, Debug)]
pub struct Config {
    /// The servers in the order in which they are tried. Never empty.
    pub hosts: Vec<Host>,
    /// The user of the access control list; empty for the default one.
    pub user: String,
    /// The number of the database.
    pub database: u32,
    /// How TLS is used. It never is over a Unix socket.
    pub tls: TlsSettings,
    /// The longest that making a connection to one host may take; `None` is without a limit of its own.
    pub connect_timeout: Option<Duration>,
    shown: Vec<(&'static str, String)>,
}

impl Config {
    /// Reads a URL, with this process's environment for what the URL leaves out.
    pub fn parse(url: &str) -> Result<Self, ConfigError> {
        Self::parse_with(url, &process_environment)
    }

    /// Reads a URL with another environment. Asked for are `REDISCLI_AUTH`, `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    pub fn parse_with(url: &str, environment: Lookup<'_>) -> Result<Self, ConfigError> {
        let mut given = url::read(url, &KEYS)?;
        given.add_environment(&KEYS, environment);
        let encrypts = url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("rediss"));
        let password = given.password.clone().filter(|password| !password.expose().is_empty());
        let mut hosts = hosts(&given)?;
        for host in &mut hosts {
            host.password.clone_from(&password);
        }
        let shown = ["socket", "insecure", "cacert", "cert", "key", "connect-timeout"].into_iter();
        Ok(Self {
            hosts,
            user: given.text("user").unwrap_or_default().to_owned(),
            database: given.whole("db")?.unwrap_or(0),
            tls: tls(&given, encrypts, environment)?,
            connect_timeout: given
                .whole("connect-timeout")?
                .filter(|seconds| *seconds > 0)
                .map(|seconds| Duration::from_secs(seconds.into())),
            shown: shown.filter_map(|key| Some((key, given.text(key)?.to_owned()))).collect(),
        })
    }

    /// The URL that means the same, without the password: for logs and manifests.
    #[must_use]
    pub fn redacted(&self) -> String {
        let scheme = if self.tls.mode == SslMode::Disable { "redis" } else { "rediss" };
        let user = match utf8_percent_encode(&self.user, ENCODED).to_string() {
            user if user.is_empty() => user,
            user => user + "@",
        };
        let by_tcp = self.hosts.iter().filter(|host| !host.is_unix());
        let hosts: Vec<String> = by_tcp.map(redacted_host).collect();
        let mut url = format!("{scheme}://{user}{}/{}", hosts.join(","), self.database);
        for (place, (name, value)) in self.shown.iter().enumerate() {
            url.extend([if place == 0 { "?" } else { "&" }, name, "="]);
            url.extend(utf8_percent_encode(value, ENCODED_VALUE));
        }
        url
    }
}

fn hosts(given: &Given) -> Result<Vec<Host>, ConfigError> {
    if let Some(socket) = given.get("socket") {
        if given.get("host").is_some() {
            return Err(socket.error("cannot be used with a host; leave the host out"));
        }
        let (name, address) = (socket.text.clone(), HostAddress::Unix(PathBuf::from(&socket.text)));
        return Ok(vec![Host { name, address, port: DEFAULT_PORT, password: None }]);
    }
    given.hosts(DEFAULT_PORT)
}

fn tls(given: &Given, encrypts: bool, environment: Lookup<'_>) -> Result<TlsSettings, ConfigError> {
    let insecure = given.choice("insecure", Switch(false))?.0;
    if let Some(value) = ["insecure", "cacert", "cert", "key"].into_iter().find_map(|key| given.get(key))
        && !encrypts
    {
        return Err(value.error("is about TLS, which the scheme rediss:// asks for"));
    }
    let mode = match (encrypts, insecure) {
        (false, _) => SslMode::Disable,
        (true, true) => SslMode::Require,
        (true, false) => SslMode::VerifyFull,
    };
    TlsSettings::given(given, &TLS_WORDS, mode, environment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<Config, String> {
        Config::parse_with(url, &|_| None).map_err(|error| error.0)
    }

    #[test]
    fn a_url_says_it_all_and_the_password_is_not_shown() {
        let config = read("rediss://me:s%40crt@h1:1,h2:2/3?cacert=/ca.pem").unwrap();
        assert_eq!((config.user.as_str(), config.database, config.hosts.len()), ("me", 3, 2));
        assert_eq!((config.hosts[1].port, config.tls.mode), (2, SslMode::VerifyFull));
        assert_eq!(config.hosts[0].password.as_ref().unwrap().expose(), b"s@crt");
        assert_eq!(config.redacted(), "rediss://me@h1:1,h2:2/3?cacert=/ca.pem");
        let plain = read("redis://").unwrap();
        assert_eq!(
            (plain.redacted().as_str(), plain.tls.mode),
            ("redis://localhost:6379/0", SslMode::Disable)
        );
        let socket = read("redis:///?socket=/run/redis.sock").unwrap();
        assert!(socket.hosts[0].is_unix());
        assert_eq!(socket.redacted(), "redis:///0?socket=/run/redis.sock");
        let by_environment = |name: &str| (name == "REDISCLI_AUTH").then(|| "word".to_owned());
        let config = Config::parse_with("redis://h", &by_environment).unwrap();
        assert_eq!(config.hosts[0].password.as_ref().unwrap().expose(), b"word");
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (url, message) in [
            ("redis://h/x", "is not a whole number of 0 or more"),
            ("redis://h?insecure=true", "is about TLS, which the scheme rediss:// asks for"),
            ("rediss://h?insecure=maybe", "allowed are false, true"),
            ("rediss://h?cert=/c", "cert and key go together; one of them is missing"),
            ("redis://h?socket=/s", "cannot be used with a host"),
            (
                "redis://h?sslmode=require",
                "parameter \"sslmode\" is not known; allowed are host, port, socket",
            ),
        ] {
            let told = read(url).unwrap_err();
            assert!(told.contains(message) && told.starts_with("url: "), "{url}: {told}");
        }
    }
}
