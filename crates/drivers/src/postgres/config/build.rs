//! From named values to a [`Config`].

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::pgpass::PasswordFile;
use super::{
    ChannelBinding, Config, KEYS, LoadBalance, PROTOCOL, SslNegotiation, TLS_WORDS, TargetSessionAttrs,
};
use crate::contract::error::ConfigError;
use crate::net::given::{Choice, Given, Lookup, Value};
use crate::net::secret::{Password, hide_secret_values};
use crate::net::settings::{
    FileSetting, Host, HostAddress, RootCertificates, SslMode, TlsSettings, TlsVersion,
};
use crate::net::url;

const DEFAULT_PORT: u16 = 5432;
const APPLICATION_NAME: &str = "nephoscope";
/// The longest path of a Unix socket in Linux, in bytes, its closing zero aside.
const SOCKET_PATH_MAX: usize = 107;
/// Keys that stand in a redacted URL's parameters, where given.
const SHOWN: [&str; 16] = [
    "hostaddr",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslnegotiation",
    "sslsni",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "channel_binding",
    "target_session_attrs",
    "load_balance_hosts",
    "connect_timeout",
    "application_name",
    "fallback_application_name",
    "options",
    "passfile",
];

fn error(message: impl Into<String>) -> ConfigError {
    ConfigError(message.into())
}

