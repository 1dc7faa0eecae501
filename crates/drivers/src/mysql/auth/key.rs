//! The password under the server's RSA key (`caching_sha2_password` without TLS): RSA-OAEP with SHA-1.

use ring::rand::{SecureRandom, SystemRandom};
use rsa::pkcs8::DecodePublicKey;
use rsa::rand_core::{CryptoRng, Error as RngError, RngCore};

use rsa::traits::PublicKeyParts;
use rsa::{Oaep, RsaPublicKey};
use sha1::Sha1;

use crate::contract::error::Error;

/// A key of fewer bits can be broken by who listens.
const FEWEST_BITS: usize = 2048;

/// The system's random numbers as `rsa` wants them.
struct Random(SystemRandom);

impl RngCore for Random {
    fn next_u32(&mut self) -> u32 {
        self.next_u64() as u32
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Fails only where the system has no random numbers at all, which [`encrypt`] finds out first.
    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        let _ = self.0.fill(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), RngError> {
        self.0.fill(bytes).map_err(|_| RngError::new("the system has no random numbers"))
    }
}

impl CryptoRng for Random {}

/// For tests, which have to make a key.
#[cfg(test)]
pub(super) fn tests_random() -> impl rsa::rand_core::CryptoRngCore {
    Random(SystemRandom::new())
}

/// Encrypts the password, masked by the nonce.
pub(super) fn encrypt(password: &[u8], nonce: &[u8], pem: &[u8]) -> Result<Vec<u8>, Error> {
    let key =
        std::str::from_utf8(pem).ok().and_then(|pem| RsaPublicKey::from_public_key_pem(pem.trim()).ok());
    let key = key.ok_or_else(|| Error::other("the server's public key is not an RSA key (PEM)"))?;
    if key.size() * 8 < FEWEST_BITS {
        return Err(Error::other(format!("the server's public key has fewer than {FEWEST_BITS} bits")));
    }
    let random = &mut Random(SystemRandom::new());
    random.0.fill(&mut [0; 1]).map_err(|_| Error::other("the system has no random numbers"))?;
    let mask = nonce.iter().cycle();
    let masked: Vec<u8> = password.iter().chain(&[0]).zip(mask).map(|(byte, mask)| byte ^ mask).collect();
    key.encrypt(random, Oaep::new::<Sha1>(), &masked)
        .map_err(|_| Error::other("the password is too long for the server's public key"))
}
