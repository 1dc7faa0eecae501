//! Where a service is, and who asks: region, endpoint and credentials, where AWS's own tools look for them
//! (<https://docs.aws.amazon.com/sdkref/latest/guide/settings-reference.html>).

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use percent_encoding::utf8_percent_encode;

use crate::contract::error::ConfigError;
use crate::net::given::{Given, Lookup};
use crate::net::http::Endpoint;
use crate::net::private_file;
use crate::net::secret::Password;
use crate::net::settings::ENCODED_VALUE;
use crate::net::sigv4::{Credentials, Signer};

/// A service as its URLs and the environment name it.
pub(crate) struct Product {
    /// Its host in a region.
    pub(crate) host: fn(&str) -> String,
    /// The variable of its endpoint.
    pub(crate) endpoint: &'static str,
    /// How its URLs are written, for messages.
    pub(crate) url: &'static str,
}

/// A service in a region, and who asks.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) region: String,
    pub(crate) endpoint: Arc<Endpoint>,
    /// Whether the endpoint is AWS's own, of the region.
    pub(crate) is_standard: bool,
    pub(crate) credentials: Credentials,
}

/// The settings of a profile in one of AWS's files.
fn profile(text: &str, section: &str) -> Vec<(String, String)> {
    let (mut inside, mut found) = (false, Vec::new());
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            inside = name.split_whitespace().collect::<Vec<_>>().join(" ") == section;
        } else if inside
            && !line.starts_with(['#', ';'])
            && let Some((name, value)) = line.split_once('=')
        {
            found.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    found
}

/// Where a file is: where the variable says, or in the folder `.aws` at home.
fn path(environment: Lookup<'_>, variable: &str, name: &str) -> Option<PathBuf> {
    let text = |variable| environment(variable).filter(|text| !text.is_empty());
    text(variable).map(PathBuf::from).or_else(|| Some(PathBuf::from(text("HOME")?).join(".aws").join(name)))
}

