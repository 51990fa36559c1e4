//! The segments that carry the frames of protocol v5 (its section 2).
//!
//! A segment is a header with the size of its payload, a flag and a CRC-24; the payload; and the
//! payload's CRC-32, little-endian. A segment that contains itself holds whole frames only; the
//! others are parts of one frame. With LZ4 the header carries the size before compression too, 0
//! where the payload is as it was.

use super::Compression;
use super::checksum::{crc24, crc32};
use super::framing::FramingError;

/// Greatest payload of a segment, before and after compression, in bytes.
pub const PAYLOAD_SIZE_MAX: usize = (1 << 17) - 1;
/// Bytes of a header without compression: 17 bits of size, the flag, 6 bits unused, CRC-24.
pub const SEGMENT_HEADER_SIZE: usize = 6;
/// Bytes of a header with compression: twice 17 bits of size, the flag, 5 bits unused, CRC-24.
pub const COMPRESSED_HEADER_SIZE: usize = 8;
/// Bytes of the payload's CRC-32 behind it.
pub const TRAILER_SIZE: usize = 4;

/// A segment's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Bytes of the payload on the wire.
    pub payload_size: usize,
    /// Bytes that it unpacks to; None where it is not compressed.
    pub plain_size: Option<usize>,
    /// Holds whole frames only.
    pub self_contained: bool,
}

/// Bytes of a header on a connection with this compression.
#[must_use]
pub fn header_size(compression: Compression) -> usize {
    match compression {
        Compression::None => SEGMENT_HEADER_SIZE,
        Compression::Lz4 | Compression::Snappy => COMPRESSED_HEADER_SIZE,
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

impl SegmentHeader {
    /// Reads a header; None when fewer bytes than one takes are there.
    ///
    /// # Errors
    /// [`FramingError::HeaderChecksum`] when its CRC is not that of its bytes.
    pub fn decode(bytes: &[u8], compression: Compression) -> Result<Option<Self>, FramingError> {
        let Some(header) = bytes.get(..header_size(compression)) else { return Ok(None) };
        let (fields, crc) = header.split_at(header.len() - 3);
        let (stated, computed) = (little_endian(crc) as u32, crc24(fields));
        if stated != computed {
            return Err(FramingError::HeaderChecksum { stated, computed });
        }
        let fields = little_endian(fields);
        let size = |shift: u32| (fields >> shift) as usize & PAYLOAD_SIZE_MAX;
        Ok(Some(match compression {
            Compression::None => Self {
                payload_size: size(0),
                plain_size: None,
                self_contained: fields >> 17 & 1 != 0,
            },
            Compression::Lz4 | Compression::Snappy => Self {
                payload_size: size(0),
                plain_size: Some(size(17)).filter(|&size| size > 0),
                self_contained: fields >> 34 & 1 != 0,
            },
        }))
    }

    /// Appends the header.
    pub fn encode(&self, compression: Compression, out: &mut Vec<u8>) {
        let size = self.payload_size.min(PAYLOAD_SIZE_MAX) as u64;
        let flag = u64::from(self.self_contained);
        let fields = match compression {
            Compression::None => size | flag << 17,
            Compression::Lz4 | Compression::Snappy => {
                let plain = self.plain_size.unwrap_or(0).min(PAYLOAD_SIZE_MAX) as u64;
                size | plain << 17 | flag << 34
            }
        };
        let start = out.len();
        let size = header_size(compression) - 3;
        out.extend_from_slice(&fields.to_le_bytes()[..size]);
        let crc = crc24(&out[start..]);
        out.extend_from_slice(&crc.to_le_bytes()[..3]);
    }
}

/// Appends a whole segment: header, `wired` as it is, trailer. `plain_size` is None where it is not
/// compressed.
pub fn put_segment(
    compression: Compression,
    wired: &[u8],
    plain_size: Option<usize>,
    self_contained: bool,
    out: &mut Vec<u8>,
) {
    let header = SegmentHeader { payload_size: wired.len(), plain_size, self_contained };
    header.encode(compression, out);
    out.extend_from_slice(wired);
    out.extend_from_slice(&crc32(wired).to_le_bytes());
}

/// Checks a payload against the CRC-32 behind it.
///
/// # Errors
/// [`FramingError::PayloadChecksum`] when they do not agree.
pub(crate) fn check_payload(payload: &[u8], trailer: &[u8]) -> Result<(), FramingError> {
    let (stated, computed) = (little_endian(trailer) as u32, crc32(payload));
    match stated == computed {
        true => Ok(()),
        false => Err(FramingError::PayloadChecksum { stated, computed }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_the_wire_and_no_changed_bit_does() {
        let sizes = [0, 1, 255, 65_536, PAYLOAD_SIZE_MAX];
        for compression in [Compression::None, Compression::Lz4] {
            for payload_size in sizes {
                for self_contained in [false, true] {
                    let plain_size = match compression {
                        Compression::None => None,
                        _ => Some(payload_size / 2).filter(|&size| size > 0),
                    };
                    let header = SegmentHeader { payload_size, plain_size, self_contained };
                    let mut bytes = Vec::new();
                    header.encode(compression, &mut bytes);
                    assert_eq!(bytes.len(), header_size(compression));
                    assert_eq!(SegmentHeader::decode(&bytes, compression), Ok(Some(header)));
                    let short = SegmentHeader::decode(&bytes[1..], compression);
                    assert_eq!(short, Ok(None));
                    for bit in 0..bytes.len() * 8 {
                        let mut changed = bytes.clone();
                        changed[bit / 8] ^= 1 << (bit % 8);
                        let refused = SegmentHeader::decode(&changed, compression);
                        assert!(matches!(refused, Err(FramingError::HeaderChecksum { .. })));
                    }
                }
            }
        }
    }
}
