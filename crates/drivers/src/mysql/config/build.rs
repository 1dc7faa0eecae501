//! From named values to a [`Config`].

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Config, KEYS, TLS_WORDS, option_file};
use crate::contract::error::ConfigError;
use crate::net::given::{Choice, Given, Lookup, Value};
use crate::net::private_file;
use crate::net::settings::{
    FileSetting, Host, HostAddress, RootCertificates, SslMode, TlsSettings, TlsVersion,
};
use crate::net::url;

const DEFAULT_PORT: u16 = 3306;
/// The longest path of a Unix socket in Linux, in bytes, its closing zero aside.
const SOCKET_PATH_MAX: usize = 107;
/// Keys that stand in a redacted URL's parameters, where given.
const SHOWN: [&str; 6] =
    ["socket", "ssl-ca", "ssl-cert", "ssl-key", "get-server-public-key", "connect-timeout"];

fn error(message: impl Into<String>) -> ConfigError {
    ConfigError(message.into())
}

/// The configuration of a URL. `sockets` are where a local server's socket may lie.
pub(super) fn config(url: &str, environment: Lookup<'_>, sockets: &[&Path]) -> Result<Config, ConfigError> {
    let mut given = url::read(url, &KEYS)?;
    let home = environment("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let file = home.and_then(|home| private_file::read("option file", &home.join(".my.cnf")));
    if let Some(text) = file {
        option_file::add(&text, &mut given);
    }
    given.add_environment(&KEYS, environment);
    let tls = tls(&given, environment)?;
    let mut hosts = hosts(&given, sockets)?;
    let password = given.password.clone().filter(|password| !password.expose().is_empty());
    let mut shown: Vec<(&str, String)> =
        SHOWN.into_iter().filter_map(|key| Some((key, given.text(key)?.to_owned()))).collect();
    // The socket that is used, whoever named it, and none that is not.
    shown.retain(|(key, _)| *key != "socket");
    for host in &mut hosts {
        host.password.clone_from(&password);
        if host.is_unix() {
            shown.push(("socket", host.name.clone()));
        }
    }
    Ok(Config {
        hosts,
        user: user(&given, environment)?,
        database: given.text("database").unwrap_or_default().to_owned(),
        tls,
        get_server_public_key: given.choice("get-server-public-key", Switch(false))?.0,
        connect_timeout: connect_timeout(&given)?,
        shown,
    })
}

fn user(given: &Given, environment: Lookup<'_>) -> Result<String, ConfigError> {
    let variable = |name| environment(name).filter(|user| !user.is_empty());
    given
        .text("user")
        .map(str::to_owned)
        .or_else(|| ["USER", "LOGNAME"].into_iter().find_map(variable))
        .ok_or_else(|| error("url: no user is given, and neither USER nor LOGNAME is set"))
}

fn hosts(given: &Given, sockets: &[&Path]) -> Result<Vec<Host>, ConfigError> {
    let list = |key| given.get(key).map(Value::list).unwrap_or_default();
    let (names, ports) = (list("host"), list("port"));
    if let Some(socket) = socket(given, &names, sockets)? {
        let name = socket.display().to_string();
        return Ok(vec![Host {
            name,
            address: HostAddress::Unix(socket),
            port: DEFAULT_PORT,
            password: None,
        }]);
    }
    let count = names.len().max(1);
    if ports.len() > 1 && ports.len() != count {
        let (list, ports) = (given.name("port"), ports.len());
        return Err(error(format!("{list} has {ports} elements, and there are {count} hosts")));
    }
    (0..count)
        .map(|index| {
            let name = names.get(index).copied().filter(|name| !name.is_empty()).unwrap_or("localhost");
            if name.contains(|c: char| c.is_whitespace() || c.is_control() || "@/".contains(c)) {
                let host = given.name("host");
                return Err(error(format!("{host}: a name may hold neither blanks nor '@' nor '/'")));
            }
            let address =
                name.parse::<IpAddr>().map_or_else(|_| HostAddress::Name(name.to_owned()), HostAddress::Ip);
            Ok(Host { name: name.to_owned(), address, port: port(given, index)?, password: None })
        })
        .collect()
}

/// The Unix socket to be used, if one is.
fn socket(given: &Given, names: &[&str], sockets: &[&Path]) -> Result<Option<PathBuf>, ConfigError> {
    let has_host = names.iter().any(|name| !name.is_empty());
    // One that is named where the host is named, too, is for that host, which can only be this machine.
    if let Some(value) = given.get("socket") {
        if has_host && names != ["localhost"] {
            return if value.is_of_url() {
                Err(value.error("cannot be used with a host; leave the host out"))
            } else {
                Ok(None)
            };
        }
        if value.text.len() > SOCKET_PATH_MAX {
            return Err(value.error(&format!("is too long; allowed are {SOCKET_PATH_MAX} bytes")));
        }
        return Ok(Some(PathBuf::from(&value.text)));
    }
    let local = sockets.iter().find(|path| path.exists());
    Ok(local.filter(|_| !has_host && given.get("port").is_none()).map(|path| path.to_path_buf()))
}

/// The port of a host: its own, or the one for all.
fn port(given: &Given, index: usize) -> Result<u16, ConfigError> {
    let Some(value) = given.get("port") else { return Ok(DEFAULT_PORT) };
    let ports = value.list();
    match ports.get(index).or(ports.first()) {
        None | Some(&"") => Ok(DEFAULT_PORT),
        Some(port) => port
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or_else(|| value.error("is not a port; allowed are numbers from 1 to 65535")),
    }
}

/// `ssl-mode` by MySQL's names.
#[derive(Clone, Copy, PartialEq)]
struct Mode(SslMode);

impl Choice for Mode {
    const OPTIONS: &'static [(&'static str, Self)] = &[
        ("DISABLED", Self(SslMode::Disable)),
        ("PREFERRED", Self(SslMode::Prefer)),
        ("REQUIRED", Self(SslMode::Require)),
        ("VERIFY_CA", Self(SslMode::VerifyCa)),
        ("VERIFY_IDENTITY", Self(SslMode::VerifyFull)),
    ];
}