/// The configuration of a URL. `sockets` are the directories that may hold a local server's socket.
pub(super) fn config(url: &str, environment: Lookup<'_>, sockets: &[&Path]) -> Result<Config, ConfigError> {
    let mut given = url::read(url, &KEYS)?;
    given.add_environment(&KEYS, environment);
    check_ignored(&given)?;
    let home = environment("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let user = user(&given, environment)?;
    let database = given.text("dbname").unwrap_or(&user).to_owned();
    let mut hosts = hosts(&given, sockets)?;
    set_passwords(&mut hosts, &given, home.as_deref(), &database, &user);
    let negotiation = given.choice("sslnegotiation", SslNegotiation::Postgres)?;
    let tls = tls(&given, negotiation, environment, home.as_deref())?;
    let channel_binding = given.choice("channel_binding", ChannelBinding::Prefer)?;
    if channel_binding == ChannelBinding::Require && tls.mode == SslMode::Disable {
        return Err(error("url: channel_binding=require needs TLS, and sslmode=disable forbids it"));
    }
    Ok(Config {
        hosts,
        tls,
        negotiation,
        channel_binding,
        target_session_attrs: given.choice("target_session_attrs", TargetSessionAttrs::Any)?,
        load_balance: given.choice("load_balance_hosts", LoadBalance::Disable)?,
        connect_timeout: connect_timeout(&given)?,
        startup: startup(&given, &user, &database),
        shown: shown(&given),
        user,
        database,
    })
}

fn user(given: &Given, environment: Lookup<'_>) -> Result<String, ConfigError> {
    let variable = |name| environment(name).filter(|user| !user.is_empty());
    given
        .text("user")
        .map(str::to_owned)
        .or_else(|| ["USER", "LOGNAME"].into_iter().find_map(variable))
        .ok_or_else(|| error("url: no user is given, and none of PGUSER, USER and LOGNAME is set"))
}

/// Refuses the values that would ask for what the driver does not have.
fn check_ignored(given: &Given) -> Result<(), ConfigError> {
    if let Some(value) = given.get("client_encoding")
        && !["utf8", "utf-8"].contains(&value.text.to_ascii_lowercase().as_str())
    {
        return Err(value.error("is not supported; allowed is utf8"));
    }
    if let Some(value) = given.get("gssencmode")
        && !["disable", "prefer"].contains(&value.text.as_str())
    {
        return Err(value.error("is not supported; allowed are disable, prefer"));
    }
    Ok(())
}

fn hosts(given: &Given, sockets: &[&Path]) -> Result<Vec<Host>, ConfigError> {
    let list = |key| given.get(key).map(Value::list).unwrap_or_default();
    let (names, addresses, ports) = (list("host"), list("hostaddr"), list("port"));
    let count = names.len().max(addresses.len()).max(1);
    for (key, length, may_be_one) in
        [("host", names.len(), false), ("hostaddr", addresses.len(), false), ("port", ports.len(), true)]
    {
        if length != 0 && length != count && !(may_be_one && length == 1) {
            let list = given.name(key);
            return Err(error(format!("{list} has {length} elements, and there are {count} hosts")));
        }
    }
    (0..count)
        .map(|index| {
            let item = |list: &[&str]| list.get(index).copied().unwrap_or_default().to_owned();
            host(item(&names), &item(&addresses), port(given, index)?, given, sockets)
        })
        .collect()
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

/// The host of a name, an address or neither.
fn host(
    name: String,
    address: &str,
    port: u16,
    given: &Given,
    sockets: &[&Path],
) -> Result<Host, ConfigError> {
    let (name, address) = if !address.is_empty() {
        let ip = address.parse().map_err(|_| {
            error(format!("{} is not an IP address; a name belongs to host", given.name("hostaddr")))
        })?;
        (if name.is_empty() { address.to_owned() } else { name }, HostAddress::Ip(ip))
    } else if name.is_empty() {
        default_host(port, sockets)
    } else {
        let address =
            address_of(&name, port).map_err(|what| error(format!("{}: {what}", given.name("host"))))?;
        (name, address)
    };
    Ok(Host { name, address, port, password: None })
}

/// The first directory with a server's socket; else this machine by TCP.
fn default_host(port: u16, sockets: &[&Path]) -> (String, HostAddress) {
    let mut sockets = sockets.iter().map(|directory| (directory, socket_path(directory, port)));
    match sockets.find(|(_, socket)| socket.exists()) {
        Some((directory, socket)) => (directory.display().to_string(), HostAddress::Unix(socket)),
        None => ("localhost".to_owned(), HostAddress::Name("localhost".to_owned())),
    }
}

/// What a host's name stands for; an error says what is wrong with it.
fn address_of(name: &str, port: u16) -> Result<HostAddress, String> {
    if name.starts_with('/') {
        let path = socket_path(Path::new(name), port);
        if path.as_os_str().len() > SOCKET_PATH_MAX {
            return Err(format!(
                "the path of the Unix socket is too long; allowed are {SOCKET_PATH_MAX} bytes, \
                 \"/.s.PGSQL.{port}\" included"
            ));
        }
        return Ok(HostAddress::Unix(path));
    }
    if name.starts_with('@') {
        return Err("a name that begins with '@', an abstract Unix socket, is not supported".to_owned());
    }
    if name.contains(|c: char| c.is_whitespace() || c.is_control() || "@/".contains(c)) {
        return Err("a name may hold neither blanks nor '@' nor '/'".to_owned());
    }
    Ok(name.parse::<IpAddr>().map_or_else(|_| HostAddress::Name(name.to_owned()), HostAddress::Ip))
}

fn socket_path(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

/// Gives each host its password: the one given, else the password file's.
fn set_passwords(hosts: &mut [Host], given: &Given, home: Option<&Path>, database: &str, user: &str) {
    let not_empty = |password: &Password| !password.expose().is_empty();
    if let Some(password) = given.password.clone().filter(not_empty) {
        for host in hosts {
            host.password = Some(password.clone());
        }
        return;
    }
    let path = given.text("passfile").map(PathBuf::from).or_else(|| Some(home?.join(".pgpass")));
    let Some(file) = path.map(|path| PasswordFile::open(&path)) else { return };
    for host in hosts {
        host.password = file.password(&host.name, host.port, database, user).filter(not_empty);
    }
}

fn tls(
    given: &Given,
    negotiation: SslNegotiation,
    environment: Lookup<'_>,
    home: Option<&Path>,
) -> Result<TlsSettings, ConfigError> {
    let file = |key, default: &str| match given.text(key) {
        Some(path) => Some(FileSetting { path: path.into(), given: true }),
        None => Some(FileSetting { path: home?.join(".postgresql").join(default), given: false }),
    };
    let path = |variable| environment(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    let system = given.text("sslrootcert") == Some("system");
    let default_mode = if system { SslMode::VerifyFull } else { SslMode::Prefer };
    let mode = given.choice("sslmode", default_mode)?;
    if let Some(value) = given.get("sslmode") {
        if system && mode < SslMode::VerifyFull {
            return Err(value.error("is too weak for sslrootcert=system; allowed is verify-full"));
        }
        if negotiation == SslNegotiation::Direct && !mode.requires_tls() {
            return Err(value.error(
                "is too weak for sslnegotiation=direct; allowed are require, verify-ca, verify-full",
            ));
        }
    } else if negotiation == SslNegotiation::Direct && !mode.requires_tls() {
        return Err(error("url: sslnegotiation=direct needs sslmode=require, verify-ca or verify-full"));
    }
    let (min_version, max_version) = tls_versions(given)?;
    Ok(TlsSettings {
        words: &TLS_WORDS,
        mode,
        roots: if system {
            RootCertificates::System { file: path("SSL_CERT_FILE"), directory: path("SSL_CERT_DIR") }
        } else {
            RootCertificates::File(file("sslrootcert", "root.crt"))
        },
        certificate: file("sslcert", "postgresql.crt"),
        key: file("sslkey", "postgresql.key"),
        protocol: (negotiation == SslNegotiation::Direct).then_some(PROTOCOL),
        min_version,
        max_version,
        server_name_indication: given.choice::<Switch>("sslsni", Switch(true))?.0,
    })
}

#[derive(Clone, Copy, PartialEq)]
struct Switch(bool);

impl Choice for Switch {
    const OPTIONS: &'static [(&'static str, Self)] = &[("0", Self(false)), ("1", Self(true))];
}

fn tls_versions(given: &Given) -> Result<(TlsVersion, Option<TlsVersion>), ConfigError> {
    // Older ones than 1.2 are not to be had; as a lower limit they say no more than 1.2 does.
    let old = |value: &&Value| ["TLSv1", "TLSv1.1"].contains(&value.text.as_str());
    let min = match given.get("ssl_min_protocol_version") {
        Some(value) if !old(&value) => value.choice()?,
        _ => TlsVersion::V1_2,
    };
    let Some(value) = given.get("ssl_max_protocol_version") else { return Ok((min, None)) };
    let max = value.choice()?;
    if max < min {
        return Err(value.error("is older than ssl_min_protocol_version"));
    }
    Ok((min, Some(max)))
}

/// Zero, a negative number and nothing at all are without a limit.
fn connect_timeout(given: &Given) -> Result<Option<Duration>, ConfigError> {
    let Some(value) = given.get("connect_timeout") else { return Ok(None) };
    let seconds: i32 =
        value.text.trim().parse().map_err(|_| {
            value.error("is not a whole number of seconds; allowed are 0 (no limit) and more")
        })?;
    Ok(u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs))
}

fn startup(given: &Given, user: &str, database: &str) -> Vec<(String, String)> {
    let application = given.text("application_name").or(given.text("fallback_application_name"));
    let mut parameters = vec![("user", user), ("database", database)];
    parameters.extend(given.text("options").map(|options| ("options", options)));
    parameters.push(("application_name", application.unwrap_or(APPLICATION_NAME)));
    parameters.push(("client_encoding", "UTF8"));
    parameters.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The parameters of a redacted URL. The server's options may set a variable that holds a secret.
fn shown(given: &Given) -> Vec<(&'static str, String)> {
    SHOWN
        .into_iter()
        .filter_map(|key| {
            let text = given.text(key)?;
            Some((
                key,
                if key == "options" {
                    hide_secret_values(text, &|name| KEYS.find(name).is_some())
                } else {
                    text.to_owned()
                },
            ))
        })
        .collect()
}
