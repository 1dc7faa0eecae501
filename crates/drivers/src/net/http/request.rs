//! A request as bytes.

use std::io::Write as _;

use crate::contract::error::Error;

/// What a request wants done with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Gives the target.
    Get,
    /// Gives its headers alone.
    Head,
    /// Has it handle the body.
    Post,
    /// Puts the body in its place.
    Put,
    /// Removes it.
    Delete,
}

impl Method {
    /// Its name in a request.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }

    /// Whether a request without a body says so (RFC 9110, section 8.6).
    const fn expects_body(self) -> bool {
        matches!(self, Self::Post | Self::Put)
    }
}

/// A request. `Content-Length` is written by itself; all other headers are the caller's, `Host` among them.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What is wanted.
    pub method: Method,
    /// Path and query, percent-encoded, from the first `/` on.
    pub target: &'a str,
    /// Names and values of headers.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body; empty for none.
    pub body: &'a [u8],
}

impl Request<'_> {
    /// Writes the request behind `out`. The error is a target or a header that would end too early and begin another
    /// one; then nothing is written.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        self.check()?;
        // Writing into memory does not fail.
        let _ = write!(out, "{} {} HTTP/1.1\r\n", self.method.name(), self.target);
        for (name, value) in self.headers {
            let _ = write!(out, "{name}: {value}\r\n");
        }
        if !self.body.is_empty() || self.method.expects_body() {
            let _ = write!(out, "Content-Length: {}\r\n", self.body.len());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.body);
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        if !self.target.starts_with('/') || !self.target.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::other(
                "HTTP: a target begins with '/' and holds neither blanks nor other characters than ASCII's",
            ));
        }
        for (name, value) in self.headers {
            if name.is_empty() || !name.bytes().all(is_token) {
                return Err(Error::other("HTTP: the name of a header holds a character that none may have"));
            }
            if value.bytes().any(|byte| byte != b'\t' && byte.is_ascii_control()) {
                return Err(Error::other(format!(
                    "HTTP: the value of header {name} holds a control character"
                )));
            }
        }
        Ok(())
    }
}

/// RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(request: &Request<'_>) -> Result<String, Error> {
        let mut out = Vec::new();
        request.write(&mut out).map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_request_is_written_as_the_rfc_has_it() {
        let headers = [("Host", "127.0.0.1:8000"), ("X-Amz-Target", "DynamoDB_20120810.ListTables")];
        let mut request = Request { method: Method::Post, target: "/?a=b", headers: &headers, body: b"{}" };
        let expected = "POST /?a=b HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\
                        X-Amz-Target: DynamoDB_20120810.ListTables\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(written(&request).unwrap(), expected);
        (request.method, request.headers, request.body) = (Method::Get, &[], b"");
        assert_eq!(written(&request).unwrap(), "GET /?a=b HTTP/1.1\r\n\r\n");
        request.method = Method::Put;
        assert_eq!(written(&request).unwrap(), "PUT /?a=b HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    }

    #[test]
    fn nothing_in_a_request_can_begin_another_one() {
        fn request<'a>(target: &'a str, headers: &'a [(&'a str, &'a str)]) -> Request<'a> {
            Request { method: Method::Get, target, headers, body: b"" }
        }
        for target in ["", "a", "/a b", "/a\r\nX: y", "/ä"] {
            assert!(written(&request(target, &[])).is_err(), "{target:?}");
        }
        for header in [("", "a"), ("a b", "c"), ("a:", "b"), ("a", "b\r\nc: d"), ("a", "b\0")] {
            let headers = [header];
            assert!(written(&request("/", &headers)).is_err(), "{header:?}");
        }
        assert!(written(&request("/", &[("a", "ä b\t")])).is_ok());
    }
}
