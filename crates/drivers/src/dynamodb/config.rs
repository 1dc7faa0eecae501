//! Which region, and who asks: a URL and the environment, read once into a [`Config`].

use crate::contract::error::ConfigError;
use crate::net::aws::{Account, Product};
use crate::net::given::{Keys, Lookup, process_environment};
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
    service: "dynamodb",
    endpoint: "AWS_ENDPOINT_URL_DYNAMODB",
    url: "dynamodb://REGION, such as dynamodb://eu-central-1",
};

/// A region, and who asks.
#[derive(Clone, Debug)]
pub struct Config {
    pub(super) account: Account,
}

impl Config {
    /// Reads a URL, with this process's environment for what the URL leaves out.
    pub fn parse(url: &str) -> Result<Self, ConfigError> {
        Self::parse_with(url, &process_environment)
    }

    /// Reads a URL with another environment.
    pub fn parse_with(url: &str, environment: Lookup<'_>) -> Result<Self, ConfigError> {
        let given = url::read(url, &KEYS)?;
        if given.get("database").is_some() || given.get("port").is_some() {
            return Err(ConfigError(format!("url: it has more than a region; write {}", PRODUCT.url)));
        }
        Ok(Self { account: Account::of(&given, given.text("host"), &PRODUCT, environment)? })
    }

    /// The URL that means the same, without the credentials: for logs and manifests.
    #[must_use]
    pub fn redacted(&self) -> String {
        let endpoint = self.account.shown_endpoint();
        let mark = if endpoint.is_empty() { "" } else { "?" };
        format!("dynamodb://{}{mark}{endpoint}", self.account.region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<Config, String> {
        Config::parse_with(url, &|_| None).map_err(|error| error.0)
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
