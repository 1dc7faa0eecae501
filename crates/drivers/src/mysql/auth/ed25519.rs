//! MariaDB's `client_ed25519`: Ed25519 (RFC 8032, section 5.1.6) with the password, of any length, as the secret key.
//!
//! <https://mariadb.com/kb/en/authentication-plugin-ed25519/>

use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::{Scalar, clamp_integer};
use ring::digest::{SHA512, digest};

fn sha512(parts: &[&[u8]]) -> [u8; 64] {
    let mut hash = [0; 64];
    hash.copy_from_slice(digest(&SHA512, &parts.concat()).as_ref());
    hash
}

/// The half of the password's hash that is the secret scalar, and the half that the nonce is made with.
fn halves(password: &[u8]) -> ([u8; 32], [u8; 32]) {
    let hash = sha512(&[password]);
    let (mut scalar, mut prefix) = ([0; 32], [0; 32]);
    scalar.copy_from_slice(&hash[..32]);
    prefix.copy_from_slice(&hash[32..]);
    (clamp_integer(scalar), prefix)
}

/// The public key of a password: what the server has in its table.
#[cfg(test)]
pub(super) fn public_key(password: &[u8]) -> [u8; 32] {
    EdwardsPoint::mul_base(&Scalar::from_bytes_mod_order(halves(password).0)).compress().to_bytes()
}

/// Signs a server's nonce.
pub(super) fn sign(password: &[u8], message: &[u8]) -> [u8; 64] {
    let (secret, prefix) = halves(password);
    let secret = Scalar::from_bytes_mod_order(secret);
    let public = EdwardsPoint::mul_base(&secret).compress();
    let nonce = Scalar::from_bytes_mod_order_wide(&sha512(&[&prefix, message]));
    let point = EdwardsPoint::mul_base(&nonce).compress();
    let challenge =
        Scalar::from_bytes_mod_order_wide(&sha512(&[point.as_bytes(), public.as_bytes(), message]));
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(point.as_bytes());
    signature[32..].copy_from_slice((nonce + challenge * secret).as_bytes());
    signature
}
