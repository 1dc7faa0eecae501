//! Passwords, and how they are kept out of everything that is shown.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use percent_encoding::percent_decode_str;

use super::scram::Hash;

/// What stands where a secret was.
const MASK: &str = "***";

/// Parts of parameter names, in lower case, that mark the value as a secret, in the URLs of any product.
const SECRET_WORDS: [&str; 7] = ["pass", "pwd", "secret", "token", "apikey", "api_key", "credential"];

/// A password. Neither `{}` nor `{:?}` shows it.
///
/// It is bytes, not text: `PostgreSQL` does not ask for UTF-8 here.
#[derive(Clone)]
pub struct Password {
    bytes: Box<[u8]>,
    /// What it comes to with the salts of servers, for all its copies.
    salted: Arc<Mutex<Vec<Salted>>>,
}

struct Salted {
    hash: Hash,
    salt: Box<[u8]>,
    iterations: NonZeroU32,
    key: Arc<[u8]>,
}

/// How many salts are remembered: a user has one on each server.
const MOST_SALTS: usize = 8;

impl Password {
    /// A password of these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into().into_boxed_slice(), salted: Arc::default() }
    }

    /// The password itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.bytes
    }

    /// `SaltedPassword` of RFC 5802. Thousands of hashes the first time; remembered by all copies.
    pub(crate) fn salted(&self, hash: Hash, salt: &[u8], iterations: NonZeroU32) -> Arc<[u8]> {
        let known = || self.salted.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |one: &&Salted| (one.hash, &*one.salt, one.iterations) == (hash, salt, iterations);
        if let Some(one) = known().iter().find(is_it) {
            return Arc::clone(&one.key);
        }
        // A password need not be UTF-8, nor of characters that SASLprep allows: then it is taken as it is.
        let text = std::str::from_utf8(&self.bytes).ok().and_then(|text| stringprep::saslprep(text).ok());
        let secret = text.as_deref().map_or(&*self.bytes, str::as_bytes);
        let key: Arc<[u8]> = hash.salted(secret, salt, iterations).into();
        let mut known = known();
        if known.len() >= MOST_SALTS {
            known.remove(0);
        }
        known.push(Salted { hash, salt: salt.into(), iterations, key: Arc::clone(&key) });
        key
    }
}

