//! Where the gateway is, and the namespace: a URL, read once into a [`Config`].

use std::sync::Arc;

use super::admin::HBaseAdmin;
use super::service::HBaseService;
use crate::contract::bulk::Admin;
use crate::contract::dialect::Dialect;
use crate::contract::driver::Settings;
use crate::contract::error::{ConfigError, Error};
use crate::net::given::{Keys, Lookup, Switch};
use crate::net::http::Endpoint;
use crate::net::http::driver::System;
use crate::net::url;

/// The settings of a URL.
pub(crate) const KEYS: Keys = Keys {
    schemes: &["hbase://"],
    known: &[("tls", None)],
    without_effect: &[],
    database: "namespace",
    aliases: &[],
};

/// The gateway's own.
const PORT: u16 = 8080;
const WRITTEN: &str = "write hbase://HOST:PORT/NAMESPACE";

/// A gateway, and a namespace of its tables.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(super) endpoint: Arc<Endpoint>,
    /// Empty for the default one.
    pub(super) namespace: String,
}

impl System for Config {
    type Service = HBaseService;

    const DIALECT: &'static Dialect = super::DIALECT;

    fn read(url: &str, environment: Lookup<'_>) -> Result<Self, ConfigError> {
        let given = url::read(url, &KEYS)?;
        if given.get("user").is_some() || given.password.is_some() {
            let what = "the gateway is asked without a user and a password";
            return Err(ConfigError(format!("url: {what}; {WRITTEN}")));
        }
        let namespace = given.text("namespace").filter(|name| *name != "default").unwrap_or_default();
        if !namespace.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            let what = "a namespace has letters, digits and \"_\"";
            return Err(ConfigError(format!("url: {what}; {WRITTEN}")));
        }
        let hosts = given.hosts(PORT)?;
        let [host] = hosts.as_slice() else {
            return Err(ConfigError(format!("url: it has more than one host; {WRITTEN}")));
        };
        let scheme = if given.choice("tls", Switch(false))?.0 { "https" } else { "http" };
        let endpoint = Arc::new(Endpoint::parse(&format!("{scheme}://{host}"), environment)?);
        Ok(Self { endpoint, namespace: namespace.to_owned() })
    }

    fn redacted(&self) -> String {
        let endpoint = self.endpoint.to_string();
        let (place, tls) = match endpoint.strip_prefix("https://") {
            Some(place) => (place, "?tls=true"),
            None => (endpoint.trim_start_matches("http://"), ""),
        };
        // Where the port is the scheme's own, the endpoint does not show it.
        let port = match (place.rsplit_once(':'), tls) {
            (Some((_, port)), _) if port.parse::<u16>().is_ok() => "",
            (_, "") => ":80",
            _ => ":443",
        };
        format!("hbase://{place}{port}/{}{tls}", self.namespace)
    }

    fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    fn service(self: &Arc<Self>, _settings: &Settings) -> HBaseService {
        HBaseService::new(self)
    }

    fn admin(self: &Arc<Self>, settings: &Settings) -> Result<Box<dyn Admin>, Error> {
        Ok(Box::new(HBaseAdmin::connect(self, settings)?))
    }
}

impl Config {
    /// The path of what stands below the namespace, which is encoded.
    pub(super) fn path(&self, below: &str) -> String {
        let colon = if self.namespace.is_empty() { "" } else { ":" };
        format!("/{}{colon}{below}", self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<Config, String> {
        Config::read(url, &|_| None).map_err(|error| error.0)
    }

    #[test]
    fn a_url_names_the_gateway_and_the_namespace() {
        for (url, shown, endpoint, path) in [
            ("hbase://", "hbase://localhost:8080/", "http://localhost:8080", "/t"),
            ("hbase://h/default", "hbase://h:8080/", "http://h:8080", "/t"),
            ("hbase://[::1]:80/b", "hbase://[::1]:80/b", "http://[::1]:80", "/b:t"),
            ("hbase://h:80/b", "hbase://h:80/b", "http://h", "/b:t"),
            ("hbase://h:443/b?tls=true", "hbase://h:443/b?tls=true", "https://h", "/b:t"),
        ] {
            let config = read(url).unwrap();
            assert_eq!((config.redacted().as_str(), config.endpoint.to_string().as_str()), (shown, endpoint));
            assert_eq!(config.path("t"), path);
            assert_eq!(read(shown).unwrap().redacted(), shown);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (url, message) in [
            ("hbase://me:secret@h", "is asked without a user and a password; write hbase://HOST:PORT"),
            ("hbase://h/a-b", "a namespace has letters, digits and"),
            ("hbase://h,i", "it has more than one host"),
            ("hbase://h?tls=on", "allowed are false, true"),
            ("hbase://h?family=f", "allowed are tls"),
        ] {
            let told = read(url).unwrap_err();
            assert!(told.contains(message) && !told.contains("secret"), "{url}: {told}");
        }
    }
}
