//! CRC-32C (Castagnoli), eight bytes at a time.

const POLYNOMIAL: u32 = 0x82F6_3B78;

static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (POLYNOMIAL * (crc & 1));
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut ahead = 1;
    while ahead < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc: u32 = tables[ahead - 1][byte];
            tables[ahead][byte] = (crc >> 8) ^ tables[0][(crc & 0xFF) as usize];
            byte += 1;
        }
        ahead += 1;
    }
    tables
}

/// The checksum of some pieces, one after the other.
pub(super) fn crc32c(pieces: [&[u8]; 2]) -> u32 {
    !pieces.into_iter().fold(!0, more)
}

fn more(mut crc: u32, bytes: &[u8]) -> u32 {
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        let mixed = u64::from_le_bytes(*eight) ^ u64::from(crc);
        crc = mixed
            .to_le_bytes()
            .iter()
            .zip(TABLES.iter().rev())
            .fold(0, |sum, (byte, table)| sum ^ table[usize::from(*byte)]);
    }
    rest.iter().fold(crc, |crc, byte| (crc >> 8) ^ TABLES[0][usize::from(crc as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_check_value_comes_out() {
        assert_eq!(crc32c([b"123456789", b""]), 0xE306_9283);
        assert_eq!(crc32c([&[0; 32], b""]), 0x8A91_36AA);
    }

    #[test]
    fn pieces_count_as_one() {
        let text: Vec<u8> = (0..100).collect();
        assert!((0..100).all(|at| crc32c([&text[..at], &text[at..]]) == crc32c([&text, b""])));
    }
}
