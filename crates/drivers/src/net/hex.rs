//! Bytes in hexadecimal digits.

use std::fmt::Write as _;

/// The bytes in small letters.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing into memory cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
