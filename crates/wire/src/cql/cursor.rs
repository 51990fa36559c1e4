//! Reading a body: bounded, never panics, borrows from the frame (section 3 has the notations).

use super::{ColumnType, Consistency, DecodeError};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A bound value: the `[value]` of section 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// Serialized bytes.
    Bytes(&'a [u8]),
    /// Null: deletes the cell.
    Null,
    /// Not set: leaves the cell as it is.
    Unset,
}

/// A position in a frame's body.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Cursor<'a> {
    /// At the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// Bytes read so far.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// What has not been read.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.offset..]
    }

    /// The next `size` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] when fewer are left; so does every reader below.
    #[inline]
    pub fn take(&mut self, size: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        match self.rest().get(..size) {
            Some(taken) => {
                self.offset += size;
                Ok(taken)
            }
            None => Err(DecodeError::Truncated { what, offset: self.offset }),
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let taken = self.take(N, what)?;
        taken.try_into().map_err(|_| DecodeError::Truncated { what, offset: self.offset })
    }

    /// `[byte]`
    #[inline]
    pub fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        self.array::<1>(what).map(|[b]| b)
    }

    /// `[short]`
    #[inline]
    pub fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        self.array(what).map(u16::from_be_bytes)
    }

    /// `[int]`
    #[inline]
    pub fn i32(&mut self, what: &'static str) -> Result<i32, DecodeError> {
        self.array(what).map(i32::from_be_bytes)
    }

    /// `[long]`
    #[inline]
    pub fn i64(&mut self, what: &'static str) -> Result<i64, DecodeError> {
        self.array(what).map(i64::from_be_bytes)
    }

    /// `[uuid]`
    pub fn uuid(&mut self, what: &'static str) -> Result<[u8; 16], DecodeError> {
        self.array(what)
    }

    /// An `[int]` that counts things of at least `size_min` bytes each, so that no count is
    /// believed beyond what the frame could hold.
    ///
    /// # Errors
    /// [`DecodeError::Length`] when it is negative or more than the rest could hold.
    pub fn count(&mut self, size_min: usize, what: &'static str) -> Result<usize, DecodeError> {
        let offset = self.offset;
        let value = self.i32(what)?;
        match usize::try_from(value) {
            Ok(count) if size_min == 0 || count <= self.rest().len() / size_min => Ok(count),
            _ => Err(DecodeError::Length { what, value: i64::from(value), offset }),
        }
    }

    fn text(&mut self, size: usize, what: &'static str) -> Result<&'a str, DecodeError> {
        let offset = self.offset;
        std::str::from_utf8(self.take(size, what)?).map_err(|_| DecodeError::NotUtf8 { offset })
    }

    /// `[string]`
    pub fn string(&mut self, what: &'static str) -> Result<&'a str, DecodeError> {
        let size = self.u16(what)?;
        self.text(usize::from(size), what)
    }

    /// `[long string]`
    pub fn long_string(&mut self, what: &'static str) -> Result<&'a str, DecodeError> {
        let size = self.count(1, what)?;
        self.text(size, what)
    }

    /// `[short bytes]`
    pub fn short_bytes(&mut self, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let size = self.u16(what)?;
        self.take(usize::from(size), what)
    }

    /// `[bytes]`: None for null (any negative length).
    #[inline]
    pub fn bytes(&mut self, what: &'static str) -> Result<Option<&'a [u8]>, DecodeError> {
        match usize::try_from(self.i32(what)?) {
            Ok(size) => self.take(size, what).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// `[value]`
    pub fn value(&mut self, what: &'static str) -> Result<Value<'a>, DecodeError> {
        let offset = self.offset;
        match self.i32(what)? {
            -1 => Ok(Value::Null),
            -2 => Ok(Value::Unset),
            size => match usize::try_from(size) {
                Ok(size) => self.take(size, what).map(Value::Bytes),
                Err(_) => Err(DecodeError::Length { what, value: i64::from(size), offset }),
            },
        }
    }

    /// `[string list]`
    pub fn string_list(&mut self, what: &'static str) -> Result<Vec<&'a str>, DecodeError> {
        let count = self.u16(what)?;
        (0..count).map(|_| self.string(what)).collect()
    }

    /// `[string map]`
    pub fn string_map(
        &mut self,
        what: &'static str,
    ) -> Result<Vec<(&'a str, &'a str)>, DecodeError> {
        let count = self.u16(what)?;
        (0..count).map(|_| Ok((self.string(what)?, self.string(what)?))).collect()
    }

    /// `[string multimap]`
    pub fn string_multimap(
        &mut self,
        what: &'static str,
    ) -> Result<Vec<(&'a str, Vec<&'a str>)>, DecodeError> {
        let count = self.u16(what)?;
        (0..count).map(|_| Ok((self.string(what)?, self.string_list(what)?))).collect()
    }

    /// `[bytes map]`, skipped: no side here has a use for custom payloads yet.
    pub fn skip_bytes_map(&mut self, what: &'static str) -> Result<(), DecodeError> {
        for _ in 0..self.u16(what)? {
            self.string(what)?;
            self.bytes(what)?;
        }
        Ok(())
    }

    /// `[inet]`: address and port.
    pub fn inet(&mut self, what: &'static str) -> Result<(IpAddr, i32), DecodeError> {
        let offset = self.offset;
        let address = match self.u8(what)? {
            4 => IpAddr::V4(Ipv4Addr::from(self.array::<4>(what)?)),
            16 => IpAddr::V6(Ipv6Addr::from(self.array::<16>(what)?)),
            size => return Err(DecodeError::Unknown { what, value: u64::from(size), offset }),
        };
        Ok((address, self.i32(what)?))
    }

    /// `[consistency]`
    #[inline]
    pub fn consistency(&mut self) -> Result<Consistency, DecodeError> {
        let (what, offset) = ("consistency level", self.offset);
        let value = self.u16(what)?;
        Consistency::from_u16(value).ok_or(DecodeError::Unknown {
            what,
            value: u64::from(value),
            offset,
        })
    }

    /// `[option]` of a column's type (section 4.2.5.2).
    pub fn column_type(&mut self) -> Result<ColumnType, DecodeError> {
        ColumnType::decode(self, 0)
    }
}
