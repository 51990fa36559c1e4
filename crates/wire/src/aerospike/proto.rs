//! The eight bytes before every body: version, kind, and a size of 48 bits.

use super::DecodeError;

/// Bytes of the header.
pub const PROTO_SIZE: usize = 8;
/// The only version there is.
pub const VERSION: u8 = 2;

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ProtoKind {
    /// Lines of text; see [`super::info`].
    Info = 1,
    /// Users, roles and logins.
    Admin = 2,
    /// A message on records; see [`super::Message`].
    Message = 3,
    /// A message on records, with its header, deflated; see [`super::decompress`].
    Compressed = 4,
}

/// The header of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtoHeader {
    /// What it is.
    pub kind: ProtoKind,
    /// Bytes behind the header.
    pub size: usize,
}

impl ProtoHeader {
    /// Reads the first eight bytes; None when there are fewer.
    ///
    /// # Errors
    /// [`DecodeError`] when version or kind is not known, or the size is above `size_max` bytes.
    #[inline]
    pub fn decode(bytes: &[u8], size_max: usize) -> Result<Option<Self>, DecodeError> {
        let Some(head) = bytes.first_chunk::<PROTO_SIZE>() else { return Ok(None) };
        if head[0] != VERSION {
            let value = u64::from(head[0]);
            return Err(DecodeError::Unknown { what: "protocol version", value });
        }
        let kind = match head[1] {
            1 => ProtoKind::Info,
            2 => ProtoKind::Admin,
            3 => ProtoKind::Message,
            4 => ProtoKind::Compressed,
            other => {
                let value = u64::from(other);
                return Err(DecodeError::Unknown { what: "protocol type", value });
            }
        };
        let value = u64::from_be_bytes(*head) & 0xFFFF_FFFF_FFFF;
        match usize::try_from(value) {
            Ok(size) if size <= size_max => Ok(Some(Self { kind, size })),
            _ => Err(DecodeError::Length { what: "message", value, max: size_max as u64 }),
        }
    }

    /// The eight bytes.
    #[must_use]
    #[inline]
    pub fn encode(&self) -> [u8; PROTO_SIZE] {
        let head = self.size as u64 & 0xFFFF_FFFF_FFFF;
        (head | u64::from(VERSION) << 56 | (self.kind as u64) << 48).to_be_bytes()
    }
}

/// Leaves room for a header at the end of `out`; its place is for [`finish`].
#[must_use]
pub fn begin(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; PROTO_SIZE]);
    out.len() - PROTO_SIZE
}

/// Writes the header at `start`: all that stands behind it is its body.
pub fn finish(out: &mut [u8], start: usize, kind: ProtoKind) {
    let size = out.len().saturating_sub(start + PROTO_SIZE);
    if let Some(head) = out.get_mut(start..start + PROTO_SIZE) {
        head.copy_from_slice(&ProtoHeader { kind, size }.encode());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for kind in [ProtoKind::Info, ProtoKind::Admin, ProtoKind::Message, ProtoKind::Compressed] {
            let header = ProtoHeader { kind, size: 0x0001_0203 };
            let bytes = header.encode();
            assert_eq!(bytes[0], 2);
            assert_eq!(ProtoHeader::decode(&bytes, 1 << 20), Ok(Some(header)));
            assert_eq!(ProtoHeader::decode(&bytes[..7], 1 << 20), Ok(None));
            assert!(ProtoHeader::decode(&bytes, 0x0001_0202).is_err());
        }
        assert!(ProtoHeader::decode(&[1, 3, 0, 0, 0, 0, 0, 0], 1).is_err());
        assert!(ProtoHeader::decode(&[2, 5, 0, 0, 0, 0, 0, 0], 1).is_err());
        assert!(
            ProtoHeader::decode(&[2, 3, 255, 255, 255, 255, 255, 255], usize::MAX >> 32).is_err()
        );
    }
}
