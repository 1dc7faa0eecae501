//! What a refused request comes to.

use crate::contract::error::{Error, ErrorClass};

/// A refusal, by the response's status, unless its code says a class; nothing was done then.
pub(crate) fn refusal(status: u16, known: Option<ErrorClass>, code: &str, message: &str) -> Error {
    let message = if message.is_empty() { format!("status {status}") } else { message.to_owned() };
    let error = |class| Error::new(class, code, message.as_str());
    match (known, status) {
        (Some(class), _) => error(class).with_known_outcome(),
        (None, 429) => error(ErrorClass::Throttled).with_known_outcome(),
        // The service has failed: what it was to write, it may have written.
        (None, 500..) => error(ErrorClass::ShuttingDown).with_unknown_outcome(),
        _ => error(ErrorClass::Other).with_known_outcome(),
    }
}
