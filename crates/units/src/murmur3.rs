//! Murmur3 x64 128-bit as Cassandra computes it: behind the partitioner's tokens and behind the
//! salts of cassandra-stress.
//!
//! Bytes and a seed -> two 64-bit halves. Differs from Appleby's original in the tail, whose bytes
//! Cassandra sign-extends before they are mixed (`org.apache.cassandra.utils.MurmurHash`,
//! `hash3_x64_128`); the difference shows only where the last `len % 16` bytes hold one above 0x7f.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// The 128-bit hash as two halves.
#[must_use]
pub fn hash(data: &[u8], seed: u64) -> (u64, u64) {
    let (mut h1, mut h2) = (seed, seed);
    let mut blocks = data.chunks_exact(16);
    for block in &mut blocks {
        let (low, high) = block.split_at(8);
        h1 ^= mix_k1(word(low));
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix_k2(word(high));
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let tail = blocks.remainder();
    if tail.len() > 8 {
        h2 ^= mix_k2(signed_tail(&tail[8..]));
    }
    if !tail.is_empty() {
        h1 ^= mix_k1(signed_tail(&tail[..tail.len().min(8)]));
    }
    h1 ^= data.len() as u64;
    h2 ^= data.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    (h1, h2.wrapping_add(h1))
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &b| word << 8 | u64::from(b))
}

/// Cassandra's quirk: each byte is sign-extended to 64 bits, shifted, and mixed in with xor.
fn signed_tail(bytes: &[u8]) -> u64 {
    bytes.iter().enumerate().fold(0, |word, (i, &b)| word ^ (i64::from(b as i8) as u64) << (8 * i))
}

fn mix_k1(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix_k2(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn finish(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ k >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First halves: values of the test of the Python driver's `murmur3`, and of an independent
    /// program for the others.
    #[test]
    fn hashes_of_known_bytes() {
        for (data, expected) in [
            (&b""[..], 0),
            (b"123", -7_468_325_962_851_647_638i64),
            (&b"\x00\xff\x10\xfa\x99".repeat(10), 5_837_342_703_291_459_765),
            (&[0xff], -4_442_228_696_663_692_417),
            (b"randomstrkey", -6_294_861_599_187_687_378),
        ] {
            assert_eq!(hash(data, 0).0.cast_signed(), expected, "{data:?}");
        }
    }
}
