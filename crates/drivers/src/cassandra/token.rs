//! The token of a partition key, as Cassandra's `Murmur3Partitioner` makes it.
//!
//! The hash is the first half of `MurmurHash3`'s 128 bits (x64), with one difference: the bytes behind the last block of
//! 16 are taken as signed numbers (`org.apache.cassandra.utils.MurmurHash`).

const BLOCK: usize = 16;
/// The factors of each half of a block, and how far it is turned.
const FACTORS: [(u64, u64, u32); 2] = [(C1, C2, 31), (C2, C1, 33)];
const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// The token of a partition key: of its value's bytes, or of those of a key with several columns.
pub(super) fn of(key: &[u8]) -> i64 {
    let (blocks, tail) = key.as_chunks::<BLOCK>();
    let mut hash = [0, 0];
    for block in blocks {
        let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| block[at + byte]));
        add(&mut hash, 0, half(0));
        hash[0] = hash[0].rotate_left(27).wrapping_add(hash[1]).wrapping_mul(5).wrapping_add(0x52dc_e729);
        add(&mut hash, 1, half(8));
        hash[1] = hash[1].rotate_left(31).wrapping_add(hash[0]).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let mut rest = [0_u64; 2];
    for (place, byte) in tail.iter().enumerate() {
        rest[place / 8] ^= (i64::from(*byte as i8) as u64) << (8 * (place % 8));
    }
    for (half, value) in rest.into_iter().enumerate() {
        add(&mut hash, half, value);
    }
    let [one, two] = hash.map(|half| half ^ key.len() as u64);
    let one = one.wrapping_add(two);
    let two = two.wrapping_add(one);
    // The smallest number stands for the beginning of the ring, and is no key's token.
    match mixed(one).wrapping_add(mixed(two)) as i64 {
        i64::MIN => i64::MAX,
        token => token,
    }
}

fn add(hash: &mut [u64; 2], half: usize, value: u64) {
    let (before, after, turn) = FACTORS[half];
    hash[half] ^= value.wrapping_mul(before).rotate_left(turn).wrapping_mul(after);
}

fn mixed(value: u64) -> u64 {
    let value = (value ^ value >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let value = (value ^ value >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ value >> 33
}

#[cfg(test)]
mod tests {
    /// What `cassandra-driver` checks its own by (`tests/unit/test_metadata.py`).
    #[test]
    fn keys_have_the_tokens_that_cassandra_gives_them() {
        for (key, token) in [
            (b"123".to_vec(), -7_468_325_962_851_647_638),
            (b"\x00\xff\x10\xfa\x99".repeat(10), 5_837_342_703_291_459_765),
            (b"\xfe".repeat(8), -8_927_430_733_708_461_935),
            (b"\x10".repeat(8), 1_446_172_840_243_228_796),
            (b"9223372036854775807".to_vec(), 7_162_290_910_810_015_547),
        ] {
            assert_eq!(super::of(&key), token, "{key:x?}");
        }
    }
}
