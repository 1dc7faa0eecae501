//! How to reach a server or a replica set: a connection string and the environment, read once into a [`Config`].
//!
//! Options have the names of `MongoDB`'s connection string, in small or capital letters
//! (<https://www.mongodb.com/docs/manual/reference/connection-string-options/>).

use std::path::PathBuf;
use std::time::Duration;

use md5::{Digest as _, Md5};
use percent_encoding::utf8_percent_encode;

use super::levels::READS;
pub use super::levels::WriteConcern;
use crate::contract::error::ConfigError;
use crate::net::given::{Choice, Given, Keys, Lookup, Switch, process_environment};
use crate::net::hex::hex;
use crate::net::scram::{Hash, SCRAM_SHA_1, SCRAM_SHA_256};
use crate::net::secret::Password;
use crate::net::settings::{
    ENCODED, ENCODED_VALUE, Host, HostAddress, SslMode, TlsSettings, TlsWords, redacted_host,
};
use crate::net::url;

const DEFAULT_PORT: u16 = 27017;
/// Where commands go and users are looked for unless the URL says otherwise.
const DEFAULT_DATABASE: &str = "test";
const DEFAULT_SOURCE: &str = "admin";
/// The scheme by which DNS is asked for the servers.
const BY_DNS: &str = "mongodb+srv://";

/// The settings of a URL.
pub(crate) const KEYS: Keys = Keys {
    schemes: &["mongodb://"],
    known: &[
        ("host", None),
        ("port", None),
        ("user", None),
        ("password", Some("MONGODB_PASSWORD")),
        ("database", None),
        ("authSource", None),
        ("authMechanism", None),
        ("replicaSet", None),
        ("directConnection", None),
        ("readPreference", None),
        ("readConcernLevel", None),
        ("w", None),
        ("journal", None),
        ("wtimeoutMS", None),
        ("timeoutMS", None),
        ("connectTimeoutMS", None),
        ("appName", None),
        ("tls", None),
        ("tlsCAFile", None),
        ("tlsCertificateKeyFile", None),
        ("tlsInsecure", None),
        ("tlsAllowInvalidCertificates", None),
        ("tlsAllowInvalidHostnames", None),
    ],
    // What is about pools, monitoring and retries of other drivers: the engine has connections and retries of its own.
    without_effect: &[
        "retryReads",
        "retryWrites",
        "maxPoolSize",
        "minPoolSize",
        "maxIdleTimeMS",
        "maxConnecting",
        "waitQueueTimeoutMS",
        "heartbeatFrequencyMS",
        "localThresholdMS",
        "serverSelectionTimeoutMS",
        "serverMonitoringMode",
        "socketTimeoutMS",
        "compressors",
        "zlibCompressionLevel",
    ],
    database: "database",
    aliases: &[(("ssl", "true"), ("tls", "true")), (("ssl", "false"), ("tls", "false"))],
};

const TLS_WORDS: TlsWords = TlsWords {
    product: "MongoDB",
    mode: "tlsInsecure",
    modes: ["true", "false", "false"],
    roots: "tlsCAFile",
    system_roots: "leave tlsCAFile out to trust the system's store",
    certificate: "tlsCertificateKeyFile",
    key: "tlsCertificateKeyFile",
    versions: None,
};

/// What is about TLS beside `tls`.
const OF_TLS: [&str; 5] = [
    "tlsCAFile",
    "tlsCertificateKeyFile",
    "tlsInsecure",
    "tlsAllowInvalidCertificates",
    "tlsAllowInvalidHostnames",
];

/// Which member of a replica set a connection goes to
/// (<https://www.mongodb.com/docs/manual/core/read-preference/>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPreference {
    /// The one that takes writes.
    Primary,
    /// The same where there is one.
    PrimaryPreferred,
    /// Another one.
    Secondary,
    /// The same where there is one.
    SecondaryPreferred,
    /// Any.
    Nearest,
}

impl Choice for ReadPreference {
    const OPTIONS: &'static [(&'static str, Self)] = &[
        ("primary", Self::Primary),
        ("primaryPreferred", Self::PrimaryPreferred),
        ("secondary", Self::Secondary),
        ("secondaryPreferred", Self::SecondaryPreferred),
        ("nearest", Self::Nearest),
    ];
}

