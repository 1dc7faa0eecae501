//! The password under the server's RSA key (`caching_sha2_password` without TLS): RSA-OAEP with SHA-1 (RFC 8017,
//! section 7.1.1).
//!
//! *ring* verifies by RSA and does not encrypt, and the crate `rsa` brings twenty others for this one exchange, which
//! only happens where a user asks for it. So the public operation is done here.

use ring::digest::SHA1_OUTPUT_LEN;
use ring::rand::{SecureRandom, SystemRandom};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;

use super::modulus::Modulus;
use super::sha1;
use crate::contract::error::Error;
use crate::net::tls::rsa_public_key;

/// The keys that are used: one of fewer bits can be broken by who listens, one of more only costs time.
const BYTES: std::ops::RangeInclusive<usize> = 2048 / 8..=16384 / 8;

/// A public key.
struct PublicKey {
    modulus: Modulus,
    exponent: u64,
    /// The length of the modulus, in bytes.
    size: usize,
}

impl PublicKey {
    fn read(pem: &[u8]) -> Result<Self, Error> {
        let wrong = || Error::other("the server's public key is not an RSA key (PEM)");
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|_| wrong())?;
        let (modulus, exponent) = rsa_public_key(&der).ok_or_else(wrong)?;
        let size = modulus.len();
        if !BYTES.contains(&size) {
            let (bits, fewest, most) = (size * 8, BYTES.start() * 8, BYTES.end() * 8);
            let message =
                format!("the server's public key has {bits} bits; allowed are {fewest} to {most} bits");
            return Err(Error::other(message));
        }
        let modulus = Modulus::new(modulus).ok_or_else(wrong)?;
        Ok(Self { modulus, exponent, size })
    }
}

/// Encrypts the password, masked by the nonce.
pub(super) fn encrypt(password: &[u8], nonce: &[u8], pem: &[u8]) -> Result<Vec<u8>, Error> {
    let key = PublicKey::read(pem)?;
    let mut seed = [0; SHA1_OUTPUT_LEN];
    SystemRandom::new().fill(&mut seed).map_err(|_| Error::other("the system has no random numbers"))?;
    let mask = nonce.iter().cycle();
    let masked: Vec<u8> = password.iter().chain(&[0]).zip(mask).map(|(byte, mask)| byte ^ mask).collect();
    let encoded = encode(&masked, key.size, seed)
        .ok_or_else(|| Error::other("the password is too long for the server's public key"))?;
    Ok(key.modulus.power(&encoded, key.exponent))
}

/// EME-OAEP with an empty label; `None` where the message is too long for a key of `size` bytes.
fn encode(message: &[u8], size: usize, mut seed: [u8; SHA1_OUTPUT_LEN]) -> Option<Vec<u8>> {
    let data_size = size.checked_sub(SHA1_OUTPUT_LEN + 1)?;
    let padding = data_size.checked_sub(SHA1_OUTPUT_LEN + 1 + message.len())?;
    let mut data = sha1(&[]).as_ref().to_vec();
    data.resize(SHA1_OUTPUT_LEN + padding, 0);
    data.push(1);
    data.extend_from_slice(message);
    mask(&seed, &mut data);
    mask(&data, &mut seed);
    Some([&[0], &seed[..], &data].concat())
}

/// Masks a text by what MGF1 makes of a seed (RFC 8017, section B.2.1).
fn mask(seed: &[u8], text: &mut [u8]) {
    for (counter, part) in text.chunks_mut(SHA1_OUTPUT_LEN).enumerate() {
        let stream = sha1(&[seed, &(counter as u32).to_be_bytes()]);
        for (byte, mask) in part.iter_mut().zip(stream.as_ref()) {
            *byte ^= mask;
        }
    }
}
