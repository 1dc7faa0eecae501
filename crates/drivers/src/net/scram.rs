//! The client's side of SCRAM-SHA-1 and SCRAM-SHA-256 (RFC 5802, RFC 7677), without I/O.
//!
//! The salted password costs thousands of hashes, milliseconds in which no other session of the thread is served. The
//! password remembers it ([`Password::salted`]): sessions that come back after an outage pay for it once.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac, pbkdf2};

use crate::contract::error::Error;
use crate::net::secret::Password;

pub(crate) const SCRAM_SHA_1: &str = "SCRAM-SHA-1";
pub(crate) const SCRAM_SHA_256: &str = "SCRAM-SHA-256";
pub(crate) const SCRAM_SHA_256_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// The hash function of a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha1,
    Sha256,
}

impl Hash {
    fn hmac(self) -> hmac::Algorithm {
        match self {
            Self::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => hmac::HMAC_SHA256,
        }
    }

    fn digest(self) -> &'static digest::Algorithm {
        self.hmac().digest_algorithm()
    }

    /// `Hi` of RFC 5802: the secret with a salt, hashed so many times.
    pub(super) fn salted(self, secret: &[u8], salt: &[u8], iterations: NonZeroU32) -> Box<[u8]> {
        let algorithm = match self {
            Self::Sha1 => pbkdf2::PBKDF2_HMAC_SHA1,
            Self::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
        };
        let mut key = vec![0; self.digest().output_len()];
        pbkdf2::derive(algorithm, iterations, salt, secret, &mut key);
        key.into()
    }
}

/// More would keep this side busy for a hostile server.
const MOST_ITERATIONS: u32 = 100_000;

/// What the exchange is bound to: the GS2 flag, and the data of the channel.
pub(crate) struct Binding {
    flag: &'static str,
    data: Vec<u8>,
}

impl Binding {
    /// This side could bind, and the server does not offer it.
    pub(crate) fn unrequested() -> Self {
        Self { flag: "y,,", data: Vec::new() }
    }

    /// This side cannot bind.
    pub(crate) fn unsupported() -> Self {
        Self { flag: "n,,", data: Vec::new() }
    }

    /// To the server's certificate (RFC 5929).
    pub(crate) fn end_point(data: Vec<u8>) -> Self {
        Self { flag: "p=tls-server-end-point,,", data }
    }
}

/// One exchange.
pub(crate) struct Exchange {
    hash: Hash,
    /// The user as the exchange has it: `n=` and the name, in which a comma and an equals sign are escaped.
    user: String,
    password: Password,
    binding: Binding,
    nonce: String,
    /// Fewer would make the password easy to guess for whoever reads along.
    least_iterations: u32,
    /// What the server has to sign, and with which key, once this side has proved itself.
    signed: Option<(hmac::Key, String)>,
}

impl Exchange {
    /// Begins one. The user is empty where the protocol has told it already.
    pub(crate) fn new(hash: Hash, user: &str, password: &Password, binding: Binding) -> Result<Self, Error> {
        let mut nonce = [0; 18];
        SystemRandom::new().fill(&mut nonce).map_err(|_| failed("the system has no random numbers"))?;
        let user = format!("n={}", user.replace('=', "=3D").replace(',', "=2C"));
        let (password, nonce) = (password.clone(), STANDARD.encode(nonce));
        Ok(Self { hash, user, password, binding, nonce, least_iterations: 1, signed: None })
    }

    /// The same exchange with a server that has to ask for so many iterations.
    pub(crate) fn with_iterations(self, least: u32) -> Self {
        Self { least_iterations: least, ..self }
    }

    /// The client's first message.
    pub(crate) fn first(&self) -> String {
        format!("{}{},r={}", self.binding.flag, self.user, self.nonce)
    }

    /// The proof, in answer to the server's first message.
    pub(crate) fn prove(&mut self, message: &[u8]) -> Result<String, Error> {
        let message = std::str::from_utf8(message).map_err(|_| failed("a message is not UTF-8"))?;
        let (nonce, salt, iterations) =
            read(message).ok_or_else(|| failed("the server's first message makes no sense"))?;
        if !nonce.starts_with(&self.nonce) {
            return Err(failed("invalid nonce"));
        }
        if iterations.get() > MOST_ITERATIONS {
            return Err(failed("SCRAM iteration count exceeds the maximum allowed"));
        }
        if iterations.get() < self.least_iterations {
            return Err(failed("the server asks for fewer iterations than are safe"));
        }
        let key = |bytes: &[u8]| hmac::Key::new(self.hash.hmac(), bytes);
        let salted = key(&self.password.salted(self.hash, &salt, iterations));
        let client_key = hmac::sign(&salted, b"Client Key");
        let stored_key = digest::digest(self.hash.digest(), client_key.as_ref());
        let bound = STANDARD.encode([self.binding.flag.as_bytes(), &self.binding.data].concat());
        let answer = format!("c={bound},r={nonce}");
        let signed = format!("{},r={},{message},{answer}", self.user, self.nonce);
        let signature = hmac::sign(&key(stored_key.as_ref()), signed.as_bytes());
        let pairs = client_key.as_ref().iter().zip(signature.as_ref());
        let proof: Vec<u8> = pairs.map(|(key, signature)| key ^ signature).collect();
        let server_key = hmac::sign(&salted, b"Server Key");
        self.signed = Some((key(server_key.as_ref()), signed));
        Ok(format!("{answer},p={}", STANDARD.encode(proof)))
    }

    /// Checks that the server's last message proves that it knows the password, too.
    pub(crate) fn verify(&self, message: &[u8]) -> Result<(), Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An exchange whose nonce is given.
    fn exchange(hash: Hash, password: &str, nonce: &str) -> Exchange {
        let mut exchange =
            Exchange::new(hash, "user", &Password::new(password), Binding::unsupported()).unwrap();
        nonce.clone_into(&mut exchange.nonce);
        exchange
    }

    /// The examples of RFC 5802, section 5, and of RFC 7677, section 3.
    #[test]
    fn the_examples_of_the_standards_come_out() {
        for (hash, nonce, first, proved, last) in [
            (
                Hash::Sha1,
                "fyko+d2lbbFgONRv9qkxdawL",
                "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
                "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
                "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
            ),
            (
                Hash::Sha256,
                "rOprNGfwEbeRWgbNEkqO",
                "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
                "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                 p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
                "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
            ),
        ] {
            let mut exchange = exchange(hash, "pencil", nonce);
            assert_eq!(exchange.first(), format!("n,,n=user,r={nonce}"));
            assert_eq!(exchange.prove(first.as_bytes()).unwrap(), proved);
            assert!(exchange.verify(last.as_bytes()).is_ok());
            assert!(exchange.verify(b"v=AAAA").is_err());
        }
    }

    #[test]
    fn too_few_iterations_are_refused() {
        let few = |least| {
            let mut exchange = exchange(Hash::Sha256, "x", "abc").with_iterations(least);
            exchange.prove(b"r=abcd,s=c2FsdA==,i=4095")
        };
        assert!(few(4096).unwrap_err().message().contains("fewer iterations"));
        assert!(few(4095).is_ok());
    }

    #[test]
    fn what_would_end_the_user_is_escaped() {
        let exchange =
            Exchange::new(Hash::Sha1, "a,b=c", &Password::new("x"), Binding::unsupported()).unwrap();
        assert!(exchange.first().starts_with("n,,n=a=2Cb=3Dc,r="));
    }
}