impl Choice for Hash {
    const OPTIONS: &'static [(&'static str, Self)] =
        &[(SCRAM_SHA_1, Self::Sha1), (SCRAM_SHA_256, Self::Sha256)];
}

/// Who a user is.
#[derive(Clone, Debug)]
pub(super) struct User {
    pub(super) name: String,
    /// The database that knows him.
    pub(super) source: String,
    password: Password,
    /// What SCRAM-SHA-1 takes for the password: a hash of it with the name.
    digest: Password,
    /// The mechanism that the URL names; else the server's best.
    pub(super) hash: Option<Hash>,
}

impl User {
    fn new(name: &str, source: &str, password: &Password, hash: Option<Hash>) -> Self {
        let digest = Md5::new().chain_update(name).chain_update(":mongo:").chain_update(password.expose());
        let (name, source) = (name.to_owned(), source.to_owned());
        Self {
            name,
            source,
            password: password.clone(),
            digest: Password::new(hex(&digest.finalize())),
            hash,
        }
    }

    /// What a mechanism takes for the password.
    pub(super) fn password(&self, hash: Hash) -> &Password {
        match hash {
            Hash::Sha1 => &self.digest,
            Hash::Sha256 => &self.password,
        }
    }
}

/// How to reach a server or a replica set, and as whom.
#[derive(Clone, Debug)]
pub struct Config {
    /// The servers, of which one will do. Never empty.
    pub hosts: Vec<Host>,
    /// The user; none where the server lets everybody in.
    pub(super) user: Option<User>,
    /// Where the collections are.
    pub database: String,
    /// The name that the replica set has to have.
    pub replica_set: Option<String>,
    /// Whether the one server is taken whatever it is.
    pub is_direct: bool,
    /// Which member is taken.
    pub read_preference: ReadPreference,
    /// What reads may see; the server's default where there is none.
    pub read_concern: Option<String>,
    /// Who has to have a write.
    pub write_concern: WriteConcern,
    /// How long the server may work on one command, in milliseconds; 0 is without a limit.
    pub time_limit: u32,
    /// What the server is told of who speaks.
    pub application: String,
    /// How TLS is used.
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

    /// Reads a URL with another environment. Asked for are `MONGODB_PASSWORD`, `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    pub fn parse_with(url: &str, environment: Lookup<'_>) -> Result<Self, ConfigError> {
        if url.get(..BY_DNS.len()).is_some_and(|start| start.eq_ignore_ascii_case(BY_DNS)) {
            return Err(url::error(
                "mongodb+srv:// asks DNS for the servers, which is not supported; name them: \
                 mongodb://user@host1:27017,host2:27017/database?tls=true&replicaSet=NAME (`nslookup -type=SRV \
                 _mongodb._tcp.HOST` tells them)",
            ));
        }
        let mut given = url::read(&with_known_names(url), &KEYS)?;
        given.add_environment(&KEYS, environment);
        let text = |key| given.text(key).map(ToOwned::to_owned);
        let is_direct = given.choice("directConnection", Switch(false))?.0;
        let hosts = hosts(&given)?;
        if is_direct && hosts.len() > 1 {
            return Err(url::error("directConnection=true is for one host, and there are more"));
        }
        let connect_timeout = given.whole("connectTimeoutMS")?.filter(|millis| *millis > 0);
        let shown = KEYS.known.iter().map(|(key, _)| *key).skip_while(|key| *key != "authSource");
        Ok(Self {
            hosts,
            user: user(&given)?,
            database: text("database").unwrap_or_else(|| DEFAULT_DATABASE.to_owned()),
            replica_set: text("replicaSet"),
            is_direct,
            read_preference: given.choice("readPreference", ReadPreference::Primary)?,
            read_concern: read_concern(&given)?,
            write_concern: write_concern(&given)?,
            time_limit: given.whole("timeoutMS")?.unwrap_or(0),
            application: text("appName").unwrap_or_else(|| "nephoscope".to_owned()),
            tls: tls(&given, environment)?,
            connect_timeout: connect_timeout.map(|millis| Duration::from_millis(millis.into())),
            shown: shown.filter_map(|key| Some((key, text(key)?))).collect(),
        })
    }

    /// The URL that means the same, without the password: for logs and manifests.
    #[must_use]
    pub fn redacted(&self) -> String {
        let user = self.user.as_ref().map(|user| format!("{}@", utf8_percent_encode(&user.name, ENCODED)));
        let host = |host: &Host| {
            let socket = || utf8_percent_encode(&host.name, ENCODED).to_string();
            if host.is_unix() { socket() } else { redacted_host(host) }
        };
        let hosts: Vec<String> = self.hosts.iter().map(host).collect();
        let database = utf8_percent_encode(&self.database, ENCODED);
        let mut url = format!("mongodb://{}{}/{database}", user.unwrap_or_default(), hosts.join(","));
        for (place, (name, value)) in self.shown.iter().enumerate() {
            url.extend([if place == 0 { "?" } else { "&" }, name, "="]);
            url.extend(utf8_percent_encode(value, ENCODED_VALUE));
        }
        url
    }
}

