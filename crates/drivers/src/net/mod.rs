//! How a server is reached, whatever its protocol: names, URLs, secrets, TLS, channels. It knows the contract, and no
//! driver.

pub(crate) mod asking;
pub mod aws;
pub(crate) mod channel;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod conversation;
pub(crate) mod entry;
pub(crate) mod frame;
pub(crate) mod given;
pub(crate) mod held;
pub(crate) mod hex;
pub mod http;
pub(crate) mod json;
pub(crate) mod private_file;
pub(crate) mod reach;
pub(crate) mod resolve;
pub(crate) mod scram;
pub mod secret;
pub(crate) mod session;
pub mod settings;
pub(crate) mod sigv2;
pub mod sigv4;
pub mod tls;
pub(crate) mod url;
pub(crate) mod xml;
