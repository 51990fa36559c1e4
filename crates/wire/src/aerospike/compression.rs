//! Compressed messages: the size of what was deflated, in eight bytes, and a zlib stream of a
//! whole message with its header.

use super::DecodeError;
use super::proto::{PROTO_SIZE, ProtoHeader, ProtoKind, begin, finish};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Bytes before the stream.
const SIZE_BYTES: usize = 8;

/// Appends a whole message, header and all, compressed; as it is when that is no longer.
pub fn compress(message: &[u8], out: &mut Vec<u8>) {
    let start = begin(out);
    out.extend_from_slice(&(message.len() as u64).to_be_bytes());
    let head = out.len();
    // Deflate makes of bytes it cannot shorten five more in 16 KiB, and six around them.
    out.resize(head + message.len() + message.len() / 2048 + 64, 0);
    let mut deflate = Compress::new(Compression::fast(), true);
    let status = deflate.compress(message, &mut out[head..], FlushCompress::Finish);
    let size = deflate.total_out() as usize;
    if matches!(status, Ok(Status::StreamEnd)) && head + size - start < message.len() {
        out.truncate(head + size);
        finish(out, start, ProtoKind::Compressed);
    } else {
        out.truncate(start);
        out.extend_from_slice(message);
    }
}

/// Inflates the body of a compressed message into `out`, which is cleared: a whole message with
/// its header, at most `size_max` bytes behind that.
///
/// # Errors
/// [`DecodeError`] when it is larger, not what it claims, or no message.
pub fn decompress(body: &[u8], size_max: usize, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let truncated = DecodeError::Truncated { what: "the size of a compressed message", offset: 0 };
    let (size, stream) = body.split_first_chunk::<SIZE_BYTES>().ok_or(truncated)?;
    let (value, max) = (u64::from_be_bytes(*size), (size_max + PROTO_SIZE) as u64);
    if value > max {
        return Err(DecodeError::Length { what: "compressed message", value, max });
    }
    // Deflate shortens by 1032 at most: nothing is allocated by a size that is only claimed.
    let size = value as usize;
    if size / 1032 > stream.len() {
        return Err(DecodeError::Compressed { size });
    }
    out.clear();
    out.resize(size, 0);
    let mut inflate = Decompress::new(true);
    let status = inflate.decompress(stream, out, FlushDecompress::Finish);
    let is_whole = matches!(status, Ok(Status::StreamEnd)) && inflate.total_out() == value;
    let header = ProtoHeader::decode(out, size_max)?;
    match header {
        Some(ProtoHeader { kind: ProtoKind::Message, size: body })
            if is_whole && body + PROTO_SIZE == size =>
        {
            Ok(())
        }
        _ => Err(DecodeError::Compressed { size }),
    }
}
