//! What an answer says of its command: how many documents it touched, or why it failed.
//!
//! Numbers and names of errors are those of
//! <https://github.com/mongodb/mongo/blob/master/src/mongo/base/error_codes.yml>.

use super::bson::{self, Element, Elements};
use crate::contract::error::{Error, ErrorClass};
use crate::net::frame::shown;

/// How much of a server's text is shown.
const LONGEST_TEXT: usize = 1000;
/// The user is not who he says he is.
pub(super) const AUTHENTICATION_FAILED: &str = "18";

/// The parts of an answer that its command is judged by.
#[derive(Clone, Copy, Default)]
pub(super) struct Answer<'a> {
    is_ok: bool,
    /// How many documents were matched, stored or removed.
    pub(super) count: u64,
    pub(super) cursor: Option<&'a [u8]>,
    failure: Failure<'a>,
    /// What could not be written, document by document.
    write_errors: Option<&'a [u8]>,
    /// The write is done, and has not reached the level that was asked for.
    concern_error: Option<&'a [u8]>,
}

/// An error's number, name and text.
#[derive(Clone, Copy, Default)]
struct Failure<'a> {
    code: i64,
    name: &'a [u8],
    text: &'a [u8],
}

impl<'a> Failure<'a> {
    fn take(&mut self, element: &Element<'a>) {
        match element.name {
            b"code" => self.code = element.int().unwrap_or(0),
            b"codeName" => self.name = element.text().unwrap_or_default(),
            b"errmsg" => self.text = element.text().unwrap_or_default(),
            _ => {}
        }
    }

    fn of(document: &'a [u8]) -> Result<Self, Error> {
        let (mut elements, mut failure) = (Elements::of(document)?, Self::default());
        while let Some(element) = elements.next()? {
            failure.take(&element);
        }
        Ok(failure)
    }

    /// The error, in the words of the server.
    #[cold]
    fn error(&self) -> Error {
        let (text, name) = (shown(self.text, LONGEST_TEXT), shown(self.name, 100));
        let text = if text.is_empty() { "the server does not say why".to_owned() } else { text };
        let message = if name.is_empty() { text.clone() } else { format!("{name}: {text}") };
        let code = if self.code == 0 { String::new() } else { self.code.to_string() };
        let (class, outcome) = class_of(self.code, &text);
        let error = Error::new(class, code, message);
        match outcome {
            Outcome::Nothing => error.with_known_outcome(),
            Outcome::Unknown => error.with_unknown_outcome(),
        }
    }
}

/// What was done of a command that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Nothing,
    Unknown,
}

/// The class of an error, and what it says of the command.
fn class_of(code: i64, text: &str) -> (ErrorClass, Outcome) {
    use ErrorClass::{Constraint, LockTimeout, Other, ReadOnly, Serialization, ShuttingDown};
    use ErrorClass::{StatementTimeout, Throttled};
    use Outcome::{Nothing, Unknown};
    match code {
        // DuplicateKey, in three forms; DocumentValidationFailure.
        11000 | 11001 | 12582 | 121 => (Constraint, Nothing),
        // WriteConflict, SnapshotUnavailable.
        112 | 246 => (Serialization, Nothing),
        // LockTimeout, LockBusy.
        24 | 46 => (LockTimeout, Nothing),
        // NotWritablePrimary, LegacyNotPrimary, NotPrimaryNoSecondaryOk.
        10107 | 10058 | 13435 => (ReadOnly, Nothing),
        // PrimarySteppedDown: while the command ran, or while it waited for other members.
        189 => (ReadOnly, Unknown),
        // NotPrimaryOrSecondary, FailedToSatisfyReadPreference, ReadConcernMajorityNotAvailableYet.
        13436 | 133 | 134 => (ShuttingDown, Nothing),
        // ShutdownInProgress, InterruptedAtShutdown, InterruptedDueToReplStateChange; HostUnreachable, HostNotFound,
        // NetworkTimeout and SocketException, between a router and its shards.
        91 | 11600 | 11602 | 6 | 7 | 89 | 9001 => (ShuttingDown, Unknown),
        // MaxTimeMSExpired, ExceededTimeLimit, WriteConcernTimeout.
        50 | 262 | 64 => (StatementTimeout, Unknown),
        // IngressRequestRateLimitExceeded, TemporarilyUnavailable; RequestRateTooLarge of Azure Cosmos DB.
        462 | 365 | 16500 => (Throttled, Nothing),
        // Interrupted.
        11601 => (Other, Unknown),
        // Old servers, and those that speak the protocol, have no number here.
        0 if text.starts_with("not master") || text.starts_with("not primary") => (ReadOnly, Nothing),
        _ => (Other, Nothing),
    }
}

/// Whether the member is not what it was when the connection was made, or goes down: whoever wants the primary has to
/// look for it (`state change errors` of the specification of server discovery and monitoring).
pub(super) fn tells_of_change(error: &Error) -> bool {
    error.class() == ErrorClass::ReadOnly || ["13436", "91", "11600", "11602"].contains(&error.code())
}

