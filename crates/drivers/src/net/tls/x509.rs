//! What the driver itself reads of a certificate (RFC 5280, section 4.1), from any bytes, without panics.
//!
//! Chains and names are verified by rustls. This reads what rustls does not offer: the hash of the signature
//! algorithm for channel binding, and the key, the dates and the common name of certificates that rustls does
//! not read at all, as those of version 1, which the commands of `PostgreSQL`'s manual make.

use ring::digest;

use crate::contract::calendar::days_from_civil;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// `[0]`, explicit: the version, or the hash algorithm of RSA-PSS.
const CONTEXT_0: u8 = 0xa0;

/// The prefix of PKCS #1's algorithms, 1.2.840.113549.1.1.
const PKCS1: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
/// 1.3.14.3.2.29, an old name of SHA-1 with RSA.
const SHA1_WITH_RSA: &[u8] = &[0x2b, 0x0e, 0x03, 0x02, 0x1d];
/// 1.2.840.10045.4.1.
const ECDSA_WITH_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];
/// The prefix of ECDSA with SHA-2, 1.2.840.10045.4.3.
const ECDSA_WITH_SHA2: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
/// 1.2.840.113549.2.5.
const MD5: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x05];
/// 1.3.14.3.2.26.
const SHA1: &[u8] = &[0x2b, 0x0e, 0x03, 0x02, 0x1a];
/// The prefix of SHA-2, 2.16.840.1.101.3.4.2.
const SHA2: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];
/// 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// The channel binding `tls-server-end-point` of the server's certificate (RFC 5929, section 4.1): its hash
/// by the hash function of its signature, but by SHA-256 where that is MD5 or SHA-1.
///
/// `None` where none is defined, as for Ed25519, or known, and for bytes that are no certificate.
#[must_use]
pub fn end_point_binding(certificate_der: &[u8]) -> Option<Vec<u8>> {
    let mut certificate = Reader(Reader(certificate_der).content(SEQUENCE)?);
    certificate.content(SEQUENCE)?;
    let algorithm = signature_hash(certificate.content(SEQUENCE)?)?;
    Some(digest::digest(algorithm, certificate_der).as_ref().to_vec())
}

/// The modulus, without zeros before it, and the exponent of an RSA key in its `SubjectPublicKeyInfo` (RFC 8017, section
/// A.1.1); `None` for bytes that are none.
pub(crate) fn rsa_public_key(key_info: &[u8]) -> Option<(&[u8], u64)> {
    let (algorithm, key) = public_key(key_info)?;
    if Reader(algorithm).content(OBJECT_IDENTIFIER)?.split_last() != Some((&1, PKCS1)) {
        return None;
    }
    let mut key = Reader(Reader(key).content(SEQUENCE)?);
    let (modulus, exponent) = (key.positive()?, key.positive()?);
    key.end()?;
    if exponent.len() > size_of::<u64>() {
        return None;
    }
    let exponent = exponent.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    (exponent % 2 == 1 && exponent > 1).then_some((modulus, exponent))
}

/// The content of the `AlgorithmIdentifier` in a `SubjectPublicKeyInfo`, and the key.
fn public_key(key_info: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut info = Reader(Reader(key_info).content(SEQUENCE)?);
    let algorithm = info.content(SEQUENCE)?;
    let (0, key) = info.content(BIT_STRING)?.split_first()? else { return None };
    Some((algorithm, key))
}

/// The hash of the content of a signature's `AlgorithmIdentifier`.
fn signature_hash(identifier: &[u8]) -> Option<&'static digest::Algorithm> {
    let mut identifier = Reader(identifier);
    let oid = identifier.content(OBJECT_IDENTIFIER)?;
    if oid == SHA1_WITH_RSA || oid == ECDSA_WITH_SHA1 {
        return Some(&digest::SHA256);
    }
    let (last, prefix) = oid.split_last()?;
    match (prefix, last) {
        (PKCS1, 4 | 5 | 11) | (ECDSA_WITH_SHA2, 2) => Some(&digest::SHA256),
        (PKCS1, 12) | (ECDSA_WITH_SHA2, 3) => Some(&digest::SHA384),
        (PKCS1, 13) | (ECDSA_WITH_SHA2, 4) => Some(&digest::SHA512),
        (PKCS1, 10) => pss_hash(&mut identifier),
        _ => None,
    }
}

/// The hash that the parameters of RSA-PSS name (RFC 4055, section 3.1); SHA-1 where they name none.
fn pss_hash(identifier: &mut Reader<'_>) -> Option<&'static digest::Algorithm> {
    let mut parameters = Reader(identifier.content(SEQUENCE)?);
    if parameters.next_tag() != Some(CONTEXT_0) {
        return Some(&digest::SHA256);
    }
    let hash = Reader(parameters.content(CONTEXT_0)?).content(SEQUENCE)?;
    let oid = Reader(hash).content(OBJECT_IDENTIFIER)?;
    if oid == MD5 || oid == SHA1 {
        return Some(&digest::SHA256);
    }
    match oid.split_last()? {
        (1, SHA2) => Some(&digest::SHA256),
        (2, SHA2) => Some(&digest::SHA384),
        (3, SHA2) => Some(&digest::SHA512),
        _ => None,
    }
}

/// Fields of a certificate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Certificate<'a> {
    /// 1, 2 or 3.
    pub(super) version: u8,
    /// The first moment at which it is valid, in seconds since 1970.
    pub(super) not_before: i64,
    /// The last one.
    pub(super) not_after: i64,
    /// The common name of the subject, if it has one that is text.
    pub(super) common_name: Option<&'a str>,
    /// The `SubjectPublicKeyInfo`, whole.
    pub(super) key_info: &'a [u8],
    /// The content of the `AlgorithmIdentifier` in it.
    pub(super) key_algorithm: &'a [u8],
    /// The public key in it.
    pub(super) key: &'a [u8],
}

