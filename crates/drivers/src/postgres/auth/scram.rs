//! The client's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), without I/O.
//!
//! The salted password costs thousands of hashes, milliseconds in which no other session of the thread is served. The
//! password remembers it ([`Password::salted`]): sessions that come back after an outage pay for it once.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac};

use crate::contract::error::Error;
use crate::net::secret::Password;

pub(crate) const SCRAM_SHA_256: &str = "SCRAM-SHA-256";
pub(crate) const SCRAM_SHA_256_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// More would keep this side busy for a hostile server.
const MOST_ITERATIONS: u32 = 100_000;

/// What the exchange is bound to: the GS2 flag, and the data of the channel.
pub(super) struct Binding {
    flag: &'static str,
    data: Vec<u8>,
}

impl Binding {
    /// This side could bind, and the server does not offer it.
    pub(super) fn unrequested() -> Self {
        Self { flag: "y,,", data: Vec::new() }
    }

    /// This side cannot bind.
    pub(super) fn unsupported() -> Self {
        Self { flag: "n,,", data: Vec::new() }
    }

    /// To the server's certificate (RFC 5929).
    pub(super) fn end_point(data: Vec<u8>) -> Self {
        Self { flag: "p=tls-server-end-point,,", data }
    }
}

/// One exchange.
pub(super) struct Exchange {
    password: Password,
    binding: Binding,
    nonce: String,
    /// What the server has to sign, and with which key, once this side has proved itself.
    signed: Option<(hmac::Key, String)>,
}

impl Exchange {
    pub(super) fn new(password: &Password, binding: Binding) -> Result<Self, Error> {
        let mut nonce = [0; 18];
        SystemRandom::new().fill(&mut nonce).map_err(|_| failed("the system has no random numbers"))?;
        Ok(Self { password: password.clone(), binding, nonce: STANDARD.encode(nonce), signed: None })
    }

    /// The client's first message. The user is that of the start-up message.
    pub(super) fn first(&self) -> String {
        format!("{}n=,r={}", self.binding.flag, self.nonce)
    }

    /// The proof, in answer to the server's first message.
    pub(super) fn prove(&mut self, message: &[u8]) -> Result<String, Error> {
        let message = std::str::from_utf8(message).map_err(|_| failed("a message is not UTF-8"))?;
        let (nonce, salt, iterations) =
            read(message).ok_or_else(|| failed("the server's first message makes no sense"))?;
        if !nonce.starts_with(&self.nonce) {
            return Err(failed("invalid nonce"));
        }
        if iterations.get() > MOST_ITERATIONS {
            return Err(failed("SCRAM iteration count exceeds the maximum allowed"));
        }
        let salted = hmac::Key::new(hmac::HMAC_SHA256, &self.password.salted(&salt, iterations));
        let client_key = hmac::sign(&salted, b"Client Key");
        let stored_key = digest::digest(&digest::SHA256, client_key.as_ref());
        let bound = STANDARD.encode([self.binding.flag.as_bytes(), &self.binding.data].concat());
        let answer = format!("c={bound},r={nonce}");
        let signed = format!("n=,r={},{message},{answer}", self.nonce);
        let stored_key = hmac::Key::new(hmac::HMAC_SHA256, stored_key.as_ref());
        let signature = hmac::sign(&stored_key, signed.as_bytes());
        let pairs = client_key.as_ref().iter().zip(signature.as_ref());
        let proof: Vec<u8> = pairs.map(|(key, signature)| key ^ signature).collect();
        let server_key = hmac::sign(&salted, b"Server Key");
        self.signed = Some((hmac::Key::new(hmac::HMAC_SHA256, server_key.as_ref()), signed));
        Ok(format!("{answer},p={}", STANDARD.encode(proof)))
    }

    /// Checks that the server's last message proves that it knows the password, too.
    pub(super) fn verify(&self, message: &[u8]) -> Result<(), Error> {
        let message = std::str::from_utf8(message).map_err(|_| failed("a message is not UTF-8"))?;
        if let Some(error) = message.strip_prefix("e=") {
            return Err(failed(&format!("SCRAM error: {error}")));
        }
        let signature = message.strip_prefix("v=").and_then(|text| STANDARD.decode(text).ok());
        let signature = signature.ok_or_else(|| failed("the server's last message makes no sense"))?;
        let proved =
            |(key, signed): &(hmac::Key, String)| hmac::verify(key, signed.as_bytes(), &signature).is_ok();
        if self.signed.as_ref().is_some_and(proved) {
            return Ok(());
        }
        Err(Error::other("the server's SCRAM signature is wrong: it does not know the password itself"))
    }
}

/// Nonce, salt and iterations of the server's first message.
fn read(message: &str) -> Option<(&str, Vec<u8>, NonZeroU32)> {
    let mut fields = message.split(',');
    let nonce =
        fields.next()?.strip_prefix("r=").filter(|nonce| nonce.bytes().all(|b| b.is_ascii_graphic()))?;
    let salt = STANDARD.decode(fields.next()?.strip_prefix("s=")?).ok()?;
    let digits = fields.next()?.strip_prefix("i=").filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?;
    let iterations = digits.parse().ok()?;
    fields.next().is_none().then_some((nonce, salt, iterations))
}

fn failed(why: &str) -> Error {
    Error::other(format!("the SCRAM exchange failed: {why}"))
}
