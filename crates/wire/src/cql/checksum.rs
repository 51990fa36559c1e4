//! The two checksums of a segment (protocol v5, section 2).

/// Generator polynomial of the header's CRC, with its 25th bit; 0xCBA785 in Koopman's notation.
const CRC24_POLYNOMIAL: u32 = 0x0197_4F0B;
const CRC24_INITIAL: u32 = 0x0087_5060;

/// The payload's CRC starts behind the bytes FA 2D 55 CA, so that it is not zero for nothing.
const CRC32_INITIAL: u32 = 0x4477_7ED3;

const fn crc24_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = (index as u32) << 16;
        let mut bit = 0;
        while bit < 8 {
            crc <<= 1;
            if crc & 0x0100_0000 != 0 {
                crc ^= CRC24_POLYNOMIAL;
            }
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

static CRC24_TABLE: [u32; 256] = crc24_table();

/// CRC-24 of a segment's header, in its low 24 bits.
#[must_use]
pub(super) fn crc24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(CRC24_INITIAL, |crc, &byte| {
        let index = (crc >> 16) as u8 ^ byte;
        (crc << 8 & 0x00FF_FFFF) ^ CRC24_TABLE[usize::from(index)]
    })
}

/// CRC-32 (IEEE 802.3) of a segment's payload.
#[must_use]
#[inline]
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(CRC32_INITIAL);
    hasher.update(bytes);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_crc32_is_that_of_the_four_bytes_before_every_payload() {
        assert_eq!(crc32fast::hash(&[0xFA, 0x2D, 0x55, 0xCA]), CRC32_INITIAL);
        let mut whole = vec![0xFA, 0x2D, 0x55, 0xCA];
        whole.extend_from_slice(b"payload");
        assert_eq!(crc32(b"payload"), crc32fast::hash(&whole));
    }

    /// Bit by bit, as the definition has it.
    fn crc24_slowly(bytes: &[u8]) -> u32 {
        let mut crc = CRC24_INITIAL;
        for byte in bytes {
            crc ^= u32::from(*byte) << 16;
            for _ in 0..8 {
                crc <<= 1;
                if crc & 0x0100_0000 != 0 {
                    crc ^= CRC24_POLYNOMIAL;
                }
            }
        }
        crc
    }

    #[test]
    fn the_table_gives_what_the_definition_gives() {
        assert_eq!(crc24(b""), CRC24_INITIAL);
        for seed in 0..200u8 {
            let bytes: Vec<u8> = (0..seed % 9).map(|n| seed.wrapping_mul(n ^ 0x5b)).collect();
            assert_eq!(crc24(&bytes), crc24_slowly(&bytes));
        }
    }
}
