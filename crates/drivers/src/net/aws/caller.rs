//! Signed requests outside the measured load.

use nephoscope_runtime::Nanos;
use nephoscope_runtime::clock::{self, SECOND};

use crate::contract::error::Error;
use crate::net::http;
use crate::net::http::Response;
use crate::net::sigv4::{Signer, Unsigned};

/// Makes signed requests over a connection that is kept.
pub struct Caller {
    caller: http::Caller,
    signer: Signer,
}

impl Caller {
    /// Signs what a caller sends.
    #[must_use]
    pub fn new(caller: http::Caller, signer: Signer) -> Self {
        Self { caller, signer }
    }

    /// Connects anew, within the deadline.
    pub async fn connect(&mut self, deadline: Nanos) -> Result<(), Error> {
        self.caller.connect(deadline).await
    }

    /// Signs and makes a request, the header `Host` added; one whose connection the server has closed meanwhile is made
    /// once more. A status of failure is a response.
    pub async fn call(&mut self, request: &Unsigned<'_>, deadline: Nanos) -> Result<Response, Error> {
        let Self { caller, signer } = self;
        let authority = caller.authority().to_owned();
        let mut headers = vec![("Host", authority.as_str())];
        headers.extend_from_slice(request.headers);
        let unsigned = Unsigned { headers: &headers, ..*request };
        let write = |out: &mut Vec<u8>| signer.write(&unsigned, clock::wall() / SECOND, out);
        caller.call(request.method, write, deadline).await
    }
}

impl AsMut<http::Caller> for Caller {
    fn as_mut(&mut self) -> &mut http::Caller {
        &mut self.caller
    }
}