/// The name of a mode in URLs.
pub(super) fn mode_name(mode: SslMode) -> &'static str {
    Mode(mode).option_name()
}

fn tls(given: &Given, environment: Lookup<'_>) -> Result<TlsSettings, ConfigError> {
    let file = |key| given.text(key).map(|path| FileSetting { path: path.into(), given: true });
    let path = |variable| environment(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    let mode = match given.get("ssl-mode") {
        Some(value) => value.upper_case().choice::<Mode>()?.0,
        None => SslMode::Prefer,
    };
    let (certificate, key) = (file("ssl-cert"), file("ssl-key"));
    if certificate.is_some() != key.is_some() {
        return Err(error("url: ssl-cert and ssl-key go together; one of them is missing"));
    }
    Ok(TlsSettings {
        words: &TLS_WORDS,
        mode,
        roots: match file("ssl-ca") {
            None if mode >= SslMode::VerifyCa => {
                RootCertificates::System { file: path("SSL_CERT_FILE"), directory: path("SSL_CERT_DIR") }
            }
            ca => RootCertificates::File(ca),
        },
        certificate,
        key,
        protocol: None,
        min_version: TlsVersion::V1_2,
        max_version: None,
        server_name_indication: true,
    })
}

#[derive(Clone, Copy, PartialEq)]
struct Switch(bool);

impl Choice for Switch {
    const OPTIONS: &'static [(&'static str, Self)] =
        &[("false", Self(false)), ("true", Self(true)), ("0", Self(false)), ("1", Self(true))];
}

/// Zero is without a limit.
fn connect_timeout(given: &Given) -> Result<Option<Duration>, ConfigError> {
    let Some(value) = given.get("connect-timeout") else { return Ok(None) };
    let seconds: u32 =
        value.text.trim().parse().map_err(|_| {
            value.error("is not a whole number of seconds; allowed are 0 (no limit) and more")
        })?;
    Ok(Some(seconds).filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.into())))
}
