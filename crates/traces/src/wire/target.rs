//! The server that is recorded.

const SCHEMES: [&str; 2] = ["postgresql://", "postgres://"];
const PORT: u16 = 5432;
const ALLOWED: &str = "allowed: such as postgresql://10.0.0.5:5432/";

/// The `host:port` of a server's URL.
///
/// # Errors
///
/// If it is none of `PostgreSQL`, or has more than that. The message shows nothing of it: that might be a password.
pub fn target(url: &str) -> Result<String, String> {
    let rest = SCHEMES.iter().find_map(|scheme| url.strip_prefix(scheme)).ok_or_else(|| {
        format!(
            "it is no URL of PostgreSQL ({ALLOWED}); of MariaDB and MySQL, import the general log by `nephoscope trace \
             import`"
        )
    })?;
    let address = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().unwrap_or(0)),
        _ => (address, PORT),
    };
    let is_host = !host.is_empty() && !host.contains(['@', '/', '?', '#', ',', '%']);
    if !is_host || port == 0 || (host.contains(':') && !(host.starts_with('[') && host.ends_with(']'))) {
        return Err(format!(
            "it has more or less than a host and a port ({ALLOWED}); user and password are the clients', and \
             --database chooses a database"
        ));
    }
    Ok(format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host_and_a_port_and_nothing_else() {
        for (url, address) in [
            ("postgresql://h:5433/", "h:5433"),
            ("postgres://10.0.0.5", "10.0.0.5:5432"),
            ("postgresql://[::1]:7/", "[::1]:7"),
            ("postgresql://[::1]", "[::1]:5432"),
        ] {
            assert_eq!(target(url).as_deref(), Ok(address));
        }
        for url in ["", "h:5432", "mysql://h:3306/", "postgresql:h"] {
            assert!(target(url).is_err_and(|why| why.contains("general log")), "{url}");
        }
        for rest in
            ["", "/", ":5432", "h:x", "h:0", "h:65536", "::1", "me:hunter2@h/", "h/shop", "h?a=b", "h,i:1"]
        {
            let why = target(&format!("postgresql://{rest}")).unwrap_err();
            assert!(why.contains("--database") && !why.contains("hunter2"), "{rest}");
        }
    }
}
