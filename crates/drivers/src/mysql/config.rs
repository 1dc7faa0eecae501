//! How to reach a server: a URL, environment variables and the user's option file, read once into a [`Config`].
//!
//! The names are those of MySQL's own client with hyphens
//! (<https://dev.mysql.com/doc/refman/8.4/en/connection-options.html>). What a URL leaves out the `[client]` group of the
//! option file gives, and what that leaves out the environment, in MySQL's own order.
//!
//! Where the rules differ from those of MySQL's client, this is why:
//!
//! * A host that is given is reached by TCP, `localhost` too; a Unix socket is used where `socket` names it, or where no
//!   host is given and there is one.
//! * An option file that others may read is left alone: it may hold a password.
//! * With `ssl-mode=VERIFY_CA` or `VERIFY_IDENTITY` and without `ssl-ca` the system's authorities are trusted.

mod build;
mod keys;
mod option_file;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use percent_encoding::utf8_percent_encode;

use crate::contract::error::ConfigError;
use crate::net::settings::{ENCODED, ENCODED_VALUE, Host, TlsSettings, redacted_host};
pub(crate) use keys::{KEYS, TLS_WORDS};

/// Where a local server's socket lies.
const SOCKETS: [&str; 3] = ["/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"];

/// How to reach a server, and as whom.
#[derive(Clone, Debug)]
pub struct Config {
    /// The servers in the order in which they are tried. Never empty.
    pub hosts: Vec<Host>,
    /// The user.
    pub user: String,
    /// The database; empty for none.
    pub database: String,
    /// How TLS is used. It never is over a Unix socket.
    pub tls: TlsSettings,
    /// Whether the server's RSA key is believed that comes without TLS.
    pub get_server_public_key: bool,
    /// The longest that making a connection to one host may take; `None` is without a limit of its own.
    pub connect_timeout: Option<Duration>,
    /// The parameters of [`Config::redacted`].
    shown: Vec<(&'static str, String)>,
}

impl Config {
    /// Reads a URL, with this process's environment and the user's option file for what the URL leaves out.
    pub fn parse(url: &str) -> Result<Self, ConfigError> {
        Self::parse_with(url, &crate::net::given::process_environment)
    }

    /// Reads a URL with another environment. Asked for are `MYSQL_PWD`, `MYSQL_HOST`, `MYSQL_TCP_PORT`,
    /// `MYSQL_UNIX_PORT`, `HOME`, `USER`, `LOGNAME`, `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    pub fn parse_with(url: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        build::config(url, environment, &SOCKETS.map(Path::new))
    }

    /// The URL that means the same, without the password: for logs and manifests.
    #[must_use]
    pub fn redacted(&self) -> String {
        let encode = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
        // A Unix socket stands among the parameters.
        let by_tcp = self.hosts.iter().filter(|host| !host.is_unix());
        let hosts: Vec<String> = by_tcp.map(redacted_host).collect();
        let mut url = format!(
            "mysql://{}@{}/{}?ssl-mode={}",
            encode(&self.user),
            hosts.join(","),
            encode(&self.database),
            build::mode_name(self.tls.mode)
        );
        for (name, value) in &self.shown {
            url.extend(["&", name, "="]);
            url.extend(utf8_percent_encode(value, ENCODED_VALUE));
        }
        url
    }
}
