//! HTTP/1.1 as a client speaks it (RFC 9110 and 9112): what services with an interface of requests need, such as S3 and
//! `DynamoDB`.
//!
//! * [`Request`] is written into any buffer; [`Reader`] reads responses from bytes as they arrive. Neither does I/O.
//! * [`Endpoint`] says where a service is; [`Client`] is one connection to it, kept for the next request.
//! * `service` is what a key-value system behind HTTP is, without I/O; `session` is a session of one, `driver` its driver.
//! * [`Caller`] makes requests outside the measured load; `loading` are rows on their way into such a system.
//!
//! One request at a time is on its way on a connection, for few services take more. Nothing is repeated here: whether a
//! request may be sent again is known by whoever sent it.

mod caller;
mod client;
pub(crate) mod driver;
mod endpoint;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub(crate) mod loading;
mod refusal;
mod request;
mod response;
pub(crate) mod service;
pub(crate) mod session;

pub(crate) use caller::Blocking;
pub use caller::Caller;
pub use client::Client;
pub use endpoint::Endpoint;
pub(crate) use refusal::refusal;
pub use request::{Method, Request};
pub use response::{Headers, Limits, Reader, Response};
