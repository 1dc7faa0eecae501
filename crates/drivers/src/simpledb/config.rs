//! Which region, what domains are called, and who asks: a URL and the environment, read once into a [`Config`].

use std::sync::Arc;

use super::admin::SimpleDbAdmin;
use super::service::SimpleDbService;
use crate::contract::bulk::Admin;
use crate::contract::dialect::Dialect;
use crate::contract::driver::Settings;
use crate::contract::error::{ConfigError, Error};
use crate::net::aws::{Account, Product};
use crate::net::given::{Keys, Lookup};
use crate::net::http::Endpoint;
use crate::net::http::driver::System;
use crate::net::sigv2::Signer;
use crate::net::url;

/// The settings of a URL.
pub(crate) const KEYS: Keys = Keys {
    schemes: &["simpledb://"],
    known: &[("endpoint", None), ("profile", None)],
    without_effect: &[],
    database: "prefix",
    aliases: &[],
};

const PRODUCT: Product = Product {
    // The first region's host has no name of it.
    host: |region| match region {
        "us-east-1" => "sdb.amazonaws.com".to_owned(),
        _ => format!("sdb.{region}.amazonaws.com"),
    },
    endpoint: "AWS_ENDPOINT_URL_SIMPLEDB",
    url: "simpledb://REGION/PREFIX, such as simpledb://eu-west-1/bench-",
};

/// A region, what precedes the names of domains, and who asks.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(super) account: Account,
    pub(super) prefix: String,
}

impl System for Config {
    type Service = SimpleDbService;

    const DIALECT: &'static Dialect = super::DIALECT;

    fn read(url: &str, environment: Lookup<'_>) -> Result<Self, ConfigError> {
        let given = url::read(url, &KEYS)?;
        if given.get("port").is_some() {
            return Err(ConfigError(format!("url: a region has no port; write {}", PRODUCT.url)));
        }
        let prefix = given.text("prefix").unwrap_or_default().to_owned();
        if !prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)) {
            return Err(ConfigError(format!(
                "url: a domain's name has letters, digits, and \"_\", \"-\" and \".\"; write {}",
                PRODUCT.url
            )));
        }
        Ok(Self { account: Account::of(&given, given.text("host"), &PRODUCT, environment)?, prefix })
    }

    fn redacted(&self) -> String {
        let Self { account, prefix } = self;
        let slash = if prefix.is_empty() { "" } else { "/" };
        format!("simpledb://{}{slash}{prefix}{}", account.region, account.shown_endpoint())
    }

    fn endpoint(&self) -> &Arc<Endpoint> {
        &self.account.endpoint
    }

    fn service(self: &Arc<Self>, settings: &Settings) -> SimpleDbService {
        SimpleDbService::new(self, settings.consistency.as_deref() == Some("strong"))
    }

    fn admin(self: &Arc<Self>, settings: &Settings) -> Result<Box<dyn Admin>, Error> {
        Ok(Box::new(SimpleDbAdmin::connect(self, settings)?))
    }
}

impl Config {
    pub(super) fn signer(&self) -> Signer {
        Signer::new(&self.account.credentials, self.account.endpoint.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<Config, String> {
        Config::read(url, &|_| None).map_err(|error| error.0)
    }

    #[test]
    fn a_url_names_the_region_and_no_secret_is_shown() {
        let config = read("simpledb://ID:s%2Fcret@eu-west-1/b-?endpoint=http://127.0.0.1:8000").unwrap();
        assert_eq!(config.redacted(), "simpledb://eu-west-1/b-?endpoint=http://127.0.0.1:8000");
        assert!(!format!("{config:?}").contains("s/cret"));
        for (region, host) in [("us-east-1", "sdb"), ("eu-west-1", "sdb.eu-west-1")] {
            let config = read(&format!("simpledb://ID:s@{region}")).unwrap();
            assert_eq!(config.redacted(), format!("simpledb://{region}"));
            assert_eq!(config.endpoint().to_string(), format!("https://{host}.amazonaws.com"));
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (url, message) in [
            ("simpledb://ID:s@", "the region is missing; write simpledb://REGION"),
            ("simpledb://ID:s@r/a%20b", "a domain's name has letters, digits, and"),
            ("simpledb://ID:s@localhost:8000", "a region has no port; write simpledb://REGION/PREFIX"),
            ("simpledb://ID:s@r?tls=off", "allowed are endpoint, profile"),
        ] {
            let told = read(url).unwrap_err();
            assert!(told.contains(message), "{url}: {told}");
        }
    }
}
