//! FNV-1a, 64 bits: a hash that is the same on every machine and in every version.

/// Hashes octets (G. Fowler, L. C. Noll, K.-P. Vo: <http://www.isthe.com/chongo/tech/comp/fnv/>).
#[must_use]
pub fn fnv1a(octets: &[u8]) -> u64 {
    octets.iter().fold(0xcbf2_9ce4_8422_2325, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::fnv1a;

    #[test]
    fn the_published_hashes_come_out() {
        let published =
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)];
        for (text, hash) in published {
            assert_eq!(fnv1a(text.as_bytes()), hash, "{text}");
        }
    }
}