impl PartialEq for Password {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Password {}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// The text with every password in it replaced by `***`.
///
/// For any text that looks like a URL, of any scheme and however malformed. Where it is not clear what
/// belongs to the password, more is hidden rather than less: `h:1/db?user=a@b` may be a host with a port, or
/// a user with the password `1/db?user=a`. `is_key` tells whether a word is the name of a setting. A driver's
/// `redacted_url` keeps all but the password.
pub(crate) fn redact(url: &str, is_key: &dyn Fn(&str) -> bool) -> String {
    let mut hidden = secret_values(url, is_key);
    hidden.extend(after_user(url));
    mask(url, hidden)
}

/// The text with the values of `password=…` and its like replaced by `***`.
pub(crate) fn hide_secret_values(text: &str, is_key: &dyn Fn(&str) -> bool) -> String {
    mask(text, secret_values(text, is_key))
}

/// Where a user's password stands, or what may be one.
fn after_user(url: &str) -> Option<Range<usize>> {
    let start = scheme_end(url);
    let colon = first_colon(url, start)?;
    let Some(at) = url.rfind('@') else {
        return not_a_port(url, start);
    };
    // The last '@': a password may hold more of them, and none of its parts may be taken for a host.
    if at > colon { Some(colon..at) } else { not_a_port(url, at + 1) }
}

/// The index after `scheme://`, or 0 where no scheme begins the text.
fn scheme_end(url: &str) -> usize {
    let is_scheme = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    url.find("://").filter(|&end| is_scheme(&url[..end])).map_or(0, |end| end + 3)
}

/// The index after the first `:` from `start` on, written plainly or as `%3A`.
fn first_colon(url: &str, start: usize) -> Option<usize> {
    let rest = &url.as_bytes()[start..];
    let plain = rest.iter().position(|&b| b == b':').map(|at| start + at + 1);
    let encoded = rest.windows(3).position(|w| w.eq_ignore_ascii_case(b"%3a")).map(|at| start + at + 3);
    plain.into_iter().chain(encoded).min()
}

/// From the first port that is no port to the end: without an '@' after it, a password looks like one.
fn not_a_port(url: &str, start: usize) -> Option<Range<usize>> {
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    let mut piece_start = start;
    for piece in url[start..end].split(',') {
        let host_end = if piece.starts_with('[') { piece.find(']').unwrap_or(0) } else { 0 };
        if let Some(colon) = first_colon(piece, host_end) {
            let start = piece_start + colon;
            if piece[colon..].parse::<u16>().is_err() {
                return Some(start..url.len());
            }
        }
        piece_start += piece.len() + 1;
    }
    None
}

/// Where the values of `password=…` and its like stand.
fn secret_values(text: &str, is_key: &dyn Fn(&str) -> bool) -> Vec<Range<usize>> {
    let mut hidden = Vec::new();
    for (equals, _) in text.match_indices('=') {
        if is_secret(key_before(text, equals)) {
            hidden.push(equals + 1..value_end(text, equals + 1, is_key));
        }
    }
    hidden
}

/// The word that ends just before `end`, blanks between them aside.
fn key_before(text: &str, end: usize) -> &str {
    let text = text[..end].trim_end();
    let start = text
        .bytes()
        .rposition(|b| !(b.is_ascii_alphanumeric() || b"_-.%".contains(&b)))
        // A character of several bytes ends with one that is no word's, so this is always a boundary.
        .map_or(0, |at| at + 1);
    &text[start..]
}

fn is_secret(key: &str) -> bool {
    let key = percent_decode_str(key).decode_utf8_lossy().to_ascii_lowercase();
    key != "passfile" && SECRET_WORDS.iter().any(|word| key.contains(word))
}

/// Where the value that begins at `start` ends: at an '&' before another setting's name. One before anything
/// else, or with nothing before it, may be a part of the password.
fn value_end(text: &str, start: usize, is_key: &dyn Fn(&str) -> bool) -> usize {
    let begins_setting = |rest: &str| rest.split_once('=').is_some_and(|(name, _)| is_key(name));
    text[start..]
        .match_indices('&')
        .map(|(at, _)| start + at)
        .find(|&at| at > start && begins_setting(&text[at + 1..]))
        .unwrap_or(text.len())
}

fn mask(text: &str, mut hidden: Vec<Range<usize>>) -> String {
    hidden.retain(|range| !range.is_empty());
    hidden.sort_by_key(|range| range.start);
    let mut shown = String::with_capacity(text.len());
    let mut end = 0;
    for range in hidden {
        if range.start > end {
            shown.push_str(&text[end..range.start]);
            shown.push_str(MASK);
        }
        end = end.max(range.end);
    }
    shown.push_str(&text[end..]);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::pbkdf2;

    #[test]
    fn a_salted_password_is_made_once_for_all_copies() {
        let password = Password::new("ürgh");
        let iterations = NonZeroU32::new(4096).unwrap();
        let mut expected = [0; 32];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, b"salt", "ürgh".as_bytes(), &mut expected);
        for _ in 0..3 {
            assert_eq!(*password.clone().salted(Hash::Sha256, b"salt", iterations), expected);
        }
        let made = || password.salted.lock().unwrap().len();
        assert_eq!(made(), 1);
        // Another salt, another count, another hash, another key.
        assert_ne!(*password.salted(Hash::Sha256, b"other", iterations), expected);
        assert_ne!(*password.salted(Hash::Sha256, b"salt", NonZeroU32::MIN), expected);
        assert_eq!(password.salted(Hash::Sha1, b"salt", iterations).len(), 20);
        assert_eq!(made(), 4);
        for salt in 0..50_u8 {
            password.salted(Hash::Sha256, &[salt], NonZeroU32::MIN);
        }
        assert_eq!(made(), MOST_SALTS);
    }
}
