//! LZ4 and Snappy blocks, with a bound for what a block may become.
//!
//! Memory for tables is had once per connection; a block costs no allocation but the growth of the
//! caller's buffers.

use super::Compression;
use super::framing::FramingError;
use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};

/// No LZ4 block unpacks to more than this many times its size: a length byte stands for 255 bytes.
const LZ4_RATIO_MAX: usize = 255;
/// No Snappy block either: three bytes copy 64.
const SNAPPY_RATIO_MAX: usize = 64;

/// Packs blocks.
pub(crate) struct Packer {
    kind: Kind,
    /// Of the block under way; as large as the largest so far.
    packed: Vec<u8>,
}

enum Kind {
    None,
    Lz4(Box<CompressTable>),
    Snappy(Box<snap::raw::Encoder>),
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

impl Packer {
    pub(crate) fn new(compression: Compression) -> Self {
        let kind = match compression {
            Compression::None => Kind::None,
            // The small table would have to be replaced at the first long block.
            Compression::Lz4 => Kind::Lz4(Box::new(CompressTable::large())),
            Compression::Snappy => Kind::Snappy(Box::new(snap::raw::Encoder::new())),
        };
        Self { kind, packed: Vec::new() }
    }

    /// Bytes that the block of so many may take while it is made.
    fn size_max(&self, plain_size: usize) -> usize {
        match self.kind {
            Kind::None => 0,
            Kind::Lz4(_) => get_maximum_output_size(plain_size),
            Kind::Snappy(_) => snap::raw::max_compress_len(plain_size),
        }
    }

    /// Sets memory aside for blocks of `plain_size` bytes.
    pub(crate) fn reserve(&mut self, plain_size: usize) {
        let size_max = self.size_max(plain_size);
        if self.packed.len() < size_max {
            self.packed = vec![0; size_max];
        }
    }

    /// The block of `plain`; None when that would be no shorter than `plain` by more than `extra`
    /// bytes.
    pub(crate) fn pack(&mut self, plain: &[u8], extra: usize) -> Option<&[u8]> {
        self.reserve(plain.len());
        let size = match &mut self.kind {
            Kind::None => None,
            Kind::Lz4(table) => compress_into_with_table(plain, &mut self.packed, table).ok(),
            Kind::Snappy(encoder) => encoder.compress(plain, &mut self.packed).ok(),
        };
        size.filter(|size| size + extra < plain.len()).map(|size| &self.packed[..size])
    }
}

/// Appends what an LZ4 block of `plain_size` bytes unpacks to.
pub(crate) fn unpack_lz4(
    block: &[u8],
    plain_size: usize,
    out: &mut Vec<u8>,
) -> Result<(), FramingError> {
    let bad = || FramingError::Block { algorithm: "LZ4", packed: block.len(), plain: plain_size };
    if plain_size > block.len().saturating_mul(LZ4_RATIO_MAX) {
        return Err(bad());
    }
    let start = out.len();
    out.resize(start + plain_size, 0);
    match decompress_into(block, &mut out[start..]) {
        Ok(size) if size == plain_size => Ok(()),
        _ => Err(bad()),
    }
}

/// Appends what a Snappy block unpacks to, at most `size_max` bytes.
pub(crate) fn unpack_snappy(
    block: &[u8],
    size_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), FramingError> {
    let bad = |plain| FramingError::Block { algorithm: "Snappy", packed: block.len(), plain };
    let plain_size = snap::raw::decompress_len(block).map_err(|_| bad(0))?;
    if plain_size > size_max || plain_size > block.len().saturating_mul(SNAPPY_RATIO_MAX) {
        return Err(bad(plain_size));
    }
    let start = out.len();
    out.resize(start + plain_size, 0);
    match snap::raw::Decoder::new().decompress(block, &mut out[start..]) {
        Ok(size) if size == plain_size => Ok(()),
        _ => Err(bad(plain_size)),
    }
}
