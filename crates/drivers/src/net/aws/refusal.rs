//! What the errors of AWS's services come to.

use crate::contract::error::{Error, ErrorClass};
use crate::net::frame::shown;
use crate::net::http::{self, Response};
use crate::net::xml;

/// How much of a server's error is kept.
pub(crate) const LONGEST_ERROR: usize = 1000;

/// Codes of refusals beyond a quota or a rate
/// (<https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html>).
const THROTTLED: [&str; 11] = [
    "BandwidthLimitExceeded",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "Throttling",
    "ThrottledException",
    "ThrottlingException",
    "TooManyRequestsException",
];
/// Codes of conditions that did not hold, because others were at work on the same.
const SERIALIZATION: [&str; 4] = [
    "ConditionalRequestConflict",
    "PreconditionFailed",
    "TransactionConflictException",
    "ReplicatedWriteConflictException",
];

/// What a service says in XML of a request that it refused.
pub(crate) fn of_xml(response: &Response) -> Error {
    let (mut code, mut message) = (Vec::new(), Vec::new());
    // Whatever cannot be read, a proxy's page among it, says nothing.
    let _ = xml::texts(&response.body, |_, name, text| match name {
        b"Code" => xml::unescape(text, &mut code),
        b"Message" => xml::unescape(text, &mut message),
        _ => Ok(()),
    });
    let code = shown(&code, LONGEST_ERROR);
    let plain = code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let code = match response.status {
        // HEAD, and some stores, give no body.
        412 if code.is_empty() => "PreconditionFailed",
        _ if plain => &code,
        _ => "",
    };
    refusal(response.status, code, &shown(&message, LONGEST_ERROR))
}

/// A refusal, by the response's status and the code in its body.
pub(crate) fn refusal(status: u16, code: &str, message: &str) -> Error {
    let class = match code {
        code if THROTTLED.contains(&code) => Some(ErrorClass::Throttled),
        code if SERIALIZATION.contains(&code) => Some(ErrorClass::Serialization),
        "ConditionalCheckFailedException" | "ConditionalCheckFailed" => Some(ErrorClass::Constraint),
        _ => None,
    };
    http::refusal(status, class, code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_a_class_and_says_whether_anything_was_done() {
        for (status, code, class, is_open) in [
            (400, "ProvisionedThroughputExceededException", ErrorClass::Throttled, false),
            (400, "ThrottlingException", ErrorClass::Throttled, false),
            (503, "SlowDown", ErrorClass::Throttled, false),
            (429, "", ErrorClass::Throttled, false),
            (400, "ConditionalCheckFailedException", ErrorClass::Constraint, false),
            (412, "PreconditionFailed", ErrorClass::Serialization, false),
            (400, "ValidationException", ErrorClass::Other, false),
            (403, "AccessDenied", ErrorClass::Other, false),
            (500, "InternalServerError", ErrorClass::ShuttingDown, true),
            (503, "ServiceUnavailable", ErrorClass::ShuttingDown, true),
            (504, "", ErrorClass::ShuttingDown, true),
        ] {
            let error = refusal(status, code, "");
            assert_eq!((error.class(), error.code(), error.outcome_unknown()), (class, code, is_open));
            assert_eq!(error.message(), format!("status {status}"));
        }
    }
}
