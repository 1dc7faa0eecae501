//! The URL taken apart, as libpq does it (`conninfo_uri_parse_options`), for every protocol.
//!
//! No message here shows a piece of the URL that may belong to a password: where the user has forgotten to
//! encode a character, it is not known which piece that is.

use super::given::{Given, Keys};
use super::secret::Password;
use crate::contract::error::ConfigError;

pub(crate) fn error(what: &str) -> ConfigError {
    ConfigError(format!("url: {what}"))
}

/// The settings of a URL.
pub(crate) fn read(url: &str, keys: &Keys) -> Result<Given, ConfigError> {
    let rest = keys
        .schemes
        .iter()
        .find(|scheme| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
        .map(|scheme| &url[scheme.len()..])
        .ok_or_else(|| error(&format!("it must begin with {}", keys.schemes.join(" or "))))?;
    let mut given = Given::default();
    let rest = read_credentials(rest, keys, &mut given)?;
    let rest = read_hosts(rest, &mut given)?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    read_database(path, keys, &mut given)?;
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        read_parameter(parameter, keys, &mut given)?;
    }
    Ok(given)
}

/// Reads `user:password@`; returns what follows it.
fn read_credentials<'a>(rest: &'a str, keys: &Keys, given: &mut Given) -> Result<&'a str, ConfigError> {
    let Some((credentials, after)) = rest
        .find(['@', '/'])
        .filter(|&at| rest[at..].starts_with('@'))
        .map(|at| (&rest[..at], &rest[at + 1..]))
    else {
        return Ok(rest);
    };
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    if user.contains('?') {
        return Ok(rest);
    }
    if let Some((_, query)) = password.split_once('?')
        && query.split_once('=').is_some_and(|(name, _)| keys.find(name).is_some())
    {
        return Err(error(
            "it is not clear whether a '?' belongs to the password or begins the parameters; write '?' in \
             a password as %3F, and '@' in a parameter as %40",
        ));
    }
    if !user.is_empty() {
        given.set("user", decode_text(user, "the user")?);
    }
    if !password.is_empty() {
        given.password = Some(Password::new(decode(password, "the password")?));
    }
    Ok(after)
}

/// Reads `host:port,host:port`; returns what follows: `/database`, `?parameters` or both.
fn read_hosts<'a>(rest: &'a str, given: &mut Given) -> Result<&'a str, ConfigError> {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (list, after) = rest.split_at(end);
    if list.contains('@') {
        return Err(error(
            "there is more than one '@' before the database; write '@' in a user or password as %40",
        ));
    }
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    for (index, item) in list.split(',').enumerate() {
        let (host, port) = split_port(item, index + 1)?;
        hosts.push(host);
        ports.push(port);
    }
    if hosts != [""] {
        given.set("host", decode_text(&hosts.join(","), "the host")?);
    }
    if ports != [""] {
        given.set("port", ports.join(","));
    }
    Ok(after)
}

/// The host and the port of the `number`th `host:port`.
fn split_port(item: &str, number: usize) -> Result<(&str, &str), ConfigError> {
    let (host, port) = if let Some(address) = item.strip_prefix('[') {
        let (host, after) =
            address.split_once(']').ok_or_else(|| error(&format!("the '[' of host {number} has no ']'")))?;
        if host.is_empty() {
            return Err(error(&format!("there is no address between the '[' and ']' of host {number}")));
        }
        let port = after.strip_prefix(':').or(after.is_empty().then_some(""));
        (host, port.ok_or_else(|| error(&format!("after the ']' of host {number} only ':' may follow")))?)
    } else {
        item.split_once(':').unwrap_or((item, ""))
    };
    if port.is_empty() || port.parse::<u16>().is_ok_and(|port| port > 0) {
        return Ok((host, port));
    }
    Err(error(&format!(
        "the port of host {number} is not a number from 1 to 65535; if it is a part of the password, write \
         '/' in the password as %2F, and see that '@' follows it"
    )))
}

fn read_database(path: &str, keys: &Keys, given: &mut Given) -> Result<(), ConfigError> {
    let database = path.strip_prefix('/').unwrap_or(path);
    if database.contains('@') {
        return Err(error(
            "there is an '@' after the first '/'; write '/' in a user or password as %2F, and '@' in a \
             database's name as %40",
        ));
    }
    if !database.is_empty() {
        given.set(keys.database, decode_text(database, "the database")?);
    }
    Ok(())
}

/// Reads one `name=value`. More than one '=' is accepted, unlike in libpq: the first ends the name.
pub(crate) fn read_parameter(parameter: &str, keys: &Keys, given: &mut Given) -> Result<(), ConfigError> {
    let (name, value) = parameter.split_once('=').ok_or_else(|| {
        error("a parameter after the '?' has no '='; write '&' in a value as %26, '?' in a password as %3F")
    })?;
    let name = decode_text(name, "a parameter's name")?;
    if let Some((_, (key, value))) = keys.aliases.iter().find(|(said, _)| *said == (name.as_str(), value)) {
        given.set(key, (*value).to_owned());
        return Ok(());
    }
    let key = keys.find(&name).ok_or_else(|| keys.unknown(&name))?;
    if key == "password" {
        given.password = Some(Password::new(decode(value, "the password")?));
    } else {
        given.set(key, decode_text(value, key)?);
    }
    Ok(())
}

/// The bytes of a percent-encoded text. A '+' is a plus.
fn decode(text: &str, what: &str) -> Result<Vec<u8>, ConfigError> {
    let digit = |b: u8| char::from(b).to_digit(16).map(|digit| digit as u8);
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let high = bytes.next().and_then(digit);
        let low = bytes.next().and_then(digit);
        let (Some(high), Some(low)) = (high, low) else {
            return Err(error(&format!(
                "{what} holds a '%' without two hexadecimal digits after it; write '%' as %25"
            )));
        };
        decoded.push(high << 4 | low);
    }
    if decoded.contains(&0) {
        return Err(error(&format!("{what} holds a zero byte, which no database allows")));
    }
    Ok(decoded)
}

pub(crate) fn decode_text(text: &str, what: &str) -> Result<String, ConfigError> {
    String::from_utf8(decode(text, what)?).map_err(|_| error(&format!("{what} is not UTF-8")))
}
