//! Requests signed as AWS wants them: Signature Version 4
//! (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>).

use std::cell::RefCell;
use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use ring::{digest, hmac};

use crate::contract::calendar::civil_from_days;
use crate::contract::error::{ConfigError, Error};
use crate::net::hex::hex;
use crate::net::http::{Method, Request};
use crate::net::secret::Password;

/// What AWS leaves as it is in a path or a query.
pub(super) const UNRESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const PATH: &AsciiSet = &UNRESERVED.remove(b'/');
pub(super) const SECONDS_OF_A_DAY: u64 = 86_400;

/// Who signs. The secret and the token are never shown.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The access key's identifier.
    pub access_key: String,
    /// The access key's secret.
    pub secret: Password,
    /// The token of credentials that are lent for a time.
    pub token: Option<Password>,
}

impl Credentials {
    /// Reads `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, where there is one, `AWS_SESSION_TOKEN`.
    pub fn of(environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let text = |variable: &str| environment(variable).filter(|text| !text.is_empty());
        let needed = |variable: &str| {
            let missing =
                || ConfigError(format!("environment: {variable} is not set; AWS's requests are signed"));
            text(variable).ok_or_else(missing)
        };
        Ok(Self {
            access_key: needed("AWS_ACCESS_KEY_ID")?,
            secret: Password::new(needed("AWS_SECRET_ACCESS_KEY")?),
            token: text("AWS_SESSION_TOKEN").map(Password::new),
        })
    }
}

/// A request as it is to be signed.
#[derive(Clone, Copy, Debug)]
pub struct Unsigned<'a> {
    /// What is wanted.
    pub method: Method,
    /// The path, not encoded, from the first `/` on.
    pub path: &'a str,
    /// The parameters of the query, not encoded.
    pub query: &'a [(&'a str, &'a str)],
    /// The headers to be signed, `Host` among them.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body.
    pub body: &'a [u8],
}

/// What signing adds to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The target, encoded as it was signed.
    pub target: String,
    /// The headers that are to be sent besides those that were signed.
    pub headers: Vec<(&'static str, String)>,
}

/// The key of a day.
struct Key {
    day: u64,
    key: hmac::Key,
}

/// Signs requests to a service of a region.
pub struct Signer {
    credentials: Credentials,
    region: String,
    service: String,
    key: RefCell<Option<Key>>,
}

impl Signer {
    /// A signer of requests to a service (`s3`, `dynamodb`) of a region (`eu-central-1`).
    #[must_use]
    pub fn new(credentials: Credentials, region: &str, service: &str) -> Self {
        let (region, service) = (region.to_owned(), service.to_owned());
        Self { credentials, region, service, key: RefCell::default() }
    }

    /// Signs a request at a time, in seconds since 1970: AWS refuses one that is off by more than 15 minutes.
    #[must_use]
    pub fn sign(&self, request: &Unsigned<'_>, time: u64) -> Signed {
        let stamp = stamp(time);
        let hash = hex(digest::digest(&digest::SHA256, request.body).as_ref());
        let mut added = vec![("X-Amz-Date", stamp.clone())];
        // S3 alone wants it as a header.
        if self.service == "s3" {
            added.push(("X-Amz-Content-Sha256", hash.clone()));
        }
        if let Some(token) = &self.credentials.token {
            added.push(("X-Amz-Security-Token", String::from_utf8_lossy(token.expose()).into_owned()));
        }
        let path = percent_encode(request.path.as_bytes(), PATH).to_string();
        let query = query(request.query);
        let (names, headers) = canonical_headers(request.headers, &added);
        // Every service but S3 signs a path that is encoded once more.
        let signed_path = if self.service == "s3" {
            path.clone()
        } else {
            percent_encode(path.as_bytes(), PATH).to_string()
        };
        let canonical =
            format!("{}\n{signed_path}\n{query}\n{headers}\n{names}\n{hash}", request.method.name());
        let scope = format!("{}/{}/{}/aws4_request", &stamp[..8], self.region, self.service);
        let canonical = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
        let signature = self.signature(time, &format!("AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{canonical}"));
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
            self.credentials.access_key
        );
        added.push(("Authorization", authorization));
        let target = if query.is_empty() { path } else { format!("{path}?{query}") };
        Signed { target, headers: added }
    }

    /// Writes a request behind `out`, signed at a time. The error is one that cannot be a request.
    pub fn write(&self, request: &Unsigned<'_>, time: u64, out: &mut Vec<u8>) -> Result<(), Error> {
        let Unsigned { method, headers, body, .. } = *request;
        let signed = self.sign(request, time);
        let added = signed.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let headers: Vec<(&str, &str)> = headers.iter().copied().chain(added).collect();
        Request { method, target: &signed.target, headers: &headers, body }.write(out)
    }

    fn signature(&self, time: u64, text: &str) -> String {
        let day = time / SECONDS_OF_A_DAY;
        let mut known = self.key.borrow_mut();
        let known = match &mut *known {
            Some(key) if key.day == day => key,
            other => other.insert(Key { day, key: self.key_of(&stamp(time)[..8]) }),
        };
        hex(hmac::sign(&known.key, text.as_bytes()).as_ref())
    }

    fn key_of(&self, date: &str) -> hmac::Key {
        let start = [b"AWS4", self.credentials.secret.expose()].concat();
        let mut key = hmac::Key::new(hmac::HMAC_SHA256, &start);
        for part in [date, &self.region, &self.service, "aws4_request"] {
            key = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref());
        }
        key
    }
}

