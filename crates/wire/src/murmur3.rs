//! The partitioner's token of a key, and the hash behind it.
//!
//! bytes -> i64 token: the first half of the hash in [`units::murmur3`]. `i64::MIN` is not a token:
//! Cassandra maps it to `i64::MAX`.

pub use units::murmur3::hash;

/// The token of a serialized partition key.
#[must_use]
pub fn token(partition_key: &[u8]) -> i64 {
    match hash(partition_key, 0).0 as i64 {
        i64::MIN => i64::MAX,
        token => token,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the test of the Python driver's `murmur3`, and of an independent program for the
    /// others.
    #[test]
    fn tokens_of_known_keys() {
        for (key, expected) in [
            (&b""[..], 0),
            (b"123", -7_468_325_962_851_647_638),
            (&b"\x00\xff\x10\xfa\x99".repeat(10), 5_837_342_703_291_459_765),
            (&[0xfe; 8], -8_927_430_733_708_461_935),
            (&[0x10; 8], 1_446_172_840_243_228_796),
            (b"9223372036854775807", 7_162_290_910_810_015_547),
            (b"test", -6_017_608_668_500_074_083),
            (b"user6284781860667377211", 4_844_203_595_558_397_365),
            (&[0xff], -4_442_228_696_663_692_417),
            (&[0x01, 0x80, 0xfe], 8_653_147_698_594_588_244),
        ] {
            assert_eq!(token(key), expected, "{key:?}");
        }
    }
}
