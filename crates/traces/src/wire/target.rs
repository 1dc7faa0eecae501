//! The server that is recorded.

use super::{PROTOCOLS, Protocol};

const ALLOWED: &str = "allowed: such as postgresql://10.0.0.5:5432/ or mysql://10.0.0.5:3306/";

/// A server, and how its clients speak.
pub struct Target {
    /// Its `host:port`.
    pub address: String,
    /// How its clients speak.
    pub protocol: &'static Protocol,
}

/// The server of a URL.
///
/// # Errors
///
/// If its scheme is of no protocol here, or it has more than a host and a port. The message shows nothing of it: that might
/// be a password.
pub fn target(url: &str) -> Result<Target, String> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let protocol = PROTOCOLS.into_iter().find(|protocol| protocol.schemes.contains(&scheme));
    let protocol =
        protocol.ok_or_else(|| format!("it is no URL of PostgreSQL, MariaDB or MySQL ({ALLOWED})"))?;
    let address = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().unwrap_or(0)),
        _ => (address, protocol.port),
    };
    let is_host = !host.is_empty() && !host.contains(['@', '/', '?', '#', ',', '%']);
    if !is_host || port == 0 || (host.contains(':') && !(host.starts_with('[') && host.ends_with(']'))) {
        return Err(format!(
            "it has more or less than a host and a port ({ALLOWED}); user and password are the clients', and \
             --database chooses a database"
        ));
    }
    Ok(Target { address: format!("{host}:{port}"), protocol })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_told_where_to_connect() {
        let told = |url: &str, address: &str| target(url).ok().unwrap().protocol.connect(address);
        assert_eq!(told("postgres://h", "127.0.0.1:7"), "psql \"host=127.0.0.1 port=7 sslmode=disable\"");
        assert_eq!(told("mysql://h", "[::1]:7"), "mariadb --host=::1 --port=7 --skip-ssl");
    }

    #[test]
    fn a_url_has_a_host_and_a_port_and_nothing_else() {
        for (url, address) in [
            ("postgresql://h:5433/", "h:5433"),
            ("postgres://10.0.0.5", "10.0.0.5:5432"),
            ("postgresql://[::1]:7/", "[::1]:7"),
            ("postgresql://[::1]", "[::1]:5432"),
            ("mysql://h", "h:3306"),
            ("mariadb://h:7/", "h:7"),
        ] {
            let found = target(url).map(|found| (found.address, found.protocol.kind.1));
            let dialect = if url.starts_with('p') { "postgres" } else { "mysql" };
            assert_eq!(found, Ok((address.to_owned(), dialect)));
        }
        for url in ["", "h:5432", "redis://h:6379/", "postgresql:h"] {
            assert!(target(url).is_err_and(|why| why.contains("no URL of")), "{url}");
        }
        for rest in
            ["", "/", ":5432", "h:x", "h:0", "h:65536", "::1", "me:hunter2@h/", "h/shop", "h?a=b", "h,i:1"]
        {
            let why = target(&format!("postgresql://{rest}")).err().unwrap();
            assert!(why.contains("--database") && !why.contains("hunter2"), "{rest}");
        }
    }
}