/// `20130524T000000Z`.
fn stamp(time: u64) -> String {
    let (year, month, day) = civil_from_days((time / SECONDS_OF_A_DAY) as i64);
    let second = time % SECONDS_OF_A_DAY;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// The parameters encoded and in the order of their encoded names.
pub(super) fn query(parameters: &[(&str, &str)]) -> String {
    let encode = |text: &str| percent_encode(text.as_bytes(), UNRESERVED).to_string();
    let mut encoded: Vec<_> = parameters.iter().map(|(name, value)| (encode(name), encode(value))).collect();
    encoded.sort();
    let encoded: Vec<String> = encoded.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    encoded.join("&")
}

/// The names of the headers, and their lines.
fn canonical_headers(given: &[(&str, &str)], added: &[(&str, String)]) -> (String, String) {
    let given = given.iter().copied();
    let all = given.chain(added.iter().map(|(name, value)| (*name, value.as_str())));
    let mut headers: Vec<(String, String)> = all
        .map(|(name, value)| {
            (name.to_ascii_lowercase(), value.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
        })
        .collect();
    headers.sort();
    let (mut names, mut lines) = (String::new(), String::new());
    for (name, value) in &headers {
        if !names.is_empty() {
            names.push(';');
        }
        names.push_str(name);
        // Writing into memory does not fail.
        let _ = writeln!(lines, "{name}:{value}");
    }
    (names, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The credentials of AWS's own examples.
    fn example(service: &str) -> Signer {
        let (access_key, secret) = match service {
            "s3" => ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
            _ => ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        };
        let secret = Password::new(secret);
        Signer::new(Credentials { access_key: access_key.into(), secret, token: None }, "us-east-1", service)
    }

    fn authorization(signed: &Signed) -> &str {
        signed.headers.iter().find(|(name, _)| *name == "Authorization").map(|(_, value)| value).unwrap()
    }

    /// 2013-05-24 00:00:00, the time of S3's examples.
    const DAY: u64 = 1_369_353_600;
    const HOST: (&str, &str) = ("Host", "examplebucket.s3.amazonaws.com");
    const GET: Unsigned<'static> =
        Unsigned { method: Method::Get, path: "/", query: &[], headers: &[HOST], body: b"" };

    /// "Examples: Signature Calculations" in the API reference of S3, "Authenticating Requests: Using the
    /// Authorization Header".
    #[test]
    fn the_examples_of_s3_have_their_signatures() {
        let get = Unsigned { path: "/test.txt", headers: &[HOST, ("Range", "bytes=0-9")], ..GET };
        let put = Unsigned {
            method: Method::Put,
            path: "/test$file.text",
            headers: &[
                HOST,
                ("Date", "Fri, 24 May 2013 00:00:00 GMT"),
                ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ],
            body: b"Welcome to Amazon S3.",
            ..GET
        };
        let lifecycle = Unsigned { query: &[("lifecycle", "")], ..GET };
        let list = Unsigned { query: &[("prefix", "J"), ("max-keys", "2")], ..GET };
        let signer = example("s3");
        for (request, target, signature) in [
            (get, "/test.txt", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
            (put, "/test%24file.text", "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
            (lifecycle, "/?lifecycle=", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
            (
                list,
                "/?max-keys=2&prefix=J",
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
        ] {
            let signed = signer.sign(&request, DAY);
            assert_eq!(signed.target, target);
            assert!(authorization(&signed).ends_with(&format!("Signature={signature}")), "{target}");
        }
        let signed = signer.sign(&get, DAY);
        let start = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
                     SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature=f0e8";
        assert!(authorization(&signed).starts_with(start));
    }

    /// "Create a signed AWS API request" in IAM's user guide: `ListUsers`, and the key on its way.
    #[test]
    fn the_example_of_iam_has_its_signature() {
        let headers = [
            ("Host", "iam.amazonaws.com"),
            ("Content-Type", "application/x-www-form-urlencoded; charset=utf-8"),
        ];
        let request = Unsigned {
            query: &[("Action", "ListUsers"), ("Version", "2010-05-08")],
            headers: &headers,
            ..GET
        };
        let signed = example("iam").sign(&request, 1_440_938_160);
        let signature = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7";
        assert!(authorization(&signed).ends_with(signature), "{}", authorization(&signed));
        assert_eq!(signed.headers[0], ("X-Amz-Date", "20150830T123600Z".to_owned()));
        assert!(!signed.headers.iter().any(|(name, _)| *name == "X-Amz-Content-Sha256"));
    }

    #[test]
    fn a_key_is_that_of_its_day() {
        let (one, other) = (example("s3"), example("s3"));
        for time in [DAY, DAY + 86_399, DAY + 86_400, DAY] {
            assert_eq!(one.sign(&GET, time), other.sign(&GET, time));
        }
        let third = example("s3");
        assert_eq!(one.sign(&GET, DAY + 86_400), third.sign(&GET, DAY + 86_400));
    }

    #[test]
    fn a_token_is_signed_and_nothing_secret_is_shown() {
        let known = |name: &str| {
            let values = [
                ("AWS_ACCESS_KEY_ID", "ID"),
                ("AWS_SECRET_ACCESS_KEY", "hidden"),
                ("AWS_SESSION_TOKEN", "veiled"),
            ];
            values.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
        };
        let credentials = Credentials::of(&known).unwrap();
        let shown = format!("{credentials:?}");
        assert!(shown.contains("ID") && !shown.contains("hidden") && !shown.contains("veiled"), "{shown}");
        let signed = Signer::new(credentials, "r", "s3").sign(&GET, DAY);
        assert!(authorization(&signed).contains("x-amz-security-token"));
        assert!(signed.headers.contains(&("X-Amz-Security-Token", "veiled".to_owned())));
        let missing = Credentials::of(&|name| known(name).filter(|_| name != "AWS_SECRET_ACCESS_KEY"));
        assert!(missing.unwrap_err().to_string().contains("AWS_SECRET_ACCESS_KEY"));
    }
}
