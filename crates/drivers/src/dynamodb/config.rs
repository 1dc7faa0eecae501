//! Which region, and who asks: a URL and the environment, read once into a [`Config`].

use std::sync::Arc;

use super::admin::DynamoDbAdmin;
use super::service::DynamoDbService;
use crate::contract::bulk::Admin;
use crate::contract::dialect::Dialect;
use crate::contract::driver::Settings;
use crate::contract::error::{ConfigError, Error};
use crate::net::aws::{Account, Product};
use crate::net::given::{Keys, Lookup};
use crate::net::http::Endpoint;
use crate::net::http::driver::System;
use crate::net::url;

/// The settings of a URL.
pub(crate) const KEYS: Keys = Keys {
    schemes: &["dynamodb://"],
    known: &[("endpoint", None), ("profile", None)],
    without_effect: &[],
    database: "database",
    aliases: &[],
};

const PRODUCT: Product = Product {
    host: |region| format!("dynamodb.{region}.amazonaws.com"),
    endpoint: "AWS_ENDPOINT_URL_DYNAMODB",
    url: "dynamodb://REGION, such as dynamodb://eu-central-1",
};

/// A region, and who asks.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(super) account: Account,
}

impl System for Config {
    type Service = DynamoDbService;

    const DIALECT: &'static Dialect = super::DIALECT;

    fn read(url: &str, environment: Lookup<'_>) -> Result<Self, ConfigError> {
        let given = url::read(url, &KEYS)?;
        if given.get("database").is_some() || given.get("port").is_some() {
            return Err(ConfigError(format!("url: it has more than a region; write {}", PRODUCT.url)));
        }
        Ok(Self { account: Account::of(&given, given.text("host"), &PRODUCT, environment)? })
    }

    fn redacted(&self) -> String {
        format!("dynamodb://{}{}", self.account.region, self.account.shown_endpoint())
    }

    fn endpoint(&self) -> &Arc<Endpoint> {
        &self.account.endpoint
    }

    fn service(self: &Arc<Self>, settings: &Settings) -> DynamoDbService {
        DynamoDbService::new(&self.account, settings.consistency.as_deref() == Some("strong"))
    }

    fn admin(self: &Arc<Self>, settings: &Settings) -> Result<Box<dyn Admin>, Error> {
        Ok(Box::new(DynamoDbAdmin::connect(&self.account, settings)?))
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
        let config = read("dynamodb://ID:s%2Fcret@eu-west-1?endpoint=http://127.0.0.1:8000").unwrap();
        assert_eq!(config.redacted(), "dynamodb://eu-west-1?endpoint=http://127.0.0.1:8000");
        assert_eq!(config.account.credentials.secret.expose(), b"s/cret");
        assert_eq!(read("dynamodb://ID:s@eu-west-1").unwrap().redacted(), "dynamodb://eu-west-1");
        assert!(!format!("{config:?}").contains("s/cret"));
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (url, message) in [
            ("dynamodb://ID:s@", "the region is missing; write dynamodb://REGION"),
            ("dynamodb://ID:s@r/table", "it has more than a region; write dynamodb://REGION"),
            ("dynamodb://ID:s@localhost:8000", "it has more than a region"),
            ("dynamodb://ID@r", "an access key goes with its secret"),
            ("dynamodb://ID:s@r?tls=off", "parameter \"tls\" is not known; allowed are endpoint, profile"),
            ("dynamodb://ID:s@r?endpoint=127.0.0.1", "endpoint: it has no scheme"),
            ("dynamodb://r", "credentials: there are none; set AWS_ACCESS_KEY_ID"),
        ] {
            let told = read(url).unwrap_err();
            assert!(told.contains(message), "{url}: {told}");
        }
    }
}
