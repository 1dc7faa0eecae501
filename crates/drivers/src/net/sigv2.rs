//! Forms signed as AWS's oldest services want them: Signature Version 2, by HMAC-SHA256
//! (<https://docs.aws.amazon.com/AmazonSimpleDB/latest/DeveloperGuide/HMACAuth.html>).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_encode;
use ring::hmac;

use crate::contract::calendar::civil_from_days;
use crate::net::sigv4::{Credentials, SECONDS_OF_A_DAY, UNRESERVED, query};

/// Signs forms to the path `/` of a service.
pub(crate) struct Signer {
    access_key: String,
    token: Option<String>,
    key: hmac::Key,
    /// The header `Host`, in small letters.
    host: String,
}

impl Signer {
    /// A signer of forms to a host, as the header `Host` names it.
    pub(crate) fn new(credentials: &Credentials, host: &str) -> Self {
        Self {
            access_key: credentials.access_key.clone(),
            token: credentials
                .token
                .as_ref()
                .map(|token| String::from_utf8_lossy(token.expose()).into_owned()),
            key: hmac::Key::new(hmac::HMAC_SHA256, credentials.secret.expose()),
            host: host.to_ascii_lowercase(),
        }
    }

    /// The form of these parameters, signed for `POST` at a time, in seconds since 1970.
    pub(crate) fn form<'a>(&self, parameters: impl Iterator<Item = (&'a str, &'a str)>, time: u64) -> String {
        let stamp = stamp(time);
        let parameters: Vec<_> = parameters.collect();
        self.signed("POST", [parameters, vec![("Timestamp", stamp.as_str())]].concat())
    }

    fn signed<'a>(&'a self, method: &str, mut parameters: Vec<(&'a str, &'a str)>) -> String {
        parameters.extend([("AWSAccessKeyId", self.access_key.as_str()), ("SignatureMethod", "HmacSHA256")]);
        parameters.push(("SignatureVersion", "2"));
        parameters.extend(self.token.as_deref().map(|token| ("SecurityToken", token)));
        let form = query(&parameters);
        let signature = hmac::sign(&self.key, format!("{method}\n{}\n/\n{form}", self.host).as_bytes());
        let signature = STANDARD.encode(signature);
        format!("{form}&Signature={}", percent_encode(signature.as_bytes(), UNRESERVED))
    }
}

/// `2011-10-03T15:19:30Z`.
fn stamp(time: u64) -> String {
    let (year, month, day) = civil_from_days((time / SECONDS_OF_A_DAY) as i64);
    let second = time % SECONDS_OF_A_DAY;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::secret::Password;

    fn example(token: Option<&str>) -> Signer {
        let secret = Password::new("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        let token = token.map(Password::new);
        let credentials = Credentials { access_key: "AKIAIOSFODNN7EXAMPLE".to_owned(), secret, token };
        Signer::new(&credentials, "ElasticMapReduce.amazonaws.com")
    }

    /// "Signature Version 2 signing process", "Example Signature Version 2 request", in AWS's general reference.
    #[test]
    fn the_example_of_aws_has_its_signature() {
        let parameters = vec![
            ("Action", "DescribeJobFlows"),
            ("Version", "2009-03-31"),
            ("Timestamp", "2011-10-03T15:19:30"),
        ];
        assert_eq!(
            example(None).signed("GET", parameters),
            "AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Action=DescribeJobFlows&SignatureMethod=HmacSHA256\
             &SignatureVersion=2&Timestamp=2011-10-03T15%3A19%3A30&Version=2009-03-31\
             &Signature=i91nKc4PWAt0JJIdXwz9HxZCJDdiy6cf%2FMj6vPxyYIs%3D"
        );
    }

    #[test]
    fn a_token_and_the_time_are_signed() {
        let form = example(Some("t/k")).form([("Action", "ListDomains")].into_iter(), 1_317_655_170);
        assert!(form.contains("&SecurityToken=t%2Fk&"), "{form}");
        assert!(form.contains("&Timestamp=2011-10-03T15%3A19%3A30Z&Signature="), "{form}");
        assert!(!form.contains("wJalr"), "{form}");
    }
}