/// The URL with the names of options as they are written here: users may use small and capital letters as they like.
fn with_known_names(url: &str) -> String {
    let Some((before, query)) = url.rsplit_once('?').filter(|(_, query)| !query.contains('@')) else {
        return url.to_owned();
    };
    let known = |name: &str| {
        let all = KEYS.known.iter().map(|(key, _)| key).chain(KEYS.without_effect);
        all.chain(&["ssl"]).find(|key| key.eq_ignore_ascii_case(name)).copied()
    };
    let renamed = query.split('&').map(|parameter| match parameter.split_once('=') {
        Some((name, value)) => format!("{}={value}", known(name).unwrap_or(name)),
        None => parameter.to_owned(),
    });
    format!("{before}?{}", renamed.collect::<Vec<_>>().join("&"))
}

/// The hosts; one that begins with a slash is a Unix socket.
fn hosts(given: &Given) -> Result<Vec<Host>, ConfigError> {
    let mut hosts = given.hosts(DEFAULT_PORT)?;
    for host in &mut hosts {
        if host.name.starts_with('/') {
            host.address = HostAddress::Unix(PathBuf::from(&host.name));
        }
    }
    Ok(hosts)
}

fn user(given: &Given) -> Result<Option<User>, ConfigError> {
    let hash = given.get("authMechanism").map(crate::net::given::Value::choice).transpose()?;
    let Some(name) = given.text("user") else {
        let of_users = ["authMechanism", "authSource"].into_iter().find_map(|key| given.get(key));
        return of_users.map_or(Ok(None), |value| Err(value.error("is about a user, and the URL has none")));
    };
    let Some(password) = given.password.as_ref().filter(|password| !password.expose().is_empty()) else {
        return Err(url::error(
            "the user has no password, which SCRAM asks for; write mongodb://user:password@host, or set MONGODB_PASSWORD",
        ));
    };
    let source = given.text("authSource").or_else(|| given.text("database")).unwrap_or(DEFAULT_SOURCE);
    Ok(Some(User::new(name, source, password, hash)))
}

fn read_concern(given: &Given) -> Result<Option<String>, ConfigError> {
    let Some(value) = given.get("readConcernLevel") else { return Ok(None) };
    if !READS.contains(&value.text.as_str()) {
        return Err(value.error(&format!("is not known; allowed are {}", READS.join(", "))));
    }
    Ok(Some(value.text.clone()))
}

fn write_concern(given: &Given) -> Result<WriteConcern, ConfigError> {
    let w = given.get("w");
    if let Some(w) = w.filter(|w| w.text == "0") {
        return Err(w.error("is not supported: nobody is told what became of such a write; allowed are 1 and more, majority, and tags"));
    }
    let journal = given.get("journal").map(crate::net::given::Value::choice::<Switch>).transpose()?;
    Ok(WriteConcern {
        w: w.map(|w| w.text.clone()),
        journal: journal.map(|journal| journal.0),
        timeout: given.whole("wtimeoutMS")?,
    })
}