impl<'a> Answer<'a> {
    /// Reads an answer.
    #[inline]
    pub(super) fn read(body: &'a [u8]) -> Result<Self, Error> {
        let (mut elements, mut answer) = (Elements::of(body)?, Self::default());
        while let Some(element) = elements.next()? {
            match element.name {
                b"ok" => answer.is_ok = element.is_true(),
                b"n" => answer.count = element.int().unwrap_or(0).max(0) as u64,
                b"cursor" => answer.cursor = element.document(),
                b"writeErrors" => answer.write_errors = element.document(),
                b"writeConcernError" => answer.concern_error = element.document(),
                _ => answer.failure.take(&element),
            }
        }
        Ok(answer)
    }

    /// Why the command has failed, if it has. The other error is an answer that makes no sense.
    #[inline]
    pub(super) fn error(&self) -> Result<Option<Error>, Error> {
        if self.is_ok && self.write_errors.is_none() && self.concern_error.is_none() {
            return Ok(None);
        }
        self.failed()
    }

    #[cold]
    fn failed(&self) -> Result<Option<Error>, Error> {
        if !self.is_ok {
            return Ok(Some(self.failure.error()));
        }
        if let Some(first) = self.write_errors.map(Elements::of).transpose()?.map(|mut all| all.next()) {
            let first = first?.and_then(|element| element.document());
            return first.map(|first| Failure::of(first).map(|failure| failure.error())).transpose();
        }
        // The write is on the primary, and other members may have it later.
        let of = self.concern_error.map(Failure::of).transpose()?;
        Ok(of.map(|failure| failure.error().with_unknown_outcome()))
    }
}

/// A text of a document by its name.
pub(super) fn text_of(document: &[u8], name: &str) -> Result<Option<String>, Error> {
    let text = bson::find(document, name)?.and_then(|element| element.text());
    Ok(text.map(|text| shown(text, LONGEST_TEXT)))
}

#[cfg(test)]
mod tests {
    use super::super::extended;
    use super::*;

    /// The error of an answer in JSON: class, code, message, and whether the outcome is unknown.
    fn told(json: &str) -> Option<(ErrorClass, String, String, bool)> {
        let mut body = Vec::new();
        let start = bson::begin(&mut body);
        body.extend_from_slice(&extended::elements(json).unwrap());
        bson::end(&mut body, start);
        let error = Answer::read(&body).unwrap().error().unwrap()?;
        Some((error.class(), error.code().to_owned(), error.message().to_owned(), error.outcome_unknown()))
    }

    #[test]
    fn errors_have_a_class_a_code_and_an_outcome() {
        use ErrorClass::*;
        for (code, class, unknown) in [
            (11000, Constraint, false),
            (112, Serialization, false),
            (24, LockTimeout, false),
            (10107, ReadOnly, false),
            (13435, ReadOnly, false),
            (189, ReadOnly, true),
            (13436, ShuttingDown, false),
            (91, ShuttingDown, true),
            (11600, ShuttingDown, true),
            (11602, ShuttingDown, true),
            (50, StatementTimeout, true),
            (462, Throttled, false),
            (16500, Throttled, false),
            (11601, Other, true),
            (59, Other, false),
        ] {
            let json = format!("{{\"ok\":0,\"errmsg\":\"no\",\"code\":{code},\"codeName\":\"Name\"}}");
            let expected = (class, code.to_string(), "Name: no".to_owned(), unknown);
            assert_eq!(told(&json), Some(expected));
        }
        assert_eq!(told(r#"{"ok":0.0,"errmsg":"not master"}"#).unwrap().0, ReadOnly);
        assert_eq!(told("{}").unwrap().2, "the server does not say why");
        assert_eq!(told(r#"{"ok":1.0,"n":1}"#), None);
    }

    /// From the manual (`insert`, `writeConcern`).
    #[test]
    fn a_write_fails_by_its_document_or_by_its_level() {
        let of_document =
            r#"{"n":0,"writeErrors":[{"index":0,"code":11000,"errmsg":"E11000 duplicate key"}],"ok":1}"#;
        let expected = (ErrorClass::Constraint, "11000".to_owned(), "E11000 duplicate key".to_owned(), false);
        assert_eq!(told(of_document), Some(expected));
        let of_level = r#"{"n":1,"ok":1,"writeConcernError":{"code":64,"codeName":"WriteConcernTimeout",
            "errmsg":"waiting for replication timed out","errInfo":{"wtimeout":true}}}"#;
        let (class, code, _, unknown) = told(of_level).unwrap();
        assert_eq!((class, code.as_str(), unknown), (ErrorClass::StatementTimeout, "64", true));
        let too_few =
            r#"{"n":1,"ok":1,"writeConcernError":{"code":100,"errmsg":"Not enough data-bearing nodes"}}"#;
        let (class, code, _, unknown) = told(too_few).unwrap();
        assert_eq!((class, code.as_str(), unknown), (ErrorClass::Other, "100", true));
    }
}
