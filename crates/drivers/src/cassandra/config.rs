//! How to reach a cluster: a URL and the environment, read once into a [`Config`].
//!
//! The names of the settings of TLS are those of the section `[ssl]` of `cqlshrc`.

use std::time::Duration;

use percent_encoding::utf8_percent_encode;

use crate::contract::error::ConfigError;
use crate::net::given::{Choice, Given, Keys, Lookup, Switch, process_environment};
use crate::net::settings::{ENCODED, ENCODED_VALUE, Host, SslMode, TlsSettings, TlsWords, redacted_host};
use crate::net::url;

const DEFAULT_PORT: u16 = 9042;

/// The settings of a URL.
pub(crate) const KEYS: Keys = Keys {
    schemes: &["cassandra://"],
    known: &[
        ("host", None),
        ("port", None),
        ("user", None),
        ("password", Some("CASSANDRA_PASSWORD")),
        ("keyspace", None),
        ("ssl", None),
        ("certfile", None),
        ("validate", None),
        ("usercert", None),
        ("userkey", None),
        ("routing", None),
        ("protocol-version", None),
        ("connect-timeout", None),
    ],
    without_effect: &[],
    database: "keyspace",
    aliases: &[],
};

const TLS_WORDS: TlsWords = TlsWords {
    product: "Cassandra",
    mode: "validate",
    modes: ["false", "true", "true"],
    roots: "certfile",
    system_roots: "leave certfile out to trust the system's store",
    certificate: "usercert",
    key: "userkey",
    versions: None,
};

/// What is about TLS beside `ssl`.
const OF_TLS: [&str; 4] = ["certfile", "validate", "usercert", "userkey"];

/// Which node coordinates a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// The one that the session is connected to.
    #[default]
    Fixed,
    /// One that has the row: a session has a connection to each node of its data centre.
    TokenAware,
}

impl Choice for Routing {
    const OPTIONS: &'static [(&'static str, Self)] =
        &[("fixed", Self::Fixed), ("token-aware", Self::TokenAware)];
}

#[derive(Clone, Copy, PartialEq)]
struct Version(Option<u8>);

impl Choice for Version {
    const OPTIONS: &'static [(&'static str, Self)] = &[("4", Self(Some(4))), ("5", Self(Some(5)))];
}

/// How to reach a cluster, and as whom.
#[derive(Clone, Debug)]
pub struct Config {
    /// The nodes. Connections are spread over them; where one cannot be reached the next is tried. Never empty.
    pub hosts: Vec<Host>,
    /// The role; empty where the cluster lets everybody in.
    pub user: String,
    /// Where unqualified names of tables are looked for; empty for nowhere.
    pub keyspace: String,
    /// How TLS is used.
    pub tls: TlsSettings,
    /// Which node coordinates a request.
    pub routing: Routing,
    /// The version of the protocol; `None` is the newest that the server has.
    pub protocol_version: Option<u8>,
    /// The longest that making a connection to one host may take; `None` is without a limit of its own.
    pub connect_timeout: Option<Duration>,
    shown: Vec<(&'static str, String)>,
}

impl Config {
    /// Reads a URL, with this process's environment for what the URL leaves out.
    pub fn parse(url: &str) -> Result<Self, ConfigError> {
        Self::parse_with(url, &process_environment)
    }

    /// Reads a URL with another environment. Asked for are `CASSANDRA_PASSWORD`, `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    pub fn parse_with(url: &str, environment: Lookup<'_>) -> Result<Self, ConfigError> {
        let mut given = url::read(url, &KEYS)?;
        given.add_environment(&KEYS, environment);
        let password = given.password.clone().filter(|password| !password.expose().is_empty());
        let mut hosts = given.hosts(DEFAULT_PORT)?;
        for host in &mut hosts {
            host.password.clone_from(&password);
        }
        let text = |key| given.text(key).unwrap_or_default().to_owned();
        let shown =
            ["ssl"].into_iter().chain(OF_TLS).chain(["routing", "protocol-version", "connect-timeout"]);
        Ok(Self {
            hosts,
            user: text("user"),
            keyspace: text("keyspace"),
            tls: tls(&given, environment)?,
            routing: given.choice("routing", Routing::default())?,
            protocol_version: given.choice("protocol-version", Version(None))?.0,
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
        let user = match utf8_percent_encode(&self.user, ENCODED).to_string() {
            user if user.is_empty() => user,
            user => user + "@",
        };
        let hosts: Vec<String> = self.hosts.iter().map(redacted_host).collect();
        let keyspace = utf8_percent_encode(&self.keyspace, ENCODED);
        let mut url = format!("cassandra://{user}{}/{keyspace}", hosts.join(","));
        for (place, (name, value)) in self.shown.iter().enumerate() {
            url.extend([if place == 0 { "?" } else { "&" }, name, "="]);
            url.extend(utf8_percent_encode(value, ENCODED_VALUE));
        }
        url
    }
}

fn tls(given: &Given, environment: Lookup<'_>) -> Result<TlsSettings, ConfigError> {
    let encrypts = given.choice("ssl", Switch(false))?.0;
    let validates = given.choice("validate", Switch(true))?.0;
    if let Some(value) = OF_TLS.into_iter().find_map(|key| given.get(key))
        && !encrypts
    {
        return Err(value.error("is about TLS, which ssl=true asks for"));
    }
    let mode = match (encrypts, validates) {
        (false, _) => SslMode::Disable,
        (true, false) => SslMode::Require,
        (true, true) => SslMode::VerifyFull,
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
        let config = read("cassandra://me:s%40crt@h1,h2:2/ks?ssl=true&certfile=/ca.pem").unwrap();
        assert_eq!((config.user.as_str(), config.keyspace.as_str(), config.hosts.len()), ("me", "ks", 2));
        assert_eq!((config.hosts[1].port, config.tls.mode), (2, SslMode::VerifyFull));
        assert_eq!(config.hosts[0].password.as_ref().unwrap().expose(), b"s@crt");
        assert_eq!(config.redacted(), "cassandra://me@h1:9042,h2:2/ks?ssl=true&certfile=/ca.pem");
        let routed = read("cassandra://h?routing=token-aware").unwrap();
        assert_eq!(routed.redacted(), "cassandra://h:9042/?routing=token-aware");
        assert_eq!(routed.routing, Routing::TokenAware);
        let plain = read("cassandra://").unwrap();
        assert_eq!(plain.routing, Routing::Fixed);
        assert_eq!(
            (plain.redacted().as_str(), plain.tls.mode),
            ("cassandra://localhost:9042/", SslMode::Disable)
        );
        let by_environment = |name: &str| (name == "CASSANDRA_PASSWORD").then(|| "word".to_owned());
        let config = Config::parse_with("cassandra://me@h", &by_environment).unwrap();
        assert_eq!(config.hosts[0].password.as_ref().unwrap().expose(), b"word");
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (url, message) in [
            ("cassandra://h?validate=false", "is about TLS, which ssl=true asks for"),
            ("cassandra://h?ssl=maybe", "allowed are false, true"),
            (
                "cassandra://h?routing=random",
                "url: routing \"random\" is not known; allowed are fixed, token-aware",
            ),
            (
                "cassandra://h?ssl=true&usercert=/c",
                "usercert and userkey go together; one of them is missing",
            ),
            ("cassandra://h?datacenter=d", "parameter \"datacenter\" is not known; allowed are host, port"),
        ] {
            let told = read(url).unwrap_err();
            assert!(told.contains(message) && told.starts_with("url: "), "{url}: {told}");
        }
    }
}
