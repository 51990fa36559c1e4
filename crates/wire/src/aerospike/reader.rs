//! Reading bytes: bounded, never panics, borrows from what was received.

use super::DecodeError;

/// A position in bytes.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.offset..).unwrap_or_default()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// The next `size` bytes.
    #[inline]
    pub(super) fn take(
        &mut self,
        size: usize,
        what: &'static str,
    ) -> Result<&'a [u8], DecodeError> {
        let taken = self.rest().get(..size);
        let taken = taken.ok_or(DecodeError::Truncated { what, offset: self.offset })?;
        self.offset += size;
        Ok(taken)
    }

    #[inline]
    pub(super) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], DecodeError> {
        let truncated = DecodeError::Truncated { what, offset: self.offset };
        let array = self.rest().first_chunk().copied().ok_or(truncated)?;
        self.offset += N;
        Ok(array)
    }

    #[inline]
    pub(super) fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        self.array(what).map(|[byte]| byte)
    }

    #[inline]
    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        self.array(what).map(u16::from_be_bytes)
    }

    #[inline]
    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        self.array(what).map(u32::from_be_bytes)
    }
}

/// Bytes that are text.
pub(super) fn text<'a>(bytes: &'a [u8], what: &'static str) -> Result<&'a str, DecodeError> {
    std::str::from_utf8(bytes).map_err(|_| DecodeError::NotUtf8 { what })
}