impl<'a> Certificate<'a> {
    /// Reads a certificate; `None` for bytes that are none.
    pub(super) fn read(der: &'a [u8]) -> Option<Self> {
        let mut outer = Reader(der);
        let mut certificate = Reader(outer.content(SEQUENCE)?);
        outer.end()?;
        let mut fields = Reader(certificate.content(SEQUENCE)?);
        certificate.content(SEQUENCE)?;
        certificate.content(BIT_STRING)?;
        certificate.end()?;
        let version = match fields.next_tag() {
            Some(CONTEXT_0) => match Reader(fields.content(CONTEXT_0)?).content(INTEGER)? {
                [version @ 0..=2] => version + 1,
                _ => return None,
            },
            _ => 1,
        };
        fields.content(INTEGER)?;
        fields.content(SEQUENCE)?;
        fields.content(SEQUENCE)?;
        let mut validity = Reader(fields.content(SEQUENCE)?);
        let (not_before, not_after) = (validity.time()?, validity.time()?);
        let subject = Reader(fields.content(SEQUENCE)?);
        let key_info = fields.whole(SEQUENCE)?;
        let (key_algorithm, key) = public_key(key_info)?;
        let common_name = common_name(subject);
        Some(Self { version, not_before, not_after, common_name, key_info, key_algorithm, key })
    }
}

/// The first common name in a `Name`.
fn common_name(mut name: Reader<'_>) -> Option<&str> {
    loop {
        let mut attributes = Reader(name.content(SET)?);
        while !attributes.0.is_empty() {
            let mut attribute = Reader(attributes.content(SEQUENCE)?);
            if attribute.content(OBJECT_IDENTIFIER)? == COMMON_NAME {
                let (_, value) = attribute.element()?;
                return std::str::from_utf8(value).ok().filter(|text| !text.contains('\0'));
            }
        }
    }
}

/// Reads DER elements one after another (X.690, section 8.1). Whatever does not follow the rules is `None`.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The tag of the next element.
    fn next_tag(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// The tag and the content of the next element.
    fn element(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, length], mut rest) = self.0.split_first_chunk::<2>()?;
        // Tags of several bytes do not occur in certificates.
        if tag & 0x1f == 0x1f {
            return None;
        }
        let mut length = usize::from(length);
        if length >= 0x80 {
            let size = length & 0x7f;
            let bytes = rest.get(..size).filter(|_| (1..=4).contains(&size))?;
            length = bytes.iter().fold(0, |length, &byte| length << 8 | usize::from(byte));
            // DER allows only the shortest form.
            if length < 0x80 || bytes[0] == 0 {
                return None;
            }
            rest = &rest[size..];
        }
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// The content of the next element, which has this tag.
    fn content(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.element().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }

    /// The next element, which has this tag, with its header.
    fn whole(&mut self, tag: u8) -> Option<&'a [u8]> {
        let before = self.0;
        self.content(tag)?;
        Some(&before[..before.len() - self.0.len()])
    }

    /// A number above 0, without zeros before it.
    fn positive(&mut self) -> Option<&'a [u8]> {
        let number = self.content(INTEGER)?;
        if number.first().is_none_or(|first| *first > 0x7f) {
            return None;
        }
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        Some(&number[zeros..])
    }

    /// Nothing, if nothing follows.
    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }

    /// A time in seconds since 1970.
    fn time(&mut self) -> Option<i64> {
        let (tag, text) = self.element()?;
        let (digits, zone) = text.split_at_checked(text.len().checked_sub(1)?)?;
        if zone != b"Z" || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number = |digits: &[u8]| digits.iter().fold(0, |n, &digit| n * 10 + i64::from(digit - b'0'));
        let (year, rest) = match (tag, digits.len()) {
            // Two digits: 1950 to 2049 (RFC 5280, section 4.1.2.5.1).
            (UTC_TIME, 12) => (1950 + (number(&digits[..2]) + 50) % 100, &digits[2..]),
            (GENERALIZED_TIME, 14) => (number(&digits[..4]), &digits[4..]),
            _ => return None,
        };
        let mut fields = rest.chunks(2).map(number);
        let mut field = |least, most| fields.next().filter(|field| (least..=most).contains(field));
        let (month, day) = (field(1, 12)? as u32, field(1, 31)? as u32);
        let seconds = field(0, 23)? * 3600 + field(0, 59)? * 60 + field(0, 59)?;
        Some(days_from_civil(year, month, day) * 86_400 + seconds)
    }
}
