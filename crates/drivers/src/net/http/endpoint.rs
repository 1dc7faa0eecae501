//! Where a service is.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use nephoscope_runtime::{Nanos, Runtime, Stream};

use crate::contract::error::{ConfigError, Error};
use crate::net::channel::Channel;
use crate::net::reach::{addresses, encrypt, refused, share, timed_out};
use crate::net::resolve::Resolver;
use crate::net::settings::{Host, HostAddress, RootCertificates, SslMode, TlsSettings, TlsVersion, TlsWords};
use crate::net::tls::TlsConnector;

/// TLS of HTTP has no settings but those of the environment.
const TLS_WORDS: TlsWords = TlsWords {
    product: "HTTP",
    mode: "scheme",
    modes: ["https"; 3],
    roots: "SSL_CERT_FILE",
    system_roots: "leave SSL_CERT_FILE out to trust the system's store",
    certificate: "a client's certificate",
    key: "its key",
    versions: None,
};

/// A service's address: `http://host:port` or `https://host:port`. Certificates are verified against the system's
/// store, or against what `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
#[derive(Clone)]
pub struct Endpoint {
    host: Host,
    tls: Option<TlsConnector>,
    /// What the header `Host` says.
    authority: String,
    resolver: Resolver,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

impl Endpoint {
    /// Reads `http://host:port` or `https://host:port`, with what the environment says of certificates. The port is 80
    /// or 443 where none is given.
    pub fn parse(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let wrong = |what: &str| {
            ConfigError(format!("endpoint: {what}; it is written as http://host:port or https://host:port"))
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
        let (encrypted, standard) = match scheme {
            "http" => (false, 80),
            "https" => (true, 443),
            _ => return Err(wrong("its scheme is neither http nor https")),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        // Not shown: what is wrong may be a password.
        if authority.contains(['/', '?', '#', '@', ',']) {
            return Err(wrong("it has more than a host and a port"));
        }
        let (name, port) = split(authority).ok_or_else(|| wrong("its host or port is none"))?;
        let port = port.unwrap_or(standard);
        let address = match name.parse::<IpAddr>() {
            Ok(ip) => HostAddress::Ip(ip),
            Err(_) => HostAddress::Name(name.to_owned()),
        };
        let host = Host { name: name.to_owned(), address, port, password: None };
        let authority =
            if port == standard && !name.contains(':') { name.to_owned() } else { host.to_string() };
        let tls = TlsConnector::new(&tls(encrypted, environment), std::slice::from_ref(&host))?;
        Ok(Self { host, tls, authority, resolver: Resolver::default() })
    }

    /// What the header `Host` says: the host, with its port where that is not the scheme's own.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The same service by another name, such as S3's `bucket.host`.
    pub fn with_prefix(&self, prefix: &str) -> Result<Self, ConfigError> {
        if !matches!(self.host.address, HostAddress::Name(_)) {
            return Err(ConfigError(format!(
                "endpoint: {self} is an address, and \"{prefix}.\" cannot precede it"
            )));
        }
        let mut other = self.clone();
        other.host.name = format!("{prefix}.{}", self.host.name);
        other.host.address = HostAddress::Name(other.host.name.clone());
        other.authority = format!("{prefix}.{}", self.authority);
        Ok(other)
    }

    /// Connects to the first address that answers; all of them share the time until the deadline.
    pub(super) async fn connect(&self, runtime: &Runtime, deadline: Nanos) -> Result<Channel, Error> {
        let mut last = None;
        let addresses = addresses(&self.resolver, runtime, &self.host, deadline).await?;
        for (tried, address) in addresses.iter().enumerate() {
            let deadline = share(deadline, addresses.len() - tried);
            let connected = Stream::connect(runtime, address, deadline).await;
            let channel = match (connected, &self.tls) {
                (Err(error), _) => Err(refused(&error, &self.host, deadline)),
                (Ok(stream), None) => Ok(Channel::Plain(stream)),
                (Ok(stream), Some(connector)) => encrypt(stream, connector, &self.host).await,
            };
            match channel {
                Ok(channel) => return Ok(channel),
                Err(error) => last = Some(timed_out(error, &self.host)),
            }
        }
        Err(last.unwrap_or_else(|| Error::connection_lost(format!("{} has no address", self.host))))
    }
}

fn tls(encrypted: bool, environment: &dyn Fn(&str) -> Option<String>) -> TlsSettings {
    let path = |variable| environment(variable).filter(|text| !text.is_empty()).map(PathBuf::from);
    TlsSettings {
        words: &TLS_WORDS,
        mode: if encrypted { SslMode::VerifyFull } else { SslMode::Disable },
        roots: RootCertificates::System { file: path("SSL_CERT_FILE"), directory: path("SSL_CERT_DIR") },
        certificate: None,
        key: None,
        protocol: Some(b"http/1.1"),
        min_version: TlsVersion::V1_2,
        max_version: None,
        server_name_indication: true,
    }
}

/// A host's name and port. An IPv6 address has brackets.
fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    let (name, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (name, after) = rest.split_once(']')?;
            name.parse::<std::net::Ipv6Addr>().ok()?;
            (name, if after.is_empty() { None } else { Some(after.strip_prefix(':')?) })
        }
        None => authority.split_once(':').map_or((authority, None), |(name, port)| (name, Some(port))),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if name.is_empty() || !name.bytes().all(plain) {
        return None;
    }
    match port {
        None => Some((name, None)),
        Some(port) => port.parse().ok().filter(|port| *port > 0).map(|port| (name, Some(port))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Endpoint, ConfigError> {
        Endpoint::parse(text, &|_| None)
    }

    #[test]
    fn an_endpoint_is_a_scheme_a_host_and_a_port() {
        for (text, authority, shown) in [
            ("http://127.0.0.1:5000", "127.0.0.1:5000", "http://127.0.0.1:5000"),
            ("http://localhost/", "localhost", "http://localhost"),
            ("http://localhost:80", "localhost", "http://localhost"),
            ("http://[::1]:9000", "[::1]:9000", "http://[::1]:9000"),
        ] {
            let endpoint = parse(text).unwrap();
            assert_eq!((endpoint.authority(), &*endpoint.to_string()), (authority, shown));
        }
        assert_eq!(
            parse("http://s3.test").unwrap().with_prefix("bucket").unwrap().authority(),
            "bucket.s3.test"
        );
        assert!(parse("http://127.0.0.1").unwrap().with_prefix("bucket").is_err());
    }

    #[test]
    fn anything_else_is_refused_and_not_shown() {
        for text in [
            "",
            "localhost:80",
            "ftp://h",
            "http://",
            "http://h:0",
            "http://h:x",
            "http://u:secret@h",
            "http://h/secret",
            "http://[::1",
            "http://[x]:1",
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains("http://host:port") && !message.contains("secret"), "{text}: {message}");
        }
    }
}