/// The credentials: those of the environment, unless a profile is named; else those of the profile, or the default one,
/// in the credentials file. `AWS_PROFILE` names a profile where the environment has no credentials.
pub fn credentials(environment: Lookup<'_>, named: Option<&str>) -> Result<Credentials, ConfigError> {
    let text = |variable: &str| environment(variable).filter(|text| !text.is_empty());
    if named.is_none() && (text("AWS_ACCESS_KEY_ID").is_some() || text("AWS_SECRET_ACCESS_KEY").is_some()) {
        return Credentials::of(environment);
    }
    let of_environment = text("AWS_PROFILE");
    let section = named.or(of_environment.as_deref()).unwrap_or("default");
    let file = path(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
    let read = file.as_ref().and_then(|file| private_file::read("the credentials file", file));
    let settings = profile(&String::from_utf8_lossy(&read.unwrap_or_default()), section);
    let value = |name| settings.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    match (value("aws_access_key_id"), value("aws_secret_access_key")) {
        (Some(access_key), Some(secret)) => Ok(Credentials {
            access_key,
            secret: Password::new(secret),
            token: value("aws_session_token").map(Password::new),
        }),
        _ => {
            let place =
                file.map_or_else(|| "~/.aws/credentials".to_owned(), |file| file.display().to_string());
            Err(ConfigError(format!(
                "credentials: there are none; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write \
                 aws_access_key_id and aws_secret_access_key under [{section}] in {place}, readable by its owner alone"
            )))
        }
    }
}

/// The region that the environment names, or the profile in AWS's configuration file.
fn region(environment: Lookup<'_>, named: Option<&str>) -> Option<String> {
    let text = |variable: &str| environment(variable).filter(|text| !text.is_empty());
    text("AWS_REGION").or_else(|| text("AWS_DEFAULT_REGION")).or_else(|| {
        let of_environment = text("AWS_PROFILE");
        let section = match named.or(of_environment.as_deref()) {
            None | Some("default") => "default".to_owned(),
            Some(name) => format!("profile {name}"),
        };
        let file = path(environment, "AWS_CONFIG_FILE", "config")?;
        let settings = profile(&fs::read_to_string(file).ok()?, &section);
        settings.into_iter().rev().find(|(name, _)| name == "region").map(|(_, region)| region)
    })
}

impl Account {
    /// Reads what a URL says, and what it leaves to the environment. `named` is the region that it names.
    pub(crate) fn of(
        given: &Given,
        named: Option<&str>,
        product: &Product,
        environment: Lookup<'_>,
    ) -> Result<Self, ConfigError> {
        let of_profile = given.text("profile");
        let region =
            named.map(str::to_owned).or_else(|| region(environment, of_profile)).ok_or_else(|| {
                ConfigError(format!("url: the region is missing; write {}, or set AWS_REGION", product.url))
            })?;
        if !region.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
            return Err(ConfigError(format!(
                "url: a region is of small letters, digits and hyphens; write {}",
                product.url
            )));
        }
        let text = |variable: &str| environment(variable).filter(|text| !text.is_empty());
        let endpoint = given.text("endpoint").map(str::to_owned);
        let endpoint = endpoint.or_else(|| text(product.endpoint)).or_else(|| text("AWS_ENDPOINT_URL"));
        let is_standard = endpoint.is_none();
        let endpoint = endpoint.unwrap_or_else(|| format!("https://{}", (product.host)(&region)));
        let credentials = match (given.text("user"), &given.password) {
            (None, None) => credentials(environment, of_profile)?,
            (Some(user), Some(secret)) => {
                Credentials { access_key: user.to_owned(), secret: secret.clone(), token: None }
            }
            _ => {
                return Err(ConfigError(
                    "url: an access key goes with its secret; one is missing".to_owned(),
                ));
            }
        };
        let endpoint = Arc::new(Endpoint::parse(&endpoint, environment)?);
        Ok(Self { region, endpoint, is_standard, credentials })
    }

    /// What a manifest says of it, and of the version of its interface.
    pub(crate) fn facts(&self, version: &str) -> Vec<(String, String)> {
        let (region, endpoint) = (self.region.clone(), self.endpoint.to_string());
        let facts = [("region", region), ("endpoint", endpoint), ("api_version", version.to_owned())];
        facts.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// Signs requests to a service.
    pub(crate) fn signer(&self, service: &str) -> Signer {
        Signer::new(self.credentials.clone(), &self.region, service)
    }

    /// The options of a URL that say where it is, unless that is where AWS has it.
    pub(crate) fn shown_endpoint(&self) -> String {
        let endpoint = self.endpoint.to_string();
        let shown = utf8_percent_encode(&endpoint, ENCODED_VALUE);
        if self.is_standard { String::new() } else { format!("?endpoint={shown}") }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const PRODUCT: Product = Product {
        host: |region| format!("dynamodb.{region}.amazonaws.com"),
        endpoint: "AWS_ENDPOINT_URL_DYNAMODB",
        url: "dynamodb://eu-central-1",
    };

    /// A home with AWS's files, readable by their owner alone.
    fn home() -> PathBuf {
        let home = std::env::temp_dir().join(format!("nephoscope-aws-{}", std::process::id()));
        fs::create_dir_all(home.join(".aws")).unwrap();
        let file = home.join(".aws/credentials");
        let text = "[default]\naws_access_key_id=D\naws_secret_access_key = hidden\n\n[ other ]\n# a comment = 1\n\
                    aws_access_key_id = O\naws_secret_access_key = veiled\naws_session_token = t=t\n";
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let text = "[default]\nregion = eu-north-1\n[profile other]\nregion = eu-west-1\n";
        fs::write(home.join(".aws/config"), text).unwrap();
        home
    }

    const KEY: &[(&str, &str)] = &[("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "s")];
    const OTHER: &[(&str, &str)] = &[("AWS_PROFILE", "other")];

    #[test]
    fn credentials_are_where_the_tools_of_aws_look_for_them() {
        let home = home();
        let known = |values: &'static [(&'static str, &'static str)]| {
            let home = home.display().to_string();
            move |name: &str| match name {
                "HOME" => Some(home.clone()),
                _ => values.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()),
            }
        };
        for (values, named, key) in
            [(KEY, None, "E"), (&[][..], None, "D"), (OTHER, None, "O"), (KEY, Some("other"), "O")]
        {
            assert_eq!(credentials(&known(values), named).unwrap().access_key, key);
        }
        let other = credentials(&known(OTHER), None).unwrap();
        assert_eq!((other.secret.expose(), other.token.unwrap().expose()), (&b"veiled"[..], &b"t=t"[..]));
        let told = credentials(&known(&[]), Some("none")).unwrap_err().to_string();
        assert!(told.contains("under [none] in ") && told.contains("AWS_ACCESS_KEY_ID"), "{told}");
        let one = credentials(&known(&[("AWS_ACCESS_KEY_ID", "E")]), None).unwrap_err().to_string();
        assert!(one.contains("AWS_SECRET_ACCESS_KEY is not set"), "{one}");
        assert_eq!(region(&known(&[]), None).unwrap(), "eu-north-1");
        assert_eq!(region(&known(OTHER), None).unwrap(), "eu-west-1");
        assert_eq!(region(&known(&[("AWS_REGION", "r")]), Some("other")).unwrap(), "r");
    }

    #[test]
    fn the_endpoint_is_that_of_the_region_unless_another_is_named() {
        let known = |name: &str| match name {
            "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("x".to_owned()),
            _ => None,
        };
        let account = Account::of(&Given::default(), Some("eu-west-3"), &PRODUCT, &known).unwrap();
        assert_eq!(account.endpoint.to_string(), "https://dynamodb.eu-west-3.amazonaws.com");
        assert_eq!((account.shown_endpoint(), account.is_standard), (String::new(), true));
        let local = |name: &str| match name {
            "AWS_ENDPOINT_URL_DYNAMODB" => Some("http://127.0.0.1:8000".to_owned()),
            _ => known(name),
        };
        let account = Account::of(&Given::default(), Some("local"), &PRODUCT, &local).unwrap();
        assert_eq!(account.shown_endpoint(), "?endpoint=http://127.0.0.1:8000");
        for region in [None, Some("a/b")] {
            let told = Account::of(&Given::default(), region, &PRODUCT, &known).unwrap_err().to_string();
            assert!(told.contains("write dynamodb://eu-central-1"), "{told}");
        }
    }
}
