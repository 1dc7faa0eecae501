//! What the URL of an object store says.

/// The options of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) bucket: String,
    /// Before every key; empty for none.
    pub(super) prefix: String,
    pub(super) endpoint: String,
    pub(super) region: String,
    /// The bytes of an object.
    pub(super) object: u64,
    /// Whether all objects are written before a run.
    pub(super) fill: bool,
    /// Whether the bucket stands in the host's name.
    pub(super) by_host: bool,
}

/// The sizes of objects that are allowed: 512 bytes to 64 MiB, what is read at most.
const SIZES: std::ops::RangeInclusive<u64> = 512..=64 << 20;

impl Options {
    pub(super) fn parse(rest: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
        if !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(allowed) {
            return Err(
                "s3: a bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens".to_owned()
            );
        }
        if !prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._".contains(&byte)) {
            return Err("s3: a prefix is of letters, digits and /-._ here".to_owned());
        }
        let any =
            |names: &[&str]| names.iter().find_map(|name| environment(name).filter(|text| !text.is_empty()));
        let mut endpoint = any(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]);
        let mut region = any(&["AWS_REGION", "AWS_DEFAULT_REGION"]);
        let (mut object, mut fill, mut by_host) = (8192, true, None);
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let wrong = |allowed: &str| format!("s3: {name} is not that; allowed are {allowed}");
            match (name, value) {
                ("endpoint", value) => endpoint = Some(decoded(value)?),
                ("region", value) => region = Some(decoded(value)?),
                ("object", value) => {
                    let size = value.parse().ok().filter(|size| SIZES.contains(size));
                    object = size.ok_or_else(|| wrong("512 to 67108864 bytes"))?;
                }
                ("fill", "yes" | "no") => fill = value == "yes",
                ("fill", _) => return Err(wrong("yes and no")),
                ("bucket", "host" | "path") => by_host = Some(value == "host"),
                ("bucket", _) => return Err(wrong("host and path")),
                // Not shown: it may be a secret at the wrong place.
                _ => {
                    return Err(
                        "s3: an option is not known; allowed are endpoint, region, object, fill, bucket"
                            .to_owned(),
                    );
                }
            }
        }
        let region = region.unwrap_or_else(|| "us-east-1".to_owned());
        if region.is_empty() || !region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err("s3: a region is of letters, digits and hyphens".to_owned());
        }
        // At AWS buckets are reached by hosts of their own; other stores have one host.
        let by_host = by_host.unwrap_or(endpoint.is_none());
        let endpoint = endpoint.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
        let (bucket, prefix) = (bucket.to_owned(), prefix.trim_matches('/').to_owned());
        Ok(Self { bucket, prefix, endpoint, region, object, fill, by_host })
    }
}

fn decoded(text: &str) -> Result<String, String> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    decoded.map(std::borrow::Cow::into_owned).map_err(|_| "s3: an option is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rest: &str) -> Result<Options, String> {
        Options::parse(rest, &|_| None)
    }

    #[test]
    fn a_url_has_what_the_environment_lacks() {
        let options =
            parse("bucket/a/b/?endpoint=http%3A//127.0.0.1:5000&region=eu-west-1&object=65536&fill=no")
                .unwrap();
        let expected = Options {
            bucket: "bucket".into(),
            prefix: "a/b".into(),
            endpoint: "http://127.0.0.1:5000".into(),
            region: "eu-west-1".into(),
            object: 65_536,
            fill: false,
            by_host: false,
        };
        assert_eq!(options, expected);
        let environment = |name: &str| match name {
            "AWS_DEFAULT_REGION" => Some("eu-north-1".to_owned()),
            "AWS_ENDPOINT_URL" => Some("http://store:9000".to_owned()),
            _ => None,
        };
        let options = Options::parse("bucket", &environment).unwrap();
        assert_eq!((&*options.region, &*options.endpoint), ("eu-north-1", "http://store:9000"));
    }

    #[test]
    fn a_bucket_of_aws_has_a_host_of_its_own() {
        let options = parse("bucket?region=eu-west-3").unwrap();
        assert_eq!(options.endpoint, "https://s3.eu-west-3.amazonaws.com");
        assert!(options.by_host && options.fill && options.object == 8192);
        assert!(!parse("bucket?bucket=path").unwrap().by_host);
    }

    #[test]
    fn what_cannot_be_is_refused_and_no_secret_shown() {
        for (rest, said) in [
            ("", "3 to 63"),
            ("KEY:secret@bucket", "3 to 63"),
            ("bucket/a b", "a prefix"),
            ("bucket?object=1", "512 to"),
            ("bucket?fill=perhaps", "yes and no"),
            ("bucket?bucket=x", "host and path"),
            ("bucket?secret_key=secret", "allowed are endpoint"),
            ("bucket?region=a/b", "a region"),
        ] {
            let message = parse(rest).unwrap_err();
            assert!(message.contains(said) && !message.contains("secret"), "{rest}: {message}");
        }
    }
}
