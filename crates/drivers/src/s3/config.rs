//! Which bucket, and who asks: a URL and the environment, read once into a [`Config`].

use std::sync::Arc;

use percent_encoding::utf8_percent_encode;

use super::admin::S3Admin;
use super::service::S3Service;
use crate::contract::bulk::Admin;
use crate::contract::dialect::Dialect;
use crate::contract::driver::Settings;
use crate::contract::error::{ConfigError, Error};
use crate::net::aws::{Account, Product};
use crate::net::given::{Choice, Keys, Lookup};
use crate::net::http::Endpoint;
use crate::net::http::driver::System;
use crate::net::settings::ENCODED_VALUE;
use crate::net::url;

/// The settings of a URL.
pub(crate) const KEYS: Keys = Keys {
    schemes: &["s3://"],
    known: &[("region", None), ("endpoint", None), ("profile", None), ("bucket", None)],
    without_effect: &[],
    database: "prefix",
    aliases: &[],
};

const PRODUCT: Product = Product {
    host: |region| format!("s3.{region}.amazonaws.com"),
    endpoint: "AWS_ENDPOINT_URL_S3",
    url: "s3://BUCKET/PREFIX?region=REGION, such as s3://data/bench?region=eu-central-1",
};

/// Where the bucket is named.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Host,
    Path,
}

impl Choice for Place {
    const OPTIONS: &'static [(&'static str, Self)] = &[("host", Self::Host), ("path", Self::Path)];
}

/// A bucket, a prefix in it, and who asks.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(super) account: Account,
    pub(super) bucket: String,
    /// Before every key, with its slash; empty for none.
    pub(super) prefix: String,
    /// Before every path: the bucket, unless the host's name has it.
    pub(super) root: String,
    shown: Vec<(&'static str, String)>,
}

impl System for Config {
    type Service = S3Service;

    const DIALECT: &'static Dialect = super::DIALECT;

    fn read(url: &str, environment: Lookup<'_>) -> Result<Self, ConfigError> {
        let given = url::read(url, &KEYS)?;
        let bucket = given.text("host").unwrap_or_default().to_owned();
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
        if given.get("port").is_some() || !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(allowed) {
            return Err(ConfigError(format!(
                "url: a bucket's name has 3 to 63 small letters, digits, dots and hyphens; write {}",
                PRODUCT.url
            )));
        }
        let prefix = given.text("prefix").unwrap_or_default().trim_matches('/');
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let mut account = Account::of(&given, given.text("region"), &PRODUCT, environment)?;
        // At AWS buckets are reached by hosts of their own; other stores have one host.
        let default = if account.is_standard { Place::Host } else { Place::Path };
        let by_host = given.choice("bucket", default)? == Place::Host;
        let shown = ["region", "endpoint", "bucket"].into_iter();
        let mut shown: Vec<_> = shown.filter_map(|key| Some((key, given.text(key)?.to_owned()))).collect();
        if !account.is_standard && given.get("endpoint").is_none() {
            shown.push(("endpoint", account.endpoint.to_string()));
        }
        if by_host {
            account.endpoint = Arc::new(account.endpoint.with_prefix(&bucket)?);
        }
        let root = if by_host { String::new() } else { format!("/{bucket}") };
        Ok(Self { account, bucket, prefix, root, shown })
    }

    fn redacted(&self) -> String {
        let mut url = format!("s3://{}/{}", self.bucket, utf8_percent_encode(&self.prefix, ENCODED_VALUE));
        for (place, (name, value)) in self.shown.iter().enumerate() {
            url.extend([if place == 0 { "?" } else { "&" }, name, "="]);
            url.extend(utf8_percent_encode(value, ENCODED_VALUE));
        }
        url
    }

    fn endpoint(&self) -> &Arc<Endpoint> {
        &self.account.endpoint
    }

    fn service(self: &Arc<Self>, _settings: &Settings) -> S3Service {
        S3Service::new(self)
    }

    fn admin(self: &Arc<Self>, settings: &Settings) -> Result<Box<dyn Admin>, Error> {
        Ok(Box::new(S3Admin::connect(self, settings)?))
    }
}

impl Config {
    /// The path of what a key names below the prefix.
    pub(super) fn path(&self, key: &str) -> String {
        format!("{}/{}{key}", self.root, self.prefix)
    }

    /// The path of the bucket itself.
    pub(super) fn bucket_path(&self) -> &str {
        if self.root.is_empty() { "/" } else { &self.root }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<Config, String> {
        Config::read(url, &|_| None).map_err(|error| error.0)
    }

    #[test]
    fn a_url_names_the_bucket_and_no_secret_is_shown() {
        let config = read("s3://ID:secret@data/a/b/?region=r&endpoint=http://127.0.0.1:5000").unwrap();
        assert_eq!(config.redacted(), "s3://data/a/b/?region=r&endpoint=http://127.0.0.1:5000");
        assert_eq!((config.path("t/k"), config.bucket_path()), ("/data/a/b/t/k".to_owned(), "/data"));
        let config = read("s3://ID:secret@data?region=eu-west-1").unwrap();
        assert_eq!(config.account.endpoint.to_string(), "https://data.s3.eu-west-1.amazonaws.com");
        assert_eq!((config.path("t/k"), config.bucket_path()), ("/t/k".to_owned(), "/"));
        assert_eq!(config.redacted(), "s3://data/?region=eu-west-1");
        let path = read("s3://ID:secret@data?region=eu-west-1&bucket=path").unwrap();
        assert_eq!(path.account.endpoint.to_string(), "https://s3.eu-west-1.amazonaws.com");
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (url, message) in [
            ("s3://ID:s@ab?region=r", "a bucket's name has 3 to 63"),
            ("s3://ID:s@Data?region=r", "a bucket's name has 3 to 63"),
            ("s3://ID:s@data:9000?region=r", "a bucket's name has 3 to 63"),
            ("s3://ID:s@data", "the region is missing; write s3://BUCKET"),
            ("s3://ID:s@data?region=r&bucket=x", "allowed are host, path"),
            ("s3://ID:s@data?object=1", "allowed are region, endpoint, profile, bucket"),
        ] {
            let told = read(url).unwrap_err();
            assert!(told.contains(message), "{url}: {told}");
        }
    }
}