fn tls(given: &Given, environment: Lookup<'_>) -> Result<TlsSettings, ConfigError> {
    let encrypts = given.choice("tls", Switch(false))?.0;
    if let Some(value) = OF_TLS.into_iter().find_map(|key| given.get(key))
        && !encrypts
    {
        return Err(value.error("is about TLS, which tls=true asks for"));
    }
    let is_on = |key| given.choice(key, Switch(false)).map(|switch| switch.0);
    let verifies_nothing = is_on("tlsInsecure")? || is_on("tlsAllowInvalidCertificates")?;
    let mode = match (encrypts, verifies_nothing, is_on("tlsAllowInvalidHostnames")?) {
        (false, ..) => SslMode::Disable,
        (true, true, _) => SslMode::Require,
        (true, false, true) => SslMode::VerifyCa,
        (true, false, false) => SslMode::VerifyFull,
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
        let url = "mongodb://me:s%40crt@h1,h2:2/db?authSource=users&readpreference=secondary&W=majority&TLS=true\
                   &tlscafile=/ca.pem&retryWrites=true&replicaSet=rs0&readConcernLevel=local&wTimeoutMS=5&journal=true";
        let config = read(url).unwrap();
        let user = config.user.as_ref().unwrap();
        assert_eq!((user.name.as_str(), user.source.as_str(), user.hash), ("me", "users", None));
        assert_eq!(user.password(Hash::Sha256).expose(), b"s@crt");
        assert_eq!((config.database.as_str(), config.hosts.len(), config.hosts[1].port), ("db", 2, 2));
        assert_eq!(
            (config.tls.mode, config.read_preference),
            (SslMode::VerifyFull, ReadPreference::Secondary)
        );
        let write = WriteConcern { w: Some("majority".to_owned()), journal: Some(true), timeout: Some(5) };
        assert_eq!(config.write_concern, write);
        assert_eq!(
            config.redacted(),
            "mongodb://me@h1:27017,h2:2/db?authSource=users&replicaSet=rs0&readPreference=secondary&readConcernLevel=local\
             &w=majority&journal=true&wtimeoutMS=5&tls=true&tlsCAFile=/ca.pem"
        );
        let plain = read("mongodb://").unwrap();
        assert_eq!(plain.redacted(), "mongodb://localhost:27017/test");
        assert_eq!((plain.tls.mode, plain.write_concern), (SslMode::Disable, WriteConcern::default()));
        let socket = read("mongodb://%2Frun%2Fmongodb-27017.sock/db").unwrap();
        assert!(socket.hosts[0].is_unix());
        assert_eq!(socket.redacted(), "mongodb://%2Frun%2Fmongodb-27017.sock/db");
        let by_environment = |name: &str| (name == "MONGODB_PASSWORD").then(|| "word".to_owned());
        let config = Config::parse_with("mongodb://me@h/db", &by_environment).unwrap();
        let user = config.user.unwrap();
        assert_eq!((user.password(Hash::Sha256).expose(), user.source.as_str()), (&b"word"[..], "db"));
    }

    /// From the specification's example of SCRAM-SHA-1: `user` with the password `pencil`.
    #[test]
    fn sha_1_takes_a_hash_for_the_password() {
        let user = read("mongodb://user:pencil@h").unwrap().user.unwrap();
        assert_eq!(user.password(Hash::Sha1).expose(), b"1c33006ec1ffd90f9cadcbcc0e118200");
        assert_eq!(user.source, "admin");
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (url, message) in [
            (
                "mongodb+srv://me:s3cret@h/db",
                "mongodb+srv:// asks DNS for the servers, which is not supported",
            ),
            ("mongodb://h?tlsInsecure=true", "is about TLS, which tls=true asks for"),
            ("mongodb://h?tls=maybe", "allowed are false, true"),
            ("mongodb://h?w=0", "nobody is told what became of such a write"),
            ("mongodb://h?readPreference=fastest", "allowed are primary, primaryPreferred, secondary"),
            ("mongodb://h?readConcernLevel=snapshot", "allowed are local, available, majority, linearizable"),
            ("mongodb://me:x@h?authMechanism=PLAIN", "allowed are SCRAM-SHA-1, SCRAM-SHA-256"),
            ("mongodb://h?authSource=admin", "is about a user, and the URL has none"),
            ("mongodb://me@h", "the user has no password"),
            ("mongodb://h,i?directConnection=true", "is for one host, and there are more"),
            (
                "mongodb://h?maxStalenessSeconds=90",
                "parameter \"maxStalenessSeconds\" is not known; allowed are host",
            ),
        ] {
            let told = read(url).unwrap_err();
            assert!(told.contains(message) && told.starts_with("url: "), "{url}: {told}");
            assert!(!told.contains("s3cret"));
        }
    }
}
